// Work in several parts that wait for each other on the way.
#pragma once

#include "heed/base/tensor.h"

#include <exception>
#include <functional>
#include <memory>
#include <vector>

namespace heed {

class Fiber;

/// Parts of a computation which all have to reach a point before any of them goes on from there. From one such point to
/// the next they are pieces of a parallel_for.
class Lockstep {
 public:
  /// Throws Error where there is no memory for their stacks.
  explicit Lockstep(Index parts);
  ~Lockstep();
  Lockstep(const Lockstep&) = delete;

  Index parts() const { return static_cast<Index>(fibers_.size()); }

  /// Calls work(part) for each part. Whenever all have called wait(), calls between(), and then all go on. They must
  /// call wait() equally often. If parts throw, or between() does, the others end where they wait, and the exception is
  /// rethrown, that of the lowest-numbered part.
  void run(const std::function<void(Index)>& work, const std::function<void()>& between);

  /// For a part, inside work(part): returns when all have come here and between() has returned, perhaps on another
  /// thread.
  void wait(Index part);

 private:
  std::vector<std::unique_ptr<Fiber>> fibers_;
  bool abandoned_ = false;
};

}  // namespace heed
