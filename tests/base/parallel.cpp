// Shared loops: nested loops, concurrent callers, idle threads.
#include "heed/base/parallel.h"
#include "heed/base/with_threads.h"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <ctime>
#include <set>
#include <thread>
#include <vector>

using namespace heed;

namespace {

using std::chrono::milliseconds;

/// Waits until `condition` holds, for about three seconds at most. Returns true if it does.
template <class Condition>
bool wait_until(const Condition& condition) {
  for (int i = 0; i < 3'000 && !condition(); ++i) std::this_thread::sleep_for(milliseconds(1));
  return condition();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(parallel_loops)

BOOST_AUTO_TEST_CASE(each_piece_runs_once_however_many_there_are) {
  for (const int count : {1, 2, 3, 7}) {
    const WithThreads with(count);
    for (const Index pieces : {0, 1, 2, 7, 63, 64, 65, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(pieces));
      parallel_for(pieces, [&](Index piece) { ++runs[static_cast<std::size_t>(piece)]; });
      for (const auto& of_piece : runs) BOOST_TEST(of_piece.load() == 1);
    }
  }
}

#ifndef HEED_NO_THREADS
// Inner iterations wait for each other, so two threads must run them, and one of the two has no outer iteration. In
// rare cases no thread is waiting when the inner loop starts, since the others are waking up for the outer loop; the
// inner loop is then not shared.
BOOST_AUTO_TEST_CASE(threads_without_a_piece_help_with_inner_loops) {
  const WithThreads with(3);
  int shared = 0;
  for (int repetition = 0; repetition < 20; ++repetition) {
    std::atomic<int> begun = 0, alone = 0;
    parallel_for(2, [&](Index outer) {
      if (outer == 1) return;
      if (!wait_until([] { return !detail::alone(); })) ++alone;
      parallel_for(2, [&](Index) {
        ++begun;
        if (!wait_until([&] { return begun == 2; })) ++alone;
      });
    });
    shared += alone == 0;
  }
  BOOST_TEST(shared >= 10);
}
#endif

BOOST_AUTO_TEST_CASE(an_error_of_an_inner_loop_reaches_the_caller) {
  const WithThreads with(3);
  const auto loops = [] {
    parallel_for(4, [](Index i) { parallel_for(5, [i](Index j) { require(i < 1 || j != 3, "{} {}", i, j); }); });
  };
  BOOST_CHECK_EXCEPTION(loops(), Error, [](const Error& error) { return error.what() == std::string("1 3"); });
}

// An error in one piece does not keep the others from running, whatever the number of threads.
BOOST_AUTO_TEST_CASE(all_pieces_run_in_spite_of_errors) {
  for (const int count : {1, 3}) {
    const WithThreads with(count);
    for (const Index pieces : {2, 5, 100}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(pieces));
      const auto loop = [&] {
        parallel_for(pieces, [&](Index piece) {
          ++runs[static_cast<std::size_t>(piece)];
          require(piece % 2 == 0, "{}", piece);
        });
      };
      BOOST_CHECK_EXCEPTION(loop(), Error, [](const Error& error) { return error.what() == std::string("1"); });
      for (const auto& of_piece : runs) BOOST_TEST(of_piece.load() == 1);
    }
  }
}

// At any time the working threads have different indices below the number of threads.
BOOST_AUTO_TEST_CASE(threads_have_indices_of_their_own) {
  for (const int count : {5, 2, 3, 1}) {
    const WithThreads with(count);
    std::vector<std::atomic<bool>> taken(static_cast<std::size_t>(count));
    std::atomic<int> wrong = 0;
    for (int repetition = 0; repetition < 50; ++repetition)
      parallel_for(20, [&](Index) {
        const int own = worker();
        if (own < 0 || own >= count || taken[static_cast<std::size_t>(own)].exchange(true)) {
          ++wrong;
          return;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        taken[static_cast<std::size_t>(own)] = false;
      });
    BOOST_TEST(wrong == 0);
  }
}

#ifndef HEED_NO_THREADS
BOOST_AUTO_TEST_CASE(threads_of_the_caller_may_share_loops_at_the_same_time) {
  const WithThreads with(3);
  std::vector<Index> sums(4);
  std::vector<std::thread> callers;
  for (Index& sum : sums)
    callers.emplace_back([&sum] {
      for (int repetition = 0; repetition < 200; ++repetition) {
        std::atomic<Index> total = 0;
        parallel_for(30, [&](Index i) { parallel_for(3, [&](Index j) { total += i * j; }); });
        sum += total;
      }
    });
  for (std::thread& caller : callers) caller.join();
  for (const Index sum : sums) BOOST_TEST(sum == 200 * 435 * 3);
}

// Each of 8 outer iterations sleeps for 4 ms, then runs 4 inner ones of 1 ms. During the inner loops, about half of the
// time, 32 iterations are open, enough for 32 threads. A loop lasts at least from the start of its first iteration to
// the end of its last one, and at most as long as its call, however long the thread waits for a CPU.
BOOST_AUTO_TEST_CASE(open_pieces_of_loops_inside_loops_multiply) {
  using Clock = std::chrono::steady_clock;
  struct Bounds {
    Clock::duration least{}, most{};
  } outer, inner, call;
  const auto self = std::this_thread::get_id();
  Index elsewhere = 0;
  const auto loops = [&] {
    outer = inner = {};
    const Clock::time_point called = Clock::now();
    Clock::time_point first, last;
    parallel_for(8, [&](Index i) {
      if (i == 0) first = Clock::now();
      std::this_thread::sleep_for(milliseconds(4));
      const Clock::time_point before = Clock::now();
      Clock::time_point begin, end;
      parallel_for(4, [&](Index j) {
        if (j == 0) begin = Clock::now();
        std::this_thread::sleep_for(milliseconds(1));
        elsewhere += std::this_thread::get_id() != self;
        end = Clock::now();
      });
      last = Clock::now();
      inner.least += end - begin, inner.most += last - before;
    });
    outer = {last - first, Clock::now() - called};
  };
  const auto share = [&](Index least) {
    const Clock::time_point start = Clock::now();
    const double found = share_of_open_pieces(least, loops);
    call = {outer.most, Clock::now() - start};
    return found;
  };
  const auto ratio = [](Clock::duration a, Clock::duration b) { return std::chrono::duration<double>(a) / b; };
  const double half = share(32);
  BOOST_TEST(half >= ratio(inner.least, call.most));
  BOOST_TEST(half <= ratio(inner.most, call.least));
  const double whole = share(8);
  BOOST_TEST(whole >= ratio(outer.least, call.most));
  BOOST_TEST(whole <= 1);
  BOOST_TEST(share(33) == 0);
  BOOST_TEST(elsewhere == 0);
}

#ifndef HEED_NO_THREADS
// threads() is the given number during the call only, so loops that depend on it are divided as for that number.
BOOST_AUTO_TEST_CASE(open_iterations_for_a_thread_count) {
  const WithThreads with(3);
  int inside = 0;
  share_of_open_pieces(5, [&] { inside = threads(); });
  BOOST_TEST(inside == 5);
  BOOST_TEST(threads() == 3);
  BOOST_CHECK_THROW(share_of_open_pieces(5, [] { fail("no"); }), Error);
  BOOST_TEST(threads() == 3);
}
#endif

// Two threads run the loop, so their busy times add up to at most twice the loop's duration.
BOOST_AUTO_TEST_CASE(loops_are_measured) {
  const WithThreads with(2);
  parallel_for(2, [](Index) {});
  start_loop_times();
  parallel_for(
      2, [](Index i) { parallel_for(1, [i](Index) { std::this_thread::sleep_for(milliseconds(i == 0 ? 100 : 1)); }); });
  const LoopTimes times = loop_times();
  BOOST_TEST(times.loops == 1);
  BOOST_TEST(times.open >= 0.1);
  BOOST_TEST(times.busy >= 0.1);
  BOOST_TEST(times.busy <= 2 * times.open);
}

// One thread alone is busy exactly while loops are open: heed bench --scaling prints shares that add up to 100 %.
BOOST_AUTO_TEST_CASE(on_one_thread_loops_are_busy_while_open) {
  const WithThreads with(1);
  start_loop_times();
  for (int i = 0; i < 100; ++i) parallel_for(2, [](Index) { parallel_for(2, [](Index) {}); });
  const LoopTimes times = loop_times();
  BOOST_TEST(times.loops == 100);
  BOOST_TEST(times.open > 0);
  BOOST_TEST(times.busy == times.open);
}
#endif

// The reported reason refers to the current number of threads.
BOOST_AUTO_TEST_CASE(the_number_of_threads_has_a_reason) {
  const WithThreads before(2);
  set_threads(3, "three of them");
  BOOST_CHECK_EXCEPTION(set_threads(0), Error, [](const Error& error) {
    return error.what() == std::string("threads: 0; expected 1 or more");
  });
#ifndef HEED_NO_THREADS
  BOOST_TEST(threads() == 3);
  BOOST_TEST(threads_reason() == "three of them");
  {
    const WithThreads one(1);
    BOOST_TEST(threads() == 1);
    BOOST_TEST(threads_reason() == "asked for");
  }
  BOOST_TEST(threads() == 3);
  BOOST_TEST(threads_reason() == "three of them");
#endif
}

#ifndef HEED_NO_THREADS
// A measurement counts neither earlier loops nor loops inside others.
BOOST_AUTO_TEST_CASE(each_measurement_of_loops_is_its_own) {
  const WithThreads with(2);
  start_loop_times();
  parallel_for(2, [](Index) { std::this_thread::sleep_for(milliseconds(2)); });
  BOOST_TEST(loop_times().open >= 0.002);
  start_loop_times();
  BOOST_TEST((loop_times().loops == 0 && loop_times().open == 0 && loop_times().busy == 0));
  for (int i = 0; i < 3; ++i) parallel_for(2, [](Index) { parallel_for(2, [](Index) {}); });
  BOOST_TEST(loop_times().loops == 3);
}
#endif

// The idle program uses almost no CPU time; spinning threads would use all of it.
BOOST_AUTO_TEST_CASE(threads_sleep_if_there_is_nothing_to_do) {
  const WithThreads with(4);
  parallel_for(8, [](Index) {});
  std::this_thread::sleep_for(milliseconds(20));
  const std::clock_t start = std::clock();
  std::this_thread::sleep_for(milliseconds(500));
  BOOST_TEST(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 0.1);
}

BOOST_AUTO_TEST_SUITE_END()
