// Functions phi that attention applies to each score separately, and their derivatives.
#pragma once

#include "heed/kernels/elements/activation.h"
#include "heed/kernels/rows/softmax.h"

namespace heed {

/// The function phi of pointwise attention; relu2 is the square of relu.
enum class Pointwise { relu, relu2, gelu, softplus, identity, relu6, sigmoid };

namespace kernels {

/// Computes y = phi(x) for n elements. y may be x. softplus and sigmoid use exp(-|x|), which cannot overflow:
///   log(1 + e^x) = max(x, 0) + log(1 + e^-|x|),   1 / (1 + e^-x) = e^-|x| / (1 + e^-|x|) for x < 0.
/// Finite for finite x, except relu2 if x^2 overflows. Relative error: a few eps (gelu: as in
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

/// Computes dx = phi'(x) dy for n elements. dx may be dy. relu'(0) = relu6'(0) = relu6'(6) = 0. softplus' is sigmoid;
/// sigmoid' = e^-|x| / (1 + e^-|x|)^2, which is even and avoids the cancellation in 1 - sigmoid. Finite for finite x
/// and dy, unless 2 x in relu2' or the product with dy overflows. Relative error as in pointwise_forward().
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

/// Returns the counts per element.
inline Counts pointwise_forward_counts(Pointwise phi) {
  switch (phi) {
    case Pointwise::relu:
      return relu_forward_counts(1);
    case Pointwise::relu2:
      return {.mul = 1, .cmp = 1};
    case Pointwise::gelu:
      return gelu_forward_counts(1);
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
      return relu_backward_counts(1);
    case Pointwise::relu2:
      return {.mul = 2, .cmp = 1};
    case Pointwise::gelu:
      return gelu_backward_counts(1);
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

/// Rule for the attention map of scores s: factor phi(rows.scale s) for keys that `rows` does not mask.
struct PointwiseRows {
  Pointwise phi;
  double factor;
  ScoreRows rows;
};

namespace detail {

/// Calls f(count, s, p) for blocks of each row's visible keys, and sets p to zero for masked keys. A block of 4 KB of
/// floats stays in the L1 cache while several loops process it. Contiguous rows without masked keys are joined into
/// one.
template <class S, class T, class F>
void for_visible_blocks(const ScoreRows& rule, Matrix<S> scores, Matrix<T> weights, const F& f) {
  constexpr Index block = 1024;
  const bool join = !rule.causal && scores.stride == scores.columns && weights.stride == weights.columns;
  const Matrix<S> s = join ? scores.joined() : scores;
  const Matrix<T> p = join ? weights.joined() : weights;
  for (Index r = 0; r < p.rows; ++r) {
    const Index n = rule.length(r, p.columns);
    for (Index j = 0; j < n; j += block) f(std::min(block, n - j), s[r] + j, p[r] + j);
    std::fill(p[r] + n, p[r] + p.columns, T(0));
  }
}

/// Computes p = factor phi(s) for n elements.
template <class T>
void pointwise_weights(const PointwiseRows& rule, Index n, const T* s, T* p) {
  pointwise_forward(rule.phi, n, s, p);
  for (Index i = 0; i < n; ++i) p[i] = T(rule.factor) * p[i];
}

}  // namespace detail

/// Computes, for each row's visible keys, s = scale s in place and p = factor phi(s); p is zero for masked keys. s and
/// p have the same shape; p may be s, which then holds p.
template <class T>
void attention_pointwise(const PointwiseRows& rule, Matrix<T> scores, Matrix<T> weights) {
  detail::for_visible_blocks(rule.rows, scores, weights, [&](Index n, T* s, T* p) {
    for (Index i = 0; i < n; ++i) s[i] = T(rule.rows.scale) * s[i];
    detail::pointwise_weights(rule, n, s, p);
  });
}

/// Recomputes p from the scaled scores that attention_pointwise() wrote to s.
template <class T>
void attention_pointwise_again(const PointwiseRows& rule, MatrixFor<T> scores, Matrix<T> weights) {
  detail::for_visible_blocks(rule.rows, scores, weights,
                             [&](Index n, const T* s, T* p) { detail::pointwise_weights(rule, n, s, p); });
}

/// Replaces dp by ds = scale factor phi'(s) dp, the gradient of the unscaled scores. `scores` holds the scaled scores
/// that attention_pointwise() wrote. ds is zero for masked keys.
template <class T>
void attention_pointwise_backward(const PointwiseRows& rule, MatrixFor<T> scores, Matrix<T> dweights) {
  detail::for_visible_blocks(rule.rows, scores, dweights, [&](Index n, const T* s, T* dp) {
    pointwise_backward(rule.phi, n, s, dp, dp);
    for (Index i = 0; i < n; ++i) dp[i] = T(rule.rows.scale * rule.factor) * dp[i];
  });
}

/// Returns the counts for `pairs` pairs of a query and a visible key.
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
