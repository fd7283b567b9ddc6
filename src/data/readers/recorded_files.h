// Search for the files that a run recorded among the present files of its data.
#pragma once

#include "heed/config/data.h"

#include <set>
#include <string>
#include <vector>

namespace heed::data {

/// Returns the positions in `files` of the recorded files `names`, which are relative to `root`. A file is recognised
/// by its checksum, even if it was renamed; a file with new content is recognised by its name.
std::set<Index> recorded_positions(const std::vector<std::string>& files, const std::vector<std::string>& names,
                                   const RecordedData& recorded, const std::string& root);

/// Returns true if one of the files at the positions `chosen` has the content of one of the recorded files `names`.
/// Names do not suffice: other data may have the same names.
bool has_recorded_content(const std::vector<std::string>& files, const std::set<Index>& chosen,
                          const std::vector<std::string>& names, const RecordedData& recorded);

}  // namespace heed::data
