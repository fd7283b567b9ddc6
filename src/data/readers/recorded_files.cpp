#include "recorded_files.h"

#include "heed/io/checksum.h"

#include <filesystem>
#include <map>

namespace heed::data {

std::set<Index> recorded_positions(const std::vector<std::string>& files, const std::vector<std::string>& names,
                                   const RecordedData& recorded, const std::string& root) {
  if (names.empty()) return {};
  const std::filesystem::path directory = std::filesystem::absolute(root).lexically_normal();
  std::map<std::string, Index> places;
  for (Index i = 0; const std::string& file : files)
    places.emplace(std::filesystem::absolute(file).lexically_normal().lexically_relative(directory).string(), i++);
  std::set<Index> found;
  std::multiset<std::string> gone;  // checksums
  for (const std::string& name : names) {
    if (const auto place = places.find(name); place != places.end())
      found.insert(place->second);
    else if (const auto checksum = recorded.files.find(name); checksum != recorded.files.end())
      gone.insert(checksum->second);
  }
  for (const auto& [name, i] : places) {
    if (gone.empty()) break;
    if (recorded.files.contains(name)) continue;
    const auto former = gone.find(file_checksum(files[static_cast<std::size_t>(i)]));
    if (former == gone.end()) continue;
    found.insert(i);
    gone.erase(former);
  }
  return found;
}

}  // namespace heed::data
