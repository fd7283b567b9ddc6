// Huge pages: one TLB entry of a core covers 2 MiB of memory instead of 4 KiB.
#pragma once

#include <cstddef>

namespace heed {

/// Allocations of at least this size request huge pages (src/base/memory.cpp).
inline constexpr std::size_t huge_page = std::size_t{1} << 21;

/// Requests small pages for a large block that may stay mostly unused: a huge page becomes resident as a whole when one
/// byte of it is written. Has no effect on systems without huge pages.
void avoid_huge_pages(void* memory, std::size_t bytes);

}  // namespace heed
