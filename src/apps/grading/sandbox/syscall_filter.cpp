#include "syscall_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace heed {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t machine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t machine = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t machine = 0;  // an unknown architecture ends the process at its next call
#endif

/// Calls that are missing in the headers of older systems. From 424 on, numbers are the same on both architectures.
constexpr long fchmodat2 = 452, setxattrat = 463, removexattrat = 466, file_setattr = 469;

constexpr sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
constexpr sock_filter load_call() { return load(offsetof(seccomp_data, nr)); }
/// Loads the lower half of an argument: both architectures are little-endian.
constexpr sock_filter load_argument(std::size_t i) { return load(offsetof(seccomp_data, args) + 8 * i); }
constexpr sock_filter give(std::uint32_t verdict) { return BPF_STMT(BPF_RET | BPF_K, verdict); }
constexpr sock_filter give_error(int error) { return give(SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)); }
/// Skips the next `skipped` instructions unless the condition holds.
constexpr sock_filter unless(std::uint16_t condition, std::uint32_t value, std::uint8_t skipped) {
  return BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | condition | BPF_K), value, 0, skipped);
}
constexpr sock_filter unless_is(long value, std::uint8_t skipped) {
  return unless(BPF_JEQ, static_cast<std::uint32_t>(value), skipped);
}

}  // namespace

SyscallFilter::SyscallFilter(bool programs, bool files) {
  add({load(offsetof(seccomp_data, arch)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, machine, 1, 0),
       give(SECCOMP_RET_KILL_PROCESS), load_call()});
#ifdef __x86_64__
  // The calls of the x32 ABI have different numbers, which the rules below do not cover.
  add({unless(BPF_JGE, 0x40000000, 1), give(SECCOMP_RET_KILL_PROCESS)});
#endif
  deny("ptrace", {SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_process_madvise, SYS_kcmp,
                  SYS_pidfd_open, SYS_pidfd_getfd, SYS_migrate_pages, SYS_move_pages});
  deny("kill", {SYS_pidfd_send_signal, SYS_rt_sigqueueinfo, SYS_tkill});
  deny("setpriority", {SYS_setpriority, SYS_sched_setattr, SYS_sched_setparam, SYS_sched_setscheduler, SYS_ioprio_set});
  deny("setsid", {SYS_setsid, SYS_setpgid, SYS_unshare, SYS_setns});  // these leave the process group
  deny("socket", {SYS_socket, SYS_socketpair});
  // Objects that can outlive the process.
  deny("shmget", {SYS_shmget, SYS_semget, SYS_msgget, SYS_mq_open, SYS_memfd_create});
  deny("keyctl", {SYS_add_key, SYS_request_key, SYS_keyctl});
  // Calls that change the host or privileges, or that execute other calls unfiltered.
  deny("mount", {SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_open_tree, SYS_move_mount, SYS_fsopen,
                 SYS_open_by_handle_at, SYS_quotactl, SYS_swapon, SYS_swapoff, SYS_fanotify_init});
  deny("bpf", {SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup});
  deny("reboot", {SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_acct});
  deny("settimeofday", {SYS_sethostname, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex});
  deny("setuid", {SYS_setuid, SYS_setgid, SYS_setresuid, SYS_setresgid, SYS_setgroups, SYS_capset, SYS_personality});
  signals({SYS_kill, SYS_tgkill, SYS_rt_tgsigqueueinfo});
  // The process may query and set its own limits, with pid 0.
  add({unless_is(SYS_prlimit64, 3), load_argument(0), unless_is(0, 1), give(SECCOMP_RET_ALLOW)});
  add({load_call()});
  deny("prlimit", {SYS_prlimit64});
  if (!programs) {
    deny("fork or thread", {SYS_clone3}, ENOSYS);
    deny("fork or thread", {SYS_clone});
#ifdef __x86_64__
    deny("fork or thread", {SYS_fork, SYS_vfork});
#endif
  }
  if (!files) {
    constexpr const char *changed = "changed file", *opened = "open for writing";
    deny(opened, {SYS_openat2}, ENOSYS);
    deny(changed, {SYS_mkdirat,      SYS_renameat,    SYS_renameat2,    SYS_unlinkat,  SYS_linkat,    SYS_symlinkat,
                   SYS_mknodat,      SYS_truncate,    SYS_fchmodat,     SYS_fchownat,  SYS_utimensat, SYS_setxattr,
                   SYS_lsetxattr,    SYS_removexattr, SYS_lremovexattr, SYS_fchmod,    SYS_fchown,    SYS_fsetxattr,
                   SYS_fremovexattr, fchmodat2,       setxattrat,       removexattrat, file_setattr},
         EACCES);
    writing(SYS_openat, 2);
#ifdef __x86_64__
    writing(SYS_open, 1);
    deny(opened, {SYS_creat}, EACCES);
    deny(changed,
         {SYS_mkdir, SYS_rename, SYS_unlink, SYS_rmdir, SYS_link, SYS_symlink, SYS_mknod, SYS_chmod, SYS_chown,
          SYS_lchown, SYS_utime, SYS_utimes, SYS_futimesat},
         EACCES);
#endif
  }
  add({give(SECCOMP_RET_ALLOW)});
  if (programs) return;
  reporting_ = program_;
  for (sock_filter& instruction : reporting_)
    if (instruction.code == (BPF_RET | BPF_K) && (instruction.k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
      instruction = give(SECCOMP_RET_USER_NOTIF);
  reporting_.pop_back();
  for (const long call : {SYS_execve, SYS_execveat}) {
    refusals_[call] = {"execve", EPERM};
    reporting_.insert(reporting_.end(), {unless_is(call, 1), give(SECCOMP_RET_USER_NOTIF)});
  }
  reporting_.push_back(give(SECCOMP_RET_ALLOW));
}

void SyscallFilter::deny(const char* name, std::initializer_list<long> calls, int error) {
  for (const long call : calls) {
    refusals_[call] = {name, error};
    add({unless_is(call, 1), give_error(error)});
  }
}

/// Denies opening a file for writing; `i` is the index of the call's argument `flags`.
void SyscallFilter::writing(long call, std::size_t i) {
  constexpr std::uint32_t flags = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
  refusals_[call] = {"open for writing", EACCES};
  add({unless_is(call, 4), load_argument(i), unless(BPF_JSET, flags, 1), give_error(EACCES), load_call()});
}

void SyscallFilter::signals(std::initializer_list<long> calls) {
  for (const long call : calls) {
    refusals_[call] = {"kill", EPERM};
    add({unless_is(call, 4), load_argument(0), unless_is(0, 1), give(SECCOMP_RET_ALLOW), give_error(EPERM)});
    selves_.push_back(program_.size() - 3);
  }
}

void SyscallFilter::set_self(pid_t self) {
  for (const std::size_t at : selves_)
    for (std::vector<sock_filter>* const program : {&program_, &reporting_})
      if (at < program->size()) (*program)[at].k = static_cast<std::uint32_t>(self);
}

bool SyscallFilter::install(int& listener) {
  listener = -1;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  if (!reporting_.empty()) {
    const sock_fprog reporting{static_cast<unsigned short>(reporting_.size()), reporting_.data()};
    listener =
        static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &reporting));
    if (listener >= 0) return true;
  }
  const sock_fprog program{static_cast<unsigned short>(program_.size()), program_.data()};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

const char* SyscallFilter::answer(int listener) {
  // The kernel's structures can be longer than the headers'; the additional bytes must be zero.
  union {
    seccomp_notif call;
    char bytes[512];
  } asked{.bytes = {}};
  union {
    seccomp_notif_resp verdict;
    char bytes[512];
  } answer{.bytes = {}};
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) return nullptr;
  const bool starts = !started_ && asked.call.data.nr == SYS_execve;
  const auto refusal = refusals_.find(asked.call.data.nr);
  answer.verdict.id = asked.call.id;
  answer.verdict.error = starts ? 0 : refusal == refusals_.end() ? -EPERM : -refusal->second.error;
  answer.verdict.flags = starts ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
  ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  if (!starts) return refusal == refusals_.end() ? nullptr : refusal->second.name;
  started_ = true;
  return nullptr;
}

}  // namespace heed
