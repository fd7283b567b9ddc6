// Memory that detects writes: filled with a signalling value, with guard regions around its parts.
#pragma once

#include "heed/attention/mechanism.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace heed {

/// Returns a signalling NaN. No arithmetic produces it: results computed from it are quiet NaNs.
template <class T>
T signalling() {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(std::uint32_t{0x7fa5a5a5});
  else
    return std::bit_cast<double>(std::uint64_t{0x7ff5a5a5a5a5a5a5});
}

/// Returns true if x is the signalling value. Compares the bits, since a NaN does not equal itself.
template <class T>
bool is_signalling(const T* x) {
  const T value = signalling<T>();
  return std::memcmp(x, &value, sizeof(T)) == 0;
}

/// Returns `count` elements of the signalling value. Copies its bits, since copying it as a number may make it a quiet
/// NaN.
template <class T>
Buffer<T> watched(Index count) {
  Buffer<T> memory(count);
  const T value = signalling<T>();
  for (Index i = 0; i < count; ++i) std::memcpy(memory.data() + i, &value, sizeof(T));
  return memory;
}

// Lengths of guard regions in elements; they are not multiples of a vector's length.
inline constexpr Index row_guard = 19;  // after each row of a head
inline constexpr Index guard = 259;     // before, between and after parts of memory

/// Heads [rows, columns] in one block of memory, as in a packed projection, with a guard region after each row.
template <class T>
class WatchedHeads {
 public:
  WatchedHeads(Index heads, Index rows, Index columns)
      : heads_(columns > 0 ? heads : 0),
        rows_(rows),
        columns_(columns),
        stride_(heads * (columns + row_guard)),
        memory_(watched<T>(rows * stride_)) {}

  template <class U = T>
  Heads<U> view() {
    if (heads_ == 0) return {};
    return {{memory_.data(), rows_, columns_, stride_}, heads_, columns_ + row_guard};
  }

  /// Calls f(pointer) for each element of the heads.
  template <class F>
  void each(const F& f) {
    for (Index h = 0; h < heads_; ++h)
      for (Index r = 0; r < rows_; ++r)
        for (Index c = 0; c < columns_; ++c) f(memory_.data() + r * stride_ + h * (columns_ + row_guard) + c);
  }

  bool guards_intact() const {
    for (Index i = 0; i < memory_.size(); ++i)
      if (i % (columns_ + row_guard) >= columns_ && !is_signalling(memory_.data() + i)) return false;
    return true;
  }

 private:
  Index heads_, rows_, columns_, stride_;
  Buffer<T> memory_;
};

/// Parts of a mechanism's memory, with a guard region after each and one before the first. As much memory again
/// follows, so that writes far beyond the last part do not reach the heap.
template <class T>
class WatchedMemory {
 public:
  /// `guards`: the offsets, from the start of the first part, of the guard regions after the parts.
  WatchedMemory(const char* name, const std::vector<Index>& guards)
      : name_(name), guards_(guards), memory_(watched<T>(2 * (guard + (guards.empty() ? 0 : guards.back() + guard)))) {}

  AttentionMemory<T> view() { return {memory_.data() + guard, guard}; }
  std::vector<char> bytes() const {
    const char* const first = reinterpret_cast<const char*>(memory_.data());
    return {first, first + memory_.size() * static_cast<Index>(sizeof(T))};
  }
  /// Calls f(pointer) for each element of the parts.
  template <class F>
  void each(const F& f) {
    Index next = 0;
    for (const Index at : guards_) {
      for (Index i = next; i < at; ++i) f(view().data + i);
      next = at + guard;
    }
  }
  void fill(T number) {
    each([=](T* x) { *x = number; });
  }
  const char* name() const { return name_; }

  /// Returns the first part with a modified guard region on either side, counted from 1; 0 if there is none.
  std::size_t overrun() const {
    if (!intact(0)) return 1;
    for (std::size_t part = 0; part < guards_.size(); ++part)
      if (!intact(guard + guards_[part])) return part + 1;
    return 0;
  }

 private:
  bool intact(Index at) const {
    for (Index i = 0; i < guard; ++i)
      if (!is_signalling(memory_.data() + at + i)) return false;
    return true;
  }

  const char* name_;
  std::vector<Index> guards_;
  Buffer<T> memory_;
};

}  // namespace heed
