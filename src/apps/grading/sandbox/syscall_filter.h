// Filter of a confined process's system calls.
#pragma once

#include <linux/filter.h>

#include <sys/types.h>

#include <cerrno>
#include <map>
#include <vector>

namespace heed {

/// A seccomp filter that makes forbidden calls fail: those that affect other processes, the network or the host and,
/// optionally, those that start processes or change files. Signals may be sent only to the process `self`, set by
/// set_self(). If the kernel supports it, each forbidden call of a process that may not start programs is reported to a
/// listener, which the process cannot influence; in this case, a second execve is forbidden, too.
class SyscallFilter {
 public:
  SyscallFilter(bool programs, bool files);

  /// Sets the process that may be signalled; called by that process between fork and install(). Allocates nothing.
  void set_self(pid_t self);

  /// Applies the filter permanently to this process and its children. Returns false if the kernel refuses. Sets
  /// `listener` to the file descriptor that reports forbidden calls, to be sent to the process that answers them, or to
  /// -1 if there is none. Allocates nothing.
  bool install(int& listener);

  /// Reads a call from the listener and denies it, except for the first execve. Returns the call's kind, such as
  /// "socket"; null for the first execve, and for a caller that has ended.
  const char* answer(int listener);

 private:
  struct Refusal {
    const char* name;
    int error;
  };

  void deny(const char* name, std::initializer_list<long> calls, int error = EPERM);
  void writing(long call, std::size_t i);
  void signals(std::initializer_list<long> calls);
  void add(std::initializer_list<sock_filter> instructions) {
    program_.insert(program_.end(), instructions.begin(), instructions.end());
  }

  std::vector<sock_filter> program_, reporting_;  ///< without and with a listener
  std::map<long, Refusal> refusals_;
  bool started_ = false;
  std::vector<std::size_t> selves_;  ///< indices of the instructions that compare with the process's id
};

}  // namespace heed
