// Sums over a batch whose examples depend on each other.
#pragma once

#include "heed/base/tensor.h"

#include <span>

namespace heed {

/// Interface to the whole batch for a pass over one of its microbatches. The passes run the same operations in
/// parallel, and sum() adds their statistics.
template <class T>
struct WholeBatch {
  virtual ~WholeBatch() = default;

  Index images = 0;       ///< images of the whole batch
  Index images_here = 0;  ///< images of this pass
  bool first = false;     ///< this pass updates the running statistics of its process

  /// Replaces values by their sums over all passes, with the same bits in each pass.
  virtual void sum(std::span<T> values) = 0;
};

}  // namespace heed
