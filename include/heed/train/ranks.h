// The processes that train a model together.
#pragma once

#include <span>

namespace heed {

/// The processes that share each batch: every one takes a subtree of its lanes (train/lanes.h) and has all weights.
class Ranks {
 public:
  virtual ~Ranks() = default;

  /// How many there are, a power of two, and which of them this one is, from 0.
  virtual int count() const = 0;
  virtual int rank() const = 0;

  /// Replaces numbers by their sums over all processes, the same bits in each: neighbours are added, then pairs of
  /// neighbours, and so on, as the upper levels of the tree over lanes. All processes must call it alike.
  virtual void sum(std::span<float> numbers) = 0;
  virtual void sum(std::span<double> numbers) = 0;
};

/// A single process: there is no other to add anything from.
Ranks& one_process();

}  // namespace heed
