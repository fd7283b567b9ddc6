// Adder attention. Shu, Wang, Chen, Li, Yang, Wang, "Adder attention for vision transformer", NeurIPS 2021.
//
//   S = -|q_i - k_j|_1                  [N, N]
//   A = softmax(S / sqrt(d_a))          row by row; d_a = 2 d (1 - 2/pi)
//   out = (A + I) v                     [N, d]
//
// The derivative of |u| is sign(u), with sign(0) = 0. score_grad=hardtanh uses clamp(u, -1, 1) instead, the
// derivative of another function: a surrogate gradient.
#include "heed/attention/mechanism_base.h"
#include "heed/kernels/rows/softmax.h"

#include <numbers>

namespace heed {

class MyAdder : public MechanismBase<MyAdder> {
 public:
  static constexpr const char* mechanism_name = "my_adder";
  static constexpr const char* summary = "(softmax(-|q - k|_1 / sqrt(d_a)) + I) v";
  static constexpr const char* complexity = "time O(N^2 d), memory O(N^2)";

  enum class ScoreGradient { sign, hardtanh };

  ScoreGradient score_grad = ScoreGradient::sign;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("score_grad", score_grad, {"sign", "hardtanh"}, "derivative of the distance |u|: sign(u) or clamp(u, -1, 1)");
  }
  static std::vector<OptionValues> variants() { return {{}, {{"score_grad", "hardtanh"}}}; }

  MechanismTraits traits() const override {
    const bool exact = score_grad == ScoreGradient::sign;
    return {.surrogate = exact ? "" : "clamp(u, -1, 1) in place of sign(u)"};
  }

  void check(const AttentionShape& shape) const override {
    require(shape.queries == shape.keys, "[my_adder] {} queries and {} keys; the identity needs equal numbers",
            shape.queries, shape.keys);
  }

  // Saved: A of each head.
  template <class T>
  Heads<T> saved(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    return lay_out_heads(shape.heads, shape.queries, shape.keys, layout);
  }
  // Scratch: dA of one head, overwritten by dS.
  template <class T>
  Matrix<T> scratch(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    return layout.matrix(shape.queries, shape.keys);
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, Heads<T> saved, Matrix<T>) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<T> A = saved[h];
      // 1. S = -|q - k|_1
      negative_distances<T>(in.q[h], in.k[h], A);
      // 2. A = softmax(S / sqrt(d_a)), in place
      kernels::attention_softmax({scale(in.shape)}, A);
      // 3. out = A v
      kernels::gemm(A, in.v[h], out[h]);
      // 4. out += v
      fail("not yet");
    }
  }

  // Undo the steps in reverse, and write your equations in lines like `// Undoing 3: dv += ..., dA = ....`: gradcheck
  // quotes them if a gradient is wrong. kernels::attention_softmax_backward({scale(in.shape)}, A, dA) undoes 2, in
  // place; its cost is kernels::attention_softmax_backward_counts(N, N * M).
  template <class T>
  void run_backward(const AttentionInput<T>&, Heads<const T>, Heads<const T>, Heads<T>, Matrix<T>,
                    const AttentionGradient<T>&) const {
    fail("not yet");
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    Cost cost;
    // Forward: 1. S; 2. A; 3. out = A v; 4. out += v. The costs of 1 and 4 are missing.
    cost.forward = kernels::attention_softmax_counts(N, N * M) + product_counts(N, e, M);
    // Backward: the cost is missing.
    cost.attention_exp = N * M;
    return shape.heads * cost;
  }

 private:
  /// 1 / sqrt(d_a)
  static double scale(const AttentionShape& shape) {
    return 1 / std::sqrt(2 * static_cast<double>(shape.width) * (1 - 2 * std::numbers::inv_pi));
  }

  /// S_ij = -sum_c |q_ic - k_jc|
  template <class T>
  static void negative_distances(Matrix<const T>, Matrix<const T>, Matrix<T>) {
    fail("not yet");
  }
};

template MechanismEntry mechanism_entry<MyAdder>();

}  // namespace heed
