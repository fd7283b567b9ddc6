#include "fiber.h"

#include "heed/base/error.h"

#ifdef HEED_NO_FIBERS

namespace heed {

struct Fiber::State {};

Fiber::Fiber() { fail("fibers: this build does not support them"); }
Fiber::~Fiber() = default;
void Fiber::prepare(std::function<void()>) {}
void Fiber::resume() {}
bool Fiber::ended() const { return true; }
void Fiber::pause() {}

}  // namespace heed

#else

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define HEED_JUMPS  // sanitizers support only swapcontext
/// longjmp() without glibc's check that the target is an outer function on the same stack (_FORTIFY_SOURCE).
extern "C" [[noreturn]] void heed_jump(jmp_buf place, int result) __asm__("_longjmp");
#endif

namespace heed {

namespace {

/// A stack above a protected guard region.
class Stack {
 public:
  Stack() {
    memory_ = mmap(nullptr, size + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const bool mapped = memory_ != MAP_FAILED, guarded = mapped && mprotect(memory_, guard, PROT_NONE) == 0;
    if (mapped && !guarded) munmap(memory_, size + guard);
    require(guarded, "memory: cannot allocate a stack of {} bytes", size);
  }
  ~Stack() { munmap(memory_, size + guard); }
  Stack(const Stack&) = delete;

  void* bottom() const { return static_cast<char*>(memory_) + guard; }

  static constexpr std::size_t size = std::size_t{2} << 20, guard = std::size_t{1} << 16;

 private:
  void* memory_;
};

/// One of the two alternating contexts: its saved state, and the sanitizers' records of its stack.
struct Side {
  ucontext_t context;  ///< the saved state, unless HEED_JUMPS; before the side is `entered`, its entry point
  jmp_buf place;       ///< the saved state, if HEED_JUMPS
  bool entered = true;
  [[maybe_unused]] const void* bottom = nullptr;
  [[maybe_unused]] std::size_t size = 0;
  [[maybe_unused]] void* sanitizer = nullptr;
};

/// Switches from `from` to `to`; returns when `from` is resumed, or never if `last` is true.
void switch_sides(Side& from, Side& to, [[maybe_unused]] bool last = false) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(last ? nullptr : &from.sanitizer, to.bottom, to.size);
#endif
#ifdef __SANITIZE_THREAD__
  from.sanitizer = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.sanitizer, 0);
#endif
#ifdef HEED_JUMPS
  // swapcontext would also save the signal mask, by a system call that takes longer than the rest of the switch, and
  // the floating-point mode, which is the same in all threads (subnormals.h).
  if (_setjmp(from.place) == 0) {
    if (to.entered) heed_jump(to.place, 1);
    to.entered = true;
    setcontext(&to.context);
  }
#else
  swapcontext(&from.context, &to.context);
#endif
#ifdef __SANITIZE_ADDRESS__
  // The resuming thread may be a different one, with a different stack.
  __sanitizer_finish_switch_fiber(from.sanitizer, &to.bottom, &to.size);
#endif
}

}  // namespace

struct Fiber::State {
  std::function<void()> function;
  Stack stack;
  Side inside, outside;
  bool ended = false;

  /// Runs the function on the fiber's stack. makecontext passes only ints, so the state's address is split into halves.
  static void begin(unsigned high, unsigned low) {
    State& state = *reinterpret_cast<State*>(static_cast<std::uintptr_t>(std::uint64_t{high} << 32 | low));
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(nullptr, &state.outside.bottom, &state.outside.size);
#endif
    state.function();
    state.ended = true;
    switch_sides(state.inside, state.outside, true);
  }
};

Fiber::Fiber() : state_(std::make_unique<State>()) {
  Side& inside = state_->inside;
  inside.bottom = state_->stack.bottom();
  inside.size = Stack::size;
#ifdef __SANITIZE_THREAD__
  inside.sanitizer = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifdef __SANITIZE_THREAD__
  __tsan_destroy_fiber(state_->inside.sanitizer);
#endif
}

void Fiber::prepare(std::function<void()> function) {
  State& state = *state_;
  state.function = std::move(function);
  state.ended = state.inside.entered = false;
  ucontext_t& context = state.inside.context;
  getcontext(&context);
  context.uc_stack = {state.stack.bottom(), 0, Stack::size};
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(&state);
  makecontext(&context, reinterpret_cast<void (*)()>(State::begin), 2, static_cast<unsigned>(address >> 32),
              static_cast<unsigned>(address));
}

void Fiber::resume() { switch_sides(state_->outside, state_->inside); }
bool Fiber::ended() const { return state_->ended; }
void Fiber::pause() { switch_sides(state_->inside, state_->outside); }

}  // namespace heed

#endif
