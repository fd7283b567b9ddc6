// Lanes of a batch whose examples depend on each other.
#pragma once

#include "heed/base/lockstep.h"
#include "heed/tape/whole_batch.h"
#include "heed/train/processes/ranks.h"

#include <algorithm>
#include <span>
#include <vector>

namespace heed {

/// Runs this process's lanes in parallel. At each sum over the batch, all lanes of all processes wait for each other,
/// and the tree sum is formed.
template <class T>
class LanesInLockstep {
 public:
  /// Allocates memory for at most `most` lanes in this process.
  LanesInLockstep(Ranks& ranks, Index most) : ranks_(ranks), lockstep_(most) {
    for (Index i = 0; i < most; ++i) lanes_.emplace_back(lockstep_, i);
  }

  /// Calls f(lane, batch) for each lane of this process; the lane's pass must use `batch`. There must be at least one
  /// lane, and each must be a single microbatch.
  template <class F>
  void run(const Lanes& lanes, LaneRange own, const F& f) {
    HEED_ASSERT(own.count() > 0 && lanes.undivided);
    sums_ = 0;
    const auto work = [&](Index i) {
      Lane& lane = lanes_[i];
      lane.images = lanes.examples;
      lane.images_here = lanes.microbatch_at(own.first + i).count;
      lane.first = i == 0;
      f(own.first + i, lane);
    };
    lockstep_.run(own.count(), work, [&] { sum_lanes(own); });
  }

  /// Returns the number of sums over the batch in the last run.
  Index sums() const { return sums_; }

 private:
  struct Lane : WholeBatch<T> {
    Lane(Lockstep& lockstep, Index i) : lockstep(lockstep), index(i) {}

    void sum(std::span<T> of_lane) override {
      values = of_lane;
      lockstep.wait(index);
    }

    Lockstep& lockstep;
    Index index;
    std::span<T> values;  ///< summands
  };

  /// Replaces the values of all lanes by their sum.
  void sum_lanes(LaneRange own) {
    const auto values_of = [&](Index lane) { return lanes_[lane - own.first].values; };
    const std::span<T> sum = tree_sum(own, values_of, [](std::span<T> a, std::span<T> b) {
      HEED_ASSERT(a.size() == b.size());
      for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
      return a;
    });
    ranks_.sum(sum);
    for (Index lane = own.first + 1; lane < own.last; ++lane)
      std::copy(sum.begin(), sum.end(), values_of(lane).begin());
    ++sums_;
  }

  Ranks& ranks_;
  Lockstep lockstep_;
  std::vector<Lane> lanes_;
  Index sums_ = 0;
};

}  // namespace heed
