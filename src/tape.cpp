#include "heed/tape.h"

#include <deque>
#include <mutex>

namespace heed::detail {

namespace {

std::mutex mutex;

/// Slots are recycled and never freed: a handle may outlive every tape. Deque elements do not move.
std::deque<TapeSlot>& slots() {
  static auto* all = new std::deque<TapeSlot>;
  return *all;
}

std::vector<TapeSlot*>& unused() {
  static auto* list = new std::vector<TapeSlot*>;
  return *list;
}

}  // namespace

TapeSlot* acquire_tape_slot(void* tape) {
  const std::lock_guard lock(mutex);
  if (unused().empty()) unused().push_back(&slots().emplace_back());
  TapeSlot* const slot = unused().back();
  unused().pop_back();
  slot->tape = tape;
  return slot;
}

void release_tape_slot(TapeSlot* slot) {
  const std::lock_guard lock(mutex);
  ++slot->generation;
  slot->tape = nullptr;
  unused().push_back(slot);
}

}  // namespace heed::detail
