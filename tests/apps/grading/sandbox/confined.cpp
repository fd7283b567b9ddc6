// Forbidden actions of a confined process, attempted from Python.
#include "src/apps/grading/sandbox/confined.h"

#include "heed/io/file.h"
#include "support/command.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>
#include <fmt/ranges.h>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <map>
#include <set>

using namespace heed;
using namespace heed::test;

namespace {

/// A confined Python process that sends a text with say(text).
struct Prisoner {
  PrivateDirectory place;
  Confined process;

  explicit Prisoner(const std::string& program, Confinement confinement = {})
      : process({"/usr/bin/python3", "-I", "-S", "-c",
                 "import os, struct, sys, signal\n"
                 "def say(text):\n"
                 "  text = str(text).encode()\n"
                 "  text = struct.pack('<q', len(text)) + text\n"
                 "  os.write(3, struct.pack('<q', len(text)) + text)\n"
                 "def tried(what):\n"
                 "  try: say(what() or 'done')\n"
                 "  except BaseException as e: say(type(e).__name__)\n" +
                     program},
                with(std::move(confinement), place.path())) {}
  static Confinement with(Confinement confinement, const std::string& directory) {
    confinement.directory = directory;
    return confinement;
  }
  std::string says() { return process.receive().text(); }
};

std::string said(const std::string& program, Confinement confinement = {}) {
  Prisoner prisoner(program, std::move(confinement));
  return error_of([&] { throw Error(prisoner.says()); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(confined)

BOOST_AUTO_TEST_CASE(messages_go_both_ways) {
  Prisoner echo("data = sys.stdin.buffer.read(8 + 8 + 5)\nsay(data[16:].decode() + '!')\n");
  Message message;
  message.put("hello");
  echo.process.send(message);
  BOOST_TEST(echo.says() == "hello!");
  BOOST_TEST(echo.process.wait() == 0);
}

BOOST_AUTO_TEST_CASE(what_is_denied) {
  const TemporaryDirectory other;
  const std::string file = other / "file";
  BOOST_TEST(said("tried(os.fork)") == "PermissionError");
  BOOST_TEST(said("import subprocess\ntried(lambda: subprocess.run(['/bin/true']).returncode)") == "PermissionError");
  BOOST_TEST(said("import _thread\ntried(lambda: _thread.start_new_thread(print, ()))") == "RuntimeError");
  BOOST_TEST(said("tried(lambda: os.kill(os.getppid(), 9))") == "PermissionError");
  BOOST_TEST(said("tried(lambda: os.kill(-1, 9))") == "PermissionError");
  BOOST_TEST(said("tried(lambda: os.kill(0, 9))") == "PermissionError");
  BOOST_TEST(said("tried(os.setsid)") == "PermissionError");
  BOOST_TEST(said("import _socket\ntried(_socket.socket)") == "PermissionError");
  BOOST_TEST(said("tried(lambda: open('" + file + "', 'w'))") == "PermissionError");
  BOOST_TEST(said("tried(lambda: open('here', 'w'))") == "PermissionError");
  BOOST_TEST(said("tried(lambda: os.mkdir('here'))") == "PermissionError");
  BOOST_TEST(said("tried(lambda: os.unlink(sys.argv[0]))") != "done");
  BOOST_TEST(said("tried(lambda: os.chmod('.', 0o777))") == "PermissionError");
  // Limits cannot be raised; sanitizers run without the address-space limit.
  BOOST_TEST(said("import resource\ntried(lambda: resource.setrlimit(resource.RLIMIT_CPU, (-1, -1)))") != "done");
#ifndef HEED_SANITIZED
  BOOST_TEST(said("import resource\ntried(lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1)))") != "done");
#endif
  BOOST_TEST(said("import resource\ntried(lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1)))") ==
             "PermissionError");
  BOOST_TEST(!std::filesystem::exists(file));
}

// Each open flag that writes, creates or empties a file is denied even on its own and for /dev/null, and recorded.
BOOST_AUTO_TEST_CASE(each_flag_of_writing_is_denied) {
  const TemporaryDirectory place;
  const bool recorded = Confined({"/bin/true"}, {.directory = place.path()}).is_recorded();
  const auto check = [&](const std::string& flag, const std::string& result, const std::set<std::string>& expected) {
    std::set<std::string> kinds;
    const std::string program = "tried(lambda: os.close(os.open('/dev/null', os." + flag + ")))";
    BOOST_TEST(said(program, {.refused = &kinds}) == result, flag);
    if (recorded) BOOST_TEST((kinds == expected), flag);
  };
  check("O_RDONLY", "done", {});
  for (const char* flag : {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"})
    check(flag, "PermissionError", {"open for writing"});
}

// Calls that change files are denied before the files are looked up: here the files are missing or the process's own.
BOOST_AUTO_TEST_CASE(each_change_of_a_file_is_denied) {
  BOOST_TEST(said("def error(what, *arguments):\n"
                  "  try: what(*arguments)\n"
                  "  except OSError as e: return type(e).__name__\n"
                  "  return what.__name__\n"
                  "say({error(os.mkdir, 'a'), error(os.rmdir, 'a'), error(os.unlink, 'a'), error(os.mknod, 'a'),\n"
                  "     error(os.rename, 'a', 'b'), error(os.link, 'a', 'b'), error(os.symlink, 'a', 'b'),\n"
                  "     error(os.truncate, 'a', 0), error(os.chmod, '.', 0o700), error(os.fchmod, 0, 0o600),\n"
                  "     error(os.chown, '.', -1, -1), error(os.lchown, '.', -1, -1), error(os.fchown, 0, -1, -1),\n"
                  "     error(os.utime, '.'), error(os.setxattr, '.', 'user.a', b''),\n"
                  "     error(os.removexattr, '.', 'user.a')})") == "{'PermissionError'}");
}

// Calls of newer kernels, by number, are denied on older kernels too: fchmodat2, setxattrat, removexattrat,
// file_setattr.
BOOST_AUTO_TEST_CASE(changes_of_files_by_new_calls_are_denied) {
  BOOST_TEST(said("import ctypes\n"
                  "library = ctypes.CDLL(None, use_errno=True)\n"
                  "def error(number):\n"
                  "  library.syscall(number, -100, b'.', 0o777, 0, None, 0)\n"
                  "  return ctypes.get_errno()\n"
                  "say({error(number) for number in (452, 463, 466, 469)})") == fmt::format("{{{}}}", EACCES));
}

// Each forbidden call is recorded by kind, and the process cannot prevent this. The calls of Python itself are allowed.
BOOST_AUTO_TEST_CASE(what_is_denied_is_recorded) {
  const TemporaryDirectory place;
  if (!Confined({"/bin/true"}, {.directory = place.path()}).is_recorded()) return;
  const auto refused = [](const std::string& program) {
    std::set<std::string> kinds;
    BOOST_TEST(said(program + "\nsay('end')", {.refused = &kinds}) == "end");
    return fmt::format("{}", fmt::join(kinds, ", "));
  };
  const std::string attempt =
      "def attempt(what, *arguments):\n"
      "  try: what(*arguments)\n"
      "  except (OSError, RuntimeError): pass\n";
  BOOST_TEST(refused("import random, json, math, collections, re, decimal, fractions, statistics, itertools\n"
                     "a = [bytearray(1 << 20) for _ in range(64)]\nsorted(os.environ)\nprint('x' * 100000)\n"
                     "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.kill(os.getpid(), signal.SIGTERM)") == "");
  BOOST_TEST(refused(attempt + "import _socket, _thread\nsignal.signal(signal.SIGSYS, signal.SIG_IGN)\n"
                               "attempt(os.fork)\nattempt(_thread.start_new_thread, print, ())\n"
                               "attempt(_socket.socket)\nattempt(os.kill, os.getppid(), 0)\nattempt(os.setsid)\n"
                               "attempt(open, 'here', 'w')\nattempt(os.mkdir, 'here')\n"
                               "attempt(os.setpriority, 0, 0, 1)\nattempt(os.execv, '/bin/true', ['true'])\n"
                               "for _ in range(20000): attempt(os.setuid, 0)") ==
             "changed file, execve, fork or thread, kill, open for writing, setpriority, setsid, setuid, socket");
}

// Calls that affect other processes or the host, with invalid arguments: the filter denies them before the kernel
// checks the arguments. An unprivileged process is denied some of these calls by the kernel too, so the test also
// requires that the filter has recorded a denied call of each kind.
BOOST_AUTO_TEST_CASE(each_call_beyond_the_process_is_denied) {
  const TemporaryDirectory place;
  if (!std::filesystem::exists("/usr/bin/perl") ||
      !Confined({"/bin/true"}, {.directory = place.path()}).is_recorded()) {
    BOOST_TEST_MESSAGE("skipped: no /usr/bin/perl, or a kernel that does not report denied calls");
    return;
  }
  const std::map<std::string, std::vector<long>> calls{
      {"ptrace",
       {SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_process_madvise, SYS_kcmp, SYS_pidfd_open,
        SYS_pidfd_getfd, SYS_migrate_pages, SYS_move_pages}},
      {"kill", {SYS_kill, SYS_tgkill, SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal, SYS_rt_sigqueueinfo, SYS_tkill}},
      {"setpriority", {SYS_setpriority, SYS_sched_setattr, SYS_sched_setparam, SYS_sched_setscheduler, SYS_ioprio_set}},
      {"setsid", {SYS_setsid, SYS_setpgid, SYS_unshare, SYS_setns}},
      {"socket", {SYS_socket, SYS_socketpair}},
      {"shmget", {SYS_shmget, SYS_semget, SYS_msgget, SYS_mq_open, SYS_memfd_create}},
      {"keyctl", {SYS_add_key, SYS_request_key, SYS_keyctl}},
      {"mount",
       {SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_open_tree, SYS_move_mount, SYS_fsopen,
        SYS_open_by_handle_at, SYS_quotactl, SYS_swapon, SYS_swapoff, SYS_fanotify_init}},
      {"bpf", {SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup}},
      {"reboot", {SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_acct}},
      {"settimeofday", {SYS_sethostname, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex}},
      {"setuid", {SYS_setuid, SYS_setgid, SYS_setresuid, SYS_setresgid, SYS_setgroups, SYS_capset, SYS_personality}},
      {"prlimit", {SYS_prlimit64}}};
  std::string numbers;
  for (const auto& [kind, list] : calls) numbers += fmt::format("{}, ", fmt::join(list, ", "));
  std::set<std::string> kinds;
  Confined process({"/usr/bin/perl", "-e",
                    "for my $n (" + numbers +
                        ") { push @wrong, $n if syscall($n, -1, -1, -1, -1, -1, -1) != -1 or $! != 1; }\n"
                        "$text = 'allowed: ' . join(' ', @wrong);\n"
                        "$message = pack('q<a*', length $text, $text);\n"
                        "open($answers, '>&=', 3);\n"
                        "syswrite($answers, pack('q<', length $message) . $message);"},
                   {.directory = place.path(), .refused = &kinds});
  BOOST_TEST(process.receive().text() == "allowed: ");
  for (const auto& [kind, list] : calls) BOOST_TEST(kinds.contains(kind), kind);
}

// The message gives the reason, and does not blame the kernel's sandbox.
BOOST_AUTO_TEST_CASE(what_cannot_be_started) {
  const TemporaryDirectory place;
  write_file(place / "text", "no program");
  const auto reason = [&](const std::string& word) -> std::string {
    try {
      Confined({word}, {.directory = place.path()});
    } catch (const SystemError& error) {
      return error.what();
    }
    return "";
  };
  const std::string missing = (place / "missing").string(), text = (place / "text").string();
  BOOST_TEST(reason(missing) == missing + " cannot be started: No such file or directory");
  BOOST_TEST(reason(text) == text + " cannot be started: Permission denied");
  BOOST_TEST(reason("/bin/true") == "");
}

BOOST_AUTO_TEST_CASE(what_is_hidden) {
  const EnvironmentVariable secret("HEED_TEST_SECRET", "key");
  BOOST_TEST(said("say(os.environ.get('HEED_TEST_SECRET', 'none'))") == "none");
  const int open_file = ::open("/etc/hostname", O_RDONLY);
  std::string open_ones = said(
      "found = []\n"
      "for i in range(64):\n"
      "  try: os.fstat(i); found.append(i)\n"
      "  except OSError: pass\n"
      "say(found)");
  BOOST_TEST(open_ones == "[0, 1, 2, 3]");
  ::close(open_file);
  if (!has_landlock()) return;
  const TemporaryDirectory other;
  write_file(other / "secret", "key");
  BOOST_TEST(said("tried(lambda: open('" + (other / "secret").string() + "').read())") == "PermissionError");
  BOOST_TEST(said("tried(lambda: open('/proc/%d/environ' % os.getppid(), 'rb').read())") == "PermissionError");
  BOOST_TEST(said("tried(lambda: os.listdir('" + other.path().string() + "'))") == "PermissionError");
  BOOST_TEST(said("tried(lambda: open('" + (other / "secret").string() + "').read())",
                  {.readable = {other.path().string()}}) == "key");
}

// Output is discarded or, if the process may write files, written to the file log. The process's home is its directory,
// and new files are private.
BOOST_AUTO_TEST_CASE(environment_of_processes) {
  BOOST_TEST(said("here = os.getcwd()\nsay([os.environ[name] == here for name in ('HOME', 'TMPDIR')])") ==
             "[True, True]");
  BOOST_TEST(
      said("say([os.environ[name] for name in ('PATH', 'LC_ALL', 'OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS')])") ==
      "['/usr/local/bin:/usr/bin:/bin', 'C.UTF-8', '1', '1']");
  BOOST_TEST(said("say('%o' % os.umask(0))") == "77");
  for (const Index file : {0, 4096}) {
    Prisoner prisoner("print('out', flush=True)\nos.write(2, b'error')", {.file = file});
    BOOST_TEST(prisoner.process.wait() == 0);
    BOOST_TEST(std::filesystem::exists(prisoner.place / "log") == (file > 0));
    if (file > 0) BOOST_TEST(read_file(prisoner.place / "log") == "out\nerror");
  }
}

BOOST_AUTO_TEST_CASE(how_processes_end) {
  BOOST_TEST(said("os._exit(0)") == "it exited with status 0");
  BOOST_TEST(said("print('passed' * 1000000)") == "it exited with status 0");
  BOOST_TEST(said("os.kill(os.getpid(), 11)") ==
             "it crashed: Segmentation fault (an index out of range, or infinite recursion)");
  BOOST_TEST(said("while True: pass", {.seconds = 1}) == "it used more than 1 s of CPU time");
  BOOST_TEST(said("import time\ntime.sleep(60)", {.seconds = 0.5}) == "it was idle for more than 0.5 s");
  BOOST_TEST(said("signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass", {.seconds = 1}) ==
             "it crashed: Killed");
  BOOST_TEST(said("os._exit(3)") == "it exited with status 3");
  BOOST_TEST(said("os.write(3, b'\\xff' * 8)") == "its answer has more than 64 MB");
  BOOST_TEST(said("os.write(3, b'\\x08\\0\\0\\0\\0\\0\\0\\0abc')") == "it exited with status 0");
}

// For a compiler, which may start programs, the limit of elapsed time is twenty times that of CPU time. File sizes are
// limited, too.
BOOST_AUTO_TEST_CASE(limits_of_compilers) {
  BOOST_TEST(said("import time\ntime.sleep(60)", {.seconds = 0.01, .programs = true}) == "it ran for more than 0.2 s");
  BOOST_TEST(said("signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\nos.write(os.open('a', os.O_WRONLY | os.O_CREAT), "
                  "b'x' * (3 << 20))\nos.write(os.open('a', os.O_WRONLY | os.O_APPEND), b'x')",
                  {.file = Index{2} << 20}) == "it wrote a file of more than 2 MB");
}

// Only time in which a process could have computed, but did not, is idle. Seven processes share a CPU, so the last one
// waits for about six times the CPU time that it uses.
BOOST_AUTO_TEST_CASE(waiting_for_a_cpu_is_not_idleness) {
  if (!std::filesystem::exists("/proc/self/schedstat")) return;  // the kernel does not report waiting
  const std::string on_one_cpu = "import time\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n";
  std::deque<Prisoner> others;
  for (int i = 0; i < 6; ++i) others.emplace_back(on_one_cpu + "while True: pass");
  BOOST_TEST(said(on_one_cpu + "while time.process_time() < 0.15: pass\nsay('done')", {.seconds = 0.4}) == "done");
}

BOOST_AUTO_TEST_CASE(limits, *boost::unit_test::precondition(without_sanitizer)) {
  BOOST_TEST(said("tried(lambda: len(bytearray(1 << 30)))", {.memory = Index{512} << 20}) == "MemoryError");
  // With permission to write, a process can write in its own directory, up to a limit.
  const Confinement writer{.file = 4096};
  const TemporaryDirectory other;
  BOOST_TEST(said("tried(lambda: open('here', 'w').write('x' * 4000))", writer) == "4000");
  BOOST_TEST(said("tried(lambda: open('" + (other / "file").string() + "', 'w').close())", writer) ==
             (has_landlock() ? "PermissionError" : "done"));
  BOOST_TEST(said("tried(lambda: open('here', 'w').write('x' * 9000))", writer) == "OSError");
}

// A process that reads no messages does not block the sender.
BOOST_AUTO_TEST_CASE(nobody_reads) {
  Prisoner deaf("import time\ntime.sleep(60)", {.seconds = 0.5});
  Message message;
  message.put(std::string(10 << 20, 'x'));
  BOOST_TEST(error_of([&] { deaf.process.send(message); }) == "it was idle for more than 0.5 s");
}

BOOST_AUTO_TEST_CASE(messages_of_others) {
  Message lies;
  lies.put(Index{6});
  for (int i = 0; i < 6; ++i) lies.put(Index{1000});
  BOOST_CHECK_THROW(Message(lies.bytes()).tensor(), Error);
  Message text;
  text.put("four");
  BOOST_CHECK_THROW(Message(text.bytes()).text(3), Error);
  BOOST_TEST(Message(text.bytes()).text(4) == "four");
  BOOST_CHECK_THROW(Message(text.bytes().substr(0, 10)).text(), Error);
  BOOST_CHECK_THROW(Message("abc").integer(), Error);
  Message tensor;
  tensor.put(Tensor<double>({2, 3}, {1, 2, 3, 4, 5, 6}));
  const Tensor<double> back = Message(tensor.bytes()).tensor();
  BOOST_TEST(back.shape() == Shape({2, 3}));
  BOOST_TEST(back[5] == 6);
}

BOOST_AUTO_TEST_CASE(messages_have_limits) {
  Message numbers;
  for (const Index value : {0, 5, -1, 6}) numbers.put(value);
  BOOST_TEST(numbers.integer(0, 5) == 0);
  BOOST_TEST(numbers.integer(0, 5) == 5);
  BOOST_TEST(error_of([&] { numbers.integer(0, 5); }) == "message: -1; expected a number from 0 to 5");
  BOOST_TEST(error_of([&] { numbers.integer(0, 5); }) == "message: 6; expected a number from 0 to 5");
  for (const std::size_t size : {4096, 4097}) {
    Message text;
    text.put(std::string(size, 'x'));
    BOOST_TEST(error_of([&] { text.text(); }) ==
               (size == 4096 ? "no error" : "message: 4097; expected a number from 0 to 4096"));
  }
  Message large;
  for (const Index value : {2, 1001, 1000}) large.put(value);
  BOOST_TEST(error_of([&] { large.tensor(); }) == "message: a tensor has more than 1000000 elements");
}

// A pipe carries several messages; a message that is too long is refused, and so is a pipe that has ended.
BOOST_AUTO_TEST_CASE(messages_are_written_and_read) {
  int ends[2];
  BOOST_TEST_REQUIRE(::pipe(ends) == 0);
  Message first, second;
  first.put("hello"), first.put(Index{-7});
  second.put(Tensor<double>({2, 1}, {0.5, -3}));
  for (const Message* message : {&first, &second, &first}) write_message(ends[1], *message);
  Message got = read_message(ends[0]);
  BOOST_TEST(got.text() == "hello");
  BOOST_TEST(got.integer() == -7);
  got = read_message(ends[0], second.bytes().size());
  BOOST_TEST(got.tensor()[1] == -3);
  BOOST_TEST(error_of([&] { read_message(ends[0], 20); }) == "message: 21 bytes; expected at most 20");
  for (const int end : ends) ::close(end);
  BOOST_TEST_REQUIRE(::pipe(ends) == 0);
  ::close(ends[1]);
  BOOST_TEST(error_of([&] { read_message(ends[0]); }) == "message: the other side has ended");
  ::close(ends[0]);
}

BOOST_AUTO_TEST_SUITE_END()
