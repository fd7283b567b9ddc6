// The system calls of a confined process.
#pragma once

#include <linux/filter.h>

#include <sys/types.h>

#include <vector>

namespace heed {

/// A seccomp filter, which ends calls that are not allowed with an error: those that reach other processes, the network
/// or the machine, and, as asked, those that start processes and those that change files. Signals may be sent to the
/// process `self` alone, which is filled in by set_self().
class SyscallFilter {
 public:
  SyscallFilter(bool programs, bool files);

  /// To be called in the process itself, between its fork and install(). Allocates nothing.
  void set_self(pid_t self);

  /// For this process and all that it starts, for good; false if the kernel refuses. Allocates nothing.
  bool install();

 private:
  void deny(std::initializer_list<long> calls, int error);
  void signals(std::initializer_list<long> calls);
  void add(std::initializer_list<sock_filter> instructions) {
    program_.insert(program_.end(), instructions.begin(), instructions.end());
  }

  std::vector<sock_filter> program_;
  std::vector<std::size_t> selves_;  ///< instructions that compare with the process
};

}  // namespace heed
