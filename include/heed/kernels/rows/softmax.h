// Softmax of rows, plain and as in attention: scaled, optionally causal. The maximum and the sum of exps of each row
// are saved, so that the backward pass can recompute the row.
#pragma once

#include "heed/base/math.h"
#include "heed/base/matrix.h"
#include "heed/cost/counts.h"
#include "heed/kernels/shared/update.h"

#include <algorithm>

namespace heed::kernels {

/// Scaling and masking of the rows of a score matrix. Scores are multiplied by `scale`, for example 1 / sqrt(d). With
/// `causal`, row r sees only the first `first_length` + r keys, or none if that number is negative; elements of masked
/// keys become 0.
struct ScoreRows {
  double scale;
  bool causal = false;
  Index first_length = 0;

  /// Returns the number of visible keys of row r, out of `keys`.
  Index length(Index r, Index keys) const { return causal ? std::clamp<Index>(first_length + r, 0, keys) : keys; }

  /// Returns the rule for the rows from r on.
  ScoreRows from(Index r) const { return {scale, causal, first_length + r}; }
};

inline namespace reference {

/// Replaces each row by s = exp(s - max s) / sum exp(s - max s). Subtracting the maximum does not change the result and
/// keeps every finite row finite. Writes max s and the sum of exps of each row to saved [rows, 2], contiguous; saved
/// may be empty. Fast float: relative error at most 3e-7 + 6e-8 (n / 4 + |s - max|) for rows of n elements; n / 4
/// bounds the rounding of the sum.
template <class T>
void softmax_rows(Matrix<T> s, Matrix<std::type_identity_t<T>> saved = {}) {
  using math::exp;
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
    if (saved) saved(r, 0) = maximum, saved(r, 1) = sum;
  }
}

/// Replaces each row by s = softmax(scale s) over its visible keys; `saved` as in softmax_rows(). Rows aligned to
/// 64 bytes take about four fifths of the time of unaligned ones (Zen 4, 50 and 65 keys). Fast float: the relative
/// error of softmax_rows() for scale s, plus 6e-8 |scale s|.
template <class T>
void attention_softmax(const ScoreRows& rule, Matrix<T> s, Matrix<std::type_identity_t<T>> saved = {}) {
  for (Index r = 0; r < s.rows; ++r) {
    const Index n = rule.length(r, s.columns);
    T* const row = s[r];
    for (Index j = 0; j < n; ++j) row[j] = T(rule.scale) * row[j];
    softmax_rows(Matrix<T>(row, 1, n), saved ? saved.middle_rows(r, 1) : saved);
    std::fill(row + n, row + s.columns, T(0));
  }
}

/// Computes the softmax of rows whose keys are processed in parts (Milakov and Gimelshein, "Online normalizer
/// calculation for softmax", 2018, arXiv:1805.02867, Algorithm 3). Replaces each row of a part by exp(scale s - m),
/// where m is the row's maximum so far. sums [rows, 2], contiguous, holds m and the sum of these exps, and is updated;
/// if m grows, the sum and the row of out [rows, e], which holds the products with earlier parts, are multiplied by
/// exp(old m - m). In the first part (Update::assign) every row must have a visible key; this part assigns sums and
/// does not read or write out. divide_by_sums() follows the last part. Fast float: the relative error of
/// attention_softmax(), plus 3e-7 per part.
template <class T>
void attention_softmax_part(const ScoreRows& rule, Matrix<T> s, Update update, Matrix<std::type_identity_t<T>> sums,
                            Matrix<std::type_identity_t<T>> out) {
  using math::exp;
  for (Index r = 0; r < s.rows; ++r) {
    const Index n = rule.length(r, s.columns);
    T* const row = s[r];
    for (Index j = 0; j < n; ++j) row[j] = T(rule.scale) * row[j];
    std::fill(row + n, row + s.columns, T(0));
    if (n == 0) continue;
    const T before = update == Update::assign ? row[0] : sums(r, 0);
    T maximum = before;
    for (Index j = 0; j < n; ++j) maximum = row[j] > maximum ? row[j] : maximum;
    T sum(0);
    for (Index j = 0; j < n; ++j) sum += row[j] = exp(row[j] - maximum);
    if (update == Update::accumulate) {
      const T factor = exp(before - maximum);
      sum += factor * sums(r, 1);
      for (Index i = 0; i < out.columns; ++i) out(r, i) = factor * out(r, i);
    }
    sums(r, 0) = maximum, sums(r, 1) = sum;
  }
}

/// Divides each row of out by its sum of exps, sums(r, 1).
template <class T>
void divide_by_sums(MatrixFor<T> sums, Matrix<T> out) {
  for (Index r = 0; r < out.rows; ++r) {
    const T sum = sums(r, 1);
    for (Index i = 0; i < out.columns; ++i) out(r, i) = out(r, i) / sum;
  }
}

/// Recomputes the rows from their scores and `saved`: s = exp(scale s - maximum) / sum, with bitwise equal results.
/// (maximum + log sum would be one value per row instead of two, but for large scores a float would lose the sum.) Fast
/// float: relative error at most 4e-7 + 6e-8 (|scale s| + |scale s - max|).
template <class T>
void attention_softmax_again(const ScoreRows& rule, Matrix<T> s, MatrixFor<T> saved) {
  using math::exp;
  for (Index r = 0; r < s.rows; ++r) {
    const Index n = rule.length(r, s.columns);
    T* const row = s[r];
    for (Index j = 0; j < n; ++j) row[j] = exp(T(rule.scale) * row[j] - saved(r, 0)) / saved(r, 1);
    std::fill(row + n, row + s.columns, T(0));
  }
}

/// Replaces dp = d(loss)/dp, for whole rows p or a subset of their columns, by
///   ds = scale p (dp - sums),
/// where sums[r] is sum_j p dp over all of row r. p and dp have the same shape. Fast float: error at most 4 eps
/// relative to scale p (|dp| + |sums|).
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

/// Replaces dp by ds, the gradient of softmax(scale s) with respect to s, for whole rows of at least one key; computes
/// the sums itself. Fast float: error at most (n + 4) eps relative to scale p (|dp| + sum_j p |dp|).
template <class T>
void attention_softmax_backward(const ScoreRows& rule, MatrixFor<T> p, Matrix<T> dp) {
  for (Index r = 0; r < dp.rows; ++r) {
    T sum = p(r, 0) * dp(r, 0);
    for (Index j = 1; j < rule.length(r, dp.columns); ++j) sum += p(r, j) * dp(r, j);
    reference::attention_softmax_backward_from_sums(rule.from(r), p.middle_rows(r, 1), &sum, dp.middle_rows(r, 1));
  }
}

}  // namespace reference

#ifndef HEED_NO_SIMD
/// Fast versions for float.
void softmax_rows(Matrix<float> s, Matrix<float> saved = {});
void attention_softmax(const ScoreRows& rule, Matrix<float> s, Matrix<float> saved = {});
void attention_softmax_part(const ScoreRows& rule, Matrix<float> s, Update update, Matrix<float> sums,
                            Matrix<float> out);
void attention_softmax_again(const ScoreRows& rule, Matrix<float> s, Matrix<const float> saved);
void attention_softmax_backward_from_sums(const ScoreRows& rule, Matrix<const float> p, const float* sums,
                                          Matrix<float> dp);
void attention_softmax_backward(const ScoreRows& rule, Matrix<const float> p, Matrix<float> dp);
#endif

/// Returns the counts for `rows` rows with `elements` elements in total.
inline Counts softmax_counts(Index rows, Index elements) {
  return {.add = 2 * elements - rows, .div = elements, .exp = elements, .cmp = elements - rows};
}

/// Returns the counts for `rows` queries with `pairs` visible keys in total.
inline Counts attention_softmax_counts(Index rows, Index pairs) {
  return softmax_counts(rows, pairs) + Counts{.mul = pairs};
}

/// Returns the counts for `pairs` pairs of a query and a visible key.
inline Counts attention_softmax_again_counts(Index pairs) {
  return {.mul = pairs, .add = pairs, .div = pairs, .exp = pairs};
}

/// Returns the counts for `rows` queries with `pairs` visible keys in total.
inline Counts attention_softmax_backward_counts(Index rows, Index pairs) {
  return {.mul = 3 * pairs, .add = 2 * pairs - rows};
}

}  // namespace heed::kernels
