// Where a pass first makes a number that is not finite.
#pragma once

#include "heed/base/tensor.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace heed {

/// Shown everything that a pass makes, in order, it remembers the first infinity or NaN.
class NonFinite {
 public:
  /// Empty: all numbers shown were finite.
  const std::string& where() const { return where_; }

  /// How many tensors were shown before that one; all, if there is none.
  Index before() const { return before_; }

  /// what() says what the numbers are: "the result of softmax in blocks.0.attn".
  template <class T, class What>
  void look(const T* numbers, Index count, const What& what) {
    if (!where_.empty()) return;
    if (std::all_of(numbers, numbers + count, [](T x) { return std::isfinite(x); }))
      ++before_;
    else
      where_ = what();
  }

 private:
  std::string where_;
  Index before_ = 0;
};

}  // namespace heed
