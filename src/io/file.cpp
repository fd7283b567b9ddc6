#include "heed/io/file.h"

#include "heed/base/error.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

namespace heed {
namespace {

[[noreturn]] void fail_system(const std::string& path, const char* action) {
  fail("{}: cannot {}: {}", path, action, std::strerror(errno));
}

// Syncs the directory of `path`, so that a new name in it is on the disk. Some file systems refuse to sync a directory;
// then the rename alone must suffice.
void sync_directory(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  const Descriptor directory(::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory >= 0) ::fsync(directory);
}

// Opens an unnamed file in the directory of `path`; the file vanishes if this process is killed. Returns -1 on failure,
// for example if the file system does not support unnamed files. commit() names the file through /proc.
int open_nameless(const std::string& path, mode_t mode) {
#ifdef O_TMPFILE
  const std::string parent = std::filesystem::path(path).parent_path();
  if (::access("/proc/self/fd", X_OK) == 0)
    return ::open(parent.empty() ? "." : parent.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
#endif
  return -1;
}

// Returns the name of a temporary file of `path`: NAME.PID.part or, for attempt N > 0, NAME.PID-N.part.
std::string temporary_name(const std::string& path, int attempt = 0) {
  return fmt::format("{}.{}{}.part", path, ::getpid(), attempt > 0 ? fmt::format("-{}", attempt) : "");
}

void write_all(int file, const std::string& path, const void* bytes, std::size_t count) {
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t done = ::write(file, at, count);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_system(path, "write");
    at += done;
    count -= static_cast<std::size_t>(done);
  }
}

}  // namespace

// Reads up to the actual end: files in /proc have size 0.
std::string read_file(const std::string& path, std::uint64_t limit) {
  const InputFile file(path);
  std::string content;
  char piece[65536];
  while (const std::size_t count = file.read_some(content.size(), piece, sizeof piece)) {
    content.append(piece, count);
    require(content.size() <= limit, "{}: the file has more than {} bytes", path, limit);
  }
  return content;
}

std::string_view without_mark(std::string_view text) {
  if (text.starts_with(utf8_mark)) text.remove_prefix(utf8_mark.size());
  return text;
}

std::string_view utf8_text(std::string_view text, const std::string& path) {
  using namespace std::string_view_literals;
  constexpr std::pair<std::string_view, const char*> marks[] = {
      {"\xff\xfe\0\0"sv, "UTF-32"}, {"\xff\xfe"sv, "UTF-16"}, {"\xfe\xff"sv, "UTF-16"}};
  for (const auto& [mark, encoding] : marks)
    require(!text.starts_with(mark), "{}: the text is {}; expected UTF-8; convert it with `iconv -f {} -t UTF-8`", path,
            encoding, encoding);
  return without_mark(text);
}

std::string read_text_file(const std::string& path, std::uint64_t limit) {
  const std::string text = read_file(path, limit);
  return std::string(utf8_text(text, path));
}

void write_file(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

bool make_directory(const std::string& path) {
  std::error_code error;
  const bool made = std::filesystem::create_directories(path, error);
  require(!error, "{}: cannot be created: {}", path, error.message());
  return made;
}

bool same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code none;
  // weakly_canonical() leaves relative paths of missing files relative, so paths are made absolute first.
  const auto place = [&](const std::string& path) { return fs::weakly_canonical(fs::absolute(path, none), none); };
  return fs::equivalent(a, b, none) || place(a) == place(b);
}

std::string with_plain_parents(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code none;
  const bool changes = fs::exists(path, none) && !same_file(path, fs::path(path).lexically_normal());
  return changes ? fs::canonical(path).string() : path;
}

Descriptor::~Descriptor() {
  if (file_ >= 0) ::close(file_);
}

// Regular files only: reading from a pipe would wait for data, and a device may never end. O_NONBLOCK avoids waiting
// for a pipe's other end; regular files ignore it.
InputFile::InputFile(std::string path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (file_ < 0) fail_system(path_, "open");
  struct stat status {};
  const bool known = ::fstat(file_, &status) == 0;
  require(!known || !S_ISDIR(status.st_mode), "{}: cannot read: a directory; expected a file", path_);
  require(known && S_ISREG(status.st_mode), "{}: cannot read: not a regular file", path_);
  size_ = static_cast<std::uint64_t>(status.st_size);
}

std::size_t InputFile::read_some(std::uint64_t offset, void* bytes, std::size_t count) const {
  ssize_t done = 0;
  do done = ::pread(file_, bytes, count, static_cast<off_t>(offset));
  while (done < 0 && errno == EINTR);
  if (done < 0) fail_system(path_, "read");
  return static_cast<std::size_t>(done);
}

void InputFile::read(std::uint64_t offset, void* bytes, std::size_t count) const {
  char* at = static_cast<char*>(bytes);
  while (count > 0) {
    const std::size_t done = read_some(offset, at, count);
    require(done > 0, "{}: ends at byte {}; {} more were expected", path_, offset, count);
    at += done;
    offset += done;
    count -= done;
  }
}

// For a symbolic link, the target file is replaced, not the link. Devices and pipes are refused: a rename over
// /dev/null would put a file in its place.
AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    path_ = std::filesystem::canonical(path, ignored);
    require(std::filesystem::is_regular_file(path_, ignored), "{}: cannot write: not a regular file", path);
  }
  create_temporary();
}

// Calls make() with one temporary name after another until it creates a new file. Existing entries of such names,
// perhaps links to other files, are left alone.
template <class Make>
void AtomicFile::name_temporary(const Make& make) {
  constexpr int attempts = 1000;
  for (int i = 0; i < attempts; ++i) {
    temporary_ = temporary_name(path_, i);
    if (make(temporary_.c_str())) return;
    if (errno != EEXIST) break;
  }
  temporary_.clear();
  fail_system(path_, "write");
}

// The new file is never more accessible than the replaced one.
void AtomicFile::create_temporary() {
  struct stat replaced {};
  const bool replaces = ::stat(path_.c_str(), &replaced) == 0;
  const mode_t mode = replaces ? replaced.st_mode & 0777 : 0666;
  file_ = Descriptor(open_nameless(path_, mode));
  // A name that is too long for commit() is reported before anything is written.
  if (file_ >= 0 && ::access(temporary_name(path_).c_str(), F_OK) != 0 && errno == ENAMETOOLONG)
    fail_system(path_, "write");
  if (file_ < 0)
    name_temporary([&](const char* name) {
      file_ = Descriptor(::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
      return file_ >= 0;
    });
  if (replaces) ::fchmod(file_, mode);  // undoes the umask of open
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0 && !temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* bytes, std::size_t count) { write_all(file_, path_, bytes, count); }

void AtomicFile::commit() {
  HEED_ASSERT(file_ >= 0);
  if (::fsync(file_) != 0) fail_system(path_, "write");
  if (temporary_.empty())
    name_temporary([itself = fmt::format("/proc/self/fd/{}", static_cast<int>(file_))](const char* name) {
      return ::linkat(AT_FDCWD, itself.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
    });
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_system(path_, "replace");
  file_ = Descriptor();
  sync_directory(path_);
}

void AtomicFiles::write(const std::string& path, std::string_view content) { files_.emplace_back(path).write(content); }

void AtomicFiles::commit() {
  for (AtomicFile& file : files_) file.commit();
}

void remove_leftovers(const std::string& path) {
  const std::filesystem::path target(path);
  const std::string start = target.filename().string() + ".", end = ".part";
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(target.parent_path(), ignored)) {
    const std::string name = entry.path().filename();
    const bool ours = name.size() > start.size() + end.size() && name.starts_with(start) && name.ends_with(end);
    if (ours && entry.symlink_status().type() == std::filesystem::file_type::regular)
      std::filesystem::remove(entry.path(), ignored);
  }
}

AppendedFile::AppendedFile(std::string path)
    : path_(std::move(path)),
      file_(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666)) {
  if (file_ < 0) fail_system(path_, "write");
}

void AppendedFile::append(std::string_view text) { write_all(file_, path_, text.data(), text.size()); }

void AppendedFile::sync() {
  if (::fsync(file_) != 0) fail_system(path_, "write");
  struct stat open {
  }, named{};
  const bool same = ::fstat(file_, &open) == 0 && ::stat(path_.c_str(), &named) == 0 && open.st_ino == named.st_ino &&
                    open.st_dev == named.st_dev;
  require(same, "{}: removed or replaced during writing", path_);
}

DirectoryLock::DirectoryLock(const std::string& directory, Holders holders, std::chrono::milliseconds patience)
    : directory_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | (holders == Holders::process ? O_CLOEXEC : 0))) {
  if (directory_ < 0) fail_system(directory, "open");
  constexpr std::chrono::milliseconds between{20};
  for (;; patience -= between) {
    // On a file system without such locks, the directory is used without a lock.
    if (::flock(directory_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    if (patience <= std::chrono::milliseconds::zero()) break;
    std::this_thread::sleep_for(between);
  }
  fail("{}: another process is using this directory; wait until it ends", directory);
}

}  // namespace heed
