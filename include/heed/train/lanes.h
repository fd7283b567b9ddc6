// Division of a batch for sums whose bits depend on neither threads nor processes. Examples form microbatches;
// consecutive microbatches form a lane, whose gradients are added in order; lanes are added by a binary tree whose
// shape depends on the number of lanes alone. A process computes the lanes of a subtree.
#pragma once

#include "heed/base/tensor.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace heed {

/// Examples [first, first + count) of a batch.
struct ExampleRange {
  Index first = 0, count = 0;
};

/// Lanes [first, last).
struct LaneRange {
  Index first = 0, last = 0;

  Index count() const { return last - first; }

  /// Returns the lane where the tree splits the range.
  Index middle() const { return first + count() / 2; }
};

/// Computes the sum over `lanes` by the tree: calls leaf(lane) in order, and add(a, b) for neighbouring sums as soon as
/// both exist.
template <class Leaf, class Add>
auto tree_sum(LaneRange lanes, const Leaf& leaf, const Add& add) -> decltype(leaf(lanes.first)) {
  if (lanes.count() == 1) return leaf(lanes.first);
  const auto left = tree_sum({lanes.first, lanes.middle()}, leaf, add);
  return add(left, tree_sum({lanes.middle(), lanes.last}, leaf, add));
}

/// The microbatches and lanes of a batch.
struct Lanes {
  Index examples = 0;      ///< number of examples in the batch
  Index microbatch = 1;    ///< examples per microbatch; the last one may be smaller
  Index count = 1;         ///< number of lanes
  bool undivided = false;  ///< each lane is a single microbatch; their sizes differ by at most one example

  Index microbatches() const { return undivided ? count : (examples + microbatch - 1) / microbatch; }

  /// Returns the first example of microbatch i; for i = microbatches(), the number of examples.
  Index start(Index i) const { return undivided ? examples * i / count : std::min(examples, i * microbatch); }
  ExampleRange microbatch_at(Index i) const { return {start(i), start(i + 1) - start(i)}; }

  /// Returns the first microbatch of a lane; for lane = count, the number of microbatches.
  Index first_microbatch(Index lane) const { return microbatches() * lane / count; }

  /// Returns the lanes of process `rank` of `ranks`, a power of two: a subtree.
  LaneRange of_process(int rank, int ranks) const {
    LaneRange range{0, count};
    for (; ranks > 1; ranks /= 2) {
      const bool left = rank % ranks < ranks / 2;
      (left ? range.last : range.first) = range.middle();
    }
    return range;
  }

  /// Returns the examples of consecutive lanes.
  ExampleRange examples_of(LaneRange lanes) const {
    const Index begin = start(first_microbatch(lanes.first));
    return {begin, start(first_microbatch(lanes.last)) - begin};
  }

  /// Returns the tree sum over `lanes` of one value per microbatch.
  template <class X>
  X sum(LaneRange lanes, const std::vector<X>& of_microbatches) const {
    if (lanes.count() == 0) return X{};
    const auto of_lane = [&](Index lane) {
      X sum{};
      for (Index i = first_microbatch(lane); i < first_microbatch(lane + 1); ++i)
        sum = sum + of_microbatches[static_cast<std::size_t>(i)];
      return sum;
    };
    return tree_sum(lanes, of_lane, [](const X& a, const X& b) { return a + b; });
  }
};

/// Returns the lanes of a batch for a model with `weights` trainable elements: one per microbatch, but at most sixteen,
/// or at most eight for more than 2^22 weights. Sixteen gradients thus take at most 256 MB in float.
inline Lanes lanes_of(Index examples, Index microbatch, Index weights, bool undivided = false) {
  Lanes lanes{examples, microbatch};
  lanes.count = std::min<Index>(lanes.microbatches(), weights <= Index{1} << 22 ? 16 : 8);
  lanes.undivided = undivided;
  return lanes;
}

/// Returns true if lanes run sequentially: parallel lanes need a gradient each, and these would take more than 1 GB in
/// float. Sequential and parallel lanes give the same bits.
inline bool streams_lanes(Index weights, Index lanes) { return lanes * weights > Index{1} << 28; }

/// Returns the number of gradients held at once by sequential lanes: the current lane's, and on each level of the tree
/// at most one that waits for its neighbour.
inline Index sums_at_once(Index lanes) { return std::bit_width(static_cast<std::size_t>(lanes - 1)) + 1; }

/// Slice of each batch for one process.
struct BatchShare {
  Index microbatch, weights;
  int rank, ranks;         ///< this process, and the number of processes
  bool dependent = false;  ///< the examples of a batch depend on each other

  Lanes lanes(Index examples) const { return lanes_of(examples, microbatch, weights, dependent); }
  LaneRange own(const Lanes& lanes) const { return lanes.of_process(rank, ranks); }

  /// Returns the process's examples of a batch of `examples`.
  ExampleRange operator()(Index examples) const {
    const Lanes all = lanes(examples);
    return all.examples_of(own(all));
  }
};

}  // namespace heed
