#include "heed/base/lockstep.h"

#include "heed/base/parallel.h"
#include "heed/base/with_threads.h"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

using namespace heed;

namespace {

auto says(const char* text) {
  return [=](const Error& error) { return error.what() == std::string(text); };
}

}  // namespace

BOOST_AUTO_TEST_SUITE(lockstep)

// After each wait, all writes before it are visible to every part, and between() has run once for it.
BOOST_AUTO_TEST_CASE(no_part_goes_on_before_all_have_come) {
  for (const int threads : {1, 2, 5})
    for (const Index parts : {1, 2, 7}) {
      const WithThreads with(threads);
      Lockstep lockstep(parts);
      std::vector<Index> rounds(static_cast<std::size_t>(parts));
      Index between = 0;
      std::atomic<int> late = 0;
      const auto work = [&](Index part) {
        for (Index round = 1; round <= 20; ++round) {
          rounds[static_cast<std::size_t>(part)] = round;
          lockstep.wait(part);
          if (std::accumulate(rounds.begin(), rounds.end(), Index{0}) < parts * round || between != round) ++late;
          lockstep.wait(part);
        }
      };
      Index waits = 0;
      for (int again = 0; again < 2; ++again) {
        between = waits = 0;
        lockstep.run(parts, work, [&] { between += ++waits % 2; });
        BOOST_TEST(waits == 40);
      }
      BOOST_TEST(late == 0);
    }
}

// A single part needs no separate stack: its locals are near those of the caller.
BOOST_AUTO_TEST_CASE(a_single_part_is_a_call) {
  const char here = 0;
  const auto distance = [&](const char& there) {
    return std::abs(static_cast<double>(reinterpret_cast<std::intptr_t>(&here)) -
                    static_cast<double>(reinterpret_cast<std::intptr_t>(&there)));
  };
  for (const Index most : {1, 3}) {
    Lockstep lockstep(most);
    Index between = 0;
    lockstep.run(
        1,
        [&](Index part) {
          const char there = 0;
          BOOST_TEST(distance(there) < 1 << 16);
          BOOST_TEST(part == 0);
          lockstep.wait(part);
          BOOST_TEST(between == 1);
        },
        [&] { ++between; });
    BOOST_TEST(between == 1);
    BOOST_CHECK_EXCEPTION(lockstep.run(
                              1, [&](Index part) { lockstep.wait(part); }, [] { fail("between"); }),
                          Error, says("between"));
  }
}

// The threads alternate between parts: before and after a wait, a part may run on different threads.
BOOST_AUTO_TEST_CASE(a_part_goes_on_on_another_thread) {
  const WithThreads with(3);
  Lockstep lockstep(8);
  std::atomic<int> moved = 0;
  const auto work = [&](Index part) {
    for (int round = 0; round < 20; ++round) {
      // Calls worker() instead of reading thread-local data: compilers assume that a function's thread does not change,
      // and may read such data only once.
      const int before = worker();
      // Every third part is slow, a different third in each round, so threads continue with other parts.
      if ((part + round) % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      lockstep.wait(part);
      if (worker() != before) ++moved;
    }
  };
  lockstep.run(8, work, [] {});
  BOOST_TEST((moved > 0 || threads() == 1));
}

// With more parts than threads, parts take turns; two that run at the same time have different worker indices. Threads
// may share a loop inside a part; after the loop, the part continues on the same thread with the same index.
BOOST_AUTO_TEST_CASE(at_most_so_many_compute_as_there_are_threads) {
  const WithThreads with(3);
  Lockstep lockstep(8);
  std::atomic<int> wrong = 0;
  std::atomic<bool> taken[3] = {};
  const auto compute = [&] {
    const int number = worker();
    if (number < 0 || number >= threads() || taken[number].exchange(true)) ++wrong;
    const auto self = std::this_thread::get_id();
    parallel_for(4, [&](Index) { std::this_thread::yield(); });
    if (std::this_thread::get_id() != self || worker() != number) ++wrong;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    taken[number] = false;
  };
  const auto work = [&](Index part) {
    for (int i = 0; i < 3; ++i) {
      compute();
      lockstep.wait(part);
    }
  };
  lockstep.run(8, work, [] {});
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(an_error_ends_all_parts) {
  Lockstep lockstep(4);
  std::atomic<int> went_on = 0;
  const auto work = [&](Index part) {
    if (part == 3) fail("the fourth");
    lockstep.wait(part);
    ++went_on;
    if (part == 1) fail("the second, too late");
  };
  BOOST_CHECK_EXCEPTION(lockstep.run(4, work, [] {}), Error, says("the fourth"));
  BOOST_TEST(went_on == 0);
  BOOST_CHECK_EXCEPTION(lockstep.run(
                            4, [&](Index part) { fail("part {}", part); }, [] {}),
                        Error, says("part 0"));
  BOOST_CHECK_EXCEPTION(lockstep.run(
                            4, [&](Index part) { lockstep.wait(part), ++went_on; }, [] { fail("between"); }),
                        Error, says("between"));
  BOOST_TEST(went_on == 0);
  // A Lockstep can be reused.
  lockstep.run(
      4, [&](Index part) { lockstep.wait(part), ++went_on; }, [] {});
  BOOST_TEST(went_on == 4);
  // A run does not wait for parts that it leaves out.
  lockstep.run(
      2, [&](Index part) { lockstep.wait(part), ++went_on; }, [] {});
  BOOST_TEST(went_on == 6);
}

BOOST_AUTO_TEST_SUITE_END()
