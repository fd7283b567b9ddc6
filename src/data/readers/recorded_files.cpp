#include "recorded_files.h"

#include "heed/io/checksum.h"

#include <algorithm>
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
  Checksums now;  // of the files read so far
  const auto checksum_of = [&](const std::string& name, Index i) {
    std::string& text = now[name];
    if (text.empty()) text = file_checksum(files[i]);
    return text;
  };
  std::set<Index> found;
  bool changed = false;
  for (const std::string& name : names) {
    const auto place = places.find(name);
    const auto checksum = recorded.files.find(name);
    if (place != places.end() &&
        (checksum == recorded.files.end() || checksum_of(name, place->second) == checksum->second))
      found.insert(place->second);
    else
      changed = changed || checksum != recorded.files.end();
  }
  if (!changed) return found;
  const std::set<std::string> wanted(names.begin(), names.end());
  for (const auto& [name, i] : places) checksum_of(name, i);
  for (const auto& [name, former] : former_names(recorded.files, now, names))
    if (wanted.contains(former)) found.insert(places.at(name));
  return found;
}

bool has_recorded_content(const std::vector<std::string>& files, const std::set<Index>& chosen,
                          const std::vector<std::string>& names, const RecordedData& recorded) {
  std::set<std::string> checksums;
  for (const std::string& name : names)
    if (const auto file = recorded.files.find(name); file != recorded.files.end()) checksums.insert(file->second);
  return std::ranges::any_of(chosen, [&](Index i) { return checksums.contains(file_checksum(files[i])); });
}

}  // namespace heed::data
