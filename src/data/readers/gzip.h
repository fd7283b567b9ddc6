// Files that may be compressed by gzip, read from beginning to end.
#pragma once

#include "heed/base/tensor.h"
#include "heed/io/file.h"

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace heed::data {

/// A regular file, or what gzip made it of: the first two bytes tell. Several gzip files one after the other count as
/// one, and zeros behind them as nothing, as they do for gzip itself.
class UnpackedFile {
 public:
  explicit UnpackedFile(const std::string& path);
  UnpackedFile(const UnpackedFile&) = delete;
  UnpackedFile& operator=(const UnpackedFile&) = delete;
  ~UnpackedFile() { inflateEnd(&stream_); }

  /// The most bytes that the file can hold when uncompressed: deflate shrinks nothing below 1/1032 of its length
  /// (a match of 258 bytes takes at least 2 bits).
  Index capacity() const;

  /// Reads up to `count` bytes; fewer at the end of the file only. Throws Error if a compressed file is damaged, has
  /// something else behind it or ends before its checksum.
  Index read(std::uint8_t* to, Index count);

 private:
  /// The next bytes as they are in the file, at most `count`; none at its end.
  Index read_packed(std::uint8_t* to, Index count);

  /// Makes input for the stream; false at the end of the file.
  bool refill();

  InputFile file_;
  std::uint64_t offset_ = 0;  // of what has not been read yet
  bool compressed_ = false;
  bool between_ = false;  // the stream has ended with its checksum, and no other has begun
  bool zeros_ = false;    // behind that
  std::vector<std::uint8_t> packed_;
  z_stream stream_{};
};

}  // namespace heed::data
