// A closed form for numbers that were found by counting.
#pragma once

#include "heed/base/tensor.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace heed {

/// A number, and the sizes by letter (B, H, N, M, d, e) that it was counted for.
struct SizedNumber {
  std::vector<std::pair<char, Index>> sizes;
  Index value = 0;
};

/// The simplest sum of at most two terms, such as "B H N d - 2 B H N", that is each of the numbers: products of the
/// sizes with B and H at most once, a degree of at most three in the others, and small factors. Empty if there is none,
/// or if so few numbers would fit by chance: a term needs two sets of sizes, two terms need three.
std::string closed_form(std::span<const SizedNumber> numbers);

}  // namespace heed
