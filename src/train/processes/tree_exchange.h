// Sums over processes: the upper levels of the tree over lanes (train/lanes.h), by messages between two processes.
#pragma once

#include "heed/base/tensor.h"

#include <algorithm>
#include <span>
#include <vector>

namespace heed {

/// Connection to other processes.
class Wire {
 public:
  virtual ~Wire() = default;

  /// Starts sending bytes to a process and receiving bytes from it. Neither span may be used before finish().
  virtual void start(int partner, std::span<const std::byte> sent, std::span<std::byte> received) = 0;

  /// Waits for the earliest unfinished exchange.
  virtual void finish() = 0;
};

/// Sums over `count` processes, a power of two; this process has index `rank`.
class TreeExchange {
 public:
  TreeExchange(Wire& wire, int rank, int count) : wire_(wire), rank_(rank), count_(count) {}

  /// Sums level by level: process r exchanges with r xor 1, then r xor 2, r xor 4; the two processes hold the sums of
  /// neighbouring subtrees. Short arrays are sent whole on each level: log2 P messages. For long arrays, each of the
  /// two processes adds one half and continues with that half only; afterwards the halves are exchanged in reverse
  /// order. For n values, each process sends 2 n (1 - 1/P) values. Both methods add in the same order, so the bits are
  /// the same.
  template <class T>
  void sum(std::span<T> numbers) {
    if (static_cast<Index>(numbers.size()) < few)
      for (int level = 1; level < count_; level *= 2) add(numbers, numbers, level);
    else
      sum_halves(numbers, 1);
  }

 private:
  /// Length below which an array is sent whole: 16 KB of floats, for which latency and transfer time are about equal.
  static constexpr Index few = Index{1} << 12;
  /// Values added while the next ones arrive: 256 KB of floats, which fit in a core's cache.
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

  /// Adds the partner's values to `own` and sends `sent` to the partner; for short arrays the two are the same span. A
  /// range is added while the next one arrives. The left summand is the lower rank's.
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
