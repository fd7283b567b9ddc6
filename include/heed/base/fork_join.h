// What ThreadSanitizer is told. OpenMP's and oneTBB's libraries are compiled without it, so it does not see that pieces
// of work begin after they were handed out and have ended when they were waited for.
#pragma once

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace heed {

/// Work that is handed out to threads once: made before it is. Without ThreadSanitizer it does nothing.
class ForkJoin {
 public:
#ifdef __SANITIZE_THREAD__
  ForkJoin() { __tsan_release(&fork_); }

  /// To be called by each piece of work, first and last.
  void begin() { __tsan_acquire(&fork_); }
  void end() { __tsan_release(&join_); }

  /// To be called when all pieces were waited for.
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
