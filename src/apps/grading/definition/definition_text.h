// Parts of the header of a definition.
#pragma once

#include "definition.h"

#include <vector>

namespace heed {

inline bool is_map(const FeatureMap& map) { return map.feature != Feature::identity; }

/// The identity in lower case, without spaces around it.
std::string plain_identity(std::string identity);

/// The text of the bug that is planted, by its number, or the right one.
inline std::string pick(int bug, const std::string& right, const std::vector<std::string>& wrong) {
  return bug == 0 ? right : wrong[static_cast<std::size_t>(bug - 1) % wrong.size()];
}

/// The function cost().
std::string cost_text(const Definition& definition, const PlantedBugs& bugs);

}  // namespace heed
