#include "heed/io/checksum.h"

#include "crc32.h"
#include "heed/io/file.h"

#include <fmt/format.h>

#include <set>

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

std::map<std::string, std::string> former_names(const Checksums& before, const Checksums& now,
                                                const std::vector<std::string>& first) {
  const std::set<std::string> preferred(first.begin(), first.end());
  std::map<std::string, std::string> former;
  std::set<std::string> contents;
  std::multimap<std::string, std::string> missing;  // recorded names whose file is missing or changed, by checksum
  for (const bool turn : {true, false})
    for (const auto& [name, checksum] : before) {
      if (preferred.contains(name) != turn) continue;
      contents.insert(checksum);
      if (const auto same = now.find(name); same != now.end() && same->second == checksum)
        former[name] = name;
      else
        missing.emplace(checksum, name);
    }
  for (const auto& [name, checksum] : now) {
    if (former.contains(name)) continue;
    const auto found = missing.lower_bound(checksum);
    if (found == missing.end() || found->first != checksum) continue;
    former[name] = found->second;
    missing.erase(found);
  }
  for (const auto& [checksum, name] : missing)
    if (const auto edited = now.find(name); edited != now.end() && !contents.contains(edited->second))
      former[name] = name;
  return former;
}

}  // namespace heed
