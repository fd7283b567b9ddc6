#include "heed/tape/arena.h"

#include "heed/base/huge_pages.h"

namespace heed {

void Arena::grow(std::size_t bytes) {
  constexpr std::size_t least = std::size_t{1} << 16;
  const std::size_t size = std::max({bytes, least, blocks_.empty() ? least : 2 * block().size()});
  full_ += offset_;
  offset_ = 0;
  blocks_.emplace_back(static_cast<Index>(size));
  avoid_huge_pages(blocks_.back().data(), size);  // much of it may stay unused; clear() replaces several blocks by one
}

}  // namespace heed
