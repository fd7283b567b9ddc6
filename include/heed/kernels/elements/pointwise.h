// Functions that attention applies to each score by itself, and their derivatives.
#pragma once

#include "heed/kernels/elements/activation.h"
#include "heed/kernels/rows/softmax.h"

namespace heed {

enum class Pointwise { relu, relu2, gelu, softplus, identity, relu6, sigmoid };

namespace kernels {

/// y = phi(x) for n numbers; y may be x. softplus and sigmoid are made from exp(-|x|), which never overflows:
///   log(1 + e^x) = max(x, 0) + log(1 + e^-|x|),   1 / (1 + e^-x) = e^-|x| / (1 + e^-|x|) for x < 0.
/// All are finite where x is, except relu2 beyond the root of the largest number. Relative error a few eps (gelu: as in
/// kernels/elements/activation.h).
template <class T>
void pointwise_forward(Pointwise phi, Index n, const T* x, T* y) {
  using std::abs;
  switch (phi) {
    case Pointwise::relu:
      return relu_forward(n, x, y);
    case Pointwise::relu2:
      for (Index i = 0; i < n; ++i) {
        const T above = x[i] > T(0) ? x[i] : T(0);
        y[i] = above * above;
      }
      return;
    case Pointwise::gelu:
      return gelu_forward(n, x, y);
    case Pointwise::softplus:
      for (Index i = 0; i < n; ++i) y[i] = (x[i] > T(0) ? x[i] : T(0)) + log_1_plus(exp(-abs(x[i])));
      return;
    case Pointwise::identity:
      if (y != x) std::copy(x, x + n, y);
      return;
    case Pointwise::relu6:
      for (Index i = 0; i < n; ++i) {
        const T above = x[i] > T(0) ? x[i] : T(0);
        y[i] = above < T(6) ? above : T(6);
      }
      return;
    case Pointwise::sigmoid:
      for (Index i = 0; i < n; ++i) {
        const T small = exp(-abs(x[i]));
        y[i] = (x[i] < T(0) ? small : T(1)) / (T(1) + small);
      }
      return;
  }
}

/// dx = phi'(x) dy for n numbers; dx may be dy. relu'(0) = relu6'(0) = relu6'(6) = 0; softplus' is sigmoid, and
/// sigmoid' = e^-|x| / (1 + e^-|x|)^2, even and without the cancellation of 1 - sigmoid. Range and error as above.
template <class T>
void pointwise_backward(Pointwise phi, Index n, const T* x, const T* dy, T* dx) {
  using std::abs;
  switch (phi) {
    case Pointwise::relu:
      return relu_backward(n, x, dy, Update::assign, dx);
    case Pointwise::relu2:
      for (Index i = 0; i < n; ++i) dx[i] = T(2) * (x[i] > T(0) ? x[i] : T(0)) * dy[i];
      return;
    case Pointwise::gelu:
      return gelu_backward(n, x, dy, Update::assign, dx);
    case Pointwise::softplus:
      for (Index i = 0; i < n; ++i) {
        const T small = exp(-abs(x[i]));
        dx[i] = (x[i] < T(0) ? small : T(1)) / (T(1) + small) * dy[i];
      }
      return;
    case Pointwise::identity:
      if (dx != dy) std::copy(dy, dy + n, dx);
      return;
    case Pointwise::relu6:
      for (Index i = 0; i < n; ++i) {
        const bool above = x[i] > T(0), below = x[i] < T(6);
        dx[i] = above && below ? dy[i] : T(0);
      }
      return;
    case Pointwise::sigmoid:
      for (Index i = 0; i < n; ++i) {
        const T small = exp(-abs(x[i])), sum = T(1) + small;
        dx[i] = small / (sum * sum) * dy[i];
      }
      return;
  }
}

/// What they execute for each number.
inline Counts pointwise_forward_counts(Pointwise phi) {
  switch (phi) {
    case Pointwise::relu:
      return {.cmp = 1};
    case Pointwise::relu2:
      return {.mul = 1, .cmp = 1};
    case Pointwise::gelu:
      return {.mul = 3, .add = 1, .erf = 1};
    case Pointwise::softplus:
      return {.add = 2, .exp = 1, .log = 1, .cmp = 2};
    case Pointwise::relu6:
      return {.cmp = 2};
    case Pointwise::sigmoid:
      return {.add = 1, .div = 1, .exp = 1, .cmp = 2};
    case Pointwise::identity:
      break;
  }
  return {};
}
inline Counts pointwise_backward_counts(Pointwise phi) {
  switch (phi) {
    case Pointwise::relu:
      return {.cmp = 1};
    case Pointwise::relu2:
      return {.mul = 2, .cmp = 1};
    case Pointwise::gelu:
      return {.mul = 7, .add = 2, .exp = 1, .erf = 1};
    case Pointwise::softplus:
      return {.mul = 1, .add = 1, .div = 1, .exp = 1, .cmp = 2};
    case Pointwise::relu6:
      return {.cmp = 2};
    case Pointwise::sigmoid:
      return {.mul = 2, .add = 1, .div = 1, .exp = 1, .cmp = 1};
    case Pointwise::identity:
      break;
  }
  return {};
}

/// An attention map by phi: scores are multiplied by rows.scale, and what phi makes of them by `factor`.
struct PointwiseRows {
  Pointwise phi;
  double factor;
  ScoreRows rows;
};

namespace detail {

/// Calls f(count, numbers of s, numbers of p) for the keys that each row sees, a piece at a time, and sets p to zero
/// beyond. A piece goes through several loops: 4 KB of floats stay in the L1 cache meanwhile. Rows that are all seen to
/// their end, and have nothing between them, are taken as one.
template <class S, class T, class F>
void for_seen_pieces(const ScoreRows& rule, Matrix<S> scores, Matrix<T> weights, const F& f) {
  constexpr Index piece = 1024;
  const bool join = !rule.causal && scores.stride == scores.columns && weights.stride == weights.columns;
  const Matrix<S> s = join ? scores.joined() : scores;
  const Matrix<T> p = join ? weights.joined() : weights;
  for (Index r = 0; r < p.rows; ++r) {
    const Index n = rule.length(r, p.columns);
    for (Index j = 0; j < n; j += piece) f(std::min(piece, n - j), s[r] + j, p[r] + j);
    std::fill(p[r] + n, p[r] + p.columns, T(0));
  }
}

/// p = factor phi(s) for n numbers.
template <class T>
void pointwise_weights(const PointwiseRows& rule, Index n, const T* s, T* p) {
  pointwise_forward(rule.phi, n, s, p);
  for (Index i = 0; i < n; ++i) p[i] = T(rule.factor) * p[i];
}

}  // namespace detail

/// For the keys each row sees: s = scale s in place, and p = factor phi(s), zero beyond. s and p have the same shape;
/// p may be s, which then holds p.
template <class T>
void attention_pointwise(const PointwiseRows& rule, Matrix<T> scores, Matrix<T> weights) {
  detail::for_seen_pieces(rule.rows, scores, weights, [&](Index n, T* s, T* p) {
    for (Index i = 0; i < n; ++i) s[i] = T(rule.rows.scale) * s[i];
    detail::pointwise_weights(rule, n, s, p);
  });
}

/// p again, from s as attention_pointwise left it.
template <class T>
void attention_pointwise_again(const PointwiseRows& rule, MatrixFor<T> scores, Matrix<T> weights) {
  detail::for_seen_pieces(rule.rows, scores, weights,
                          [&](Index n, const T* s, T* p) { detail::pointwise_weights(rule, n, s, p); });
}

/// In place in dp = d(loss)/dp, with s as attention_pointwise left it: ds = scale factor phi'(s) dp, the gradient of
/// the scores before they were scaled; zero beyond.
template <class T>
void attention_pointwise_backward(const PointwiseRows& rule, MatrixFor<T> scores, Matrix<T> dweights) {
  detail::for_seen_pieces(rule.rows, scores, dweights, [&](Index n, const T* s, T* dp) {
    pointwise_backward(rule.phi, n, s, dp, dp);
    for (Index i = 0; i < n; ++i) dp[i] = T(rule.rows.scale * rule.factor) * dp[i];
  });
}

/// What they execute, of queries and the keys they see.
inline Counts attention_pointwise_counts(Pointwise phi, Index pairs) {
  return pairs * (Counts{.mul = 2} + pointwise_forward_counts(phi));
}
inline Counts attention_pointwise_again_counts(Pointwise phi, Index pairs) {
  return pairs * (Counts{.mul = 1} + pointwise_forward_counts(phi));
}
inline Counts attention_pointwise_backward_counts(Pointwise phi, Index pairs) {
  return pairs * (Counts{.mul = 1} + pointwise_backward_counts(phi));
}

}  // namespace kernels
}  // namespace heed
