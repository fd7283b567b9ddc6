// The lanes of a batch whose examples depend on each other.
#pragma once

#include "heed/base/lockstep.h"
#include "heed/tape/whole_batch.h"
#include "heed/train/ranks.h"

#include <optional>
#include <vector>

namespace heed {

/// Runs the lanes of this process side by side. Wherever the model adds up something over the batch, all lanes wait for
/// each other, in all processes, and the sum is formed by the tree.
template <class T>
class LanesInLockstep {
 public:
  explicit LanesInLockstep(Ranks& ranks) : ranks_(ranks) {}

  /// Calls f(lane, whole) for each of this process' lanes of the batch, of which each must be a single piece and each
  /// process have one at least; `whole` is for the lane's pass.
  template <class F>
  void run(const Lanes& batch, LaneRange own, const F& f) {
    const Index count = own.last - own.first;
    HEED_ASSERT(count > 0 && batch.pieces() == batch.count);
    if (!lockstep_ || lockstep_->parts() != count) {
      lockstep_.emplace(count);
      lanes_.clear();
      for (Index part = 0; part < count; ++part) lanes_.push_back(std::make_unique<Lane>(*lockstep_, part));
    }
    const auto work = [&](Index part) {
      Lane& lane = *lanes_[static_cast<std::size_t>(part)];
      lane.images = batch.examples;
      lane.here = batch.piece_at(own.first + part).count;
      lane.first = part == 0;
      f(own.first + part, lane);
    };
    lockstep_->run(work, [&] { add_up(own); });
  }

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
    const auto numbers_of = [&](Index lane) { return lanes_[static_cast<std::size_t>(lane - own.first)]->numbers; };
    const std::span<T> sum = tree_sum(own, numbers_of, [](std::span<T> a, std::span<T> b) {
      HEED_ASSERT(a.size() == b.size());
      for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
      return a;
    });
    ranks_.sum(sum);
    for (Index lane = own.first + 1; lane < own.last; ++lane)
      std::copy(sum.begin(), sum.end(), numbers_of(lane).begin());
  }

  Ranks& ranks_;
  std::optional<Lockstep> lockstep_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace heed
