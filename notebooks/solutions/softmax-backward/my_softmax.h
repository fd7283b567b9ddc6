// Softmax attention, and its backward pass by hand. Vaswani et al., "Attention is all you need", 2017, arXiv:1706.03762,
// Eq. 1.
//
//   S = q k^T / sqrt(d)        [N, M]
//   A = softmax(S)             [N, M], row by row
//   out = A v                  [N, e]
#include "heed/attention/mechanism_base.h"
#include "heed/kernels/gemm.h"
#include "heed/kernels/softmax.h"

namespace heed {

class MySoftmax : public MechanismBase<MySoftmax> {
 public:
  static constexpr const char* mechanism_name = "my_softmax";
  static constexpr const char* summary = "softmax(q k^T / sqrt(d)) v, with the map kept";
  static constexpr const char* complexity = "time O(N M d), memory O(N M)";

  template <class Visitor>
  void options(Visitor&) {}
  static std::vector<OptionValues> variants() { return {{}}; }
  MechanismTraits traits() const override { return {.cross = true}; }

  // Saved: A, of all heads, for undoing 3 and 2.
  template <class T>
  Heads<T> saved(const AttentionShape& shape, Carver<T>& carve) const {
    return carve_heads(shape.heads, shape.queries, shape.keys, carve);
  }

  // Scratch: dA, and dS in its place.
  template <class T>
  Matrix<T> scratch(const AttentionShape& shape, Carver<T>& carve) const {
    return carve.matrix(shape.queries, shape.keys);
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, Heads<T> saved, Matrix<T>) const {
    const T scale = T(1 / std::sqrt(double(in.shape.width)));
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<const T> q = in.q[h], k = in.k[h], v = in.v[h];
      const Matrix<T> A = saved[h], S = A;
      // 1. S = q k^T / sqrt(d)
      kernels::gemm(q, transposed(k), S);
      for (Index i = 0; i < S.rows; ++i)
        for (Index j = 0; j < S.columns; ++j) S(i, j) *= scale;
      // 2. A = softmax(S), in its place
      kernels::softmax_rows(A);
      // 3. out = A v
      kernels::gemm(A, v, out[h]);
    }
  }

  // Undoing 3: dv = A^T dout, dA = dout v^T.
  // Undoing 2: dS_ij = A_ij (dA_ij - sum_l A_il dA_il).
  // Undoing 1: dq = dS k / sqrt(d), dk = dS^T q / sqrt(d).
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> douts, Heads<T> saved, Matrix<T> dA,
                    const AttentionGradient<T>& to) const {
    const T scale = T(1 / std::sqrt(double(in.shape.width)));
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<const T> q = in.q[h], k = in.k[h], v = in.v[h], dout = douts[h];
      const Matrix<T> A = saved[h], dS = dA;
      const Matrix<T> dq = to.q[h], dk = to.k[h], dv = to.v[h];
      // 3.
      kernels::gemm(transposed(A), dout, to.update, dv);
      kernels::gemm(dout, transposed(v), dA);
      // 2. and the factor of 1.
      for (Index i = 0; i < dS.rows; ++i) {
        T sum = A(i, 0) * dA(i, 0);
        for (Index j = 1; j < dS.columns; ++j) sum += A(i, j) * dA(i, j);
        for (Index j = 0; j < dS.columns; ++j) dS(i, j) = A(i, j) * (dA(i, j) - sum) * scale;
      }
      // 1.
      kernels::gemm(dS, k, to.update, dq);
      kernels::gemm(transposed(dS), q, to.update, dk);
    }
  }

  // Forward: 1. S; 2. A; 3. out. Backward: 3. dv and dA; 2. dS; 1. dq and dk.
  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    Cost cost;
    cost.forward = product_counts(N, M, d) + Counts{.mul = N * M} + kernels::softmax_counts(N, N * M) +
                   product_counts(N, e, M);
    cost.backward = product_counts(M, e, N) + product_counts(N, M, e) + Counts{.mul = 3 * N * M, .add = (2 * M - 1) * N} +
                    product_counts(N, d, M) + product_counts(M, d, N);
    cost.forward_contractions = product_contractions(N, M, d + e);
    cost.backward_contractions = 2 * cost.forward_contractions;
    cost.attention_exp = cost.forward.exp;
    return shape.heads * cost;
  }
};

template MechanismEntry mechanism_entry<MySoftmax>();

}  // namespace heed
