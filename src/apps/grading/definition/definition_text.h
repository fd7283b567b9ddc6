// Parts of the C++ header written for a definition: the text of planted bugs, and the function cost().
#pragma once

#include "definition.h"

#include <vector>

namespace heed {

inline bool is_map(const FeatureMap& map) { return map.feature != Feature::identity; }

/// Returns the text with planted bug `bug`, counted from 1, or the correct text if `bug` is 0.
inline std::string pick(int bug, const std::string& right, const std::vector<std::string>& wrong) {
  return bug == 0 ? right : wrong[static_cast<std::size_t>(bug - 1) % wrong.size()];
}

/// Returns the text of the header's function cost().
std::string cost_text(const Definition& definition, const PlantedBugs& bugs);

}  // namespace heed
