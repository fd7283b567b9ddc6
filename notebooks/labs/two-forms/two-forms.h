// Attention with squared ReLU in place of softmax, in two forms: composed of operations, whose gradients the tape
// computes, and with passes written by hand. Wortsman, Lee, Gilmer, Kornblith, "Replacing softmax with ReLU in
// Vision Transformers", 2023, arXiv:2309.08586, Section 3.
//
//   S = q k^T / sqrt(d)        [N, M]
//   A = max(S, 0)^2 / M        element by element
//   out = A v                  [N, e]
//
// Write run_backward, and name its steps with report_step, as run_forward does. Then
//
//   heed plugin two-forms.h && heed gradcheck my_relu2 --plugin two-forms.so
//
// compares out, A, dA, dS, dq, dk and dv of both forms, element by element.
#include "heed/attention/steps.h"
#include "heed/kernels/products/gemm.h"
#include "heed/ops/activation.h"
#include "heed/ops/composed_attention.h"
#include "heed/ops/elementary/arithmetic.h"
#include "heed/ops/elementary/matmul.h"

namespace heed {

class MyRelu2 : public MechanismBase<MyRelu2>, public WithComposition<MyRelu2> {
 public:
  static constexpr const char* mechanism_name = "my_relu2";
  static constexpr const char* summary = "max(q k^T / sqrt(d), 0)^2 / M v";
  static constexpr const char* complexity = "time O(N^2 d), memory O(N^2)";

  template <class Visitor>
  void options(Visitor&) {}
  static std::vector<OptionValues> variants() { return {{}}; }
  MechanismTraits traits() const override { return {.cross = true}; }

  /// The composed form: q [H, N, d], k [H, M, d], v [H, M, e]. The tape computes its gradients.
  template <class T>
  Var<T> compose(const ComposedInput<T>& in) const {
    const Var<T> S = step("S", matmul(in.q, transposed(in.k)) / std::sqrt(static_cast<double>(in.shape.width)));
    const Var<T> positive = relu(S);
    const Var<T> A = step("A", positive * positive / static_cast<double>(in.shape.keys));
    return matmul(A, in.v);
  }

  // Saved: max(S, 0) of each head, for undoing 2 and 3.
  template <class T>
  Heads<T> saved(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return lay_out_heads(s.heads, s.queries, s.keys, layout);
  }

  // Scratch: A or dA, overwritten by dS.
  template <class T>
  Matrix<T> scratch(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return layout.matrix(s.queries, s.keys);
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, Heads<T> saved, Matrix<T> A) const {
    const auto [N, M, d, e] = in.shape.sizes();
    const T root(std::sqrt(static_cast<double>(d)));
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<T> positive = saved[h];
      // 1. S = q k^T / sqrt(d); saves max(S, 0)
      kernels::gemm(in.q[h], transposed(in.k[h]), positive);
      for (Index i = 0; i < N; ++i)
        for (Index j = 0; j < M; ++j) {
          const T S = positive(i, j) / root;
          positive(i, j) = S > T(0) ? S : T(0);
        }
      // 2. A = max(S, 0)^2 / M
      square(positive, A);
      report_step("A", h, A);
      // 3. out = A v
      kernels::gemm(A, in.v[h], out[h]);
    }
  }

  // Undo the steps in reverse. Write your equations in lines like `// Undoing 3: dv = ..., dA = ....`, and report dA
  // and dS of each head with report_step.
  template <class T>
  void run_backward(const AttentionInput<T>&, Heads<const T>, Heads<const T>, Heads<T>, Matrix<T>,
                    const AttentionGradient<T>&) const {
    fail("not yet");
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    const Counts squares = N * M * Counts{.mul = 1, .div = 1};
    Cost cost;
    // Forward: 1. S; 2. A; 3. out.
    cost.forward = product_counts(N, M, d) + N * M * Counts{.div = 1, .cmp = 1} + squares + product_counts(N, e, M);
    cost.forward_contractions = product_contractions(N, M, d + e);
    return shape.heads * cost;
  }

 private:
  template <class T>
  void square(Matrix<T> positive, Matrix<T> A) const {
    const T keys(static_cast<double>(A.columns));
    for (Index i = 0; i < A.rows; ++i)
      for (Index j = 0; j < A.columns; ++j) A(i, j) = positive(i, j) * positive(i, j) / keys;
  }
};

template MechanismEntry mechanism_entry<MyRelu2>();

}  // namespace heed
