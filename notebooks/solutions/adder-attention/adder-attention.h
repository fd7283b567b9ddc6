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
      add_rows<T>(in.v[h], out[h]);
    }
  }

  // Undoing 4: dv += dout.
  // Undoing 3: dv += A^T dout, dA = dout v^T.
  // Undoing 2: dS = A (dA - sum_j A dA) / sqrt(d_a), row by row.
  // Undoing 1: with f = sign or clamp, dq_i = sum_j dS_ij f(k_j - q_i), dk_j = sum_i dS_ij f(q_i - k_j).
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, Heads<T> saved, Matrix<T> dA,
                    const AttentionGradient<T>& gradient) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<const T> A = saved[h];
      const Matrix<T> dS = dA;
      // 3. and 4.
      kernels::gemm(transposed(A), dout[h], gradient.update, gradient.v[h]);
      add_rows<T>(dout[h], gradient.v[h]);
      kernels::gemm(dout[h], transposed(in.v[h]), dA);
      // 2.
      kernels::attention_softmax_backward({scale(in.shape)}, A, dA);
      // 1.
      distances_backward<T>(in.q[h], in.k[h], dS, gradient.update, gradient.q[h], gradient.k[h]);
    }
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    const bool clamps = score_grad == ScoreGradient::hardtanh;
    Cost cost;
    // Forward: 1. S; 2. A; 3. out = A v; 4. out += v.
    cost.forward = N * M * Counts{.add = 2 * d - 1, .cmp = d} + kernels::attention_softmax_counts(N, N * M) +
                   product_counts(N, e, M) + Counts{.add = N * e};
    // Backward: 3. dv and dA; 4. dv; 2. dS; 1. dq and dk.
    cost.backward = product_counts(M, e, N) + product_counts(N, M, e) + Counts{.add = M * e} +
                    kernels::attention_softmax_backward_counts(N, N * M) +
                    N * M * d * Counts{.mul = clamps ? 1 : 0, .cmp = 2} + Counts{.add = 3 * N * M * d - (N + M) * d};
    cost.distances = N * M * d;
    cost.attention_exp = N * M;
    cost.forward_contractions = Counts{.add = 2 * N * M * d} + product_contractions(N, e, M);
    cost.backward_contractions =
        N * M * d * Counts{.mul = clamps ? 1 : 0, .add = 4} + 2 * product_contractions(N, e, M);
    return shape.heads * cost;
  }

 private:
  /// 1 / sqrt(d_a)
  static double scale(const AttentionShape& shape) {
    return 1 / std::sqrt(2 * static_cast<double>(shape.width) * (1 - 2 * std::numbers::inv_pi));
  }

  /// y += x
  template <class T>
  static void add_rows(Matrix<const T> x, Matrix<T> y) {
    for (Index r = 0; r < y.rows; ++r)
      for (Index c = 0; c < y.columns; ++c) y(r, c) += x(r, c);
  }

  /// S_ij = -sum_c |q_ic - k_jc|
  template <class T>
  static void negative_distances(Matrix<const T> q, Matrix<const T> k, Matrix<T> S) {
    using std::abs;
    for (Index i = 0; i < S.rows; ++i)
      for (Index j = 0; j < S.columns; ++j) {
        T sum = abs(q(i, 0) - k(j, 0));
        for (Index c = 1; c < q.columns; ++c) sum += abs(q(i, c) - k(j, c));
        S(i, j) = -sum;
      }
  }

  /// g f(u)
  template <class T>
  T pull(T g, T u) const {
    if (score_grad == ScoreGradient::hardtanh) {
      const T low = u < T(-1) ? T(-1) : u;
      return g * (low > T(1) ? T(1) : low);
    }
    const bool above = u > T(0), below = u < T(0);
    return above ? g : below ? -g : T(0);
  }

  /// dq_i (+)= sum_j dS_ij f(k_j - q_i), dk_j (+)= sum_i dS_ij f(q_i - k_j); f is odd, so one is the other's negative.
  template <class T>
  void distances_backward(Matrix<const T> q, Matrix<const T> k, Matrix<const T> dS, Update update, Matrix<T> dq,
                          Matrix<T> dk) const {
    for (Index i = 0; i < dS.rows; ++i)
      for (Index j = 0; j < dS.columns; ++j)
        for (Index c = 0; c < q.columns; ++c) {
          const T pulled = pull<T>(dS(i, j), k(j, c) - q(i, c));
          write(j == 0 ? update : Update::accumulate, dq(i, c), pulled);
          write(i == 0 ? update : Update::accumulate, dk(j, c), -pulled);
        }
  }
};

template MechanismEntry mechanism_entry<MyAdder>();

}  // namespace heed
