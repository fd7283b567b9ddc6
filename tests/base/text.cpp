// Splitting of text, the range of float32, and layouts of memory.
#include "heed/base/float_range.h"
#include "heed/base/memory_layout.h"
#include "heed/base/split.h"

#include <boost/test/unit_test.hpp>

#include <limits>

using namespace heed;

BOOST_AUTO_TEST_SUITE(base_text)

BOOST_AUTO_TEST_CASE(parts_between_separators) {
  using Parts = std::vector<std::string>;
  const auto equal = boost::test_tools::per_element();
  BOOST_TEST(split("", ',') == Parts{""}, equal);
  BOOST_TEST(split("ab", ',') == Parts{"ab"}, equal);
  BOOST_TEST(split(",a,,bc,", ',') == (Parts{"", "a", "", "bc", ""}), equal);
  BOOST_TEST(split("a,b c", ' ') == (Parts{"a,b", "c"}), equal);
}

BOOST_AUTO_TEST_CASE(lines_end_with_lf_or_cr_lf) {
  using Lines = std::vector<std::string>;
  const auto equal = boost::test_tools::per_element();
  BOOST_TEST(split_lines("").empty());
  BOOST_TEST(split_lines("a\nb") == (Lines{"a", "b"}), equal);
  BOOST_TEST(split_lines("a\r\n\r\nb\rc\r\r\n") == (Lines{"a", "", "b\rc\r"}), equal);
  BOOST_TEST(split_lines("\n\n") == (Lines{"", ""}), equal);
  BOOST_TEST(split_lines("\na\r") == (Lines{"", "a"}), equal);
}

// The least subnormal number of float32 is 2^-149; half of it is rounded to 0, more than half is not.
BOOST_AUTO_TEST_CASE(numbers_that_float32_cannot_hold) {
  const double most = std::numeric_limits<float>::max(), infinity = std::numeric_limits<double>::infinity();
  for (const double sign : {1.0, -1.0}) {
    for (const double size : {0.0, 1e-40, 0x1p-149, 0x1.1p-150, 1.0, most, infinity})
      BOOST_TEST(!exceeds_float(sign * size));
    for (const double size : {0x1p-150, 1e-60, 1.001 * most, 1e300}) BOOST_TEST(exceeds_float(sign * size));
  }
  BOOST_TEST(!exceeds_float(std::numeric_limits<double>::quiet_NaN()));
}

// Parts of 5 elements, of 2 x 3, of 2 x 3 with rows 4 apart, and of none, each followed by two guard elements.
BOOST_AUTO_TEST_CASE(a_layout_measures_what_it_divides) {
  double memory[27] = {};
  for (double* const block : {static_cast<double*>(nullptr), memory}) {
    MemoryLayout<double> layout(block, 2);
    const double* const five = layout.numbers(5);
    const Matrix<double> dense = layout.matrix(2, 3), wide = layout.matrix(2, 3, 4);
    BOOST_TEST(layout.numbers(0) == nullptr);
    BOOST_TEST(layout.taken() == 5 + 2 + 6 + 2 + 8 + 2 + 2);
    BOOST_TEST(layout.guards() == (std::vector<Index>{5, 13, 23, 25}), boost::test_tools::per_element());
    BOOST_TEST(five == block);
    BOOST_TEST(dense.data == (block ? block + 7 : nullptr));
    BOOST_TEST(wide.data == (block ? block + 15 : nullptr));
    BOOST_TEST((wide.rows == 2 && wide.columns == 3 && wide.stride == 4 && dense.stride == 3));
  }
  MemoryLayout<double> plain(memory);
  plain.numbers(5);
  BOOST_TEST(plain.numbers(3) == memory + 5);
  BOOST_TEST(plain.guards().empty());
}

BOOST_AUTO_TEST_SUITE_END()
