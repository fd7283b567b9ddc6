// Sums over rows in parts.
#include "heed/ops/rows.h"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <vector>

using namespace heed;

BOOST_AUTO_TEST_SUITE(row_sums)

// A sum over few rows is one part, over many rows several; either is assigned or added.
BOOST_AUTO_TEST_CASE(are_assigned_or_added) {
  Tape<double> tape;
  for (const Index rows : {3, 100'000})
    for (const Update update : {Update::assign, Update::accumulate}) {
      std::vector<double> sums{7, 8};
      std::atomic<Index> parts = 0;
      sum_over_row_ranges(tape, rows, 100, 2, update, sums.data(), [&](Index begin, Index end, Update of, double* part) {
        const auto count = static_cast<double>(end - begin);
        write(of, part[0], count);
        write(of, part[1], 2 * count);
        ++parts;
      });
      const double before = update == Update::assign ? 0 : 1;
      BOOST_TEST(sums[0] == 7 * before + static_cast<double>(rows));
      BOOST_TEST(sums[1] == 8 * before + 2 * static_cast<double>(rows));
      BOOST_TEST((parts > 1) == (rows > 3));
    }
}

BOOST_AUTO_TEST_SUITE_END()
