// Functions that attention applies to each score by itself, and their derivatives.
#pragma once

#include "heed/kernels/activation.h"
#include "heed/kernels/softmax.h"

namespace heed {

enum class Pointwise { relu, relu2, gelu, softplus, identity, relu6, sigmoid };

namespace kernels {

/// y = phi(x) for n numbers; y may be x. softplus and sigmoid are made from exp(-|x|), which never overflows:
///   log(1 + e^x) = max(x, 0) + log(1 + e^-|x|),   1 / (1 + e^-x) = e^-|x| / (1 + e^-|x|) for x < 0.
/// All are finite where x is, but relu2 beyond the root of the largest number. Relative error a few eps (gelu: as in
/// kernels/activation.h).
/// Counts each: relu 1 cmp; relu2 1 cmp, 1 mul; gelu 3 mul, 1 add, 1 erf; softplus 2 cmp, 2 add, 1 exp, 1 log;
/// identity nothing; relu6 2 cmp; sigmoid 2 cmp, 1 add, 1 exp, 1 div.
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
/// Counts each: relu 1 cmp; relu2 1 cmp, 2 mul; gelu 7 mul, 2 add, 1 erf, 1 exp; softplus 2 cmp, 1 add, 1 exp, 1 div,
/// 1 mul; identity nothing; relu6 2 cmp; sigmoid 1 cmp, 1 add, 1 exp, 1 div, 2 mul.
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

/// For the keys each row sees: s = scale s in place, and p = factor phi(s), zero beyond. s and p have the same stride;
/// p may be s, which then holds p. Counts per row of n: 2n mul and n times phi's.
template <class T>
void attention_pointwise(Pointwise phi, const AttentionRows& map, double factor, T* s, T* p) {
  const AttentionRows a = map.joined();
  for (Index r = 0; r < a.rows; ++r, s += a.stride, p += a.stride) {
    const Index n = a.length(r);
    for (Index j = 0; j < n; ++j) s[j] = T(a.scale) * s[j];
    pointwise_forward(phi, n, s, p);
    for (Index j = 0; j < n; ++j) p[j] = T(factor) * p[j];
    std::fill(p + n, p + a.columns, T(0));
  }
}

/// In place in dp = d(loss)/dp, with s as attention_pointwise left it: ds = scale factor phi'(s) dp, the gradient of
/// the scores before they were scaled; zero beyond. Counts per row of n: n mul and n times those of phi'.
template <class T>
void attention_pointwise_backward(Pointwise phi, const AttentionRows& map, double factor, const T* s, T* dp) {
  const AttentionRows a = map.joined();
  for (Index r = 0; r < a.rows; ++r, s += a.stride, dp += a.stride) {
    const Index n = a.length(r);
    pointwise_backward(phi, n, s, dp, dp);
    for (Index j = 0; j < n; ++j) dp[j] = T(a.scale * factor) * dp[j];
    std::fill(dp + n, dp + a.columns, T(0));
  }
}

}  // namespace kernels
}  // namespace heed
