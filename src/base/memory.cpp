#include "heed/base/tensor.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace heed::detail {

namespace {

/// The size of huge pages. Allocations of at least this size request them: a core's TLB (translation lookaside buffer)
/// then covers 512 times as much memory, and there are fewer page faults.
constexpr std::size_t huge_page = std::size_t{1} << 21;

std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t(bytes < huge_page ? static_cast<std::size_t>(alignment) : huge_page);
}

}  // namespace

void* take_memory(std::size_t bytes) {
  void* const memory = ::operator new(bytes, alignment_of(bytes));
#ifdef MADV_HUGEPAGE
  // Failure is harmless on a system without huge pages.
  if (bytes >= huge_page) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

void give_back_memory(void* memory, std::size_t bytes) { ::operator delete(memory, alignment_of(bytes)); }

}  // namespace heed::detail
