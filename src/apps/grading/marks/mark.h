// Mark of one point of a lab.
#pragma once

#include <string>
#include <vector>

namespace heed {

struct Mark {
  bool right = false;
  std::vector<std::string> says{};  ///< errors, one sentence or line each, which do not reveal the answer
};

}  // namespace heed
