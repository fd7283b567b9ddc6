// Child processes, which run this program or a function of it in parallel.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <string>
#include <vector>

namespace heed::cli {

/// Processes started by this one. While the object exists, SIGINT and SIGTERM (and SIGHUP, unless ignored) do not end
/// this process; wait() passes them on to the children. If this process dies, the children get SIGTERM. The destructor
/// sends SIGTERM to running children and waits for them.
class Children {
 public:
  Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children();

  /// Starts this program with these arguments; its output is appended to a file.
  pid_t start(const std::vector<std::string>& arguments, const std::string& log);

  /// Starts a copy of this process that runs `work` and ends with the returned status or, after an exception, prints
  /// the error and ends as the program would. Must precede any multithreaded computation.
  pid_t start(const std::function<int()>& work);

  /// A terminated process with its exit status, or 128 + N after signal N.
  struct Ended {
    pid_t process;
    int status;
  };

  /// Waits until a process ends or a signal arrives, for at most a second. Returns the terminated processes.
  std::vector<Ended> wait();

  bool any() const { return !running_.empty(); }

  /// Returns true if SIGINT, SIGTERM or SIGHUP was received.
  bool interrupted() const { return interrupted_; }

 private:
  /// Adds a running process. Throws Error if fork() failed.
  pid_t started(pid_t process);

  void pass_on(int signal) const;

  std::vector<pid_t> running_;
  bool interrupted_ = false;
  sigset_t waited_, before_;
};

}  // namespace heed::cli
