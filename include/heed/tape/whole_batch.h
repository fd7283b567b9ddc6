// The batch that a pass has a piece of, where its images depend on each other.
#pragma once

#include "heed/base/tensor.h"

#include <span>

namespace heed {

/// Known to the passes over the pieces of a batch whose images are normalised together. These run side by side and come
/// to the same operations, in each of which they add up what they have.
template <class T>
struct WholeBatch {
  virtual ~WholeBatch() = default;

  Index images = 0;    ///< of the whole batch
  Index here = 0;      ///< of this pass
  bool first = false;  ///< is this pass the one in its process that updates running statistics?

  /// Replaces numbers by their sums over all passes, the same bits in each.
  virtual void sum(std::span<T> numbers) = 0;
};

}  // namespace heed
