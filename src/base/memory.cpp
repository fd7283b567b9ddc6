#include "heed/base/huge_pages.h"
#include "heed/base/tensor.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace heed {

void avoid_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_NOHUGEPAGE
  if (bytes >= huge_page) madvise(memory, bytes, MADV_NOHUGEPAGE);
#endif
}

namespace detail {

namespace {

/// Returns the alignment of an allocation. Huge pages need an alignment of their size; with them a core's TLB
/// (translation lookaside buffer) covers 512 times as much memory, and there are fewer page faults.
std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t(bytes < huge_page ? static_cast<std::size_t>(alignment) : huge_page);
}

}  // namespace

void* take_memory(std::size_t bytes) {
  void* const memory = ::operator new(bytes, alignment_of(bytes));
#ifdef MADV_HUGEPAGE
  // Fails on a system without huge pages, which is harmless.
  if (bytes >= huge_page) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

void give_back_memory(void* memory, std::size_t bytes) { ::operator delete(memory, alignment_of(bytes)); }

}  // namespace detail

}  // namespace heed
