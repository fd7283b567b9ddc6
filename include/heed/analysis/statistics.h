// Statistics over seeds: means of several runs, and tests of their differences.
#pragma once

#include "heed/base/tensor.h"

#include <optional>
#include <span>

namespace heed {

/// Numbers of one kind, such as the accuracies of an arm's seeds.
struct Sample {
  Index count = 0;
  double mean = 0;
  double squares = 0;  ///< sum of (x - mean)^2

  /// sqrt(squares / (count - 1)); none of fewer than two numbers, or where their squares overflow.
  std::optional<double> deviation() const;
};

Sample sample_of(std::span<const double> values);

/// The regularised incomplete beta function I_x(a, b), a and b above 0, x from 0 to 1, to about 1e-14.
double incomplete_beta(double a, double b, double x);

/// P(|T| >= |t|) for Student's t with `freedom` degrees of freedom, any number above 0.
double student_tail(double t, double freedom);

/// The t that |T| exceeds with probability `tail`, 0 < tail < 1: 2.776 for 0.05 and 4 degrees of freedom.
double student_quantile(double tail, double freedom);

/// A difference of means with its standard error. The functions that make one give none where numbers are so large
/// that their squares overflow.
struct Difference {
  double value = 0;    ///< a - b
  double error = 0;    ///< its standard error
  double freedom = 0;  ///< degrees of freedom

  /// Half-width of the interval that holds the true difference with 95 % confidence.
  double half_width() const { return student_quantile(0.05, freedom) * error; }

  /// Probability of a difference as large where there is none; none where the numbers have no scatter at all.
  std::optional<double> p() const;
};

/// Welch's test: variances of their own. None where a sample has fewer than two numbers or neither scatters.
///   error^2 = A + B,  freedom = (A + B)^2 / (A^2 / (n_a - 1) + B^2 / (n_b - 1)),  A = squares_a / (n_a - 1) / n_a
std::optional<Difference> welch(const Sample& a, const Sample& b);

/// The paired test: a[i] and b[i] share what else made them, a seed say. None for fewer than two pairs.
std::optional<Difference> paired(std::span<const double> a, std::span<const double> b);

/// The sum of signs[i] * mean_i over samples that share one variance, as claims are judged by: signs 1, -1 for the
/// difference of two, 1, -1, -1, 1 for a difference of differences.
///   s^2 = max(sum of squares / freedom, least_variance),  freedom = sum n_i - samples,  error = s sqrt(sum 1 / n_i)
/// `least_variance` keeps seeds that agree by luck from deciding: for accuracies on n images p (1 - p) / n, p their
/// mean. None where there is no degree of freedom.
std::optional<Difference> pooled(std::span<const Sample> samples, std::span<const double> signs, double least_variance);

/// The pooled difference of samples of `count` numbers each, if they had `seeds` each at unchanged means and s.
Difference with_seeds(const Difference& difference, Index count, Index seeds);

/// The variance p (1 - p) / images of an accuracy that is counted on so many images, p the mean of the samples' means.
/// Throws Error for a mean that is no share, 0 to 1: a percentage would have a negative variance.
double counting_variance(std::span<const Sample> samples, Index images);

/// The verdict of runs on a statement.
enum class Verdict { holds, does_not_hold, undecided };

/// "holds", "does not hold", "undecided"
const char* name_of(Verdict verdict);

/// Judges whether the true difference exceeds `bound`: holds if the whole interval does, does not hold if the whole
/// interval is below. Better by x is a bound of x, on par within x a bound of -x.
Verdict exceeds(const Difference& difference, double bound);

/// Returns the verdict of a claim with several parts: holds if all do, does not hold if one does not.
Verdict together(std::span<const Verdict> parts);

}  // namespace heed
