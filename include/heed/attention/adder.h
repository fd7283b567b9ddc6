// Adder attention. Shu, Wang, Chen, Li, Yang, Wang, "Adder attention for vision transformer", NeurIPS 2021.
//
// Queries and keys are compared by their l1 distance, which takes additions only, instead of their product:
//
//   S = -|q_i - k_j|_1 / sqrt(d_a),   d_a = 2 d (1 - 2/pi)     [N, M]   (7)
//   A = softmax(S)                    row by row
//   out = (A + I) v                                            [N, d]   (9), (20)
//
// d_a is the variance of the distance of two standard normal vectors, (8), as d is that of their product. The
// identity makes up for A's low rank (Section 3.2.2).
//
// Time: 2 N M d additions for S, 2 N M d for A v, N M exponentials. As with softmax, the map is made in blocks of
// queries and never stored: memory is O(N).
//
// The gradient of S takes sign(q - k), (23), the derivative proper; score_grad=hardtanh is the paper's ablation (Table
// 3).
#pragma once

#include "heed/attention/map_blocks.h"
#include "heed/kernels/gemm_by_stride.h"
#include "heed/kernels/l1_distance.h"
#include "heed/kernels/softmax.h"

#include <numbers>

namespace heed {

class Adder : public MechanismBase<Adder> {
 public:
  static constexpr const char* mechanism_name = "adder";
  static constexpr const char* summary = "(softmax(-|q - k|_1 / sqrt(d_a)) + I) v";
  static constexpr const char* complexity = "time O(N^2 d), memory O(N)";

  bool identity = true;
  DistanceGradient score_grad = DistanceGradient::sign;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("identity", identity, "add the identity to the map; needs as many keys as queries");
    visit("score_grad", score_grad, {"sign", "hardtanh"}, "derivative of the distance |u|: sign(u) or clamp(u, -1, 1)");
  }

  static std::vector<OptionValues> variants() {
    return {
        {}, {{"identity", "false"}}, {{"score_grad", "hardtanh"}}, {{"identity", "false"}, {"score_grad", "hardtanh"}}};
  }

  std::string surrogate() const override {
    return score_grad == DistanceGradient::sign ? "" : "the Huber function's derivative in place of that of |q - k|";
  }

  void check(const AttentionShape& shape) const override {
    require(!identity || shape.queries == shape.keys,
            "[adder] identity = true needs as many keys as queries, not {} and {}", shape.keys, shape.queries);
  }

  // Saved: the maximum of each row of S and the sum of its exponentials, for making A again in the backward pass.
  Index saved(const AttentionShape& shape) const override { return 2 * shape.heads * shape.queries; }

  // Two blocks of rows: A, and dA in the backward pass.
  Index scratch(const AttentionShape& shape) const override {
    return 2 * map_block(shape.queries) * padded_row(shape.keys);
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, T* saved, T* scratch) const {
    const auto [N, M, d, e] = in.shape.sizes();
    const Index step = map_block(N), stride = padded_row(M);
    for (Index h = 0; h < in.shape.heads; ++h) {
      for (Index first = 0; first < N; first += step) {
        const Index rows = std::min(step, N - first);
        // 1. S = -|q - k|_1
        kernels::negative_l1(rows, M, d, in.q[h] + first * in.q.row_stride, in.q.row_stride, in.k[h], in.k.row_stride,
                             Update::assign, scratch, stride);
        // 2. A = softmax(S / sqrt(d_a))
        kernels::attention_softmax(map_rows(rows, M, stride, d), scratch, saved + 2 * (h * N + first));
        // 3. out = A v
        kernels::gemm(Transpose::no, Transpose::no, rows, e, M, scratch, stride, in.v[h], in.v.row_stride,
                      Update::assign, out[h] + first * out.row_stride, out.row_stride);
      }
      // 4. out += v
      if (identity) add_rows(N, e, in.v[h], in.v.row_stride, out[h], out.row_stride);
    }
  }

  // Undoing 4: dv += dout. A + I is never formed, since undoing 2 needs A itself.
  // Undoing 3: dv += A^T dout, dA = dout v^T.
  // Undoing 2: dS = A (dA - sum_j A dA) / sqrt(d_a), row by row, as in softmax.h.
  // Undoing 1: the derivative of -|q - k| is sign(k - q) by q and its negative by k; with f = sign, or what
  //            score_grad puts in its place, dq_i = sum_j dS_ij f(k_j - q_i), dk_j = sum_i dS_ij f(q_i - k_j).
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, const T* saved, T* scratch,
                    const AttentionGradient<T>& gradient) const {
    const auto [N, M, d, e] = in.shape.sizes();
    T* const A = scratch;
    const Index step = map_block(N), stride = padded_row(M);
    T* const dA = A + step * stride;
    for (Index h = 0; h < in.shape.heads; ++h) {
      for (Index first = 0; first < N; first += step) {
        const Index rows = std::min(step, N - first);
        const Update update = first == 0 ? gradient.update : Update::accumulate;
        const T* const q = in.q[h] + first * in.q.row_stride;
        const T* const dout_rows = dout[h] + first * dout.row_stride;
        // A again
        kernels::negative_l1(rows, M, d, q, in.q.row_stride, in.k[h], in.k.row_stride, Update::assign, A, stride);
        const kernels::AttentionRows map = map_rows(rows, M, stride, d);
        kernels::attention_softmax_again(map, A, saved + 2 * (h * N + first));
        // 3.
        kernels::gemm(Transpose::yes, Transpose::no, M, e, rows, A, stride, dout_rows, dout.row_stride, update,
                      gradient.v[h], gradient.v.row_stride);
        kernels::gemm(Transpose::no, Transpose::yes, rows, M, e, dout_rows, dout.row_stride, in.v[h], in.v.row_stride,
                      Update::assign, dA, stride);
        // 2.
        kernels::attention_softmax_backward(map, A, dA);
        // 1.
        kernels::negative_l1_gradient(score_grad, Transpose::no, rows, M, d, q, in.q.row_stride, in.k[h],
                                      in.k.row_stride, dA, stride, gradient.update,
                                      gradient.q[h] + first * gradient.q.row_stride, gradient.q.row_stride);
        kernels::negative_l1_gradient(score_grad, Transpose::yes, M, rows, d, in.k[h], in.k.row_stride, q,
                                      in.q.row_stride, dA, stride, update, gradient.k[h], gradient.k.row_stride);
      }
      // 4., after 3. has assigned dv
      if (identity) add_rows(N, e, dout[h], dout.row_stride, gradient.v[h], gradient.v.row_stride);
    }
  }

  /// A + I, or A.
  template <class T>
  void run_map(const AttentionInput<T>& in, T* map) const {
    const auto [N, M, d, e] = in.shape.sizes();
    for (Index h = 0; h < in.shape.heads; ++h, map += N * M) {
      kernels::negative_l1(N, M, d, in.q[h], in.q.row_stride, in.k[h], in.k.row_stride, Update::assign, map, M);
      kernels::attention_softmax(map_rows(N, M, M, d), map, static_cast<T*>(nullptr));
      for (Index i = 0; i < N && identity; ++i) map[i * M + i] += T(1);
    }
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    const Index pairs = N * M;
    const bool hardtanh = score_grad == DistanceGradient::hardtanh;
    const Counts distances{.add = pairs * (2 * d - 1), .cmp = pairs * d};
    const Counts add_identity{.add = identity ? N * e : 0};
    Cost cost;
    // Forward: 1. S; 2. scale, maximum, subtract, exp, sum, divide; 3. and 4. out.
    cost.forward = distances +
                   Counts{.mul = pairs, .add = 2 * pairs - N, .div = pairs, .exp = pairs, .cmp = pairs - N} +
                   product_counts(N, e, M) + add_identity;
    // Backward: S and A again; dv and dA; dS; dq and dk, each a difference, two comparisons and a sum per term.
    cost.backward =
        distances + Counts{.mul = pairs, .add = pairs, .div = pairs, .exp = pairs} + product_counts(M, e, N) +
        add_identity + product_counts(N, M, e) + Counts{.mul = 3 * pairs, .add = 2 * pairs - N} +
        Counts{.mul = hardtanh ? 2 * pairs * d : 0, .add = 4 * pairs * d - N * d - M * d, .cmp = 4 * pairs * d};
    cost.forward_contractions = Counts{.add = 2 * pairs * d} + product_contractions(N, e, M);
    cost.backward_contractions = Counts{.mul = hardtanh ? 2 * pairs * d : 0, .add = 4 * pairs * d} +
                                 2 * product_contractions(N, M, e);  // making S again is not counted
    cost.attention_exp = pairs;
    return shape.heads * cost;
  }

 private:
  static kernels::AttentionRows map_rows(Index rows, Index keys, Index stride, Index d) {
    const double d_a = 2 * static_cast<double>(d) * (1 - 2 * std::numbers::inv_pi);
    return {rows, keys, stride, 1 / std::sqrt(d_a)};
  }

  /// y += x, row by row.
  template <class T>
  static void add_rows(Index rows, Index n, const T* x, Index x_stride, T* y, Index y_stride) {
    for (Index r = 0; r < rows; ++r)
      for (Index i = 0; i < n; ++i) y[r * y_stride + i] += x[r * x_stride + i];
  }
};

}  // namespace heed
