// Linformer. Wang, Li, Khabsa, Fang, Ma, "Linformer: Self-Attention with Linear Complexity", 2020, arXiv:2006.04768,
// Eq. 7. Keys and values are projected, along the tokens, to m rows each.
//
//   kp = e k,  vp = f v                    [m, d], [m, d]; trained e, f [m, M], shared by all heads
//   A = softmax(q kp^T / sqrt(d))          [N, m]
//   out = A vp                             [N, d]
#include "heed/attention/mechanism_base.h"
#include "heed/kernels/products/gemm.h"
#include "heed/kernels/rows/softmax.h"

namespace heed {

class BugHunt : public MechanismBase<BugHunt> {
 public:
  static constexpr const char* mechanism_name = "bug_hunt";
  static constexpr const char* summary = "softmax(q (e k)^T / sqrt(d)) f v, e and f learned projections of the tokens";
  static constexpr const char* complexity = "time O(N m d), memory O(N m)";

  Index length = 3;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("length", length, "m, number of projected keys and values");
  }
  static std::vector<OptionValues> variants() { return {{}}; }
  MechanismTraits traits() const override { return {.cross = true}; }
  void check(const AttentionShape& shape) const override {
    require(shape.whole, "[bug_hunt] needs examples of equal length: e and f have a column for each token");
  }

  std::vector<ParameterSpec> parameters(const AttentionShape& shape) const override {
    const Initial initial = Initial::uniform(1 / std::sqrt(static_cast<double>(length)));
    return {{"e", {length, shape.keys}, initial}, {"f", {length, shape.keys}, initial}};
  }

  // Saved: kp and vp for undoing 2 and 3; A for both.
  template <class T>
  struct Saved {
    Heads<T> kp, vp, A;
  };
  template <class T>
  Saved<T> saved(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return {lay_out_heads(s.heads, length, s.width, layout), lay_out_heads(s.heads, length, s.value_width, layout),
            lay_out_heads(s.heads, s.queries, length, layout)};
  }

  // Scratch: gradients of kp and vp; dA, overwritten by dS.
  template <class T>
  struct Scratch {
    Matrix<T> dkp, dvp, dA;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return {layout.matrix(length, s.width), layout.matrix(length, s.value_width), layout.matrix(s.queries, length)};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const Saved<T>& saved, const Scratch<T>&) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      // 1. kp = e k, vp = f v
      kernels::gemm(projection(in.parameters[0]), in.k[h], saved.kp[h]);
      kernels::gemm(projection(in.parameters[1]), in.v[h], saved.vp[h]);
      // 2. A = softmax(S), S = q kp^T / sqrt(d)
      kernels::gemm(in.q[h], transposed(saved.kp[h]), saved.A[h]);
      kernels::attention_softmax({scale(in.shape)}, saved.A[h]);
      // 3. out = A vp
      kernels::gemm(saved.A[h], saved.vp[h], out[h]);
    }
  }

  // Undoing 3: dvp = A^T dout, dA = dout vp^T.
  // Undoing 2: dS_ir = A_ir (dA_ir - sum_s A_is dA_is); dq = dS kp / sqrt(d), dkp = dS^T q / sqrt(d).
  // Undoing 1: dk = e^T dkp, de = sum over heads of dkp k^T; dv = f^T dvp, df = sum over heads of dvp v^T.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, const Saved<T>& saved,
                    const Scratch<T>& scratch, const AttentionGradient<T>& to) const {
    const Matrix<T> dkp = scratch.dkp, dvp = scratch.dvp, dA = scratch.dA, dS = dA;
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<const T> A = saved.A[h];
      // 3.
      kernels::gemm(transposed(A), dout[h], Update::accumulate, dvp);
      kernels::gemm(dout[h], transposed(saved.vp[h]), dA);
      // 2.
      for (Index i = 0; i < dS.rows; ++i) {
        T inner = dA(i, 0);
        for (Index r = 1; r < length; ++r) inner += dA(i, r);
        for (Index r = 0; r < length; ++r) dS(i, r) = A(i, r) * (dA(i, r) - inner);
      }
      kernels::gemm(transposed(dS), in.q[h], dkp);
      for (Index i = 0; i < dS.rows; ++i)
        for (Index r = 0; r < length; ++r) dS(i, r) *= T(scale(in.shape));
      kernels::gemm(dS, saved.kp[h], to.update, to.q[h]);
      // 1.
      kernels::gemm(transposed(projection(in.parameters[0])), dkp, to.update, to.k[h]);
      kernels::gemm(transposed(projection(in.parameters[0])), dvp, to.update, to.v[h]);
      kernels::gemm(dkp, transposed(in.k[h]), Update::accumulate, projection(to.parameters[0]));
      kernels::gemm(dvp, transposed(in.v[0]), Update::accumulate, projection(to.parameters[1]));
    }
  }

  // Forward: 1. kp and vp; 2. A; 3. out. Backward: 3. dvp and dA; 2. dS, dq, dkp; 1. dk, dv, and sums de, df.
  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    const Index m = length;
    Cost cost;
    cost.forward = product_counts(m, d, M) + product_counts(m, e, M) + product_counts(N, m, d) +
                   kernels::attention_softmax_counts(N, N * m) + product_counts(N, e, m);
    cost.backward = product_counts(m, e, N) + product_counts(N, m, e) +
                    kernels::attention_softmax_backward_counts(N, N * m) + product_counts(N, d, m) +
                    product_counts(m, d, N) + product_counts(M, d, m) + product_counts(M, e, m) +
                    product_counts(m, M, d) + product_counts(m, M, e) + Counts{.add = 2 * m * M};
    cost.forward_contractions = product_contractions(N + M, m, d + e);
    cost.backward_contractions = 2 * cost.forward_contractions;
    cost.attention_exp = cost.forward.exp;
    return shape.heads * cost;
  }

 private:
  static double scale(const AttentionShape& shape) { return 1 / std::sqrt(static_cast<double>(shape.width)); }

  /// Returns e, f or one of their gradients as a matrix.
  template <class T>
  static Matrix<T> projection(View<T> x) {
    return {x.data(), x.shape()[0], x.shape()[1]};
  }
};

template MechanismEntry mechanism_entry<BugHunt>();

}  // namespace heed
