// Huge pages: 2 MiB of memory in one entry of a core's TLB, instead of 4 KiB.
#pragma once

#include <cstddef>

namespace heed {

/// Allocations of at least this size request huge pages (src/base/memory.cpp).
inline constexpr std::size_t huge_page = std::size_t{1} << 21;

/// Gives memory small pages, for a large block of which little may be used: a huge page is resident as a whole once one
/// byte of it is written. Without effect on systems that have no huge pages.
void avoid_huge_pages(void* memory, std::size_t bytes);

}  // namespace heed
