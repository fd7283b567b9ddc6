#include "confined.h"

#include "landlock.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace heed {

namespace {

/// Sent instead of errno if the kernel refuses to confine the child.
constexpr char cannot_confine = 0;

/// The process that a signal kills together with this one.
volatile pid_t last_started = -1;

extern "C" void end_both(int signal) {
  if (last_started > 0) kill(-last_started, SIGKILL);
  _exit(128 + signal);
}

/// The child's data, prepared before the fork, since the child may not allocate.
struct Start {
  std::vector<char*> words, environment;
  const char* log;
  const Confinement& confinement;
  SyscallFilter& filter;
  FileRules files;
  int requests, answers;
  int failure;  ///< socket: sends the filter's listener and, if a step fails, errno or cannot_confine; closed by exec
  pid_t parent;
};

void limit(__rlimit_resource resource, Index most) {
  const rlimit both{static_cast<rlim_t>(most), static_cast<rlim_t>(most)};
  setrlimit(resource, &both);
}

void set_limits(const Confinement& c) {
  const Index seconds = static_cast<Index>(std::ceil(c.seconds));
  const rlimit processor{static_cast<rlim_t>(seconds), static_cast<rlim_t>(seconds + 1)};
  setrlimit(RLIMIT_CPU, &processor);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, c.file);
  limit(RLIMIT_NOFILE, 64);
  limit(RLIMIT_MSGQUEUE, 0);
  limit(RLIMIT_MEMLOCK, 0);
#ifndef HEED_SANITIZED  // sanitizers reserve terabytes of addresses
  limit(RLIMIT_AS, c.memory);
#endif
}

/// Sends a file descriptor over a socket.
bool send_file(int socket, int file) {
  char byte = '!';
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof file)]{};
  msghdr message{};
  message.msg_iov = &data, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(header), &file, sizeof file);
  return sendmsg(socket, &message, 0) == 1;
}

/// Receives one byte, and the file descriptor that send_file() sends with it, -1 if none. Returns 1 on success, 0 if
/// the other side is closed first, and -1 on an error.
ssize_t receive_file(int socket, char& byte, Descriptor& file) {
  iovec data{&byte, 1};
  int received = -1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof received)]{};
  msghdr message{};
  message.msg_iov = &data, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = sizeof control;
  ssize_t got = 0;
  while ((got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) continue;
  if (const cmsghdr* const header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr)
    std::memcpy(&received, CMSG_DATA(header), sizeof received);
  file = Descriptor(received);
  return got;
}

/// Runs in the child between fork and exec.
[[noreturn]] void become(Start& start) {
  const auto fail = [&start](int error) {
    const char byte = static_cast<char>(error);
    while (::write(start.failure, &byte, 1) < 0 && errno == EINTR) continue;
    _exit(1);
  };
  const auto step = [&fail](bool done) {
    if (!done) fail(errno);
  };
  const auto confine = [&fail](bool done) {
    if (!done) fail(cannot_confine);
  };
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  step(getppid() == start.parent);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) std::signal(signal, SIG_DFL);
  umask(077);
  step(chdir(start.confinement.directory.c_str()) == 0);
  const int output = start.log ? open(start.log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)
                               : open("/dev/null", O_WRONLY | O_CLOEXEC);
  // The descriptors are duplicated to numbers of at least 10, so that dup2() and dup3() below close none of them.
  const int requests = fcntl(start.requests, F_DUPFD, 10), answers = fcntl(start.answers, F_DUPFD, 10),
            failure = fcntl(start.failure, F_DUPFD, 10);
  step(output >= 0 && requests >= 0 && answers >= 0 && failure >= 0);
  step(dup2(requests, 0) == 0 && dup2(output, 1) == 1 && dup2(output, 2) == 2);
  set_limits(start.confinement);
  const __user_cap_header_struct version{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct nothing[2]{};
  confine(syscall(SYS_capset, &version, nothing) == 0);
  start.filter.set_self(getpid());
  confine(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && start.files.install());
  step(dup2(answers, 3) == 3 && dup3(failure, 4, O_CLOEXEC) == 4);
  start.failure = 4;
  confine(syscall(SYS_close_range, 5u, ~0u, 0u) == 0);
  int listener = -1;
  confine(start.filter.install(listener));
  step(listener < 0 || send_file(4, listener));
  execve(start.words[0], start.words.data(), start.environment.data());
  step(false);
  std::abort();
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// Returns the time, in seconds, that a process has spent running or waiting for a CPU; 0 if the kernel does not report
/// it.
double busy_seconds(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/schedstat", process));
  double computed = 0, waited = 0;
  file >> computed >> waited;
  return 1e-9 * (computed + waited);
}

struct Pipe {
  Descriptor read, write;
  /// Creates a pipe, or a pair of sockets, over which file descriptors can be sent.
  explicit Pipe(bool sockets = false) {
    int ends[2];
    if ((sockets ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) : pipe2(ends, O_CLOEXEC)) != 0)
      throw SystemError(fmt::format("a pipe cannot be created: {}", std::strerror(errno)));
    read = Descriptor(ends[0]), write = Descriptor(ends[1]);
  }
};

}  // namespace

Confined::Confined(std::vector<std::string> words, const Confinement& confinement)
    : confinement_(confinement), filter_(confinement.programs, confinement.file > 0) {
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<std::string> environment{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8", "OMP_NUM_THREADS=1",
                                       "OPENBLAS_NUM_THREADS=1", "CCACHE_DISABLE=1"};
  for (const char* const name : {"TMPDIR=", "HOME="}) environment.push_back(name + confinement.directory);
  // The variable selects variants of library functions; the child must use the same variants as this process.
  if (const char* const tunables = std::getenv("GLIBC_TUNABLES"))
    environment.push_back(fmt::format("GLIBC_TUNABLES={}", tunables));
  std::vector<std::string> readable = confinement.readable;
  readable.insert(readable.end(), {"/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives",
                                   "/dev/null", "/dev/urandom", confinement.directory});
  const std::filesystem::path programs = std::filesystem::path(words[0]).parent_path();
  readable.insert(readable.end(), {programs, programs.parent_path() / "lib"});
  std::vector<std::string> writable{"/dev/null"};
  if (confinement.file > 0) writable.push_back(confinement.directory);
  Pipe requests, answers, failure(true);
  const std::string log = confinement.directory + "/log";
  Start start{pointers(words),
              pointers(environment),
              confinement.file > 0 ? log.c_str() : nullptr,
              confinement_,
              filter_,
              FileRules(readable, writable),
              requests.read,
              answers.write,
              failure.write,
              getpid()};
  start_ = std::chrono::steady_clock::now();
  // A compiler gets 20 times `seconds`: it waits only for a CPU and for its children, whose CPU time is limited.
  const double patience = confinement.programs ? 20 : 1;
  deadline_ = start_ + std::chrono::milliseconds(static_cast<Index>(1000 * patience * confinement.seconds));
  process_ = fork();
  if (process_ == 0) become(start);
  char error = process_ < 0 ? static_cast<char>(errno) : cannot_confine;
  for (Descriptor* const of_child : {&requests.read, &answers.write, &failure.write}) *of_child = Descriptor();
  requests_ = std::move(requests.write), answers_ = std::move(answers.read);
  fcntl(requests_, F_SETFL, O_NONBLOCK);
  fcntl(answers_, F_SETFL, O_NONBLOCK);
  if (process_ > 0) {
    setpgid(process_, process_);
    last_started = process_;
    handle_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, process_, 0)));
  }
  if (confinement.programs) requests_ = Descriptor();  // such a process has an empty standard input
  ssize_t said = process_ > 0 ? receive_file(failure.read, error, listener_) : -1;
  recorded_ = listener_ >= 0;
  if (recorded_) {
    while (!wait_for(failure.read, POLLIN, -1)) continue;
    error = cannot_confine;
    said = read(failure.read, &error, 1);
  }
  if (said == 0 && handle_ >= 0) return;
  end();
  if (error == cannot_confine)
    throw SystemError("this system cannot confine processes: its kernel has no system-call filters (seccomp)");
  throw SystemError(fmt::format("{} cannot be started: {}", words[0], std::strerror(error)));
}

Confined::~Confined() { end(); }

/// Kills the process with its group and returns its status.
int Confined::end() {
  if (process_ <= 0) return 0;
  int status = 0;
  // The group is killed before the process is reaped, while its id cannot be reused.
  kill(-process_, SIGKILL);
  kill(process_, SIGKILL);
  last_started = -1;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
  process_ = -1;
  return status;
}

/// Extends an expired deadline by the time that the process has spent running or waiting for a CPU: only idle time
/// counts. Throws Error if the idle time reaches the limit; for a process that may start other programs, always throws
/// Error.
void Confined::extend_deadline() {
  using namespace std::chrono;
  const steady_clock::time_point now = steady_clock::now();
  if (now < deadline_) return;
  require(!confinement_.programs, "it ran for more than {:g} s", duration<double>(deadline_ - start_).count());
  const double idle = duration<double>(now - start_).count() - busy_seconds(process_);
  require(idle < confinement_.seconds, "it was idle for more than {:g} s", confinement_.seconds);
  deadline_ = now + milliseconds(static_cast<Index>(1000 * (confinement_.seconds - idle)) + 10);
}

bool Confined::wait_for(int file, short events, Index milliseconds) {
  pollfd polled[]{{listener_, POLLIN, 0}, {file, events, 0}};
  const int ready = poll(polled, 2, static_cast<int>(milliseconds));
  require(ready >= 0 || errno == EINTR, "waiting for it failed: {}", std::strerror(errno));
  if (ready <= 0) return false;
  if (polled[0].revents & POLLIN) {
    const char* const refused = filter_.answer(listener_);
    if (refused && confinement_.refused) confinement_.refused->insert(refused);
  } else if (polled[0].revents) {
    listener_ = Descriptor();  // no process is left
  }
  return polled[1].revents != 0;
}

// Accepts a ready file even after the deadline: this process may itself have waited for a CPU.
void Confined::await(int file, short events) {
  using namespace std::chrono;
  for (;;) {
    if (wait_for(file, events, 0)) return;
    extend_deadline();
    const auto left = duration_cast<milliseconds>(deadline_ - steady_clock::now()).count();
    if (wait_for(file, events, std::max<Index>(left, 0) + 1)) return;
  }
}

void Confined::send(const Message& message) {
  Message length;
  length.put(static_cast<Index>(message.bytes().size()));
  send_bytes(length.bytes() + message.bytes());
}

void Confined::send_bytes(std::string_view bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    await(requests_, POLLOUT);
    const ssize_t count = ::write(requests_, bytes.data() + done, bytes.size() - done);
    if (count > 0) done += static_cast<std::size_t>(count);
    if (count < 0 && errno != EAGAIN && errno != EINTR) fail_ended();
  }
}

void Confined::read_some(char* bytes, std::size_t count) {
  for (std::size_t done = 0; done < count;) {
    await(answers_, POLLIN);
    const ssize_t got = read(answers_, bytes + done, count - done);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) fail_ended();
    if (got > 0) done += static_cast<std::size_t>(got);
  }
}

Message Confined::receive(std::size_t most) {
  std::uint64_t size = 0;
  read_some(reinterpret_cast<char*>(&size), sizeof size);
  require(size <= most, "its answer has more than {} MB", most >> 20);
  std::string bytes(size, '\0');
  read_some(bytes.data(), size);
  return Message(std::move(bytes));
}

int Confined::wait() {
  await(handle_, POLLIN);
  const int status = end();
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  const int signal = WTERMSIG(status);
  if (signal == SIGXCPU) fail("it used more than {:g} s of CPU time", confinement_.seconds);
  if (signal == SIGXFSZ) fail("it wrote a file of more than {} MB", confinement_.file >> 20);
  const bool stack = signal == SIGSEGV && confinement_.file == 0;
  fail("it crashed: {}{}", strsignal(signal), stack ? " (an index out of range, or infinite recursion)" : "");
}

void Confined::fail_ended() {
  const int status = wait();
  fail("it exited with status {}", status);
}

void end_with_confined() {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) std::signal(signal, end_both);
}

void require_execution(const std::string& directory) {
  struct statvfs mounted {};
  if (::statvfs(directory.c_str(), &mounted) == 0 && (mounted.f_flag & ST_NOEXEC) != 0)
    throw SystemError(
        fmt::format("{}: mounted with noexec, so that compiled files cannot be loaded; set TMPDIR to another directory",
                    directory));
}

PrivateDirectory::PrivateDirectory() : path_((std::filesystem::temp_directory_path() / "heed-lab-XXXXXX").string()) {
  if (mkdtemp(path_.data()) == nullptr) throw SystemError(path_ + ": cannot make a directory");
  path_ = std::filesystem::canonical(path_);
}

PrivateDirectory::~PrivateDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace heed
