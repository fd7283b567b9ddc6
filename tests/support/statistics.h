// Statistical tests, for results that are random. Each function z_of_... returns a z that is distributed as N(0, 1) if
// the results are correct (for counts in the hundreds, approximately), so that |z| < 5 fails by chance once in 1.7
// million. Seeds are fixed, so a pass is reproducible; at these sample sizes, a fault of a few per cent gives |z| far
// above 5.
#pragma once

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

namespace heed::test {

inline void check_z(double z, const std::string& what) { BOOST_TEST(std::abs(z) < 5, what << ": z = " << z); }

/// Returns z of chi square for cells with equal expectation, by Wilson and Hilferty's cube root.
inline double z_of_equal_cells(const std::vector<double>& counts) {
  double sum = 0, chi = 0;
  for (const double count : counts) sum += count;
  const double expected = sum / static_cast<double>(counts.size()), freedom = static_cast<double>(counts.size() - 1);
  for (const double count : counts) chi += (count - expected) * (count - expected) / expected;
  return (std::cbrt(chi / freedom) - (1 - 2 / (9 * freedom))) / std::sqrt(2 / (9 * freedom));
}

/// Returns z of a number of successes in n trials with this probability.
inline double z_of_successes(double successes, double n, double probability) {
  return (successes - n * probability) / std::sqrt(n * probability * (1 - probability));
}

/// Returns z of the mean of samples with this expectation and variance.
inline double z_of_mean(const std::vector<double>& samples, double expected, double variance) {
  double sum = 0;
  for (const double x : samples) sum += x - expected;
  return sum / std::sqrt(variance * static_cast<double>(samples.size()));
}

/// Returns z of the variance of samples about their expectation; `fourth` is the expected fourth power of a deviation.
inline double z_of_variance(const std::vector<double>& samples, double expected, double variance, double fourth) {
  double sum = 0;
  for (const double x : samples) sum += (x - expected) * (x - expected) - variance;
  return sum / std::sqrt((fourth - variance * variance) * static_cast<double>(samples.size()));
}

/// Returns z of the correlation of two independent samples, uniform in [0, 1).
inline double z_of_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += 12 * (a[i] - 0.5) * (b[i] - 0.5);
  return sum / std::sqrt(static_cast<double>(a.size()));
}

/// Kolmogorov-Smirnov test: the largest distance between the samples' distribution and `distribution`, times sqrt(n),
/// exceeds 2.75 once in 1.8 million (2 exp(-2 x^2)).
template <class F>
void check_distribution(std::vector<double> samples, const F& distribution, const std::string& what) {
  std::sort(samples.begin(), samples.end());
  const double n = static_cast<double>(samples.size());
  double most = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double p = distribution(samples[i]), below = static_cast<double>(i) / n;
    most = std::max({most, p - below, below + 1 / n - p});
  }
  BOOST_TEST(most * std::sqrt(n) < 2.75, what << ": distance " << most << " of " << n << " samples");
}

inline double normal_distribution(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

}  // namespace heed::test
