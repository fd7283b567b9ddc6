// A process in which untrusted code can only compute.
#pragma once

#include "message.h"
#include "syscall_filter.h"

#include "heed/io/file.h"

#include <sys/types.h>

#include <chrono>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace heed {

/// Thrown if the system cannot provide confinement; not the fault of the confined code.
struct SystemError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Limits and permissions of a confined process.
struct Confinement {
  double seconds = 10;                       ///< limit of CPU time and of idle time
  Index memory = Index{1} << 30;             ///< bytes of address space
  Index file = 0;                            ///< maximum size of a written file; 0: none may be written
  bool programs = false;                     ///< may start other programs, as a compiler does
  std::string directory{};                   ///< working directory, the only writable one
  std::vector<std::string> readable{};       ///< files and directories readable in addition to the system's
  std::set<std::string>* refused = nullptr;  ///< receives the kinds of forbidden calls; null: they are not recorded
};

/// A process in its own group; the destructor kills it with all its children. It has
///
///   limits of time, memory and file sizes, a separate environment, no core dumps and no privileges;
///   standard input for messages from the grader, file descriptor 3 for messages to the grader, and no other open file
///   except its standard output and error, which are discarded, or written to `log` in its directory if it may write;
///   a filter of system calls (seccomp): no signals to others, no sockets, no change of group, and, unless allowed, no
///   processes or threads, and no changes to any file; if the kernel reports the forbidden calls of a process that may
///   not start programs, they are recorded, and it cannot replace its program either;
///   access only to the system's programs and libraries, its directory, and `readable`, if the kernel has Landlock.
///
/// Linux only. Throws SystemError if it cannot be started this way. The first of `words` is the program's path.
class Confined {
 public:
  Confined(std::vector<std::string> words, const Confinement& confinement);
  Confined(const Confined&) = delete;
  Confined& operator=(const Confined&) = delete;
  ~Confined();

  /// Returns true if the kernel reports forbidden calls.
  bool is_recorded() const { return recorded_; }

  /// Sends a message with its length, or bytes alone. Throws Error if the process has ended or reads too slowly.
  void send(const Message& message);
  void send_bytes(std::string_view bytes);

  /// Returns the next message, of at most `most` bytes. If the process ended or exceeded a limit, throws Error with the
  /// reason, such as "it was idle for more than 10 s", "it exited with status 0" or "it crashed: Killed".
  Message receive(std::size_t most = std::size_t{64} << 20);

  /// Waits for the process to end and returns its exit status. Throws Error if it runs too long or a signal ends it.
  int wait();

 private:
  void read_some(char* bytes, std::size_t count);
  void await(int file, short events);
  /// Waits until the file is ready or the process makes a forbidden call, which is answered, but at most `milliseconds`
  /// (-1: without limit). Returns true if the file is ready.
  bool wait_for(int file, short events, Index milliseconds);
  void extend_deadline();
  [[noreturn]] void fail_ended();
  int end();

  Confinement confinement_;
  std::chrono::steady_clock::time_point start_, deadline_;
  pid_t process_ = -1;
  bool recorded_ = false;
  SyscallFilter filter_;
  Descriptor handle_, requests_, answers_, listener_;
};

/// Makes SIGTERM, SIGINT and SIGHUP end this process and the most recently started confined one with its children.
void end_with_confined();

/// Returns true if this system can hide files from confined processes.
bool has_landlock();

/// Throws SystemError if the directory's file system is mounted with noexec: compiled files there could not be loaded.
void require_execution(const std::string& directory);

/// A private directory, removed by the destructor.
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
