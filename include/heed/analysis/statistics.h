// Statistics over seeds: means of several runs, and tests of their differences.
#pragma once

#include "heed/base/tensor.h"

#include <optional>
#include <span>

namespace heed {

/// Summary of values of one kind, such as the accuracies of an arm's seeds.
struct Sample {
  Index count = 0;
  double mean = 0;
  double squares = 0;  ///< sum of (x - mean)^2

  /// Returns sqrt(squares / (count - 1)); none for fewer than two values or if the squares overflow.
  std::optional<double> deviation() const;
};

/// Returns count, mean and sum of squared deviations of the values. Deviations within the rounding error of the mean
/// count as 0.
Sample sample_of(std::span<const double> values);

/// Returns the regularised incomplete beta function I_x(a, b) for positive a and b and x from 0 to 1. Error about
/// 1e-14.
double incomplete_beta(double a, double b, double x);

/// Returns P(|T| >= |t|) for Student's t with `freedom` > 0 degrees of freedom.
double student_tail(double t, double freedom);

/// Returns the t that |T| exceeds with probability `tail`, 0 < tail < 1: 2.776 for tail = 0.05 and freedom = 4.
double student_quantile(double tail, double freedom);

/// A difference of means with its standard error. Functions that return std::optional<Difference> return none if
/// squares overflow.
struct Difference {
  double value = 0;    ///< a - b
  double error = 0;    ///< its standard error
  double freedom = 0;  ///< degrees of freedom

  /// Returns the half-width of the 95 % confidence interval of the true difference.
  double half_width() const { return student_quantile(0.05, freedom) * error; }

  /// Returns the two-sided p-value for a true difference of 0; none if the standard error is 0.
  std::optional<double> p() const;
};

/// Computes Welch's test, with separate variances. Returns none if a sample has fewer than two values or both have zero
/// variance.
///   error^2 = A + B,  freedom = (A + B)^2 / (A^2 / (n_a - 1) + B^2 / (n_b - 1)),  A = squares_a / (n_a - 1) / n_a
std::optional<Difference> welch(const Sample& a, const Sample& b);

/// Computes the paired test: a[i] and b[i] have a common cause, such as the seed. Returns none for fewer than two
/// pairs.
std::optional<Difference> paired(std::span<const double> a, std::span<const double> b);

/// Computes the sum of signs[i] * mean_i over samples with a common variance, as used for claims: signs {1, -1} give a
/// difference of two means, {1, -1, -1, 1} a difference of differences.
///   s^2 = max(sum of squares / freedom, least_variance),  freedom = sum n_i - samples,  error = s sqrt(sum 1 / n_i)
/// `least_variance` limits the effect of seeds that agree by coincidence: for accuracies on n images it is
/// p (1 - p) / n, where p is the mean accuracy. Returns none if a sample is empty or there are no degrees of freedom.
std::optional<Difference> pooled(std::span<const Sample> samples, std::span<const double> signs, double least_variance);

/// Extrapolates a pooled difference of samples with `count` values each: returns the difference that samples of `seeds`
/// values each would give with the same means and the same s.
Difference with_seeds(const Difference& difference, Index count, Index seeds);

/// Returns the variance p (1 - p) / images of an accuracy on `images` images, where p is the mean of the samples'
/// means. Throws Error for a mean outside 0 to 1: a percentage would have a negative variance.
double counting_variance(std::span<const Sample> samples, Index images);

/// Verdict on a claim.
enum class Verdict { holds, does_not_hold, undecided };

/// Returns "holds", "does not hold" or "undecided".
const char* name_of(Verdict verdict);

/// Returns the verdict on whether the true difference exceeds `bound`: holds if the whole 95 % confidence interval is
/// above the bound, does not hold if the whole interval is below it. The bound is x for "better by x", -x for "on par
/// within x".
Verdict exceeds(const Difference& difference, double bound);

/// Returns the verdict on a claim with several parts: holds if all parts hold, does not hold if one part does not hold,
/// otherwise undecided.
Verdict together(std::span<const Verdict> parts);

}  // namespace heed
