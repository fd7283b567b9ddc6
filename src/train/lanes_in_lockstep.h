// The lanes of a batch whose examples depend on each other.
#pragma once

#include "heed/base/lockstep.h"
#include "heed/tape/whole_batch.h"
#include "heed/train/processes/ranks.h"

#include <algorithm>
#include <span>
#include <vector>

namespace heed {

/// Runs the lanes of this process side by side. Wherever the model adds up something over the batch, all lanes wait for
/// each other, in all processes, and the sum is formed by the tree.
template <class T>
class LanesInLockstep {
 public:
  /// For at most so many lanes in this process.
  LanesInLockstep(Ranks& ranks, Index most) : ranks_(ranks), lockstep_(most) {
    for (Index part = 0; part < most; ++part) lanes_.emplace_back(lockstep_, part);
  }

  /// Calls f(lane, whole) for each of this process' lanes of the batch, of which each must be a single piece and each
  /// process have one at least; `whole` is for the lane's pass.
  template <class F>
  void run(const Lanes& batch, LaneRange own, const F& f) {
    const Index count = own.last - own.first;
    HEED_ASSERT(count > 0 && batch.whole);
    sums_ = 0;
    const auto work = [&](Index part) {
      Lane& lane = lanes_[static_cast<std::size_t>(part)];
      lane.images = batch.examples;
      lane.here = batch.piece_at(own.first + part).count;
      lane.first = part == 0;
      f(own.first + part, lane);
    };
    lockstep_.run(count, work, [&] { add_up(own); });
  }

  /// How many sums over the batch the last run formed.
  Index sums() const { return sums_; }

 private:
  struct Lane : WholeBatch<T> {
    Lane(Lockstep& lockstep, Index part) : lockstep(lockstep), part(part) {}

    void sum(std::span<T> given) override {
      numbers = given;
      lockstep.wait(part);
    }

    Lockstep& lockstep;
    Index part;
    std::span<T> numbers;  ///< those to be added up
  };

  /// Gives all lanes, which wait, the sum of what they have.
  void add_up(LaneRange own) {
    const auto numbers_of = [&](Index lane) { return lanes_[static_cast<std::size_t>(lane - own.first)].numbers; };
    const std::span<T> sum = tree_sum(own, numbers_of, [](std::span<T> a, std::span<T> b) {
      HEED_ASSERT(a.size() == b.size());
      for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
      return a;
    });
    ranks_.sum(sum);
    for (Index lane = own.first + 1; lane < own.last; ++lane)
      std::copy(sum.begin(), sum.end(), numbers_of(lane).begin());
    ++sums_;
  }

  Ranks& ranks_;
  Lockstep lockstep_;
  std::vector<Lane> lanes_;
  Index sums_ = 0;
};

}  // namespace heed
