// One mechanism in two forms: attention with ReLU / M in place of softmax (Wortsman et al., "Replacing softmax with
// ReLU in Vision Transformers", 2023, arXiv:2309.08586), once composed of operations and once written by hand.
//
//   S = q k^T / sqrt(d)                 [N, M]
//   A = max(S, 0) / M
//   out = A v                           [N, e]
//
//   heed plugin two_forms.h && heed gradcheck relu_by_hand relu_composed --plugin two_forms.so
#pragma once

#include <heed/attention/steps.h>
#include <heed/kernels/products/gemm.h>
#include <heed/ops/activation.h>
#include <heed/ops/composed_attention.h>
#include <heed/ops/elementary/arithmetic.h>
#include <heed/ops/elementary/matmul.h>

namespace heed {

/// Defines the forward pass; gradients, cost and map follow from it.
class ReluComposed : public ComposedMechanism<ReluComposed> {
 public:
  static constexpr const char* mechanism_name = "relu_composed";
  static constexpr const char* summary = "max(q k^T / sqrt(d), 0) / M v, composed of operations";
  static constexpr const char* complexity = "time O(N^2 d), memory O(N^2)";

  template <class T>
  Var<T> compose(const ComposedInput<T>& in) const {
    const Var<T> S = step("S", matmul(in.q, transposed(in.k)) * score_scale(in.shape));
    const Var<T> A = step("A", relu(S) / static_cast<double>(in.shape.keys));
    return matmul(A, in.v);
  }
};

/// The same mechanism by hand: forward, backward, cost and map.
class ReluByHand : public MechanismBase<ReluByHand>, public WithMap<ReluByHand>, public WithComposition<ReluByHand> {
 public:
  static constexpr const char* mechanism_name = "relu_by_hand";
  static constexpr const char* summary = "max(q k^T / sqrt(d), 0) / M v, with a backward pass of its own";
  static constexpr const char* complexity = "time O(N^2 d), memory O(N^2)";

  template <class Visitor>
  void options(Visitor&) {}
  static std::vector<OptionValues> variants() { return {{}}; }

  // Saved: A of each head.
  template <class T>
  Heads<T> saved(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return lay_out_heads(s.heads, s.queries, s.keys, layout);
  }
  // Scratch: dA of a head.
  template <class T>
  Matrix<T> scratch(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return layout.matrix(s.queries, s.keys);
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, Heads<T> A, Matrix<T>) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      map(in, h, A[h]);                      // 1. S = q k^T / sqrt(d); 2. A = max(S, 0) / M
      kernels::gemm(A[h], in.v[h], out[h]);  // 3. out = A v
      report_step("A", h, A[h]);
    }
  }

  // Undoing 3: dv = A^T dout, dA = dout v^T.
  // Undoing 2: dS = dA / M where A > 0, else 0.
  // Undoing 1: dq = dS k / sqrt(d), dk = dS^T q / sqrt(d).
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, Heads<T> A, Matrix<T> dA,
                    const AttentionGradient<T>& to) const {
    const T keys(static_cast<double>(in.shape.keys)), scale(score_scale(in.shape));
    for (Index h = 0; h < in.shape.heads; ++h) {
      kernels::gemm(transposed(A[h]), dout[h], to.update, to.v[h]);
      kernels::gemm(dout[h], transposed(in.v[h]), dA);
      report_step("dA", h, dA);
      for (Index i = 0; i < dA.size(); ++i) {
        const T dS = dA.data[i] / keys;
        dA.data[i] = A[h].data[i] > T(0) ? dS : T(0);
      }
      report_step("dS", h, dA);
      for (Index i = 0; i < dA.size(); ++i) dA.data[i] *= scale;
      kernels::gemm(dA, in.k[h], to.update, to.q[h]);
      kernels::gemm(transposed(dA), in.q[h], to.update, to.k[h]);
    }
  }

  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> maps, Heads<T>, Matrix<T>) const {
    for (Index h = 0; h < in.shape.heads; ++h) map(in, h, maps[h]);
  }

  template <class T>
  Var<T> compose(const ComposedInput<T>& in) const {
    return ReluComposed().compose(in);
  }

  // Forward: S; A; out. Backward: dv and dA; dS; dq and dk.
  Cost cost(const AttentionShape& s) const override {
    const auto [N, M, d, e] = s.sizes();
    const Index pairs = s.heads * N * M;
    Cost cost;
    cost.forward =
        s.heads * (product_counts(N, M, d) + product_counts(N, e, M)) + pairs * Counts{.mul = 1, .div = 1, .cmp = 1};
    cost.backward = s.heads * (product_counts(M, e, N) + product_counts(N, M, e) + product_counts(N, d, M) +
                               product_counts(M, d, N)) +
                    pairs * Counts{.mul = 1, .div = 1, .cmp = 1};
    cost.forward_contractions = s.heads * (product_contractions(N, M, d) + product_contractions(N, e, M));
    cost.backward_contractions = 2 * cost.forward_contractions;
    return cost;
  }

 private:
  template <class T>
  void map(const AttentionInput<T>& in, Index h, Matrix<T> A) const {
    const T keys(static_cast<double>(in.shape.keys)), scale(score_scale(in.shape));
    kernels::gemm(in.q[h], transposed(in.k[h]), A);
    for (Index i = 0; i < A.rows; ++i)
      for (Index j = 0; j < A.columns; ++j) {
        const T S = A(i, j) * scale;
        A(i, j) = (S > T(0) ? S : T(0)) / keys;
      }
  }
};

template MechanismEntry mechanism_entry<ReluComposed>();
template MechanismEntry mechanism_entry<ReluByHand>();

}  // namespace heed
