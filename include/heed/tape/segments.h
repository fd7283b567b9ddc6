// Sequences of different lengths in one tensor [1, rows, D], the rows of each behind those of the one before. What goes
// row by row need not know of them.
#pragma once

#include "heed/base/tensor.h"

#include <span>

namespace heed {

struct Segments {
  std::span<const Index> starts{};  ///< the first row of each sequence; in the end, the number of rows
  Index first = 0;                  ///< position in the whole batch of the first of these sequences
  Index longest = 0;                ///< rows that any sequence may have

  Index count() const { return static_cast<Index>(starts.size()) - 1; }
  Index start(Index i) const { return starts[static_cast<std::size_t>(i)]; }
  Index length(Index i) const { return start(i + 1) - start(i); }
  Index rows() const { return starts.back(); }
};

}  // namespace heed
