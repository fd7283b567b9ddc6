#include "children.h"

#include "commands.h"

#include "heed/base/error.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

namespace heed::cli {

namespace {

/// Puts the child into its own process group, so that Ctrl-C reaches it only through the parent; requests SIGTERM when
/// the parent dies, and ends the child if the parent has already died. Restores the signal mask `signals`.
void part_from(pid_t parent, const sigset_t& signals) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(128 + SIGTERM);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
}

/// Executes this program with new arguments in a forked child. Takes no locks before exec, since another thread may
/// hold them.
[[noreturn]] void become(char** arguments, int log, pid_t parent, const sigset_t& signals) {
  part_from(parent, signals);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv("/proc/self/exe", arguments);
  _exit(127);
}

}  // namespace

// Blocked signals stay pending until wait() takes them, so a signal that arrives before wait() is not lost.
Children::Children() {
  sigemptyset(&waited_);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM}) sigaddset(&waited_, signal);
  struct sigaction hang_up {};
  sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&waited_, SIGHUP);
  sigprocmask(SIG_BLOCK, &waited_, &before_);
}

Children::~Children() {
  pass_on(SIGTERM);
  for (const pid_t process : running_)
    while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) continue;
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

pid_t Children::start(const std::vector<std::string>& arguments, const std::string& log) {
  std::vector<std::string> words{"heed"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  // Opens the log without following a link, and without waiting for the other end of a pipe.
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  require(file >= 0, "{}: cannot open: {}", log, std::strerror(errno));
  const pid_t parent = getpid(), process = fork();
  if (process == 0) become(pointers.data(), file, parent, before_);
  close(file);
  return started(process);
}

pid_t Children::start(const std::function<int()>& work) {
  const pid_t parent = getpid(), process = fork();
  if (process == 0) {
    part_from(parent, before_);
    const Ending ending = ending_of([&] { return Ending{work()}; });
    _exit(ending.error.empty() ? ending.status : report_error(ending.error, ending.status));
  }
  return started(process);
}

pid_t Children::started(pid_t process) {
  require(process > 0, "another process cannot be started: {}", std::strerror(errno));
  running_.push_back(process);
  return process;
}

std::vector<Children::Ended> Children::wait() {
  constexpr timespec second{1, 0};
  const int signal = sigtimedwait(&waited_, nullptr, &second);
  if (signal > 0 && signal != SIGCHLD) {
    interrupted_ = true;
    pass_on(signal);
  }
  std::vector<Ended> ended;
  for (const pid_t process : running_)
    if (int status = 0; waitpid(process, &status, WNOHANG) == process)
      ended.push_back({process, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)});
  for (const Ended& one : ended) std::erase(running_, one.process);
  return ended;
}

void Children::pass_on(int signal) const {
  for (const pid_t process : running_) kill(process, signal);
}

}  // namespace heed::cli
