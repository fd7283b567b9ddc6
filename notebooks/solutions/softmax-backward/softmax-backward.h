// Softmax attention on plain matrices. Vaswani et al., "Attention is all you need", 2017, arXiv:1706.03762v7, Eq. 1.
//
//   S = q k^T / sqrt(d)        [N, M]
//   A = softmax(S)             row by row
//   out = A v                  [N, e]
#include "heed/attention/mechanism_base.h"
#include "heed/kernels/products/gemm.h"

namespace heed {

class MySoftmax : public MechanismBase<MySoftmax> {
 public:
  static constexpr const char* mechanism_name = "my_softmax";
  static constexpr const char* summary = "softmax(q k^T / sqrt(d)) v, with the map stored";
  static constexpr const char* complexity = "time O(N^2 d), memory O(N^2)";

  template <class Visitor>
  void options(Visitor&) {}
  static std::vector<OptionValues> variants() { return {{}}; }
  MechanismTraits traits() const override { return {.cross = true}; }

  // Saved: the map A of each head, for undoing 3 and 2.
  template <class T>
  Heads<T> saved(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return lay_out_heads(s.heads, s.queries, s.keys, layout);
  }

  // Scratch: dA, overwritten by dS.
  template <class T>
  Matrix<T> scratch(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return layout.matrix(s.queries, s.keys);
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, Heads<T> saved, Matrix<T>) const {
    using std::exp;
    const auto [N, M, d, e] = in.shape.sizes();
    const T root(std::sqrt(static_cast<double>(d)));
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<T> A = saved[h];
      // 1. S = q k^T / sqrt(d)
      kernels::gemm(in.q[h], transposed(in.k[h]), A);
      for (Index i = 0; i < N; ++i)
        for (Index j = 0; j < M; ++j) A(i, j) = A(i, j) / root;
      // 2. A = softmax(S), in place
      for (Index i = 0; i < N; ++i) {
        T most = A(i, 0);
        for (Index j = 1; j < M; ++j) most = A(i, j) > most ? A(i, j) : most;
        for (Index j = 0; j < M; ++j) A(i, j) = exp(A(i, j) - most);
        T sum = A(i, 0);
        for (Index j = 1; j < M; ++j) sum += A(i, j);
        for (Index j = 0; j < M; ++j) A(i, j) = A(i, j) / sum;
      }
      // 3. out = A v
      kernels::gemm(A, in.v[h], out[h]);
    }
  }

  // Undoing 3: dv = A^T dout, dA = dout v^T.
  // Undoing 2: dS_ij = A_ij (dA_ij - sum_l A_il dA_il), row by row.
  // Undoing 1: dq = dS k / sqrt(d), dk = dS^T q / sqrt(d); the division is done once, in dS.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, Heads<T> saved, Matrix<T> dA,
                    const AttentionGradient<T>& to) const {
    const auto [N, M, d, e] = in.shape.sizes();
    const T root(std::sqrt(static_cast<double>(d)));
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<const T> A = saved[h];
      // 3.
      kernels::gemm(transposed(A), dout[h], to.update, to.v[h]);
      kernels::gemm(dout[h], transposed(in.v[h]), dA);
      // 2., and the division by sqrt(d) in 1.
      for (Index i = 0; i < N; ++i) {
        T inner = A(i, 0) * dA(i, 0);
        for (Index j = 1; j < M; ++j) inner += A(i, j) * dA(i, j);
        for (Index j = 0; j < M; ++j) dA(i, j) = A(i, j) * (dA(i, j) - inner) / root;
      }
      // 1.
      kernels::gemm(dA, in.k[h], to.update, to.q[h]);
      kernels::gemm(transposed(dA), in.q[h], to.update, to.k[h]);
    }
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    Cost cost;
    // Forward: 1. S; 2. A, row by row; 3. out.
    cost.forward = product_counts(N, M, d) + N * M * Counts{.div = 1} +
                   N * Counts{.add = M + M - 1, .div = M, .exp = M, .cmp = M - 1} + product_counts(N, e, M);
    // Backward: 3. dv and dA; 2. dS; 1. dq and dk.
    cost.backward = product_counts(M, e, N) + product_counts(N, M, e) +
                    N * Counts{.mul = 2 * M, .add = M - 1 + M, .div = M} + product_counts(N, d, M) +
                    product_counts(M, d, N);
    cost.forward_contractions = product_contractions(N, M, d + e);
    cost.backward_contractions = 2 * cost.forward_contractions;
    cost.attention_exp = N * M;
    return shape.heads * cost;
  }
};

template MechanismEntry mechanism_entry<MySoftmax>();

}  // namespace heed
