// A temporary number of threads.
#pragma once

#include "heed/base/parallel.h"

namespace heed {

/// Sets the number of threads, and restores the previous number on destruction.
class WithThreads {
 public:
  explicit WithThreads(int count) : before_(threads()) { set_threads(count); }
  WithThreads(const WithThreads&) = delete;
  ~WithThreads() { set_threads(before_); }

 private:
  int before_;
};

}  // namespace heed
