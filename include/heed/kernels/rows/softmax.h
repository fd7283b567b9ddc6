// Softmax of rows, plain and as attention uses it: scaled, causal, with each row's maximum and sum kept so that the
// backward pass can make the row again.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counts.h"

#include <algorithm>
#include <cmath>

namespace heed::kernels {

/// How attention takes the rows of a matrix of scores: each score times `scale`, 1 / sqrt(d); with `causal` row r sees
/// its first `first_length` + r keys only, none where that is negative, and is zero beyond.
struct ScoreRows {
  double scale;
  bool causal = false;
  Index first_length = 0;

  /// How many of so many keys row r sees.
  Index length(Index r, Index keys) const { return causal ? std::clamp<Index>(first_length + r, 0, keys) : keys; }

  /// For the rows from r on.
  ScoreRows from(Index r) const { return {scale, causal, first_length + r}; }
};

namespace reference {

/// In place: s = exp(s - max s) / sum exp(s - max s), row by row. Subtracting the maximum leaves the result as it is
/// and keeps every finite row finite. kept [rows, 2], without gaps: the maximum and the sum of each row; may be left
/// out. Fast float: relative error at most 3e-7 + 6e-8 (n / 4 + |s - max|) in a row of n, n / 4 for the rounding of the
/// sum.
template <class T>
void softmax_rows(Matrix<T> s, Matrix<std::type_identity_t<T>> kept = {}) {
  using std::exp;
  const Index n = s.columns;
  for (Index r = 0; r < s.rows; ++r) {
    T* const row = s[r];
    T maximum = row[0];
    for (Index j = 1; j < n; ++j) maximum = row[j] > maximum ? row[j] : maximum;
    row[0] = exp(row[0] - maximum);
    T sum = row[0];
    for (Index j = 1; j < n; ++j) {
      row[j] = exp(row[j] - maximum);
      sum += row[j];
    }
    for (Index j = 0; j < n; ++j) row[j] = row[j] / sum;
    if (kept) kept(r, 0) = maximum, kept(r, 1) = sum;
  }
}

/// In place: s = softmax(scale s) over the keys each row sees; kept as in softmax_rows. Rows that start at multiples of
/// 64 bytes take about four fifths of the time of others (on Zen 4, at 50 and 65 keys). Fast float: relative error as
/// softmax_rows, with scale s for s, and 6e-8 |scale s| more.
template <class T>
void attention_softmax(const ScoreRows& rule, Matrix<T> s, Matrix<std::type_identity_t<T>> kept = {}) {
  for (Index r = 0; r < s.rows; ++r) {
    const Index n = rule.length(r, s.columns);
    T* const row = s[r];
    for (Index j = 0; j < n; ++j) row[j] = T(rule.scale) * row[j];
    softmax_rows(Matrix<T>(row, 1, n), kept ? kept.middle_rows(r, 1) : kept);
    std::fill(row + n, row + s.columns, T(0));
  }
}

/// The same rows again from their scores and what was kept: s = exp(scale s - maximum) / sum. These are the very
/// numbers of before. (Their logarithm, maximum + log sum, would be one number per row instead of two, but in float it
/// loses the sum where scores are large.) Fast float: relative error at most 4e-7 + 6e-8 (|scale s| + |scale s - max|).
template <class T>
void attention_softmax_again(const ScoreRows& rule, Matrix<T> s, MatrixFor<T> kept) {
  using std::exp;
  for (Index r = 0; r < s.rows; ++r) {
    const Index n = rule.length(r, s.columns);
    T* const row = s[r];
    for (Index j = 0; j < n; ++j) row[j] = exp(T(rule.scale) * row[j] - kept(r, 0)) / kept(r, 1);
    std::fill(row + n, row + s.columns, T(0));
  }
}

/// In place in dp = d(loss)/dp, with p the rows or some columns of them:
///   ds = scale p (dp - sums),
/// where sums[r] is sum_j p dp over all of row r. p and dp have the same shape. Fast float: relative to
/// scale p (|dp| + |sums|) the error is at most 4 eps.
template <class T>
void attention_softmax_backward_from_sums(const ScoreRows& rule, MatrixFor<T> p, const std::type_identity_t<T>* sums,
                                          Matrix<T> dp) {
  for (Index r = 0; r < dp.rows; ++r) {
    const Index n = rule.length(r, dp.columns);
    const T* const pr = p[r];
    T* const row = dp[r];
    for (Index j = 0; j < n; ++j) row[j] = T(rule.scale) * (pr[j] * (row[j] - sums[r]));
    std::fill(row + n, row + dp.columns, T(0));
  }
}

/// The same for whole rows of at least one key, whose sums are taken here: the derivative of softmax(scale s) by s.
/// Fast float: relative to scale p (|dp| + sum_j p |dp|) the error is at most (n + 4) eps.
template <class T>
void attention_softmax_backward(const ScoreRows& rule, MatrixFor<T> p, Matrix<T> dp) {
  for (Index r = 0; r < dp.rows; ++r) {
    T sum = p(r, 0) * dp(r, 0);
    for (Index j = 1; j < rule.length(r, dp.columns); ++j) sum += p(r, j) * dp(r, j);
    reference::attention_softmax_backward_from_sums(rule.from(r), p.middle_rows(r, 1), &sum, dp.middle_rows(r, 1));
  }
}

}  // namespace reference

using reference::attention_softmax, reference::attention_softmax_again, reference::attention_softmax_backward;
using reference::attention_softmax_backward_from_sums, reference::softmax_rows;
#ifndef HEED_NO_SIMD
void softmax_rows(Matrix<float> s, Matrix<float> kept = {});
void attention_softmax(const ScoreRows& rule, Matrix<float> s, Matrix<float> kept = {});
void attention_softmax_again(const ScoreRows& rule, Matrix<float> s, Matrix<const float> kept);
void attention_softmax_backward_from_sums(const ScoreRows& rule, Matrix<const float> p, const float* sums,
                                          Matrix<float> dp);
void attention_softmax_backward(const ScoreRows& rule, Matrix<const float> p, Matrix<float> dp);
#endif

/// Of `rows` rows that have `numbers` numbers between them.
inline Counts softmax_counts(Index rows, Index numbers) {
  return {.add = 2 * numbers - rows, .div = numbers, .exp = numbers, .cmp = numbers - rows};
}

/// `pairs`: of queries and keys they see.
inline Counts attention_softmax_counts(Index rows, Index pairs) {
  return softmax_counts(rows, pairs) + Counts{.mul = pairs};
}

inline Counts attention_softmax_again_counts(Index pairs) {
  return {.mul = pairs, .add = pairs, .div = pairs, .exp = pairs};
}

inline Counts attention_softmax_backward_counts(Index rows, Index pairs) {
  return {.mul = 3 * pairs, .add = 2 * pairs - rows};
}

}  // namespace heed::kernels
