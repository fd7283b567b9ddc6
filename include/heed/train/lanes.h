// How sums over a batch are formed, so that neither threads nor processes leave a trace in them: the batch is cut into
// pieces of a few examples, consecutive pieces make a lane and are added up in order, and lanes are added up by a
// binary tree whose shape follows from their number alone. A process takes the lanes of a subtree.
#pragma once

#include "heed/base/tensor.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace heed {

/// Examples [first, first + count) of a batch.
struct Piece {
  Index first = 0, count = 0;
};

/// Lanes [first, last).
struct LaneRange {
  Index first = 0, last = 0;

  /// Where the tree divides them.
  Index middle() const { return first + (last - first) / 2; }
};

/// The sum over `lanes` by the tree: leaf(lane) for each, from the first to the last, and add(a, b) for neighbouring
/// sums as soon as both are there.
template <class Leaf, class Add>
auto tree_sum(LaneRange lanes, const Leaf& leaf, const Add& add) -> decltype(leaf(lanes.first)) {
  if (lanes.last - lanes.first == 1) return leaf(lanes.first);
  const auto left = tree_sum({lanes.first, lanes.middle()}, leaf, add);
  return add(left, tree_sum({lanes.middle(), lanes.last}, leaf, add));
}

/// The lanes of a batch.
struct Lanes {
  Index examples = 0;  ///< in the batch
  Index piece = 1;     ///< examples in a piece; the last one may have fewer
  Index count = 1;     ///< of lanes
  bool whole = false;  ///< is each lane a single piece instead, and all of them as long, but for one example?

  Index pieces() const { return whole ? count : (examples + piece - 1) / piece; }

  /// The first example of a piece; of piece pieces(), the number of examples.
  Index start(Index i) const { return whole ? examples * i / count : std::min(examples, i * piece); }
  Piece piece_at(Index i) const { return {start(i), start(i + 1) - start(i)}; }

  /// The first piece of a lane; of lane `count`, the number of pieces.
  Index first_piece(Index lane) const { return pieces() * lane / count; }

  /// The subtree of process `rank` of `ranks`, a power of two: the tree divides processes as it divides lanes.
  LaneRange of_process(int rank, int ranks) const {
    LaneRange range{0, count};
    for (; ranks > 1; ranks /= 2) {
      const bool left = rank % ranks < ranks / 2;
      (left ? range.last : range.first) = range.middle();
    }
    return range;
  }

  /// The examples of lanes, which stand side by side.
  Piece examples_of(LaneRange lanes) const {
    const Index begin = start(first_piece(lanes.first));
    return {begin, start(first_piece(lanes.last)) - begin};
  }

  /// The sum over lanes of something that each piece of the batch has.
  template <class X>
  X sum(LaneRange lanes, const std::vector<X>& of_pieces) const {
    if (lanes.first == lanes.last) return X{};
    const auto of_lane = [&](Index lane) {
      X sum{};
      for (Index i = first_piece(lane); i < first_piece(lane + 1); ++i)
        sum = sum + of_pieces[static_cast<std::size_t>(i)];
      return sum;
    };
    return tree_sum(lanes, of_lane, [](const X& a, const X& b) { return a + b; });
  }
};

/// The lanes of a batch for a model with `weights` trainable numbers: as many as there are pieces, but at most sixteen,
/// or eight of a model with more than 2^22, whose gradients are large. `whole`: where examples depend on each other,
/// all lanes are computed side by side, each as a single piece.
inline Lanes lanes_of(Index examples, Index piece, Index weights, bool whole = false) {
  Lanes lanes{examples, piece};
  lanes.count = std::min<Index>(lanes.pieces(), weights <= Index{1} << 22 ? 16 : 8);
  lanes.whole = whole;
  return lanes;
}

/// Are the lanes of a model with so many weights taken one after the other, each by all threads, and added up as soon
/// as they are made? So that at most a few gradients exist: those of eight lanes would take more than 2^26 numbers.
inline bool lanes_are_streamed(Index weights) { return weights > Index{1} << 23; }

/// What one of the processes takes of each batch.
struct BatchShare {
  Index piece, weights;   ///< as lanes_of() wants them
  int rank, ranks;        ///< which process of how many
  bool together = false;  ///< do the examples of a batch depend on each other?

  Lanes lanes(Index examples) const { return lanes_of(examples, piece, weights, together); }
  LaneRange own(const Lanes& lanes) const { return lanes.of_process(rank, ranks); }

  /// Its examples of a batch of so many.
  Piece operator()(Index examples) const {
    const Lanes all = lanes(examples);
    return all.examples_of(own(all));
  }
};

/// Sums that exist at once where lanes are computed one after the other: those that wait for their neighbour, one on
/// each level of the tree, and the one that is made.
inline Index sums_at_once(Index lanes) { return std::bit_width(static_cast<std::size_t>(lanes - 1)) + 1; }

}  // namespace heed
