#include "heed/tape/arena.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace heed {

void Arena::grow(std::size_t bytes) {
  constexpr std::size_t least = std::size_t{1} << 16;
  const std::size_t size = std::max({bytes, least, blocks_.empty() ? least : 2 * block().size()});
  full_ += offset_;
  offset_ = 0;
  blocks_.emplace_back(static_cast<Index>(size));
#ifdef MADV_NOHUGEPAGE
  // The pass may need little of the block: huge pages would make more of it resident. clear() provides them.
  constexpr std::size_t huge_page = std::size_t{1} << 21;
  if (size >= huge_page) madvise(blocks_.back().data(), size, MADV_NOHUGEPAGE);
#endif
}

}  // namespace heed
