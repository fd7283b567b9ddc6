// heed verdict on tables with hand-calculated verdicts: t is 2.776445 for 3 + 3 seeds and 2.306004 for 5 + 5, from
// tables of Student's t.
#include "heed/io/json.h"
#include "support/cli.h"
#include "support/command.h"
#include "support/lines.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

using namespace heed;
using namespace heed::test;

namespace {

/// Three seeds in each arm, with values 0.01 apart: the squared deviations of an arm add up to 2e-4, so that s is 0.01
/// and h = 2.776445 s sqrt(2/3) = 0.0226696.
struct Judging : TemporaryDirectory {
  std::string file = *this / "claims.csv";

  Judging() { write("claim,arm,seed,value\n" + arm("a", 0.91) + arm("b", 0.89) + arm("c", 0.86) + arm("d", 0.80)); }

  void write(const std::string& text) const { write_file(file, text); }

  static std::string arm(const std::string& name, double mean, const std::string& claim = "one",
                         const std::array<int, 3>& seeds = {1, 2, 3}) {
    std::string rows;
    for (int i = 0; i < 3; ++i) rows += fmt::format("{},{},{},{:.4f}\n", claim, name, seeds[i], mean + 0.01 * (i - 1));
    return rows;
  }

  std::vector<std::string> arguments(const std::vector<std::string>& more) const {
    std::vector<std::string> all{"verdict", file};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  /// Returns the output of a run, after checking that its exit status matches the verdict.
  std::string text(const std::vector<std::string>& more) const {
    const Finished run = heed_with(arguments(more));
    BOOST_TEST(run.err == "");
    const std::string verdict =
        more.back() == "--json" ? Json::parse(run.out).at("verdict").text() : lines_of(run.out).back();
    BOOST_TEST(run.status == (verdict == "holds" ? 0 : verdict == "does not hold" ? 1 : 4), verdict);
    return run.out;
  }

  /// Returns the last line of the output.
  std::string verdict(const std::vector<std::string>& more) const { return lines_of(text(more)).back(); }

  Json json(std::vector<std::string> more) const {
    more.push_back("--json");
    return Json::parse(text(more));
  }

  void refuse(const std::vector<std::string>& more, const std::vector<std::string>& pieces) const {
    check_refusal(arguments(more), pieces);
  }

  /// Checks the difference and half-width of the first part.
  void check_part(const std::vector<std::string>& more, double difference, double half_width) const {
    const Json part = json(more).at("parts").items()[0];
    BOOST_TEST(std::abs(part.at("value").number() - difference) < 1e-12);
    BOOST_TEST(std::abs(part.at("half_width").number() - half_width) < 1e-6, part.at("half_width").number());
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cli_verdict, Judging)

BOOST_AUTO_TEST_CASE(better) {
  check_part({"--better", "a", "b"}, 0.02, 0.0226696);
  BOOST_TEST(verdict({"--better", "a", "b"}) == "undecided");
  BOOST_TEST(verdict({"--better", "a", "c"}) == "holds");  // 0.05 - 0.0227 = 0.0273
  BOOST_TEST(verdict({"--better", "a", "c", "--by", "0.027"}) == "holds");
  BOOST_TEST(verdict({"--better", "a", "c", "--by", "0.028"}) == "undecided");
  BOOST_TEST(verdict({"--better", "a", "c", "--by", "0.072"}) == "undecided");  // 0.05 + 0.0227 = 0.0727
  BOOST_TEST(verdict({"--better", "a", "c", "--by", "0.073"}) == "does not hold");
  BOOST_TEST(verdict({"--better", "c", "a"}) == "does not hold");
}

BOOST_AUTO_TEST_CASE(on_par) {
  BOOST_TEST(verdict({"--par", "b", "a", "--within", "0.043"}) == "holds");  // -0.02 - 0.0227 = -0.0427
  BOOST_TEST(verdict({"--par", "b", "a", "--within", "0.042"}) == "undecided");
  BOOST_TEST(verdict({"--par", "c", "a", "--within", "0.028"}) == "undecided");
  BOOST_TEST(verdict({"--par", "c", "a", "--within", "0.027"}) == "does not hold");  // -0.05 + 0.0227 = -0.0273
  BOOST_TEST(verdict({"--par", "a", "c", "--within", "0"}) == "holds");              // a better arm counts as on par
}

// s^2 = 8e-4 / 8 and h = 2.306004 * 0.01 * sqrt(4/3).
BOOST_AUTO_TEST_CASE(a_difference_of_differences) {
  check_part({"--more", "a", "d", "b", "c"}, 0.08, 0.0266274);
  BOOST_TEST(verdict({"--more", "a", "d", "b", "c"}) == "holds");
  BOOST_TEST(verdict({"--more", "b", "d", "a", "c", "--by", "0.013"}) == "holds");  // 0.04 - 0.0266 = 0.0134
  BOOST_TEST(verdict({"--more", "b", "d", "a", "c", "--by", "0.014"}) == "undecided");
  BOOST_TEST(verdict({"--more", "a", "c", "b", "d"}) == "does not hold");
}

BOOST_AUTO_TEST_CASE(several_parts) {
  BOOST_TEST(verdict({"--better", "a", "c", "--better", "b", "d"}) == "holds");
  BOOST_TEST(verdict({"--better", "a", "c", "--better", "a", "b"}) == "undecided");
  BOOST_TEST(verdict({"--better", "a", "c", "a", "b", "d", "a"}) == "does not hold");
  BOOST_TEST(verdict({"--better", "a", "c", "--par", "b", "a", "--within", "0.05"}) == "holds");
  BOOST_TEST(verdict({"--better", "a", "c", "a", "d", "--by", "0.02", "0.08"}) == "holds");
  BOOST_TEST(verdict({"--better", "a", "c", "a", "d", "--by", "0.08", "0.02"}) == "does not hold");
  BOOST_TEST(verdict({"--par", "b", "a", "c", "a", "--within", "0.05", "0.08"}) == "holds");
  const Json both = json({"--better", "a", "c", "--more", "b", "d", "a", "c", "--by", "0", "0.014"});
  BOOST_TEST(both.at("parts").items()[0].at("verdict").text() == "holds");
  BOOST_TEST(both.at("parts").items()[1].at("verdict").text() == "undecided");
  BOOST_TEST(both.at("verdict").text() == "undecided");
  BOOST_TEST(json({"--more", "b", "d", "a", "c", "--by", "0", "--better", "a", "c", "--by", "0.014"}).dump() ==
             json({"--better", "a", "c", "--more", "b", "d", "a", "c", "--by", "0", "0.014"}).dump());
  check_contains(
      in_one_line(output_of({"verdict", "--help"})),
      {"margin of --better and --more: one for all, or one for each, first for --better, then for --more; default: 0"});
}

// An arm that is only compared with a bound may have a single run; a tested part still needs several seeds.
BOOST_AUTO_TEST_CASE(counts_are_not_tested) {
  write("claim,arm,seed,value\none,count,1,0\none,gain,1,0.5\none,gain,2,2\n" + arm("a", 0.91) + arm("b", 0.86));
  BOOST_TEST(verdict({"--below", "count", "1"}) == "holds");
  BOOST_TEST(verdict({"--below", "count", "0"}) == "does not hold");
  BOOST_TEST(verdict({"--above", "gain", "0.4"}) == "holds");
  BOOST_TEST(verdict({"--above", "gain", "0.5"}) == "does not hold");
  BOOST_TEST(verdict({"--above", "gain", "0.4", "--below", "gain", "2"}) == "does not hold");
  BOOST_TEST(verdict({"--below", "gain", "2.5", "count", "1", "--better", "a", "b"}) == "holds");
  BOOST_TEST(verdict({"--below", "count", "1", "--better", "b", "a"}) == "does not hold");
  const Json part = json({"--above", "gain", "0.4"}).at("parts").items()[0];
  BOOST_TEST(part.at("value").number() == 0.5);
  BOOST_TEST(part.at("half_width").dump() == "null");
  refuse({"--better", "a", "gain"}, {"'gain' has 2 seeds"});
}

BOOST_AUTO_TEST_CASE(less_is_better) {
  BOOST_TEST(verdict({"--better", "c", "a", "--less"}) == "holds");
  refuse({"--better", "c", "a", "--figure", "test_loss"}, {"--figure is only for runs", "add --less"});
  BOOST_TEST(verdict({"--better", "a", "c", "--less"}) == "does not hold");
  BOOST_TEST(verdict({"--par", "a", "b", "--within", "0.043", "--less"}) == "holds");
  BOOST_TEST(verdict({"--par", "a", "b", "--within", "0.042", "--less"}) == "undecided");
  check_part({"--better", "c", "a", "--less"}, 0.05, 0.0226696);
  check_part({"--more", "d", "a", "c", "b", "--less"}, 0.08, 0.0266274);  // 0.11 - 0.03
}

// Means and deviations of the compared arms, and each part with its bound; arms with only --below or --above are not
// listed.
BOOST_AUTO_TEST_CASE(tables_of_a_verdict) {
  write(read_file(file) + "one,count,1,3\none,count,2,7\n");
  const std::vector<std::string> claim{"--better", "a",     "c",    "--more",  "a",     "d",  "b",        "c",
                                       "--by",     "0.02",  "0.05", "--par",   "b",     "a",  "--within", "0.06",
                                       "--below",  "count", "8",    "--above", "count", "2.5"};
  const std::string tables = in_one_line(text(claim));
  check_contains(tables,
                 {"arm seeds mean deviation a 3 0.9100 0.0100 c 3 0.8600 0.0100 d 3 0.8000 0.0100 b 3 0.8900 0.0100 "
                  "part difference 95 % verdict ",
                  "count below 8 7 not tested holds ", "count above 2.5 3 not tested holds ",
                  "a better than c by 0.02 +0.0500 ± 0.0227 holds ",
                  "a leads d by 0.05 more than b leads c +0.0800 ± 0.0266 holds ",
                  "b on par with a within 0.06 -0.0200 ± 0.0227 holds holds"});
  const Json found = json(claim);
  const std::vector<double> values{7, 3, 0.05, 0.08, -0.02}, bounds{8, 2.5, 0.02, 0.05, -0.06};
  for (std::size_t i = 0; i < values.size(); ++i) {
    BOOST_TEST(std::abs(found.at("parts").items()[i].at("value").number() - values[i]) < 1e-12);
    BOOST_TEST(found.at("parts").items()[i].at("bound").number() == bounds[i]);
  }
  const Json& d = found.at("arms").items()[2];
  BOOST_TEST(d.at("arm").text() == "d");
  BOOST_TEST(d.at("seeds").integer() == 3);
  BOOST_TEST(std::abs(d.at("sd").number() - 0.01) < 1e-12);
}

// All seeds of an arm have the same value. With a number of images, s is sqrt(0.895 * 0.105 / images), not 0.
BOOST_AUTO_TEST_CASE(images_set_a_floor) {
  std::string rows = "claim,arm,seed,value\n";
  for (const int seed : {1, 2, 3}) rows += fmt::format("one,a,{0},0.9\none,b,{0},0.89\n", seed);
  write(rows);
  BOOST_TEST(verdict({"--better", "a", "b"}) == "holds");
  check_part({"--better", "a", "b", "--test-images", "10000"}, 0.01, 0.0069494);
  BOOST_TEST(verdict({"--better", "a", "b", "--test-images", "10000"}) == "holds");
  check_part({"--better", "a", "b", "--test-images", "16"}, 0.01, 0.1737359);
  BOOST_TEST(verdict({"--better", "a", "b", "--test-images", "16"}) == "undecided");
  check_contains(text({"--better", "a", "b", "--test-images", "16"}),
                 {"agree more closely than the number of test images allows", "0.0766",
                  "a better than b: with these seeds (95 %), a is between 0.1637 worse and 0.1837 better than b;"});
  // The file may contain the number of images.
  std::string counted;
  for (const std::string& line : lines_of(rows)) counted += line + (counted.empty() ? ",images\n" : ",16\n");
  write(counted);
  check_part({"--better", "a", "b"}, 0.01, 0.1737359);
  check_part({"--better", "a", "b", "--test-images", "10000"}, 0.01, 0.0069494);
  refuse({"--better", "b", "a", "--less"}, {"'b'", "accuracies", "--less"});
}

// The variance of the seeds is 4e-4 / 4, and its floor is 0.9 * 0.1 / images: they are equal for 900 images.
BOOST_AUTO_TEST_CASE(the_floor_is_printed_if_above_the_scatter) {
  check_contains(text({"--better", "a", "b", "--test-images", "890"}),
                 {"agree more closely than the number of test images allows", "0.0101"});
  BOOST_TEST(text({"--better", "a", "b", "--test-images", "910"}).find("agree more closely") == std::string::npos);
  check_part({"--better", "a", "b", "--test-images", "910"}, 0.02, 0.0226696);
}

// Percentages are rejected: p (1 - p) would give a negative variance, and so no lower bound on the deviation.
BOOST_AUTO_TEST_CASE(what_is_counted_on_images_is_a_share) {
  const std::string header = "claim,arm,seed,value,images\n", rows = "one,a,1,0.9,16\none,a,2,1,16\none,a,3,0,16\n";
  write(header + rows + "one,b,1,0.5,16\none,b,2,97,16\none,b,3,0.5,16\n");
  refuse({"--better", "a", "b"},
         {"claims.csv:6: value is 97; expected an accuracy from 0 to 1, since images is given"});
  refuse({"--above", "b", "0.2"}, {"claims.csv:6: value is 97;"});
  write(header + rows + "one,b,1,-0.1,16\none,b,2,0.5,16\none,b,3,0.5,16\n");
  refuse({"--better", "a", "b"}, {"claims.csv:5: value is -0.1;"});
  write(header + rows + "one,b,1,0.5,16\none,b,2,0.5,\none,b,3,0.5,16\n");
  refuse({"--better", "a", "b"},
         {":6:", "images is missing, but 16 for another seed of 'b'; expected the same number for all seeds"});
  // Without a column `images`, values such as bits may be any number, unless --test-images declares them to be
  // accuracies; even then, the arm of --below may have other values, here a count.
  write("claim,arm,seed,value\n" + arm("a", 97) + arm("b", 0.5) + arm("c", 0.4) + "one,count,1,12\n");
  BOOST_TEST(verdict({"--better", "a", "b"}) == "holds");
  refuse({"--better", "a", "b", "--test-images", "16"}, {"claims.csv:2: value is 96.99; expected an accuracy"});
  BOOST_TEST(verdict({"--better", "b", "c", "--below", "count", "13", "--test-images", "1000000"}) == "holds");
}

// The interval of an undecided verdict is described in words, and zeros have no minus sign.
BOOST_AUTO_TEST_CASE(what_is_undecided_is_said_in_words) {
  const auto said = [&](const std::vector<std::string>& more, const std::vector<std::string>& pieces) {
    const std::string found = text(more);
    check_contains(found, pieces);
    BOOST_TEST(found.find("-0 ") == std::string::npos, found);
    BOOST_TEST(found.find("-0.0000") == std::string::npos, found);
  };
  said({"--better", "a", "b"}, {"a is between 0.0027 worse and 0.0427 better than b; more seeds narrow the range"});
  said({"--better", "a", "c", "--by", "0.028"}, {"a is between 0.0273 better and 0.0727 better than c;"});
  said({"--par", "b", "a", "--within", "0.042"}, {"b is between 0.0427 worse and 0.0027 better than a;"});
  said({"--more", "b", "d", "a", "c", "--by", "0.014"},
       {"the lead of b over d is between 0.0134 larger and 0.0666 larger than the lead of a over c;"});
  write("claim,arm,seed,value\n" + arm("a", 0.9) + arm("b", 0.9));
  said({"--par", "a", "b", "--within", "0"}, {"a on par with b within 0: with these seeds (95 %), a is between "
                                              "0.0227 worse and 0.0227 better than b;"});
  said({"--par", "a", "b", "--within", "-0"}, {"within 0: with these"});
  BOOST_TEST(json({"--par", "a", "b", "--within", "0"}).at("parts").items()[0].at("bound").dump() == "0.0");
  std::string rows = "claim,arm,seed,value\none,count,1,-0\n";
  for (const int seed : {1, 2, 3}) rows += fmt::format("one,a,{0},0.5\none,b,{0},0.5\none,c,{0},0.50001\n", seed);
  write(rows);
  said({"--par", "a", "b", "--within", "0"}, {"the seeds of each arm agree, and the difference is exactly the bound"});
  said({"--better", "a", "c", "--below", "count", "-0"}, {"count below 0", "+0.0000", "does not hold"});
}

BOOST_AUTO_TEST_CASE(five_seeds) {
  std::string rows = "claim,arm,seed,value\n";
  const double a[] = {0.60, 0.61, 0.62, 0.63, 0.64}, b[] = {0.58, 0.60, 0.61, 0.62, 0.64};
  for (int i = 0; i < 5; ++i) rows += fmt::format("x,a,{0},{1}\nx,b,{0},{2}\n", i + 1, a[i], b[i]);
  write(rows);
  // The squared deviations add up to 0.001 and 0.002: s^2 = 0.003 / 8, h = 2.306004 * 0.0193649 * sqrt(2/5).
  check_part({"--better", "a", "b"}, 0.01, 0.0282427);
}

// With s = 0.01 the half-width of 8 + 8 seeds is 2.144787 * 0.01 * sqrt(2/8) = 0.0107, that of 9 + 9 is 0.00999.
BOOST_AUTO_TEST_CASE(further_seeds_that_would_decide) {
  const std::vector<std::string> by{"--better", "a", "b", "--by", "0.01", "--seeds"};
  const auto with = [&](const char* seeds) {
    std::vector<std::string> more = by;
    more.emplace_back(seeds);
    return more;
  };
  check_contains(text(with("9")), {"6 further seeds in each arm would decide, if means and deviations stay the same: "
                                   "4, 5, 6, 7, 8, 9\nundecided\n"});
  check_contains(text(with("8")), {"no number of seeds up to 8 in each arm would decide"});
  BOOST_TEST(json(with("20")).at("further_seeds").dump() == "[4,5,6,7,8,9]");
  BOOST_TEST(json(with("8")).at("further_seeds").dump() == "[]");
  check_contains(text({"--better", "a", "b", "--seeds", "4"}), {"1 further seed in each arm would decide"});
  BOOST_TEST(text({"--better", "a", "c", "--seeds", "4"}).find("further") == std::string::npos);  // already holds
  // A part that holds does not change the number of seeds that an undecided part needs.
  BOOST_TEST(json({"--better", "a", "c", "a", "b", "--seeds", "9"}).at("further_seeds").dump() == "[4]");
  refuse({"--better", "a", "b", "--seeds", "4", "--run"}, {"--run adds seeds to a sweep", "claims.csv"});
  // Four arms of n seeds have 4 (n - 1) degrees of freedom and h = t 0.01 sqrt(4 / n), which is 0.0218 for n = 4 and
  // 0.0190 for n = 5.
  BOOST_TEST(json({"--more", "b", "d", "a", "c", "--by", "0.02", "--seeds", "9"}).at("further_seeds").dump() ==
             "[4,5]");
  // Further seeds begin after the largest seed, here 14, not after the number of seeds, 3.
  const std::array<int, 3> seeds{2, 11, 14};
  write("claim,arm,seed,value\n" + arm("a", 0.91, "one", seeds) + arm("b", 0.89, "one", seeds));
  BOOST_TEST(json(with("20")).at("further_seeds").dump() == "[15,16,17,18,19,20]");
  refuse({"--better", "a", "b", "--run"}, {"--run requires --seeds"});
}

BOOST_AUTO_TEST_CASE(runs_that_diverged_count_as_chance_and_are_listed) {
  write(
      "claim,arm,seed,value,state\none,a,1,0.9,finished\none,a,2,0.91,finished\none,a,3,0.1,diverged\n"
      "one,b,1,0.5,finished\none,b,2,0.5,finished\none,b,3,0.5,finished\n");
  const Json found = json({"--better", "a", "b"});
  BOOST_TEST(found.at("arms").items()[0].at("diverged").dump() == "[3]");
  BOOST_TEST(std::abs(found.at("arms").items()[0].at("mean").number() - 1.91 / 3) < 1e-12);
  check_contains(text({"--better", "a", "b"}), {"a, seed 3: diverged, counted as 0.1\n"});
  check_contains(text({"--below", "a", "1"}), {"a, seed 3: diverged, counted as 0.1\n"});
}

BOOST_AUTO_TEST_CASE(one_of_several_claims) {
  write("claim,arm,seed,value\n" + arm("a", 0.9, "first") + arm("b", 0.8, "first") + arm("a", 0.7, "second") +
        arm("b", 0.8, "second"));
  BOOST_TEST(verdict({"--claim", "first", "--better", "a", "b"}) == "holds");
  BOOST_TEST(verdict({"--claim", "second", "--better", "a", "b"}) == "does not hold");
  refuse({"--better", "a", "b"}, {"2 claims", "'first', 'second'", "--claim"});
  refuse({"--claim", "frist", "--better", "a", "b"}, {"unknown claim 'frist'; did you mean 'first'?"});
}

// Columns are found by their names, in any order and among other columns.
BOOST_AUTO_TEST_CASE(columns_are_in_any_order) {
  std::string rows = "note,value,state,images,seed,arm,claim\n";
  for (const int seed : {1, 2, 3})
    rows += fmt::format("7,{:.2f},{},,{},a,one\n8,{:.2f},finished,,{},b,one\n", 0.89 + 0.01 * seed,
                        seed == 3 ? "diverged" : "", seed, 0.87 + 0.01 * seed, seed);
  write(rows);
  check_part({"--better", "a", "b"}, 0.02, 0.0226696);
  check_contains(text({"--better", "a", "b"}), {"a, seed 3: diverged, counted as 0.92\n"});
}

// All names are looked up in linear time; quadratic time would take minutes. The number of printed names is limited.
BOOST_AUTO_TEST_CASE(large_tables_are_answered_in_a_line_and_soon, *boost::unit_test::precondition(without_sanitizer)) {
  std::string rows = "claim,arm,seed,value\n", more = rows;
  for (int i = 0; i < 200'000; ++i) rows += fmt::format("c{},a,1,0.5\n", i);
  write(rows);
  BOOST_TEST(run_command("timeout 20 " + heed_program() + " verdict " + file + " --better a b").status == 2);
  refuse({"--better", "a", "b"}, {"holds 200000 claims", "and 199996 more"});
  for (int seed = 0; seed < 2000; ++seed) more += fmt::format("c,a,{},0.5\nc,b,{},0.5\n", seed, seed + 1);
  write(more);
  refuse({"--better", "a", "b"}, {"'a' has the seeds 0, 1, 2, ", "11 and 1988 more, 'b'"});
  write(more + std::string(std::size_t{1} << 24, '\n'));
  refuse({"--better", "a", "b"}, {"the file has more than 16777216 bytes"});
}

BOOST_AUTO_TEST_CASE(what_cannot_be_judged) {
  refuse({}, {"no claim is given", "--better"});
  refuse({"--better", "a"}, {"--better expects two arms", "found 1 word"});
  refuse({"--more", "a", "b"}, {"--more expects four arms"});
  refuse({"--better", "a", "a"}, {"'a better than a'", "'a' is compared with itself"});
  refuse({"--more", "a", "a", "b", "c"}, {"'a' is compared with itself"});
  // The same arm is in both differences.
  refuse({"--more", "a", "b", "c", "b"}, {"'b' cancels, since it is in both differences; expected --better a c"});
  refuse({"--more", "a", "b", "a", "c"}, {"'a' cancels, since it is in both differences; expected --better c b"});
  refuse({"--more", "a", "b", "a", "b"}, {"the two differences are the same"});
  refuse({"--more", "a", "b", "c", "a"}, {"'a' is in both differences; expected four different arms"});
  refuse({"--more", "a", "b", "b", "c"}, {"'b' is in both differences; expected four different arms"});
  refuse({"--below", "a"}, {"--below expects an arm and a number"});
  refuse({"--below", "a", "b"}, {"--below a: 'b' is not a number"});
  refuse({"--above", "x", "0"}, {"unknown arm 'x'"});
  refuse({"--better", "a", "x"}, {"unknown arm 'x'"});
  refuse({"--par", "a", "b"}, {"--par requires --within"});
  refuse({"--better", "a", "b", "--within", "0.1"}, {"--within requires --par"});
  refuse({"--par", "a", "b", "--within", "0.1", "--by", "0.1"}, {"--by requires --better"});
  refuse({"--better", "a", "b", "a", "c", "a", "d", "--by", "0.1", "0.2"}, {"--by has 2 numbers", "3"});
  refuse({"--better", "a", "b", "--by", "-0.1"}, {"--by", "-0.1"});
  refuse({"--better", "a", "b", "--by", "nan"}, {"--by", "nan"});
  refuse({"--better", "a", "b", "--test-images", "0"}, {"--test-images"});
  const std::string header = "claim,arm,seed,value\n", two = "one,a,1,0.5\none,a,2,0.6\n";
  const auto refuse_rows = [&](const std::string& rows, const std::vector<std::string>& pieces) {
    write(rows);
    refuse({"--better", "a", "b"}, pieces);
  };
  refuse_rows(header + two + arm("b", 0.5), {"'a' has 2 seeds", "chance", "3 or more"});
  refuse_rows(header + two + "one,a,4,0.5\n" + arm("b", 0.5), {"seeds 1, 2, 4", "'b' has 1, 2, 3"});
  refuse_rows(header + two + "one,a,2,0.5\n" + arm("b", 0.5), {":4:", "'a' has seed 2 twice"});
  refuse_rows(header + two + "one,a,3,nan\n" + arm("b", 0.5), {":4:", "value is 'nan'", "diverged"});
  refuse_rows(header + two + "one,a,3,-1e101\n" + arm("b", 0.5), {":4:", "value is '-1e101'", "at most 1e+100"});
  refuse({"--below", "a", "1e101"}, {"'1e101' is not a number"});
  refuse_rows(header + two + "one,a,3,\n" + arm("b", 0.5), {":4:", "value is ''"});
  refuse_rows(header + two + "one,a,x,0.5\n", {":4:", "seed is 'x'"});
  refuse_rows(header + two + "one,a,3\n", {":4:", "has 3 fields; expected 4"});
  refuse_rows(header + two + "one,,3,0.5\n", {":4:", "no name"});
  refuse_rows("claim,arm,value\none,a,0.5\n", {"no column 'seed'"});
  refuse_rows(header, {"has no runs"});
  refuse_rows("", {"has no runs"});
  refuse_rows("claim,arm,seed,value,state\none,a,1,0.5,finnished\n",
              {":2:", "'finnished'", "'finished' or 'diverged'"});
  refuse_rows("claim,arm,seed,value,images\none,a,1,0.5,some\n", {":2:", "images is 'some'"});
  refuse_rows("claim,arm,seed,value,images\none,a,1,0.5,16\none,a,2,0.5,17\n", {":3:", "images is 17, but 16"});
  std::filesystem::remove(file);
  refuse({"--better", "a", "b"}, {"claims.csv: cannot open"});
}

// p is the mean over the four arms, 0.75: s = sqrt(0.75 * 0.25 / 16) = 0.1083 and h = 2.306004 s sqrt(4/3) = 0.2882505.
BOOST_AUTO_TEST_CASE(images_of_all_arms) {
  std::string rows = "claim,arm,seed,value,images\n";
  for (const int seed : {1, 2, 3})
    rows += fmt::format("x,a,{0},0.9,16\nx,b,{0},0.8,16\nx,c,{0},0.7,16\nx,d,{0},0.6,16\nx,e,{0},0.6,17\n", seed);
  write(rows);
  check_part({"--more", "a", "d", "b", "c"}, 0.2, 0.2882505);
  check_contains(text({"--more", "a", "d", "b", "c"}), {"a deviation of 0.1083 is used"});
  refuse({"--more", "a", "b", "c", "e"}, {"'a' was tested on 16 images, 'e' on 17; expected the same number"});
  check_part({"--more", "a", "e", "b", "c", "--test-images", "16"}, 0.2, 0.2882505);
}

BOOST_AUTO_TEST_SUITE_END()
