// Softmax attention. Vaswani et al., "Attention is all you need", 2017, arXiv:1706.03762v7, Eq. 1.
//
//   S = q k^T / sqrt(d)      [N, M]
//   A = softmax(S)           row by row
//   out = A v                [N, d]
//
// Time 4 N M d and N M exponentials. The map is never stored: rows are made in blocks of queries, and only the
// maximum and the sum of each row are kept, from which the backward pass makes the rows again (Dao et al.,
// "FlashAttention", 2022, arXiv:2205.14135, Section 3.1), so memory is O(N).
#pragma once

#include "heed/attention/map_blocks.h"
#include "heed/kernels/gemm_by_stride.h"
#include "heed/kernels/softmax.h"

namespace heed {

class Softmax : public MechanismBase<Softmax> {
 public:
  static constexpr const char* mechanism_name = "softmax";
  static constexpr const char* summary = "softmax(q k^T / sqrt(d)) v";
  static constexpr const char* complexity = "time O(N^2 d), memory O(N)";

  bool causal = false;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("causal", causal, "a query sees the keys up to its own position only");
  }

  static std::vector<OptionValues> variants() { return {{}, {{"causal", "true"}}}; }

  // Saved: the maximum of each row of S and the sum of its exponentials, for making A again in the backward pass.
  Index saved(const AttentionShape& shape) const override { return 2 * shape.heads * shape.queries; }

  // Two blocks of rows: A, and dA in the backward pass.
  Index scratch(const AttentionShape& shape) const override {
    return 2 * map_block(shape.queries) * padded_row(shape.keys);
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, T* saved, T* scratch) const {
    const auto [N, M, d, e] = in.shape.sizes();
    const Index step = map_rows_at_once<T>(N);
    for (Index h = 0; h < in.shape.heads; ++h) {
      for (Index first = 0; first < N; first += step) {
        const Index rows = std::min(step, N - first), seen = keys_seen(causal, M, first + rows);
        const kernels::AttentionRows map = map_rows(first, rows, seen, padded_row(seen), d);
        // 1. S = q k^T
        kernels::gemm(in.products, Transpose::no, Transpose::yes, rows, seen, d, in.q[h] + first * in.q.row_stride,
                      in.q.row_stride, in.k[h], in.k.row_stride, Update::assign, scratch, map.stride);
        // 2. A = softmax(S / sqrt(d))
        kernels::attention_softmax(map, scratch, saved + 2 * (h * N + first));
        // 3. out = A v
        kernels::gemm(in.products, Transpose::no, Transpose::no, rows, e, seen, scratch, map.stride, in.v[h],
                      in.v.row_stride, Update::assign, out[h] + first * out.row_stride, out.row_stride);
      }
    }
  }

  // Undoing 3: dv = A^T dout, dA = dout v^T.
  // Undoing 2: a row p = softmax(s) has dp_i/ds_j = p_i ([i = j] - p_j), hence
  //            dS = A (dA - sum_j A dA) / sqrt(d), row by row.
  // Undoing 1: dq = dS k, dk = dS^T q.
  // Blocks run from the last to the first, because the last one sees all keys that any sees, and assigns their dk, dv.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, const T* saved, T* scratch,
                    const AttentionGradient<T>& gradient) const {
    const auto [N, M, d, e] = in.shape.sizes();
    T* const A = scratch;
    T* const dA = A + map_block(N) * padded_row(M);
    const Index step = map_rows_at_once<T>(N);
    for (Index h = 0; h < in.shape.heads; ++h) {
      clear_unseen_keys(causal, in.shape, h, gradient);
      for (Index first = (N - 1) / step * step; first >= 0; first -= step) {
        const Index rows = std::min(step, N - first), seen = keys_seen(causal, M, first + rows);
        const Update update = first + rows == N ? gradient.update : Update::accumulate;
        const T* const q = in.q[h] + first * in.q.row_stride;
        const T* const dout_rows = dout[h] + first * dout.row_stride;
        const kernels::AttentionRows map = map_rows(first, rows, seen, padded_row(seen), d);
        // A again
        kernels::gemm(in.products, Transpose::no, Transpose::yes, rows, seen, d, q, in.q.row_stride, in.k[h],
                      in.k.row_stride, Update::assign, A, map.stride);
        kernels::attention_softmax_again(map, A, saved + 2 * (h * N + first));
        // 3.
        kernels::gemm(in.products, Transpose::yes, Transpose::no, seen, e, rows, A, map.stride, dout_rows,
                      dout.row_stride, update, gradient.v[h], gradient.v.row_stride);
        kernels::gemm(in.products, Transpose::no, Transpose::yes, rows, seen, e, dout_rows, dout.row_stride, in.v[h],
                      in.v.row_stride, Update::assign, dA, map.stride);
        // 2.
        kernels::attention_softmax_backward(map, A, dA);
        // 1.
        kernels::gemm(in.products, Transpose::no, Transpose::no, rows, d, seen, dA, map.stride, in.k[h],
                      in.k.row_stride, gradient.update, gradient.q[h] + first * gradient.q.row_stride,
                      gradient.q.row_stride);
        kernels::gemm(in.products, Transpose::yes, Transpose::no, seen, d, rows, dA, map.stride, q, in.q.row_stride,
                      update, gradient.k[h], gradient.k.row_stride);
      }
    }
  }

  template <class T>
  void run_map(const AttentionInput<T>& in, T* map) const {
    const auto [N, M, d, e] = in.shape.sizes();
    for (Index h = 0; h < in.shape.heads; ++h, map += N * M) {
      kernels::gemm(in.products, Transpose::no, Transpose::yes, N, M, d, in.q[h], in.q.row_stride, in.k[h],
                    in.k.row_stride, Update::assign, map, M);
      kernels::attention_softmax(map_rows(0, N, M, M, d), map, static_cast<T*>(nullptr));
    }
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    const Index seen = keys_seen(causal, M, N);
    const Index pairs = pairs_seen(causal, M, N);
    Cost cost;
    // Forward: 1. S; 2. scale, maximum, subtract, exp, sum, divide; 3. out.
    cost.forward = product_counts(pairs, 1, d) +
                   Counts{.mul = pairs, .add = 2 * pairs - N, .div = pairs, .exp = pairs, .cmp = pairs - N} +
                   Counts{.mul = pairs * e, .add = pairs * e - N * e};
    // Backward: S and A again; dv and dA; dS; dq and dk.
    cost.backward = product_counts(pairs, 1, d) + Counts{.mul = pairs, .add = pairs, .div = pairs, .exp = pairs} +
                    Counts{.mul = pairs * e, .add = pairs * e - seen * e} + product_counts(pairs, 1, e) +
                    Counts{.mul = 3 * pairs, .add = 2 * pairs - N} +
                    Counts{.mul = 2 * pairs * d, .add = 2 * pairs * d - N * d - seen * d};
    cost.forward_contractions = product_contractions(pairs, 1, d + e);
    cost.backward_contractions = product_contractions(pairs, 1, 2 * d + 2 * e);  // making S again is not counted
    cost.attention_exp = pairs;
    return shape.heads * cost;
  }

 private:
  kernels::AttentionRows map_rows(Index first, Index rows, Index columns, Index stride, Index d) const {
    return {rows, columns, stride, 1 / std::sqrt(static_cast<double>(d)), causal, first + 1};
  }
};

}  // namespace heed
