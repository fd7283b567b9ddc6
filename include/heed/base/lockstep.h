// Parallel parts of a computation that synchronise at barriers.
#pragma once

#include "heed/base/tensor.h"

#include <exception>
#include <memory>
#include <vector>

namespace heed {

class Fiber;

/// Runs parts of a computation with barriers: at a barrier, no part continues until all have arrived. Between barriers,
/// the parts run as the pieces of a parallel_for. Each part has its own stack; a single part never waits and is an
/// ordinary call.
class Lockstep {
 public:
  /// Allocates stacks for at most `most` parts. `most` >= 2 requires has_stacks(). Throws Error if there is no memory
  /// for them.
  explicit Lockstep(Index most);
  ~Lockstep();
  Lockstep(const Lockstep&) = delete;

  /// Returns true if this build can switch between stacks.
  static bool has_stacks();

  /// Calls work(part) for each of `parts` parts. When all have called wait(), calls between(), and all continue. All
  /// parts must call wait() the same number of times. If parts or between() throw, the wait() of each other part ends
  /// that part by an exception; then the error of between(), or of the lowest-numbered part that threw, is rethrown.
  template <class Work, class Between>
  void run(Index parts, const Work& work, const Between& between) {
    run({parts, &work, [](const void* f, Index part) { (*static_cast<const Work*>(f))(part); }, &between,
         [](const void* f) { (*static_cast<const Between*>(f))(); }});
  }

  /// Called inside work(part): returns after all parts have called wait() and between() has returned, possibly on
  /// another thread.
  void wait(Index part);

 private:
  /// The arguments of run(). Functions are stored as addresses, which avoids allocation.
  struct Call {
    Index parts = 0;
    const void* work = nullptr;
    void (*call_work)(const void*, Index) = nullptr;
    const void* between = nullptr;
    void (*call_between)(const void*) = nullptr;
  };
  void run(const Call& call);

  Call call_;
  std::vector<std::unique_ptr<Fiber>> fibers_;  ///< empty for a single part
  std::vector<std::exception_ptr> errors_;      ///< exceptions of the parts
  bool abandoned_ = false;
};

}  // namespace heed
