#include "heed/analysis/statistics.h"

#include "heed/base/error.h"
#include "heed/base/math.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace heed {

namespace {

/// Evaluates the continued fraction of I_x(a, b) (Abramowitz and Stegun, 26.5.8) by Lentz's method:
///   1 / (1 + d_1 / (1 + d_2 / (1 + ...))),   d_2m = m (b - m) x / ((a + 2m - 1) (a + 2m)),
///   d_2m+1 = -(a + m) (a + b + m) x / ((a + 2m) (a + 2m + 1)).
/// It converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double tiny = 1e-300, close = 1e-15;
  const auto away_from_zero = [](double value) { return std::abs(value) < tiny ? tiny : value; };
  double above = 1, below = 0, result = 1;
  for (int k = 0; k < 1000; ++k) {
    const double m = (k - k % 2) / 2.0;
    const double d = k == 0       ? 1
                     : k % 2 == 0 ? m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
                                  : -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    below = 1 / away_from_zero(1 + d * below);
    above = away_from_zero(1 + d / above);
    const double factor = above * below;
    result *= factor;
    if (std::abs(factor - 1) < close) break;
  }
  return result - 1;
}

/// Returns the difference; none if its computation overflowed.
std::optional<Difference> if_finite(const Difference& difference) {
  return std::isfinite(difference.value) && std::isfinite(difference.error) ? std::optional(difference) : std::nullopt;
}

/// Returns a bound on the rounding error of the mean of `count` values of magnitude up to `largest`.
double rounding_of_mean(std::size_t count, double largest) {
  return static_cast<double>(count) * std::numeric_limits<double>::epsilon() * largest;
}

/// Returns the largest magnitude.
double largest_of(std::span<const double> values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

/// Returns the sample; deviations up to `rounding` count as 0.
Sample sample_beyond(double rounding, std::span<const double> values) {
  Sample sample;
  sample.count = static_cast<Index>(values.size());
  for (const double value : values) sample.mean += value / static_cast<double>(values.size());
  for (const double value : values)
    if (const double deviation = value - sample.mean; !(std::abs(deviation) <= rounding))
      sample.squares += deviation * deviation;
  return sample;
}

}  // namespace

std::optional<double> Sample::deviation() const {
  return count < 2 || !std::isfinite(squares) ? std::nullopt
                                              : std::optional(std::sqrt(squares / static_cast<double>(count - 1)));
}

Sample sample_of(std::span<const double> values) {
  return sample_beyond(rounding_of_mean(values.size(), largest_of(values)), values);
}

double incomplete_beta(double a, double b, double x) {
  HEED_ASSERT(a > 0 && b > 0 && x >= 0 && x <= 1);
  if (x == 0 || x == 1) return x;
  // I_x(a, b) = 1 - I_{1-x}(b, a)
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
  const double log_beta = std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b);
  return math::exp(a * math::log(x) + b * math::log1p(-x) - log_beta) / a * beta_fraction(a, b, x);
}

// P(|T| >= |t|) = I_x(f / 2, 1 / 2) with x = f / (f + t^2)
double student_tail(double t, double freedom) { return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)); }

double student_quantile(double tail, double freedom) {
  HEED_ASSERT(tail > 0 && tail < 1 && freedom > 0);
  double low = 0, high = 1;
  while (student_tail(high, freedom) > tail) high *= 2;
  for (int halving = 0; halving < 200 && low < high; ++halving) {
    const double middle = low + (high - low) / 2;
    if (middle == low || middle == high) break;
    (student_tail(middle, freedom) > tail ? low : high) = middle;
  }
  return high;
}

std::optional<double> Difference::p() const {
  return error > 0 ? std::optional(student_tail(value / error, freedom)) : std::nullopt;
}

std::optional<Difference> welch(const Sample& a, const Sample& b) {
  if (a.count < 2 || b.count < 2 || a.squares + b.squares == 0) return std::nullopt;
  const auto share = [](const Sample& s) { return s.squares / static_cast<double>((s.count - 1) * s.count); };
  // A and B are fractions of the sum: their squares, unlike those of the shares, cannot overflow or both underflow.
  const double sum = share(a) + share(b), A = share(a) / sum, B = share(b) / sum;
  if (!std::isfinite(A + B)) return std::nullopt;
  const double freedom = 1 / (A * A / static_cast<double>(a.count - 1) + B * B / static_cast<double>(b.count - 1));
  return if_finite({a.mean - b.mean, std::sqrt(sum), freedom});
}

std::optional<Difference> paired(std::span<const double> a, std::span<const double> b) {
  HEED_ASSERT(a.size() == b.size());
  if (a.size() < 2) return std::nullopt;
  std::vector<double> differences;
  for (std::size_t i = 0; i < a.size(); ++i) differences.push_back(a[i] - b[i]);
  const Sample sample = sample_beyond(rounding_of_mean(a.size(), std::max(largest_of(a), largest_of(b))), differences);
  const double n = static_cast<double>(sample.count);
  return if_finite({sample.mean, std::sqrt(sample.squares / (n - 1) / n), n - 1});
}

std::optional<Difference> pooled(std::span<const Sample> samples, std::span<const double> signs,
                                 double least_variance) {
  HEED_ASSERT(samples.size() == signs.size());
  double value = 0, squares = 0, freedom = 0, inverse = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].count == 0) return std::nullopt;
    const double n = static_cast<double>(samples[i].count);
    value += signs[i] * samples[i].mean;
    squares += samples[i].squares;
    freedom += n - 1;
    inverse += 1 / n;
  }
  if (freedom == 0) return std::nullopt;
  return if_finite({value, std::sqrt(std::max(squares / freedom, least_variance) * inverse), freedom});
}

Difference with_seeds(const Difference& difference, Index count, Index seeds) {
  const double before = static_cast<double>(count), after = static_cast<double>(seeds);
  return {difference.value, difference.error * std::sqrt(before / after),
          difference.freedom * (after - 1) / (before - 1)};
}

double counting_variance(std::span<const Sample> samples, Index images) {
  constexpr double rounding = 1e-12;  // allowed rounding error of a mean of accuracies that are all 1
  double p = 0;
  for (const Sample& sample : samples) {
    require(sample.mean >= 0 && sample.mean <= 1 + rounding,
            "a mean is {}; expected an accuracy from 0 to 1, since images is given", sample.mean);
    p += sample.mean / static_cast<double>(samples.size());
  }
  return p * (1 - p) / static_cast<double>(images);
}

const char* name_of(Verdict verdict) {
  return verdict == Verdict::holds ? "holds" : verdict == Verdict::does_not_hold ? "does not hold" : "undecided";
}

Verdict exceeds(const Difference& difference, double bound) {
  const double half = difference.half_width();
  if (difference.value - half > bound) return Verdict::holds;
  return difference.value + half < bound ? Verdict::does_not_hold : Verdict::undecided;
}

Verdict together(std::span<const Verdict> parts) {
  const auto any = [&](Verdict verdict) { return std::find(parts.begin(), parts.end(), verdict) != parts.end(); };
  if (any(Verdict::does_not_hold)) return Verdict::does_not_hold;
  return any(Verdict::undecided) ? Verdict::undecided : Verdict::holds;
}

}  // namespace heed
