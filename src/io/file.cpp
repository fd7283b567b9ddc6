#include "heed/io/file.h"

#include "heed/base/error.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace heed {
namespace {

[[noreturn]] void fail_system(const std::string& path, const char* action) {
  fail("{}: cannot {}: {}", path, action, std::strerror(errno));
}

int open_for_reading(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail_system(path, "open");
  return file;
}

// A new name is on the disk once its directory is. Some file systems refuse to sync a directory; there the
// rename alone has to do.
void sync_directory(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  const int directory = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  ::fsync(directory);
  ::close(directory);
}

}  // namespace

std::string read_file(const std::string& path) {
  const int file = open_for_reading(path);
  std::string content;
  char piece[65536];
  ssize_t count = 0;
  while ((count = ::read(file, piece, sizeof piece)) != 0) {
    if (count > 0) {
      content.append(piece, static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      const int reason = errno;
      ::close(file);
      errno = reason;
      fail_system(path, "read");
    }
  }
  ::close(file);
  return content;
}

void write_file(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

InputFile::InputFile(std::string path) : path_(std::move(path)), file_(open_for_reading(path_)) {
  struct stat status {};
  const bool known = ::fstat(file_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(file_);
    fail("{}: cannot read: not a regular file", path_);
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), size_(other.size_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(size_, other.size_);
  return *this;
}

InputFile::~InputFile() {
  if (file_ >= 0) ::close(file_);
}

void InputFile::read(std::uint64_t offset, void* bytes, std::size_t count) const {
  char* at = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t done = ::pread(file_, at, count, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_system(path_, "read");
    require(done > 0, "{}: ends at byte {}; {} more were expected", path_, offset, count);
    at += done;
    offset += static_cast<std::uint64_t>(done);
    count -= static_cast<std::size_t>(done);
  }
}

// Through a symbolic link the file behind it is replaced, not the link. Devices and pipes cannot be replaced: a
// rename over /dev/null would put a file in its place.
AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    path_ = std::filesystem::canonical(path, ignored);
    require(std::filesystem::is_regular_file(path_, ignored), "{}: cannot write: not a regular file", path);
  }
  create_temporary();
}

// The temporary file is always a new one: what has its name already, a link to somebody's file perhaps, is left alone
// and another name taken. Nobody gains access to what was closed to them while the file is replaced.
void AtomicFile::create_temporary() {
  struct stat replaced {};
  const bool replaces = ::stat(path_.c_str(), &replaced) == 0;
  const mode_t mode = replaces ? replaced.st_mode & 0777 : 0666;
  constexpr int attempts = 1000;
  for (int i = 0; i < attempts && file_ < 0; ++i) {
    temporary_ = fmt::format("{}.{}{}.part", path_, ::getpid(), i > 0 ? fmt::format("-{}", i) : "");
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file_ < 0 && errno != EEXIST) break;
  }
  if (file_ < 0) fail_system(path_, "write");
  if (replaces) ::fchmod(file_, mode);  // open took the process's mask off
}

AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* bytes, std::size_t count) {
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t done = ::write(file_, at, count);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_system(path_, "write");
    at += done;
    count -= static_cast<std::size_t>(done);
  }
}

void AtomicFile::commit() {
  HEED_ASSERT(file_ >= 0);
  if (::fsync(file_) != 0) fail_system(path_, "write");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_system(path_, "replace");
  ::close(std::exchange(file_, -1));
  sync_directory(path_);
}

}  // namespace heed
