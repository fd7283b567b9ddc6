// Resident memory of this process, before, during and after the use of a large block.
#include "heed/analysis/resident_memory.h"

#include "support/command.h"

#include <boost/test/unit_test.hpp>

#include <vector>

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(resident_memory)

// A freed block of 64 MB is returned to the system at once. The system's numbers may lag by some pages per thread.
BOOST_AUTO_TEST_CASE(a_block_is_counted_in_bytes_while_it_lasts, *boost::unit_test::precondition(without_sanitizer)) {
  constexpr Index MB = 1 << 20;
  const Index before = resident_bytes();
  if (before == 0 || peak_resident_bytes() == 0) {
    BOOST_TEST_MESSAGE("skipped: the system does not report resident memory");
    return;
  }
  Index during = 0;
  {
    const std::vector<char> block(std::size_t{64} << 20, 'x');
    during = resident_bytes();
    BOOST_TEST(block[static_cast<std::size_t>(during % MB)] == 'x');  // so that the compiler keeps the block
  }
  BOOST_TEST(during - before > 56 * MB);
  BOOST_TEST(during - before < 72 * MB);
  BOOST_TEST(resident_bytes() < during - 32 * MB);
  BOOST_TEST(peak_resident_bytes() > during - 8 * MB);
  if (!reset_peak_resident()) {
    BOOST_TEST_MESSAGE("skipped: the peak cannot be reset");
    return;
  }
  BOOST_TEST(peak_resident_bytes() < during - 32 * MB);
  BOOST_TEST(peak_resident_bytes() > resident_bytes() - 8 * MB);
}

BOOST_AUTO_TEST_SUITE_END()
