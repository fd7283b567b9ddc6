// Tables of run results: the rows of a claim, their line numbers, and the limits of their values.
#include "heed/analysis/claim_rows.h"

#include "heed/io/file.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

using namespace heed;

namespace {

struct ClaimTable {
  TemporaryDirectory directory;
  std::string path = directory / "claims.csv";

  ClaimArms read(const std::string& text, const std::string& claim = "") const {
    write_file(path, text);
    return read_claim(path, claim);
  }
  std::string refusal(const std::string& rows) const {
    return error_of([&] { read("claim,arm,seed,value,images\n" + rows); }, path + ":");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(claim_rows, ClaimTable)

// Line numbers refer to the file, whose rows belong to two claims and are not sorted; its last line has no newline.
BOOST_AUTO_TEST_CASE(rows_of_one_of_two_claims) {
  const std::string text =
      "claim,arm,seed,value,state,images\n"
      "one,b,7,0.5,finished,40\n"
      "two,b,7,0.9,,\n"
      "one,a,9,-0,,\n"
      "one,b,3,0.75,diverged,40\n"
      "two,c,2,97,diverged,\n"
      "one,b,5,0.25,diverged,40";
  const ClaimArms one = read(text, "one"), two = read(text, "two");
  BOOST_REQUIRE((one.size() == 2u && one.contains("a") && one.contains("b")));
  const ClaimArm& b = one.at("b");
  BOOST_TEST((b.values == std::map<Index, double>{{3, 0.75}, {5, 0.25}, {7, 0.5}}));
  BOOST_TEST((b.lines == std::map<Index, Index>{{3, 5}, {5, 7}, {7, 2}}));
  BOOST_TEST(b.diverged == (std::vector<Index>{3, 5}), boost::test_tools::per_element());
  BOOST_TEST(b.images == 40);
  BOOST_TEST(b.seeds() == (std::vector<Index>{3, 5, 7}), boost::test_tools::per_element());
  BOOST_TEST(b.sample().count == 3);
  BOOST_TEST(std::abs(b.sample().mean - 0.5) < 1e-15);
  BOOST_TEST(std::abs(b.sample().squares - 0.125) < 1e-15);
  BOOST_TEST(!std::signbit(one.at("a").values.at(9)));
  BOOST_TEST(one.at("a").images == 0);
  BOOST_REQUIRE((two.size() == 2u && two.contains("b") && two.contains("c")));
  BOOST_TEST((two.at("b").values == std::map<Index, double>{{7, 0.9}}));
  BOOST_TEST(two.at("b").diverged.empty());
  BOOST_TEST(two.at("c").lines.at(2) == 6);
}

BOOST_AUTO_TEST_CASE(limits_of_values) {
  for (const double value : {1e100, -1e100, 0.0}) BOOST_TEST(claim_number(fmt::format("{}", value)).value() == value);
  for (const char* text : {"1.01e100", "-1.01e100", "inf", "nan", "1e999", "1 ", "", "x"})
    BOOST_TEST(!claim_number(text), text);
  // Accuracies of 0 and of 1 are accepted.
  BOOST_TEST(refusal("one,a,0,0,16\none,a,1,1,16\n") == "no error");
  BOOST_TEST(refusal("one,a,0,0,16\none,a,1,1.25,16\n").starts_with("3: value is 1.25; expected an accuracy"));
  BOOST_TEST(refusal("one,a,-1,0.5,16\n") == "2: seed is '-1'; expected a whole number");
}

// All seeds of an arm have the same number of images; arms may differ.
BOOST_AUTO_TEST_CASE(numbers_of_images) {
  const std::string end = " for another seed of 'a'; expected the same number for all seeds";
  BOOST_TEST(refusal("one,a,1,0.5,16\none,b,1,0.5,17\none,a,2,0.5,16\n") == "no error");
  BOOST_TEST(refusal("one,a,1,0.5,16\none,b,1,0.5,17\none,a,2,0.5,16\none,a,3,0.5,17\n") ==
             "5: images is 17, but 16" + end);
  BOOST_TEST(refusal("one,a,1,0.5,\none,a,2,0.5,16\n") == "3: images is 16, but missing" + end);
  BOOST_TEST(refusal("one,a,1,0.5,1\n") == "no error");
  for (const std::string images : {"0", "-16", "1.5"})
    BOOST_TEST(refusal("one,a,1,0.5,1\none,b,1,0.5," + images + "\n") ==
               "3: images is '" + images + "'; expected the number of test images, 1 or more");
}

// If lines end with CR LF, the last column is read like any other.
BOOST_AUTO_TEST_CASE(lines_that_end_with_cr_lf) {
  const std::string images = "claim,arm,seed,value,images\r\none,a,1,0.5,16\r\none,a,2,0.75,16\r\n";
  BOOST_TEST(read(images).at("a").images == 16);
  BOOST_TEST(read("claim,arm,seed,value,state\r\none,a,1,0.5,\r\none,a,2,0.75,diverged\r\n").at("a").diverged ==
                 std::vector<Index>{2},
             boost::test_tools::per_element());
  BOOST_TEST((read("claim,arm,seed,value\r\none,a,1,0.5\r\n").at("a").values == std::map<Index, double>{{1, 0.5}}));
  BOOST_TEST(error_of([&] { read("claim,arm,seed,value\r\n"); }, path + ": ").starts_with("has no runs"));
}

// Unknown columns are ignored, but a name that differs from a known one in case or white space, or that repeats one, is
// an error.
BOOST_AUTO_TEST_CASE(names_of_columns) {
  const auto named = [&](const std::string& more) {
    const std::string fields(static_cast<std::size_t>(std::ranges::count(more, ',')), ',');
    return error_of([&] { read("claim,arm,seed,value" + more + "\none,a,1,0.5" + fields + "\n"); }, path + ":");
  };
  BOOST_TEST(named(",note,note,,,image,images2") == "no error");
  BOOST_TEST(named(",images,state,images") == "1: has two columns 'images'; expected one");
  BOOST_TEST(named(",value") == "1: has two columns 'value'; expected one");
  BOOST_TEST(named(", images") == "1: has a column ' images'; expected 'images'");
  BOOST_TEST(named(",State") == "1: has a column 'State'; expected 'state'");
  BOOST_TEST(named(",Arm") == "1: has a column 'Arm'; expected 'arm'");
  BOOST_TEST(named(",images\t") == "1: has a column 'images\\x09'; expected 'images'");
}

BOOST_AUTO_TEST_SUITE_END()
