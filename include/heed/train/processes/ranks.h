// The processes that train a model together.
#pragma once

#include "heed/train/lanes.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace heed {

/// The processes that share each batch: every one takes a subtree of its lanes (train/lanes.h) and has all weights.
/// What they exchange they must all ask for alike, in the same order, each on one thread.
class Ranks {
 public:
  virtual ~Ranks() = default;

  /// How many there are, a power of two, and which of them this one is, from 0.
  virtual int count() const = 0;
  virtual int rank() const = 0;

  /// Replaces numbers by their sums over all processes, the same bits in each: neighbours are added, then pairs of
  /// neighbours, and so on, as the upper levels of the tree over lanes.
  virtual void sum(std::span<float> numbers) = 0;
  virtual void sum(std::span<double> numbers) = 0;

  /// Gives all of them the bytes of process 0.
  virtual void share(std::span<std::byte> bytes) = 0;

  /// Process 0 alone writes files and reports.
  bool writes() const { return rank() == 0; }

  /// Is it so in any process?
  bool any(bool here);

  /// What each process says, in their order.
  std::vector<std::string> texts(const std::string& own);
};

/// A single process: there is no other to add anything from.
Ranks& one_process();

/// Throws Error unless so many processes can share a batch: a power of two, each with one of its lanes at least. Says
/// which numbers can.
void require_shareable(const Lanes& lanes, int processes);

}  // namespace heed
