// Threads that flush subnormal numbers to zero. tests/apps/cli/commands.cpp checks that the program flushes them.
#include "heed/base/subnormals.h"

#include <boost/test/unit_test.hpp>

#include <thread>

using namespace heed;

BOOST_AUTO_TEST_SUITE(subnormals)

#if defined(__x86_64__) || defined(__aarch64__)
BOOST_AUTO_TEST_CASE(a_thread_hands_it_on_to_those_that_it_starts) {
  bool before = true, after = false, handed_on = false, operand = false;
  std::thread([&] {
    before = flushes_subnormals();
    const volatile float subnormal = std::numeric_limits<float>::denorm_min(), large = 1e30F;
    flush_subnormals();
    after = flushes_subnormals();
    operand = subnormal * large == 0;
    std::thread([&] { handed_on = flushes_subnormals(); }).join();
  }).join();
  BOOST_TEST(!before);
  BOOST_TEST(after);
  BOOST_TEST(operand);
  BOOST_TEST(handed_on);
  BOOST_TEST(!flushes_subnormals());  // other threads are unaffected
}
#endif

BOOST_AUTO_TEST_SUITE_END()
