// Other runs and copies of this program, side by side.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <string>
#include <vector>

namespace heed::cli {

/// Processes that this one has started. While the object lives, SIGINT and SIGTERM (and SIGHUP, unless it is ignored)
/// do not end this process but are passed to them; where this process dies, they get SIGTERM. Children that still run
/// when it is destroyed get SIGTERM and are waited for.
class Children {
 public:
  Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children();

  /// Starts this program with these arguments, what it prints appended to a file.
  pid_t start(const std::vector<std::string>& arguments, const std::string& log);

  /// Starts a copy of this process, which does `work` and ends with the status that it returns, or says its error and
  /// ends with bad_input. Nothing may have computed on several threads before.
  pid_t start(const std::function<int()>& work);

  /// A process that has ended, with its exit status; 128 + N if signal N ended it.
  struct Ended {
    pid_t process;
    int status;
  };

  /// Waits until a process ends or a signal comes, for at most a second. Returns those that have ended.
  std::vector<Ended> wait();

  bool any() const { return !running_.empty(); }

  /// Returns true if one of the signals was received.
  bool interrupted() const { return interrupted_; }

 private:
  /// Adds a process to the running ones. Throws Error if fork() failed.
  pid_t started(pid_t process);

  void pass_on(int signal) const;

  std::vector<pid_t> running_;
  bool interrupted_ = false;
  sigset_t waited_, before_;
};

}  // namespace heed::cli
