#include "heed/io/checksum.h"

#include "crc32.h"
#include "heed/io/file.h"

#include <fmt/format.h>

#include <vector>

namespace heed {

namespace {

std::string text_of(std::uint32_t crc, std::uint64_t length) { return fmt::format("{:08x}-{}", crc, length); }

}  // namespace

std::string checksum(const std::string& bytes) { return text_of(crc32(0, bytes.data(), bytes.size()), bytes.size()); }

std::string file_checksum(const std::string& path) {
  const InputFile file(path);
  std::vector<char> part(1 << 20);
  std::uint32_t crc = 0;
  std::uint64_t at = 0;
  while (const std::size_t count = file.read_some(at, part.data(), part.size())) {
    crc = crc32(crc, part.data(), count);
    at += count;
  }
  return text_of(crc, at);
}

}  // namespace heed
