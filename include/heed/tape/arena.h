// Memory of one pass: allocated in order, released all at once, reused by the next pass. Once the largest pass has run,
// no further memory is requested from the system.
#pragma once

#include "heed/base/tensor.h"

#include <vector>

namespace heed {

class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Returns uninitialised, aligned memory for `count` elements, valid until clear().
  template <class T>
  T* allocate(Index count) {
    return static_cast<T*>(allocate_bytes(bytes_of<T>(count)));
  }

  void* allocate_bytes(std::size_t bytes) {
    bytes = (bytes + alignment - 1) / alignment * alignment;
    if (blocks_.empty() || offset_ + bytes > capacity(blocks_.back())) grow(bytes);
    void* result = blocks_.back().data() + offset_;
    offset_ += bytes;
    return result;
  }

  /// Releases all memory to the next pass. Replaces several blocks by one of their total size.
  void clear() {
    if (blocks_.size() > 1) {
      const Index total = reserved();
      blocks_.clear();
      blocks_.emplace_back(total);
    }
    offset_ = 0;
  }

  /// Releases all memory and grows to at least `bytes`.
  void reserve(Index bytes) {
    clear();
    if (reserved() >= bytes) return;
    blocks_.clear();
    blocks_.emplace_back(bytes);
  }

  /// Returns the bytes held, in use or not.
  Index reserved() const {
    Index total = 0;
    for (const auto& block : blocks_) total += block.size();
    return total;
  }

 private:
  static std::size_t capacity(const Buffer<std::byte>& block) { return static_cast<std::size_t>(block.size()); }

  void grow(std::size_t bytes) {
    constexpr std::size_t least = std::size_t{1} << 16;
    const std::size_t twice = blocks_.empty() ? least : 2 * capacity(blocks_.back());
    blocks_.emplace_back(static_cast<Index>(std::max({bytes, least, twice})));
    offset_ = 0;
  }

  std::vector<Buffer<std::byte>> blocks_;
  std::size_t offset_ = 0;
};

}  // namespace heed
