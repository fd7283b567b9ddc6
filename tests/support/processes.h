// Processes that share a batch, simulated by threads.
#pragma once

#include "heed/train/processes/ranks.h"

#include <barrier>
#include <functional>
#include <thread>
#include <vector>

namespace heed::test {

/// Threads that exchange sums as processes do.
class Group {
 public:
  explicit Group(int size) : size_(size), places_(static_cast<std::size_t>(size)), barrier_(size) {}

  int size() const { return size_; }

  /// Replaces each rank's values by their sums over all ranks: neighbours first, then neighbouring pairs, and so on.
  template <class T>
  void sum(int rank, std::span<T> numbers) {
    const auto of = [&](int i) { return static_cast<T*>(places_[static_cast<std::size_t>(i)]); };
    places_[static_cast<std::size_t>(rank)] = numbers.data();
    barrier_.arrive_and_wait();
    if (rank == 0)
      for (int step = 1; step < size_; step *= 2)
        for (int i = 0; i < size_; i += 2 * step)
          for (std::size_t j = 0; j < numbers.size(); ++j) of(i)[j] += of(i + step)[j];
    barrier_.arrive_and_wait();
    if (rank > 0) std::copy(of(0), of(0) + numbers.size(), numbers.data());
    barrier_.arrive_and_wait();
  }

  /// Copies the bytes of rank 0 to all.
  void share(int rank, std::span<std::byte> bytes) {
    places_[static_cast<std::size_t>(rank)] = bytes.data();
    barrier_.arrive_and_wait();
    if (rank > 0) std::copy_n(static_cast<const std::byte*>(places_[0]), bytes.size(), bytes.data());
    barrier_.arrive_and_wait();
  }

 private:
  int size_;
  std::vector<void*> places_;
  std::barrier<> barrier_;
};

/// A rank of the group, used by one thread.
class GroupRanks : public Ranks {
 public:
  GroupRanks(Group& group, int rank) : group_(group), rank_(rank) {}
  int count() const override { return group_.size(); }
  int rank() const override { return rank_; }
  void sum(std::span<float> numbers) override { group_.sum(rank_, numbers); }
  void sum(std::span<double> numbers) override { group_.sum(rank_, numbers); }
  void share(std::span<std::byte> bytes) override { group_.share(rank_, bytes); }

 private:
  Group& group_;
  int rank_;
};

/// Calls f(ranks) in each of `count` processes.
inline void in_processes(int count, const std::function<void(Ranks&)>& f) {
  Group group(count);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < count; ++rank)
    threads.emplace_back([&group, &f, rank] {
      GroupRanks ranks(group, rank);
      f(ranks);
    });
}

}  // namespace heed::test
