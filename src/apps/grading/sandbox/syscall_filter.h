// System calls of a confined process.
#pragma once

#include <linux/filter.h>

#include <sys/types.h>

#include <vector>

namespace heed {

/// A seccomp filter that makes forbidden calls fail: those that affect other processes, the network or the host and,
/// optionally, those that start processes or change files. Signals may be sent only to the process `self`, set by
/// set_self().
class SyscallFilter {
 public:
  SyscallFilter(bool programs, bool files);

  /// Must be called in the process itself, between its fork and install(). Allocates nothing.
  void set_self(pid_t self);

  /// Applies the filter permanently to this process and its children; false if the kernel refuses. Allocates nothing.
  bool install();

 private:
  void deny(std::initializer_list<long> calls, int error);
  void signals(std::initializer_list<long> calls);
  void add(std::initializer_list<sock_filter> instructions) {
    program_.insert(program_.end(), instructions.begin(), instructions.end());
  }

  std::vector<sock_filter> program_;
  std::vector<std::size_t> selves_;  ///< instructions that compare with its process id
};

}  // namespace heed
