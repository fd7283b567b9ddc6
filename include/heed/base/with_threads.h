// Another number of threads for a while.
#pragma once

#include "heed/base/parallel.h"

namespace heed {

/// So many threads as long as this exists.
class WithThreads {
 public:
  explicit WithThreads(int count) : before_(threads()) { set_threads(count); }
  WithThreads(const WithThreads&) = delete;
  ~WithThreads() { set_threads(before_); }

 private:
  int before_;
};

}  // namespace heed
