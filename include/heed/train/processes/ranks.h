// Interface to the processes that train a model together.
#pragma once

#include "heed/train/lanes.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace heed {

/// Processes that share each batch: each computes a subtree of its lanes (train/lanes.h) and has all weights. All must
/// make the same calls in the same order, each on one thread.
class Ranks {
 public:
  virtual ~Ranks() = default;

  /// Return the number of processes, which must be a power of two to share a batch, and this process's index.
  virtual int count() const = 0;
  virtual int rank() const = 0;

  /// Replaces values by their sums over all processes, which form the upper levels of the tree over lanes. All
  /// processes get the same bits.
  virtual void sum(std::span<float> values) = 0;
  virtual void sum(std::span<double> values) = 0;

  /// Copies the bytes of process 0 to all processes.
  virtual void share(std::span<std::byte> bytes) = 0;

  /// Returns true for process 0, which writes the files and reports the progress.
  bool writes() const { return rank() == 0; }

  /// Returns true if `here` is true in any process.
  bool any(bool here);

  /// Returns the texts of all processes, by rank.
  std::vector<std::string> texts(const std::string& own);

  /// Throws Error unless all processes pass the same text.
  void require_same(const std::string& own);
};

/// Returns the ranks of a single process.
Ranks& one_process();

/// Throws Error unless `processes` processes can share a batch: their number is a power of two, and each has at least
/// one lane. The message lists the possible numbers.
void require_shareable(const Lanes& lanes, int processes);

}  // namespace heed
