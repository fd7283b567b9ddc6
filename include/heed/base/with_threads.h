// A temporary number of threads.
#pragma once

#include "heed/base/parallel.h"

#include <string>
#include <utility>

namespace heed {

/// Sets the number of threads, and restores the previous number and its reason on destruction.
class WithThreads {
 public:
  explicit WithThreads(int count) : before_(threads()), reason_(threads_reason()) { set_threads(count); }
  WithThreads(const WithThreads&) = delete;
  ~WithThreads() { set_threads(before_, std::move(reason_)); }

 private:
  int before_;
  std::string reason_;
};

}  // namespace heed
