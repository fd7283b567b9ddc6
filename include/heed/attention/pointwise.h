// ReLU-attention and its family. Wortsman, Lee, Gilmer, Kornblith, "Replacing softmax with ReLU in Vision
// Transformers", 2023, arXiv:2309.08586v2, Eq. 1 and "Scaled point-wise attention" of Section 3.
//
//   S = q k^T / sqrt(d)        [N, M]
//   A = M^-alpha phi(S)        element by element
//   out = A v                  [N, e]
//
// phi is relu, relu^2, gelu, softplus, identity, relu6 or the logistic function. A row of softmax sums to 1, so its
// elements are 1/M on average; dividing by M (alpha = 1, the paper's choice) keeps that order of magnitude, and no row
// waits for a sum over its keys.
//
// Time 4 N M d and one phi per pair. As in softmax.h the map is made in blocks of queries; nothing of it is kept, and
// the backward pass makes S again, so memory is O(N).
//
// The paper's layer normalisation of q and k, and its gate, are options of the layer (nn/attention.h). With `causal`
// (not in the paper) the divisor stays M^alpha, whatever number of keys a query sees.
#pragma once

#include "heed/attention/map_blocks.h"
#include "heed/kernels/gemm_by_stride.h"
#include "heed/kernels/pointwise.h"

namespace heed {

class PointwiseAttention : public MechanismBase<PointwiseAttention> {
 public:
  static constexpr const char* mechanism_name = "pointwise";
  static constexpr const char* summary = "M^-alpha phi(q k^T / sqrt(d)) v, phi = relu and others, for M keys";
  static constexpr const char* complexity = "time O(N^2 d), memory O(N)";

  Pointwise phi = Pointwise::relu;
  double alpha = 1;
  bool causal = false;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("phi", phi, {"relu", "relu2", "gelu", "softplus", "identity", "relu6", "sigmoid"},
          "what each scaled score goes through; relu2: the square of relu");
    visit("alpha", alpha, "scores are divided by the number of keys to this power, 0 to 1");
    visit("causal", causal, "a query sees the keys up to its own position only");
  }

  static std::vector<OptionValues> variants() {
    std::vector<OptionValues> variants{{}};
    for (const char* phi : {"relu2", "gelu", "softplus", "identity", "relu6", "sigmoid"})
      variants.push_back({{"phi", phi}});
    variants.push_back({{"phi", "softplus"}, {"alpha", "0.5"}, {"causal", "true"}});
    return variants;
  }

  void check(const AttentionShape&) const override {
    require(alpha >= 0 && alpha <= 1, "[pointwise] alpha is {}; expected 0 to 1", alpha);
  }

  // Nothing is saved: S is made again from q and k.
  Index saved(const AttentionShape&) const override { return 0; }

  // Two blocks of rows: A; S, and A and then dA, in the backward pass.
  Index scratch(const AttentionShape& shape) const override { return 2 * map_block(shape.queries) * shape.keys; }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, T*, T* scratch) const {
    const auto [N, M, d, e] = in.shape.sizes();
    const Index step = map_rows_at_once<T>(N);
    for (Index h = 0; h < in.shape.heads; ++h) {
      for (Index first = 0; first < N; first += step) {
        const Index rows = std::min(step, N - first), seen = keys_seen(causal, M, first + rows);
        // 1. S = q k^T
        kernels::gemm(in.products, Transpose::no, Transpose::yes, rows, seen, d, in.q[h] + first * in.q.row_stride,
                      in.q.row_stride, in.k[h], in.k.row_stride, Update::assign, scratch, seen);
        // 2. A = M^-alpha phi(S / sqrt(d))
        kernels::attention_pointwise(phi, map_rows(first, rows, seen, d), factor(M), scratch, scratch);
        // 3. out = A v
        kernels::gemm(in.products, Transpose::no, Transpose::no, rows, e, seen, scratch, seen, in.v[h], in.v.row_stride,
                      Update::assign, out[h] + first * out.row_stride, out.row_stride);
      }
    }
  }

  // Undoing 3: dv = A^T dout, dA = dout v^T.
  // Undoing 2: dS = M^-alpha phi'(S / sqrt(d)) dA / sqrt(d), element by element.
  // Undoing 1: dq = dS k, dk = dS^T q.
  // Blocks run from the last to the first, because the last one sees all keys that any sees, and assigns their dk, dv.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, const T*, T* scratch,
                    const AttentionGradient<T>& gradient) const {
    const auto [N, M, d, e] = in.shape.sizes();
    T* const S = scratch;
    T* const A = S + map_block(N) * M;
    const Index step = map_rows_at_once<T>(N);
    for (Index h = 0; h < in.shape.heads; ++h) {
      clear_unseen_keys(causal, in.shape, h, gradient);
      for (Index first = (N - 1) / step * step; first >= 0; first -= step) {
        const Index rows = std::min(step, N - first), seen = keys_seen(causal, M, first + rows);
        const Update update = first + rows == N ? gradient.update : Update::accumulate;
        const T* const q = in.q[h] + first * in.q.row_stride;
        const T* const dout_rows = dout[h] + first * dout.row_stride;
        // S and A again
        kernels::gemm(in.products, Transpose::no, Transpose::yes, rows, seen, d, q, in.q.row_stride, in.k[h],
                      in.k.row_stride, Update::assign, S, seen);
        const kernels::AttentionRows map = map_rows(first, rows, seen, d);
        kernels::attention_pointwise(phi, map, factor(M), S, A);
        // 3.
        kernels::gemm(in.products, Transpose::yes, Transpose::no, seen, e, rows, A, seen, dout_rows, dout.row_stride,
                      update, gradient.v[h], gradient.v.row_stride);
        T* const dA = A;  // A is not needed any more
        kernels::gemm(in.products, Transpose::no, Transpose::yes, rows, seen, e, dout_rows, dout.row_stride, in.v[h],
                      in.v.row_stride, Update::assign, dA, seen);
        // 2.
        kernels::attention_pointwise_backward(phi, map, factor(M), S, dA);
        // 1.
        kernels::gemm(in.products, Transpose::no, Transpose::no, rows, d, seen, dA, seen, in.k[h], in.k.row_stride,
                      gradient.update, gradient.q[h] + first * gradient.q.row_stride, gradient.q.row_stride);
        kernels::gemm(in.products, Transpose::yes, Transpose::no, seen, d, rows, dA, seen, q, in.q.row_stride, update,
                      gradient.k[h], gradient.k.row_stride);
      }
    }
  }

  template <class T>
  void run_map(const AttentionInput<T>& in, T* map) const {
    const auto [N, M, d, e] = in.shape.sizes();
    for (Index h = 0; h < in.shape.heads; ++h, map += N * M) {
      kernels::gemm(in.products, Transpose::no, Transpose::yes, N, M, d, in.q[h], in.q.row_stride, in.k[h],
                    in.k.row_stride, Update::assign, map, M);
      kernels::attention_pointwise(phi, map_rows(0, N, M, d), factor(M), map, map);
    }
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    const Index seen = keys_seen(causal, M, N);
    const Index pairs = pairs_seen(causal, M, N);
    const Counts again = product_counts(pairs, 1, d) + pairs * (Counts{.mul = 2} + forward_counts(phi));
    Cost cost;
    // Forward: 1. S; 2. scale, phi, divide by M^alpha; 3. out.
    cost.forward = again + Counts{.mul = pairs * e, .add = pairs * e - N * e};
    // Backward: S and A again; dv and dA; dS; dq and dk.
    cost.backward = again + Counts{.mul = pairs * e, .add = pairs * e - seen * e} + product_counts(pairs, 1, e) +
                    pairs * (Counts{.mul = 1} + backward_counts(phi)) +
                    Counts{.mul = 2 * pairs * d, .add = 2 * pairs * d - N * d - seen * d};
    cost.forward_contractions = product_contractions(pairs, 1, d + e);
    cost.backward_contractions = product_contractions(pairs, 1, 2 * d + 2 * e);  // making S again is not counted
    cost.attention_exp = pairs * forward_counts(phi).exp;
    return shape.heads * cost;
  }

 private:
  kernels::AttentionRows map_rows(Index first, Index rows, Index columns, Index d) const {
    return {rows, columns, columns, 1 / std::sqrt(static_cast<double>(d)), causal, first + 1};
  }
  double factor(Index keys) const { return std::pow(static_cast<double>(keys), -alpha); }

  /// Counts of phi and of phi' dA (kernels/pointwise.h).
  static Counts forward_counts(Pointwise phi) {
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
  static Counts backward_counts(Pointwise phi) {
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
};

}  // namespace heed
