// Sequences of different lengths, concatenated in one tensor [1, rows, D]. Row-wise operations ignore the division.
#pragma once

#include "heed/base/tensor.h"

#include <span>

namespace heed {

/// Rows of each sequence in a concatenated tensor.
struct Segments {
  std::span<const Index> starts{};  ///< first row of each sequence, then the number of rows
  Index first = 0;                  ///< index of the first sequence in the whole batch
  Index longest = 0;                ///< maximum rows of a sequence

  Index count() const { return static_cast<Index>(starts.size()) - 1; }
  Index start(Index i) const { return starts[static_cast<std::size_t>(i)]; }
  Index length(Index i) const { return start(i + 1) - start(i); }
  Index rows() const { return starts.back(); }
};

}  // namespace heed
