#include "heed/base/lockstep.h"

#include "heed/base/parallel.h"

#include "fiber.h"

namespace heed {

namespace {

/// Ends the work of a part that waits for what will not come.
struct Abandoned {};

}  // namespace

Lockstep::Lockstep(Index parts) {
  for (Index part = 0; part < parts; ++part) fibers_.push_back(std::make_unique<Fiber>());
}
Lockstep::~Lockstep() = default;

void Lockstep::run(const std::function<void(Index)>& work, const std::function<void()>& between) {
  std::vector<std::exception_ptr> errors(fibers_.size());
  const auto enter = [&](Index part) {
    try {
      work(part);
    } catch (const Abandoned&) {
    } catch (...) {
      errors[static_cast<std::size_t>(part)] = std::current_exception();
    }
  };
  for (Index part = 0; part < parts(); ++part)
    fibers_[static_cast<std::size_t>(part)]->prepare([&enter, part] { enter(part); });
  abandoned_ = false;
  std::exception_ptr error;
  const auto all_ended = [&] {
    return std::all_of(fibers_.begin(), fibers_.end(), [](const auto& fiber) { return fiber->ended(); });
  };
  for (;;) {
    parallel_for(parts(), [&](Index part) {
      Fiber& fiber = *fibers_[static_cast<std::size_t>(part)];
      if (!fiber.ended()) fiber.resume();
    });
    for (const std::exception_ptr& thrown : errors)
      if (!error) error = thrown;
    if (all_ended()) break;
    try {
      if (!error) between();
    } catch (...) {
      error = std::current_exception();
    }
    abandoned_ = error != nullptr;
  }
  if (error) std::rethrow_exception(error);
}

void Lockstep::wait(Index part) {
  fibers_[static_cast<std::size_t>(part)]->pause();
  if (abandoned_) throw Abandoned();
}

}  // namespace heed
