#include "heed/base/tensor.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace heed::detail {

namespace {

/// Memory of this size and more is asked for in pages of this size, where the system has them. A core keeps the places
/// of the pages that it used last (in its TLB, "translation lookaside buffer"), and others it looks up in memory: those
/// it keeps are then of 512 times as many numbers. And fewer pages are handed out one by one.
constexpr std::size_t huge_page = std::size_t{1} << 21;

std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t(bytes < huge_page ? static_cast<std::size_t>(alignment) : huge_page);
}

}  // namespace

void* take_memory(std::size_t bytes) {
  void* const memory = ::operator new(bytes, alignment_of(bytes));
#ifdef MADV_HUGEPAGE
  // A system that does not have them says no, and nothing is lost.
  if (bytes >= huge_page) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

void give_back_memory(void* memory, std::size_t bytes) { ::operator delete(memory, alignment_of(bytes)); }

}  // namespace heed::detail
