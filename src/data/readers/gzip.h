// Reading of plain and gzip-compressed files, from beginning to end.
#pragma once

#include "heed/base/tensor.h"
#include "heed/io/file.h"

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace heed::data {

/// A regular file, decompressed if its first two bytes are gzip's. As in gzip, several members are concatenated, and
/// zeros after them are ignored.
class UnpackedFile {
 public:
  explicit UnpackedFile(const std::string& path);
  UnpackedFile(const UnpackedFile&) = delete;
  UnpackedFile& operator=(const UnpackedFile&) = delete;
  ~UnpackedFile() { inflateEnd(&stream_); }

  /// Returns the maximum uncompressed length: deflate shrinks nothing below 1/1032 of its length (a match of 258 bytes
  /// takes at least 2 bits).
  Index capacity() const;

  /// Reads up to `count` bytes; fewer at the end of the file only. Throws Error if a compressed file is damaged, is
  /// followed by other data or ends before its checksum.
  Index read(std::uint8_t* to, Index count);

 private:
  /// Reads the next bytes without decompression, at most `count`; none at the end of the file.
  Index read_packed(std::uint8_t* to, Index count);

  /// Fills the stream's input; returns false at the end of the file.
  bool refill();

  InputFile file_;
  std::uint64_t offset_ = 0;  // offset of the next unread byte
  bool compressed_ = false;
  bool between_ = false;  // after a member's checksum, before the next member
  bool zeros_ = false;    // zeros have followed a member
  std::vector<std::uint8_t> packed_;
  z_stream stream_{};
};

}  // namespace heed::data
