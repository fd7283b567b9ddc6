// Annotations that tell ThreadSanitizer that work items start after the fork and end before the join: the oneTBB
// library is not compiled for it.
#pragma once

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace heed {

/// A fork and join of threads, constructed before the fork. Does nothing without ThreadSanitizer.
class ForkJoin {
 public:
#ifdef __SANITIZE_THREAD__
  ForkJoin() { __tsan_release(&fork_); }

  /// Called at the start and the end of each work item.
  void begin() { __tsan_acquire(&fork_); }
  void end() { __tsan_release(&join_); }

  /// Called after all work items have ended.
  void join() { __tsan_acquire(&join_); }

 private:
  char fork_ = 0, join_ = 0;
#else
  void begin() {}
  void end() {}
  void join() {}
#endif
};

}  // namespace heed
