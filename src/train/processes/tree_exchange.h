// How processes add up what each of them has: the upper levels of the tree over lanes (train/lanes.h), by messages
// between two processes at a time.
#pragma once

#include "heed/base/tensor.h"

#include <algorithm>
#include <span>
#include <vector>

namespace heed {

/// Messages to and from another process.
class Wire {
 public:
  virtual ~Wire() = default;

  /// Begins to send bytes to a process and to receive some from it. Until it is finished nobody touches either.
  virtual void start(int partner, std::span<const std::byte> sent, std::span<std::byte> received) = 0;

  /// Waits for the earliest exchange that was started and is not finished.
  virtual void finish() = 0;
};

/// Sums over `count` processes, a power of two, of which this is `rank`.
class TreeExchange {
 public:
  TreeExchange(Wire& wire, int rank, int count) : wire_(wire), rank_(rank), count_(count) {}

  /// Level by level, process r meets r xor 1, then r xor 2, r xor 4: the two have the sums of neighbouring subtrees,
  /// and both need that of the two. Of few numbers everybody sends all on each level: log2 P messages, one after the
  /// other. Of many, each of the two adds up one half of what both have summed so far, and from then on is responsible
  /// for that half alone, until on the way back everybody gets what others have made: of n numbers each process sends
  /// 2 n (1 - 1/P). The additions are the same, and so are the bits.
  template <class T>
  void sum(std::span<T> numbers) {
    if (static_cast<Index>(numbers.size()) < few)
      for (int level = 1; level < count_; level *= 2) add(numbers, numbers, level);
    else
      sum_halves(numbers, 1);
  }

 private:
  /// Fewer numbers than this go in whole: 16 KB of floats, for which a message takes as long to arrive as to be sent.
  static constexpr Index few = Index{1} << 12;
  /// Numbers that are added while the next ones arrive: 256 KB of floats, which stay in a core's cache.
  static constexpr Index range = Index{1} << 16;

  template <class T>
  void sum_halves(std::span<T> numbers, int level) {
    if (level == count_) return;
    const std::size_t middle = numbers.size() / 2;
    const std::span<T> halves[] = {numbers.first(middle), numbers.subspan(middle)};
    const bool later = rank_ & level;
    const std::span<T> own = halves[later], other = halves[!later];
    add(own, other, level);
    sum_halves(own, 2 * level);
    wire_.start(rank_ ^ level, std::as_bytes(own), std::as_writable_bytes(other));
    wire_.finish();
  }

  /// Adds to `own` what the partner sends, who gets `sent`: other numbers, or the same if they are few. Range by range,
  /// so that one is added while the next one is on its way. What the earlier process has stands before the plus.
  template <class T>
  void add(std::span<T> own, std::span<T> sent, int level) {
    const Index size = static_cast<Index>(std::max(own.size(), sent.size())), ranges = (size + range - 1) / range;
    arrived_.resize(sizeof(T) * static_cast<std::size_t>(2 * std::min(size, range)));
    T* const places = reinterpret_cast<T*>(arrived_.data());
    const auto part = [](std::span<T> whole, Index i) {
      const std::size_t begin = std::min(whole.size(), static_cast<std::size_t>(i * range));
      return whole.subspan(begin, std::min(whole.size() - begin, static_cast<std::size_t>(range)));
    };
    const auto place = [&](Index i) { return std::span(places + i % 2 * std::min(size, range), part(own, i).size()); };
    const auto start = [&](Index i) {
      wire_.start(rank_ ^ level, std::as_bytes(part(sent, i)), std::as_writable_bytes(place(i)));
    };
    if (ranges > 0) start(0);
    for (Index i = 0; i < ranges; ++i) {
      if (i + 1 < ranges) start(i + 1);
      wire_.finish();
      const std::span<T> mine = part(own, i), theirs = place(i);
      for (std::size_t j = 0; j < mine.size(); ++j) mine[j] = rank_ & level ? theirs[j] + mine[j] : mine[j] + theirs[j];
    }
  }

  Wire& wire_;
  int rank_, count_;
  std::vector<std::byte> arrived_;
};

}  // namespace heed
