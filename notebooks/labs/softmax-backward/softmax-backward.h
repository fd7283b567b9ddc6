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

  // Undo the steps in reverse, and write your equations in lines like `// Undoing 3: dv = ..., dA = ....`: gradcheck
  // quotes them if a gradient is wrong.
  template <class T>
  void run_backward(const AttentionInput<T>&, Heads<const T>, Heads<const T>, Heads<T>, Matrix<T>,
                    const AttentionGradient<T>&) const {
    fail("not yet");
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    Cost cost;
    // Forward: 1. S; 2. A, row by row; 3. out.
    cost.forward = product_counts(N, M, d) + N * M * Counts{.div = 1} +
                   N * Counts{.add = M + M - 1, .div = M, .exp = M, .cmp = M - 1} + product_counts(N, e, M);
    cost.forward_contractions = product_contractions(N, M, d + e);
    cost.attention_exp = N * M;
    return shape.heads * cost;
  }
};

template MechanismEntry mechanism_entry<MySoftmax>();

}  // namespace heed
