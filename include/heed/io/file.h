// Reading and atomic writing of files: a reader sees the old or the new content, never a partial one. Errors name the
// path and the system's reason.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

namespace heed {

/// Returns the content of a regular file of at most `limit` bytes.
std::string read_file(const std::string& path, std::uint64_t limit = std::uint64_t{1} << 30);

/// UTF-8's byte order mark, which is not part of the text.
inline constexpr std::string_view utf8_mark = "\xef\xbb\xbf";

/// Returns the text without UTF-8's byte order mark at its start.
std::string_view without_mark(std::string_view text);

/// Returns the content `text` of the file `path`, like without_mark(). For UTF-16 and UTF-32, throws Error that says
/// how to convert the file.
std::string_view utf8_text(std::string_view text, const std::string& path);

/// Returns the content of a text file, like utf8_text().
std::string read_text_file(const std::string& path, std::uint64_t limit = std::uint64_t{1} << 30);

/// Replaces a file's content atomically.
void write_file(const std::string& path, std::string_view content);

/// Creates a directory and its parents. Returns false if the directory already exists.
bool make_directory(const std::string& path);

/// Returns true if both paths lead to the same file, which need not exist.
bool same_file(const std::string& a, const std::string& b);

/// Returns a path to the same file that stays valid if "x/.." is removed from it: the canonical path if x is a link
/// elsewhere, otherwise `path`.
std::string with_plain_parents(const std::string& path);

/// Owner of a file descriptor; -1: none.
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

/// A regular file open for random access, by several threads at once. It refers to the same file even if its path is
/// replaced.
class InputFile {
 public:
  explicit InputFile(std::string path);

  const std::string& path() const { return path_; }

  /// Returns the file's size in bytes when it was opened.
  std::uint64_t size() const { return size_; }

  /// Fills bytes[0, count) with the file's content from `offset` on.
  void read(std::uint64_t offset, void* bytes, std::size_t count) const;

  /// Reads up to `count` bytes and returns their number, 0 only at the end of the file.
  std::size_t read_some(std::uint64_t offset, void* bytes, std::size_t count) const;

 private:
  std::string path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

/// A file written in its target's directory: without a name or, if the system does not support unnamed files, under a
/// new temporary name such as NAME.PID.part. commit() flushes it to the disk and gives it the target's name and
/// permissions; without commit() it is removed, and the target stays unchanged.
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

  std::string path_, temporary_;  ///< temporary_ is empty while the file has no name
  Descriptor file_;
};

/// Files replaced together: none is replaced before all have been written.
class AtomicFiles {
 public:
  void write(const std::string& path, std::string_view content);

  /// Replaces the files in the order they were written.
  void commit();

 private:
  std::deque<AtomicFile> files_;
};

/// Removes temporary files of `path` left by killed processes. No other process may be writing the file.
void remove_leftovers(const std::string& path);

/// A file that grows line by line. A line is visible to readers once written, and on the disk after sync().
class AppendedFile {
 public:
  explicit AppendedFile(std::string path);

  void append(std::string_view text);

  /// Flushes the lines to the disk. Throws Error if that fails, or if the file has been removed or renamed.
  void sync();

 private:
  std::string path_;
  Descriptor file_;
};

/// Exclusive lock on a directory, released by the destructor or when the process ends, however it ends. Without effect
/// on file systems that lack such locks.
class DirectoryLock {
 public:
  enum class Holders { process, process_and_programs_it_starts };

  /// Throws Error if another process still holds the lock after `patience`. With process_and_programs_it_starts, child
  /// processes share the lock and hold it until they have ended.
  explicit DirectoryLock(const std::string& directory, Holders holders = Holders::process,
                         std::chrono::milliseconds patience = {});

 private:
  Descriptor directory_;
};

}  // namespace heed
