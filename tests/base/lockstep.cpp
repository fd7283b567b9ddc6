#include "heed/base/lockstep.h"

#include "heed/base/parallel.h"
#include "heed/base/with_threads.h"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
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

// After each wait every part sees what all have written before it, and between() ran once in between.
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
        lockstep.run(work, [&] { between += ++waits % 2; });
        BOOST_TEST(waits == 40);
      }
      BOOST_TEST(late == 0);
    }
}

// Loops inside a part stay on its thread. More parts than threads: some take turns, and those numbers are not shared.
BOOST_AUTO_TEST_CASE(at_most_so_many_compute_as_there_are_threads) {
  const WithThreads with(3);
  Lockstep lockstep(8);
  std::atomic<int> wrong = 0;
  std::atomic<bool> taken[3] = {};
  const auto compute = [&] {
    const int number = worker();
    if (number < 0 || number >= threads() || taken[number].exchange(true)) ++wrong;
    const auto self = std::this_thread::get_id();
    parallel_for(4, [&](Index) {
      if (std::this_thread::get_id() != self || worker() != number) ++wrong;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    taken[number] = false;
  };
  const auto work = [&](Index part) {
    for (int i = 0; i < 3; ++i) {
      compute();
      lockstep.wait(part);
    }
  };
  lockstep.run(work, [] {});
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
  BOOST_CHECK_EXCEPTION(lockstep.run(work, [] {}), Error, says("the fourth"));
  BOOST_TEST(went_on == 0);
  BOOST_CHECK_EXCEPTION(lockstep.run([&](Index part) { fail("part {}", part); }, [] {}), Error, says("part 0"));
  BOOST_CHECK_EXCEPTION(lockstep.run([&](Index part) { lockstep.wait(part), ++went_on; }, [] { fail("between"); }),
                        Error, says("between"));
  BOOST_TEST(went_on == 0);
  // It is as good as new.
  lockstep.run([&](Index part) { lockstep.wait(part), ++went_on; }, [] {});
  BOOST_TEST(went_on == 4);
}

BOOST_AUTO_TEST_SUITE_END()
