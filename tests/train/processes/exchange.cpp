// Exchanges between processes give the tree's sums, with messages passed between threads.
#include "src/train/processes/tree_exchange.h"

#include "heed/base/random.h"
#include "support/processes.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

using namespace heed;
using namespace heed::test;

namespace {

/// Messages in transit, by sender and receiver.
class Post {
 public:
  void send(int from, int to, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    boxes_[{from, to}].emplace_back(bytes.begin(), bytes.end());
    sent += static_cast<Index>(bytes.size());
    arrived_.notify_all();
  }

  std::vector<std::byte> receive(int from, int to) {
    std::unique_lock lock(mutex_);
    auto& box = boxes_[{from, to}];
    arrived_.wait(lock, [&] { return !box.empty(); });
    std::vector<std::byte> bytes = std::move(box.front());
    box.pop_front();
    return bytes;
  }

  Index sent = 0;

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> boxes_;
};

class PostalWire : public Wire {
 public:
  PostalWire(Post& post, int rank) : post_(post), rank_(rank) {}

  void start(int partner, std::span<const std::byte> sent, std::span<std::byte> received) override {
    post_.send(rank_, partner, sent);
    expected_.push_back({partner, received});
  }

  void finish() override {
    const auto [partner, to] = expected_.front();
    expected_.pop_front();
    const std::vector<std::byte> bytes = post_.receive(partner, rank_);
    HEED_ASSERT(bytes.size() == to.size());
    std::copy(bytes.begin(), bytes.end(), to.begin());
  }

 private:
  Post& post_;
  int rank_;
  std::deque<std::pair<int, std::span<std::byte>>> expected_;
};

/// Returns `size` values for a process, with magnitudes from about 1e-4 to 1e4.
template <class T>
std::vector<T> numbers_of(int rank, std::size_t size) {
  const RandomStream random = RandomStream(3).derive(static_cast<std::uint64_t>(rank));
  std::vector<T> numbers(size);
  for (std::size_t i = 0; i < size; ++i)
    numbers[i] = static_cast<T>(random.normal(static_cast<Index>(i)) * std::pow(10.0, double(i % 9) - 4));
  return numbers;
}

template <class T>
void check_sums(int count, std::size_t size) {
  std::vector<std::vector<T>> expected(static_cast<std::size_t>(count)), found = expected;
  in_processes(count, [&](Ranks& ranks) {
    std::vector<T> numbers = numbers_of<T>(ranks.rank(), size);
    ranks.sum(numbers);
    expected[static_cast<std::size_t>(ranks.rank())] = numbers;
  });
  Post post;
  {
    std::vector<std::jthread> processes;
    for (int rank = 0; rank < count; ++rank)
      processes.emplace_back([&, rank] {
        PostalWire wire(post, rank);
        TreeExchange exchange(wire, rank, count);
        for (int time = 0; time < 2; ++time) {  // the second reuses the memory of the first
          std::vector<T>& numbers = found[static_cast<std::size_t>(rank)] = numbers_of<T>(rank, size);
          exchange.sum(std::span(numbers));
        }
      });
  }
  for (int rank = 0; rank < count; ++rank)
    BOOST_TEST((found[static_cast<std::size_t>(rank)] == expected[0]),
               size << " numbers, process " << rank << " of " << count);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_exchange)

// Arrays of fewer than 4096 values are sent whole, longer ones by halves, in ranges of at most 65,536 values. Tests
// lengths at both limits, and odd ones.
BOOST_AUTO_TEST_CASE(sums_are_those_of_the_tree) {
  for (const int count : {1, 2, 4, 8})
    for (const std::size_t size : {0, 1, 7, 4095, 4096, 4097, 131'071, 131'072, 300'001}) {
      check_sums<float>(count, size);
      check_sums<double>(count, size);
    }
}

// For n values, halves, quarters and so on are sent, and the same in reverse: 2 n (1 - 1/P) from each process.
BOOST_AUTO_TEST_CASE(many_numbers_are_not_sent_to_everybody) {
  for (const int count : {2, 4, 8}) {
    Post post;
    std::vector<std::jthread> processes;
    for (int rank = 0; rank < count; ++rank)
      processes.emplace_back([&, rank] {
        PostalWire wire(post, rank);
        std::vector<float> numbers(1 << 18, 1.0f);
        TreeExchange(wire, rank, count).sum(std::span(numbers));
      });
    processes.clear();
    BOOST_TEST(post.sent == count * (2 * 4 * (Index{1} << 18) * (count - 1) / count));
  }
}

BOOST_AUTO_TEST_CASE(processes_tell_each_other_texts) {
  in_processes(4, [](Ranks& ranks) {
    const std::vector<std::string> all = ranks.texts(std::string(static_cast<std::size_t>(ranks.rank()), 'x') + "\n");
    HEED_ASSERT((all == std::vector<std::string>{"\n", "x\n", "xx\n", "xxx\n"}));
    HEED_ASSERT(ranks.any(ranks.rank() == 2));
    HEED_ASSERT(!ranks.any(false));
  });
  BOOST_TEST(one_process().texts("a").size() == 1u);
  BOOST_TEST(one_process().any(true));
}

// The first process that differs from process 0 is named.
BOOST_AUTO_TEST_CASE(processes_that_differ_are_named) {
  const auto errors_of = [](const std::vector<std::string>& texts) {
    std::vector<std::string> errors(texts.size());
    in_processes(static_cast<int>(texts.size()), [&](Ranks& ranks) {
      const auto self = static_cast<std::size_t>(ranks.rank());
      errors[self] = error_of([&] { ranks.require_same(texts[self]); });
    });
    return errors;
  };
  for (const auto& [texts, error] :
       {std::pair(std::vector<std::string>{"a", "a", "a", "a"}, "no error"),
        {{"a", "a", "b", "c"}, "train: processes differ: process 0 has checksum a, process 2 has b"},
        {{"b", "a", "a", "a"}, "train: processes differ: process 0 has checksum b, process 1 has a"}})
    for (const std::string& found : errors_of(texts)) BOOST_TEST(found == error);
}

BOOST_AUTO_TEST_SUITE_END()
