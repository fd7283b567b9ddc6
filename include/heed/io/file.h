// Whole files: read at once, read in pieces, and written so that a reader sees the old content or the new,
// never a half. Errors name the path and the system's reason.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

namespace heed {

/// The content of a regular file of at most `limit` bytes.
std::string read_file(const std::string& path, std::uint64_t limit = std::uint64_t{1} << 30);

/// UTF-8's byte order mark, which is no text.
inline constexpr std::string_view utf8_mark = "\xef\xbb\xbf";

/// The content of a text file, without the mark.
std::string read_text_file(const std::string& path, std::uint64_t limit = std::uint64_t{1} << 30);

/// Replaces a file's content in one step.
void write_file(const std::string& path, std::string_view content);

/// Creates a directory and those above it. Returns false if it exists.
bool make_directory(const std::string& path);

/// An open file of the system, which is closed at the end; -1: none.
class Descriptor {
 public:
  explicit Descriptor(int file = -1) : file_(file) {}
  Descriptor(Descriptor&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~Descriptor();
  operator int() const { return file_; }

 private:
  int file_;
};

/// A regular file open for reading at any place; calls from several threads do not disturb each other. It keeps
/// the file it opened even when another takes its name.
class InputFile {
 public:
  explicit InputFile(std::string path);

  const std::string& path() const { return path_; }

  /// Bytes in the file when it was opened.
  std::uint64_t size() const { return size_; }

  /// Fills `bytes[0, count)` from `offset` on.
  void read(std::uint64_t offset, void* bytes, std::size_t count) const;

  /// Reads up to `count` bytes and says how many; none at the end of the file only.
  std::size_t read_some(std::uint64_t offset, void* bytes, std::size_t count) const;

 private:
  std::string path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

/// A file being written beside its target: without a name, or where there are no such files under a temporary one,
/// NAME.PID.part or another that is new and ends so. commit() brings it to the disk and gives it the target's name and,
/// if there was a target, its permissions; without commit() it vanishes, and the target stays what it was.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();

  void write(const void* bytes, std::size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();

 private:
  void create_temporary();
  template <class Make>
  void name_temporary(const Make& make);

  std::string path_, temporary_;  ///< the second is empty while the file has no name
  Descriptor file_;
};

/// Files that replace others together: nothing is replaced before all of them have been written.
class AtomicFiles {
 public:
  void write(const std::string& path, std::string_view content);

  /// Replaces the files in the order in which they were written.
  void commit();

 private:
  std::deque<AtomicFile> files_;
};

/// Removes temporary files of `path` that processes have left which died while they wrote it. Only for whom no other
/// process writes it at this time.
void remove_leftovers(const std::string& path);

/// A file that grows line by line. Readers see a line as soon as it is written; it is on the disk after sync().
class AppendedFile {
 public:
  explicit AppendedFile(std::string path);

  void append(std::string_view text);

  /// Throws Error also where the file is no longer there under its name.
  void sync();

 private:
  std::string path_;
  Descriptor file_;
};

/// A directory that this process has for itself, until it ends in whatever way.
class DirectoryLock {
 public:
  enum class Holders { process, process_and_programs_it_starts };

  /// Throws Error where another has it, and still has it after `patience`. Programs that this process starts may hold
  /// it too: until they have ended.
  explicit DirectoryLock(const std::string& directory, Holders holders = Holders::process,
                         std::chrono::milliseconds patience = {});

 private:
  Descriptor directory_;
};

}  // namespace heed
