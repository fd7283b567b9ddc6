// A process that may do nothing but compute: somebody else's code runs in it.
#pragma once

#include "message.h"

#include <sys/types.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

namespace heed {

/// The system cannot do what a confined process needs: no fault of what was to run in it.
struct SystemError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Limits and rights of a confined process.
struct Confinement {
  double seconds = 10;                  ///< limit of CPU time, and of waiting for anything else
  Index memory = Index{1} << 30;        ///< bytes of address space
  Index file = 0;                       ///< bytes of the largest file it may write; 0: it may write none
  bool programs = false;                ///< may it start others, as a compiler does?
  std::string directory{};              ///< working directory, the only writable one
  std::vector<std::string> readable{};  ///< files and directories that it may read beside the system's
};

/// A process of a group of its own, killed with all it has started when the object goes. It runs with
///
///   limits of time, memory and files, without core dumps, without privileges, in an environment of its own;
///   messages from here as standard input, messages to here as file descriptor 3, and no other file open; what it
///   prints goes nowhere, or into the file `log` of its directory if it may write;
///   a filter of system calls (seccomp): no signals to others, no sockets, no way out of its group, and, unless they
///   are allowed, no processes or threads, and no changes to any file; where the kernel has Landlock, no sight of files
///   but the system's programs and libraries, its directory, and what is readable.
///
/// Linux only. Throws SystemError if it cannot be started so. The path of the program comes first in `words`.
class Confined {
 public:
  Confined(std::vector<std::string> words, const Confinement& confinement);
  Confined(const Confined&) = delete;
  Confined& operator=(const Confined&) = delete;
  ~Confined();

  /// A message, or bytes without their length. Throws Error if the process does not take it in time, or has ended.
  void send(const Message& message);
  void send_bytes(std::string_view bytes);

  /// The next message, of at most `most` bytes. Throws Error that says how the process ended, if it did: "it ran for
  /// more than 10 s", "it ended by itself, with status 0", "it crashed: Segmentation fault".
  Message receive(std::size_t most = std::size_t{64} << 20);

  /// Waits until it ends: its exit status. Throws Error if it runs too long or a signal ends it.
  int wait();

 private:
  void read_some(char* bytes, std::size_t count);
  void await(int file, short events);
  void extend_deadline();
  [[noreturn]] void fail_ended();
  int reap();
  void end();

  Confinement confinement_;
  std::chrono::steady_clock::time_point start_, deadline_;
  pid_t process_ = -1;
  int handle_ = -1, requests_ = -1, answers_ = -1;
};

/// From now on SIGTERM and SIGINT end this process and the confined one that it has started last, with all that it has
/// started.
void end_with_confined();

/// Returns true if this system can hide files from confined processes.
bool has_landlock();

/// A directory for itself, which is gone with the object.
class PrivateDirectory {
 public:
  PrivateDirectory();
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;
  ~PrivateDirectory();

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace heed
