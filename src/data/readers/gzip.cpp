#include "gzip.h"

#include "heed/base/error.h"

#include <algorithm>

namespace heed::data {

UnpackedFile::UnpackedFile(const std::string& path) : file_(path), packed_(1 << 18) {
  compressed_ = refill() && stream_.avail_in >= 2 && packed_[0] == 0x1f && packed_[1] == 0x8b;
  if (!compressed_) offset_ = 0;
  // 16 selects the gzip format.
  require(inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK, "{}: cannot be uncompressed: not enough memory", path);
}

Index UnpackedFile::capacity() const { return static_cast<Index>(file_.size()) * (compressed_ ? 1032 : 1); }

Index UnpackedFile::read_packed(std::uint8_t* to, Index count) {
  count = std::min(count, static_cast<Index>(file_.size() - offset_));
  file_.read(offset_, to, static_cast<std::size_t>(count));
  offset_ += static_cast<std::uint64_t>(count);
  return count;
}

bool UnpackedFile::refill() {
  stream_.next_in = packed_.data();
  stream_.avail_in = static_cast<unsigned>(read_packed(packed_.data(), static_cast<Index>(packed_.size())));
  return stream_.avail_in > 0;
}

Index UnpackedFile::read(std::uint8_t* to, Index count) {
  if (!compressed_) return read_packed(to, count);
  constexpr Index most = 1 << 30;  // zlib's lengths have 32 bits
  Index done = 0;
  while (done < count) {
    if (stream_.avail_in == 0 && !refill()) {
      require(between_, "{}: the compressed file ends before its checksum", file_.path());
      break;
    }
    if (between_) {
      // gzip ignores zeros after a member, which pad it on tapes and block devices.
      while (stream_.avail_in > 0 && *stream_.next_in == 0) ++stream_.next_in, --stream_.avail_in, zeros_ = true;
      if (stream_.avail_in == 0) continue;
      require(!zeros_, "{}: cannot be uncompressed: unexpected bytes after the padding of zeros", file_.path());
      inflateReset(&stream_);
    }
    const Index wanted = std::min(most, count - done);
    stream_.next_out = to + done;
    stream_.avail_out = static_cast<unsigned>(wanted);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    require(result == Z_OK || result == Z_STREAM_END, "{}: cannot be uncompressed: {}", file_.path(),
            stream_.msg ? stream_.msg : "its data is inconsistent");
    between_ = result == Z_STREAM_END;
    done += wanted - stream_.avail_out;
  }
  return done;
}

}  // namespace heed::data
