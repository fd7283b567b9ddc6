#include "heed/base/lockstep.h"

#include "heed/base/parallel.h"

#include "fiber.h"

#include <algorithm>
#include <span>

namespace heed {

namespace {

/// Exception that ends a part waiting at a barrier that other parts will not reach.
struct Abandoned {};

}  // namespace

Lockstep::Lockstep(Index most) {
  if (most == 1) return;
  for (Index part = 0; part < most; ++part) fibers_.push_back(std::make_unique<Fiber>());
  errors_.resize(fibers_.size());
}
Lockstep::~Lockstep() = default;

bool Lockstep::has_stacks() {
#ifdef HEED_NO_FIBERS
  return false;
#else
  return true;
#endif
}

void Lockstep::run(const Call& call) {
  call_ = call;
  if (call.parts == 1) return call.call_work(call.work, 0);
  const auto parts = static_cast<std::size_t>(call.parts);
  HEED_ASSERT(parts <= fibers_.size());
  const std::span fibers(fibers_.data(), parts);
  std::fill(errors_.begin(), errors_.end(), nullptr);
  abandoned_ = false;
  for (std::size_t part = 0; part < parts; ++part)
    fibers[part]->prepare([this, part] {
      try {
        call_.call_work(call_.work, static_cast<Index>(part));
      } catch (const Abandoned&) {
      } catch (...) {
        errors_[part] = std::current_exception();
      }
    });
  std::exception_ptr error;
  for (;;) {
    parallel_for(call.parts, [&](Index part) {
      Fiber& fiber = *fibers[static_cast<std::size_t>(part)];
      if (!fiber.ended()) fiber.resume();
    });
    for (const std::exception_ptr& thrown : errors_)
      if (!error) error = thrown;
    if (std::all_of(fibers.begin(), fibers.end(), [](const auto& fiber) { return fiber->ended(); })) break;
    try {
      if (!error) call.call_between(call.between);
    } catch (...) {
      error = std::current_exception();
    }
    abandoned_ = error != nullptr;
  }
  if (error) std::rethrow_exception(error);
}

void Lockstep::wait(Index part) {
  if (call_.parts == 1) return call_.call_between(call_.between);
  fibers_[static_cast<std::size_t>(part)]->pause();
  if (abandoned_) throw Abandoned();
}

}  // namespace heed
