// Printed lines about measured kernels: kernels slower than expected, and the shares of a pass over long rows.
#include "heed/bench/kernels.h"

#include <boost/test/unit_test.hpp>

using namespace heed;
using namespace heed::bench;

namespace {

/// Returns a result whose median is `fraction` of the limit, and whose fastest calls are `faster` times as fast as the
/// median.
KernelResult reached(const std::string& kernel, double fraction, double faster = 1, double microseconds = 1) {
  KernelResult result;
  result.kernel = kernel, result.fraction = fraction, result.microseconds = microseconds;
  result.measured.rate = 5, result.measured.high = 5 * faster;
  return result;
}

std::string start_of(const std::string& line) { return line.substr(0, line.find(" % of the limit")); }

}  // namespace

BOOST_AUTO_TEST_SUITE(bench_shortfalls)

// l1 distances are expected to reach 80 %, clamped gradients 75 %, gelu 60 %, depth-wise convolutions 50 %.
BOOST_AUTO_TEST_CASE(slower_than_expected_even_at_best) {
  BOOST_TEST(shortfalls({}).empty());
  BOOST_TEST(shortfalls({reached("l1 distance", 0.8), reached("l1 distance", 0.9), reached("unknown", 0.1),
                         reached("clamped gradient", 0.75), reached("gelu forward", 0.6),
                         reached("depth-wise 3 x 3 forward", 0.5), reached("l1 scores", 0.5, 1.7)})
                 .empty());
  const std::vector<std::string> lines =
      shortfalls({reached("gelu forward", 0.55), reached("l1 distance", 0.5, 1.2), reached("l1 distance", 0.7),
                  reached("l1 distance", 0.95), reached("depth-wise 3 x 3 forward", 0.494)});
  BOOST_REQUIRE(lines.size() == 3u);
  BOOST_TEST(start_of(lines[0]) == "l1 distance: 60 to 70");
  BOOST_TEST(lines[0].find(" % of the limit, below 80 %: maxima and products") != std::string::npos, lines[0]);
  BOOST_TEST(start_of(lines[1]) == "gelu forward: 55");
  BOOST_TEST(lines[1].find("below 60 %: a polynomial") != std::string::npos, lines[1]);
  BOOST_TEST(start_of(lines[2]) == "depth-wise 3 x 3 forward: 49");
}

BOOST_AUTO_TEST_CASE(shares_of_long_rows) {
  std::vector<KernelResult> results;
  const auto add = [&](const char* kernel, double microseconds) {
    results.push_back(reached(kernel, 1, 1, microseconds));
  };
  add("block A v", 30), add("block q k^T", 10), add("other", 1000);
  BOOST_TEST(long_row_shares(results).empty());
  add("block exp", 60);
  BOOST_TEST(
      long_row_shares(results) ==
          std::vector<std::string>{"softmax of 4096 tokens, forward: block q k^T 10 %, block exp 60 %, block A v 30 %"},
      boost::test_tools::per_element());
  add("block A again", 20), add("block A^T dout", 30), add("block dout v^T", 40), add("block dS of A", 50);
  add("block dS k", 20), add("block dS^T q", 30);
  const std::vector<std::string> lines = long_row_shares(results);
  BOOST_REQUIRE(lines.size() == 2u);
  BOOST_TEST(lines[1] ==
             "softmax of 4096 tokens, backward: block q k^T 5 %, block A again 10 %, block A^T dout 15 %, "
             "block dout v^T 20 %, block dS of A 25 %, block dS k 10 %, block dS^T q 15 %");
}

BOOST_AUTO_TEST_SUITE_END()
