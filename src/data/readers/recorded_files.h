// The files of a run's record among those of today's data.
#pragma once

#include "heed/config/data.h"

#include <set>
#include <string>
#include <vector>

namespace heed::data {

/// Returns the positions in `files` of the recorded files `names`, which are relative to `root`. They are recognised by
/// their checksums, even if they were renamed; one with new content, by its name.
std::set<Index> recorded_positions(const std::vector<std::string>& files, const std::vector<std::string>& names,
                                   const RecordedData& recorded, const std::string& root);

}  // namespace heed::data
