// Memory of one pass: allocated in order, released all at once, reused by the next pass. The third and later passes of
// the same size request no memory from the system.
#pragma once

#include "heed/base/tensor.h"

#include <span>
#include <vector>

namespace heed {

/// Allocator of one pass's memory.
class Arena {
 public:
  Arena() = default;

  /// `first` is owned by the caller and must outlive the arena. It is used until more memory is needed.
  explicit Arena(std::span<std::byte> first) : first_(first) {
    const std::size_t past = reinterpret_cast<std::uintptr_t>(first.data()) % alignment;
    first_ = first.subspan(std::min(first.size(), past == 0 ? 0 : alignment - past));
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Returns uninitialised, aligned memory for `count` elements, valid until clear().
  template <class T>
  T* allocate(Index count) {
    return static_cast<T*>(allocate_bytes(bytes_of<T>(count)));
  }

  /// Returns memory of `bytes` bytes, as allocate() does.
  void* allocate_bytes(std::size_t bytes) {
    bytes = (bytes + alignment - 1) / alignment * alignment;
    if (offset_ + bytes > block().size()) grow(bytes);
    void* result = block().data() + offset_;
    offset_ += bytes;
    return result;
  }

  /// Releases all memory for the next pass. Replaces several blocks by one that is as large as the largest pass so far.
  void clear() {
    largest_ = largest();
    if (blocks_.size() > 1) {
      blocks_.clear();
      blocks_.emplace_back(largest_);
    }
    full_ = offset_ = 0;
  }

  /// Clears the arena. If its blocks are then smaller than `bytes` or the largest pass, replaces them by one block.
  void reserve(Index bytes) {
    largest_ = std::max(largest(), bytes);
    clear();
    if (reserved() >= largest_) return;
    blocks_.clear();
    blocks_.emplace_back(largest_);
  }

  /// Returns the size in bytes of the largest pass so far.
  Index largest() const { return std::max(largest_, static_cast<Index>(full_ + offset_)); }

  /// Returns the size in bytes of the arena's blocks, used or not.
  Index reserved() const {
    Index total = 0;
    for (const auto& block : blocks_) total += block.size();
    return total;
  }

 private:
  /// Returns the block in use.
  std::span<std::byte> block() {
    if (blocks_.empty()) return first_;
    return {blocks_.back().data(), static_cast<std::size_t>(blocks_.back().size())};
  }

  /// Adds a block for an allocation of `bytes`.
  void grow(std::size_t bytes);

  std::span<std::byte> first_{};
  std::vector<Buffer<std::byte>> blocks_;
  std::size_t offset_ = 0, full_ = 0;  ///< bytes used in the last block, and in all others
  Index largest_ = 0;
};

}  // namespace heed
