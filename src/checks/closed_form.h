// Fitting of a closed form to counts.
#pragma once

#include "heed/base/tensor.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace heed {

/// A count with the sizes (B, H, N, M, d, e) for which it was counted.
struct SizedNumber {
  std::vector<std::pair<char, Index>> sizes;
  Index value = 0;
};

/// Returns the simplest sum of at most two terms, such as "B H N d - 2 B H N", that equals all counts. Terms are
/// products of the sizes, with B and H at most once and the other sizes at most squared, of degree three or less in the
/// other sizes, with small factors. Empty if there is none or if the fit could be coincidental: one term needs two sets
/// of sizes, two terms need three.
std::string closed_form(std::span<const SizedNumber> numbers);

}  // namespace heed
