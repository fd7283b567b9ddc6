// Student's t compared with printed tables, and tests of differences with Student's published data.
#include "heed/analysis/statistics.h"

#include "heed/base/error.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

namespace {

/// Hours of sleep gained by ten patients with two drugs: Student, "The probable error of a mean", 1908.
const std::vector<double> first{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
const std::vector<double> second{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
constexpr double difference[] = {1, -1};

void check_close(double got, double expected, double tolerance) {
  BOOST_TEST(std::abs(got - expected) <= tolerance, got << " is not " << expected);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(analysis_statistics)

BOOST_AUTO_TEST_CASE(mean_and_deviation) {
  const std::vector<double> values{2, 4, 4, 4, 5, 5, 7, 9};
  const Sample sample = sample_of(values);
  BOOST_TEST(sample.count == 8);
  BOOST_TEST(sample.mean == 5);
  BOOST_TEST(sample.squares == 32);
  check_close(*sample.deviation(), std::sqrt(32.0 / 7), 1e-15);
  BOOST_TEST(!sample_of(std::vector<double>{3}).deviation());
  BOOST_TEST(sample_of({}).count == 0);
}

BOOST_AUTO_TEST_CASE(incomplete_beta_where_it_has_a_closed_form) {
  for (const double x : {0.0, 1e-6, 0.1, 0.5, 0.8, 0.999, 1.0})
    for (const double a : {0.5, 1.0, 3.0, 40.0}) {
      check_close(incomplete_beta(a, 1, x), std::pow(x, a), 1e-13);
      check_close(incomplete_beta(1, a, x), 1 - std::pow(1 - x, a), 1e-13);
      check_close(incomplete_beta(a, 2.5, x) + incomplete_beta(2.5, a, 1 - x), 1, 1e-13);
    }
  check_close(incomplete_beta(0.5, 0.5, 0.25), 1.0 / 3, 1e-13);  // 2 / pi asin(sqrt(x))
  check_close(incomplete_beta(7, 7, 0.5), 0.5, 1e-13);
}

// Values of the standard table of t, at 5 % and 1 %.
BOOST_AUTO_TEST_CASE(quantiles_of_the_table) {
  const struct {
    double freedom, at_5, at_1;
  } table[] = {{1, 12.706, 63.657}, {2, 4.303, 9.925},  {3, 3.182, 5.841},  {4, 2.776, 4.604},  {8, 2.306, 3.355},
               {10, 2.228, 3.169},  {18, 2.101, 2.878}, {30, 2.042, 2.750}, {120, 1.980, 2.617}};
  for (const auto& row : table) {
    check_close(student_quantile(0.05, row.freedom), row.at_5, 6e-4);
    check_close(student_quantile(0.01, row.freedom), row.at_1, 6e-4);
    check_close(student_tail(-student_quantile(0.05, row.freedom), row.freedom), 0.05, 1e-12);
  }
  BOOST_TEST(student_tail(0, 5) == 1);
  check_close(student_tail(1, 1), 0.5, 1e-13);  // Cauchy's distribution
}

BOOST_AUTO_TEST_CASE(the_tests_of_students_data) {
  const std::vector<Sample> samples{sample_of(first), sample_of(second)};
  const Difference unequal = *welch(samples[0], samples[1]);
  check_close(unequal.value / unequal.error, -1.8608, 5e-5);
  check_close(unequal.freedom, 17.776, 5e-4);
  check_close(*unequal.p(), 0.07939, 5e-6);
  const Difference pairs = *paired(first, second);
  check_close(pairs.value / pairs.error, -4.0621, 5e-5);
  BOOST_TEST(pairs.freedom == 9);
  check_close(*pairs.p(), 0.002833, 5e-7);
  const Difference equal = *pooled(samples, difference, 0);
  BOOST_TEST(equal.freedom == 18);
  check_close(*equal.p(), 0.07919, 5e-6);
  check_close(equal.value - equal.half_width(), -3.363874, 5e-6);
}

// Welch's formula on samples of three and five values: the variances of a value are 7/3 and 10.7, and those of the mean
// are 7/9 and 2.14.
BOOST_AUTO_TEST_CASE(welch_gives_each_sample_its_own_freedom) {
  const std::vector<double> three{1, 2, 4}, five{2, 3, 7, 4, 10};
  const Difference found = *welch(sample_of(three), sample_of(five));
  const double a = 7.0 / 9, b = 10.7 / 5;
  check_close(found.value, 7.0 / 3 - 5.2, 1e-14);
  check_close(found.error, std::sqrt(a + b), 1e-14);
  check_close(found.freedom, (a + b) * (a + b) / (a * a / 2 + b * b / 4), 1e-13);
  const Difference swapped = *welch(sample_of(five), sample_of(three));
  check_close(swapped.value, -found.value, 1e-14);
  check_close(swapped.freedom, found.freedom, 1e-13);
}

BOOST_AUTO_TEST_CASE(a_difference_of_differences_and_a_least_variance) {
  const Sample a{3, 0.9, 0.0002}, b{3, 0.8, 0.0001}, c{3, 0.7, 0.0003}, d{2, 0.65, 0.0001};
  const std::vector<Sample> four{a, b, c, d};
  constexpr double signs[] = {1, -1, -1, 1};
  const Difference found = *pooled(four, signs, 0);
  check_close(found.value, 0.05, 1e-15);
  BOOST_TEST(found.freedom == 7);
  check_close(found.error, std::sqrt(0.0007 / 7 * (1 + 0.5)), 1e-15);
  check_close(pooled(four, signs, 0.01)->error, std::sqrt(0.01 * 1.5), 1e-15);
}

// Samples of 3 and of 7 values with equal variances.
BOOST_AUTO_TEST_CASE(a_difference_with_more_seeds) {
  const std::vector<Sample> three{{3, 0.9, 0.0002}, {3, 0.8, 0.0004}}, seven{{7, 0.9, 0.0006}, {7, 0.8, 0.0012}};
  const Difference expected = *pooled(seven, difference, 0), found = with_seeds(*pooled(three, difference, 0), 3, 7);
  check_close(found.value, expected.value, 1e-15);
  check_close(found.error, expected.error, 1e-15);
  BOOST_TEST(found.freedom == expected.freedom);
}

BOOST_AUTO_TEST_CASE(accuracies_scatter_as_counts_do) {
  const std::vector<Sample> shares{{3, 0.9, 0}, {3, 0.7, 0}}, ones{{3, 1 + 1e-16, 0}}, percent{{3, 0.9, 0}, {3, 97, 0}},
      negative{{3, -0.1, 0}};
  check_close(counting_variance(shares, 16), 0.8 * 0.2 / 16, 1e-15);
  BOOST_TEST(counting_variance(ones, 16) == 0);
  BOOST_CHECK_THROW(counting_variance(percent, 16), Error);
  BOOST_CHECK_THROW(counting_variance(negative, 16), Error);
}

// Small values, whose variances' squares underflow, have the same test results as values near 1; large values, whose
// squares overflow, have no result.
BOOST_AUTO_TEST_CASE(numbers_too_small_or_too_large_to_be_squared) {
  const std::vector<double> steps{1, 2, 4}, others{2, 3, 7};
  const auto samples = [&](double unit) {
    std::vector<Sample> all;
    for (std::vector<double> values : {steps, others}) {
      for (double& value : values) value *= unit;
      all.push_back(sample_of(values));
    }
    return all;
  };
  const std::vector<Sample> plain = samples(1), small = samples(1e-100), large = samples(1e200);
  BOOST_TEST(welch(small[0], small[1])->freedom == welch(plain[0], plain[1])->freedom,
             boost::test_tools::tolerance(1e-12));
  BOOST_TEST(*welch(small[0], small[1])->p() == *welch(plain[0], plain[1])->p(), boost::test_tools::tolerance(1e-12));
  BOOST_TEST(!welch(large[0], large[1]));
  BOOST_TEST(!pooled(large, difference, 0));
  BOOST_TEST(!paired(std::vector<double>{1e200, 2e200}, std::vector<double>{2e200, 7e200}));
  BOOST_TEST(!large[0].deviation());
}

BOOST_AUTO_TEST_CASE(what_cannot_be_decided) {
  const Sample one{1, 0.9, 0}, two{2, 0.8, 0.01}, same{3, 0.8, 0}, none{};
  BOOST_TEST(!welch(one, two));
  BOOST_TEST(!welch(same, same));
  BOOST_TEST(!paired(std::vector<double>{1}, std::vector<double>{2}));
  BOOST_TEST(!paired(std::vector<double>{1, 2}, std::vector<double>{2, 3})->p());  // all differences are equal
  BOOST_TEST(!pooled(std::vector{one, one}, difference, 0));
  BOOST_TEST(!pooled(std::vector{two, none}, difference, 0));
  BOOST_TEST(!pooled(std::vector{same, same}, difference, 0)->p());
}

// Rounding errors are relative to the compared values, not to their difference, whichever sample comes first.
BOOST_AUTO_TEST_CASE(rounding_is_no_scatter) {
  const std::vector<double> large{0.91, 0.92, 0.945}, near{0.9, 0.91, 0.935};  // differences of 0.01, up to rounding
  const std::vector<double> small{0.01, 0.02, 0.04}, far{0.91, 0.92, 0.94};    // 0.9, up to rounding
  for (const auto& [a, b] : {std::pair(large, near), {near, large}, {small, far}, {far, small}}) {
    const Difference found = *paired(a, b);
    check_close(found.value, a[0] - b[0], 1e-15);
    BOOST_TEST(found.error == 0);
    BOOST_TEST(!found.p());
  }
  const std::vector<double> below{-0.91, -0.92, -0.945}, lower{-0.9, -0.91, -0.935};
  BOOST_TEST(paired(below, lower)->error == 0);
  for (const double value : {0.1, -0.1}) BOOST_TEST(sample_of(std::vector<double>(6, value)).squares == 0);
  // Deviations above the rounding errors are not ignored, however small: here 1e-12 / 3, 1e-12 / 3 and -2e-12 / 3.
  const std::vector<double> apart{0.9, 0.91, 0.935 + 1e-12};
  check_close(paired(large, apart)->error, 1e-12 / 3, 1e-15);
  const std::vector<double> values{0.5, 0.5, 0.5 + 1e-12};
  check_close(std::sqrt(sample_of(values).squares), 1e-12 * std::sqrt(2.0 / 3), 1e-15);
}

// With 4 degrees of freedom the interval is value -+ 2.776 error.
BOOST_AUTO_TEST_CASE(verdicts_follow_from_the_whole_interval) {
  const auto verdict = [](double value, double bound) { return exceeds({value, 1, 4}, bound); };
  for (const double bound : {-5.0, 0.0, 0.01}) {
    BOOST_TEST((verdict(bound + 2.78, bound) == Verdict::holds));
    BOOST_TEST((verdict(bound + 2.77, bound) == Verdict::undecided));
    BOOST_TEST((verdict(bound - 2.77, bound) == Verdict::undecided));
    BOOST_TEST((verdict(bound - 2.78, bound) == Verdict::does_not_hold));
  }
  const Verdict yes = Verdict::holds, no = Verdict::does_not_hold, open = Verdict::undecided;
  BOOST_TEST((together(std::vector{yes, yes}) == yes));
  BOOST_TEST((together(std::vector{yes, open}) == open));
  BOOST_TEST((together(std::vector{open, no}) == no));
  BOOST_TEST((together(std::vector{no, yes}) == no));
  BOOST_TEST(name_of(yes) == std::string("holds"));
  BOOST_TEST(name_of(no) == std::string("does not hold"));
  BOOST_TEST(name_of(open) == std::string("undecided"));
}

BOOST_AUTO_TEST_SUITE_END()
