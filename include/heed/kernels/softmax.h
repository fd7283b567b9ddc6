// Softmax of rows, plain and as attention uses it: scaled, causal, with each row's maximum and sum kept so that the
// backward pass can make the row again.
#pragma once

#include "heed/kernels/update.h"
#include "heed/base/tensor.h"

#include <cmath>

namespace heed::kernels {

/// In place: s = exp(s - max s) / sum exp(s - max s) for each of `rows` rows of n, `stride` apart. Subtracting
/// the maximum leaves the result as it is and keeps every finite row finite. kept [rows, 2]: the maximum and the sum of
/// each row, or nullptr. Fast float: relative error at most 3e-7 + 6e-8 (n / 4 + |s - max|), n / 4 for the rounding of
/// the sum. Counts per row: n - 1 cmp, n sub, n exp, n - 1 add, n div.
template <class T>
void softmax_rows(Index rows, Index n, Index stride, T* s, T* kept) {
  using std::exp;
  for (Index r = 0; r < rows; ++r, s += stride) {
    T maximum = s[0];
    for (Index j = 1; j < n; ++j) maximum = s[j] > maximum ? s[j] : maximum;
    s[0] = exp(s[0] - maximum);
    T sum = s[0];
    for (Index j = 1; j < n; ++j) {
      s[j] = exp(s[j] - maximum);
      sum += s[j];
    }
    for (Index j = 0; j < n; ++j) s[j] = s[j] / sum;
    if (kept) kept[2 * r] = maximum, kept[2 * r + 1] = sum;
  }
}

/// Rows of an attention map: `rows` queries and `columns` keys, rows `stride` apart. With `causal`, row r sees
/// its first min(columns, first_length + r) keys only and is zero beyond.
struct AttentionRows {
  Index rows, columns, stride;
  double scale;  ///< factor of the scores, 1 / sqrt(d)
  bool causal = false;
  Index first_length = 0;

  Index length(Index r) const { return causal ? std::min(columns, first_length + r) : columns; }

  /// The same numbers as one long row where nothing lies between rows: for what is done to each number by itself.
  AttentionRows joined() const {
    if (causal || stride != columns) return *this;
    return {1, rows * columns, rows * columns, scale};
  }
};

/// In place: s = softmax(scale s) over the keys each row sees; kept as in softmax_rows. Rows that start at multiples of
/// 64 bytes take about four fifths of the time of others (on Zen 4, at 50 and 65 keys). Fast float: relative error as
/// softmax_rows, with scale s for s, and 6e-8 |scale s| more. Counts per row of n: as softmax_rows, and n mul.
template <class T>
void attention_softmax(const AttentionRows& a, T* s, T* kept) {
  for (Index r = 0; r < a.rows; ++r, s += a.stride) {
    const Index n = a.length(r);
    for (Index j = 0; j < n; ++j) s[j] = T(a.scale) * s[j];
    softmax_rows<T>(1, n, n, s, kept ? kept + 2 * r : nullptr);
    std::fill(s + n, s + a.columns, T(0));
  }
}

/// The same rows again from their scores and what was kept: s = exp(scale s - maximum) / sum. These are the very
/// numbers of before. (Their logarithm, maximum + log sum, would be one number per row instead of two, but in float it
/// loses the sum where scores are large.) Counts per row of n: n mul, n add, n exp, n div.
template <class T>
void attention_softmax_again(const AttentionRows& a, T* s, const T* kept) {
  using std::exp;
  for (Index r = 0; r < a.rows; ++r, s += a.stride) {
    const Index n = a.length(r);
    for (Index j = 0; j < n; ++j) s[j] = exp(T(a.scale) * s[j] - kept[2 * r]) / kept[2 * r + 1];
    std::fill(s + n, s + a.columns, T(0));
  }
}

/// In place in dp = d(loss)/dp, with p the rows:
///   ds = scale p (dp - sum_j p dp),
/// the derivative of a row divided by its own sum. p and dp have the same stride.
/// Counts per row of n: 3n mul, 2n - 1 add.
template <class T>
void attention_softmax_backward(const AttentionRows& a, const T* p, T* dp) {
  for (Index r = 0; r < a.rows; ++r, p += a.stride, dp += a.stride) {
    const Index n = a.length(r);
    T sum = p[0] * dp[0];
    for (Index j = 1; j < n; ++j) sum += p[j] * dp[j];
    for (Index j = 0; j < n; ++j) dp[j] = T(a.scale) * (p[j] * (dp[j] - sum));
    std::fill(dp + n, dp + a.columns, T(0));
  }
}

#ifndef HEED_REFERENCE
void softmax_rows(Index rows, Index n, Index stride, float* s, float* kept);
void attention_softmax(const AttentionRows& a, float* s, float* kept);
void attention_softmax_again(const AttentionRows& a, float* s, const float* kept);
void attention_softmax_backward(const AttentionRows& a, const float* p, float* dp);
#endif

}  // namespace heed::kernels
