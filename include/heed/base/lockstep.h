// Work in several parts that wait for each other on the way.
#pragma once

#include "heed/base/tensor.h"

#include <exception>
#include <memory>
#include <vector>

namespace heed {

class Fiber;

/// Parts of a computation which all have to reach a point, a "barrier", before any of them goes on from there. From one
/// such point to the next they are pieces of a parallel_for. Each part has a stack of its own, but for a part that is
/// alone: it never has to wait, and runs as an ordinary call.
class Lockstep {
 public:
  /// For at most so many parts, two or more of which can only be in a build that has stacks to switch between. Throws
  /// Error where there is no memory for them.
  explicit Lockstep(Index most);
  ~Lockstep();
  Lockstep(const Lockstep&) = delete;

  static bool has_stacks();

  /// Calls work(part) for each of `parts`. Whenever all have called wait(), calls between(), and then all go on. They
  /// must call wait() equally often. If parts throw, or between() does, the others end where they wait, and the
  /// exception is rethrown, that of the lowest-numbered part.
  template <class Work, class Between>
  void run(Index parts, const Work& work, const Between& between) {
    run({parts, &work, [](const void* f, Index part) { (*static_cast<const Work*>(f))(part); }, &between,
         [](const void* f) { (*static_cast<const Between*>(f))(); }});
  }

  /// For a part, inside work(part): returns when all have come here and between() has returned, perhaps on another
  /// thread.
  void wait(Index part);

 private:
  /// What run() was given, the functions as addresses: no memory is taken to keep them.
  struct Call {
    Index parts = 0;
    const void* work = nullptr;
    void (*call_work)(const void*, Index) = nullptr;
    const void* between = nullptr;
    void (*call_between)(const void*) = nullptr;
  };
  void run(const Call& call);

  Call call_;
  std::vector<std::unique_ptr<Fiber>> fibers_;  ///< none for a part that is alone
  std::vector<std::exception_ptr> errors_;      ///< of parts
  bool abandoned_ = false;
};

}  // namespace heed
