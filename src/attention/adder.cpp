// Adder attention. Shu, Wang, Chen, Li, Yang, Wang, "Adder attention for vision transformer", NeurIPS 2021.
//
// Queries and keys are compared by their l1 distance, which needs only additions, instead of their product:
//
//   S = -|q_i - k_j|_1 / sqrt(d_a),   d_a = 2 d (1 - 2/pi)     [N, M]   (7)
//   A = softmax(S)                    row by row
//   out = (A + I) v                                            [N, d]   (9), (20)
//
// d_a is the variance of the distance between two standard normal vectors (8); the variance of their inner product is
// d. The identity compensates for A's low rank (Section 3.2.2).
//
// Time: 2 N M d additions for S, 2 N M d operations for A v, N M exps. As with softmax, the map is computed in blocks
// of queries, and saved if it is small: memory is O(N).
//
// The gradient of S uses sign(q - k) (23), the true derivative; score_grad=hardtanh is the paper's ablation (Table 3).
#include "heed/attention/capabilities/map.h"
#include "heed/attention/map_blocks.h"
#include "heed/kernels/distances/l1_distance.h"

#include <numbers>

namespace heed {

class Adder : public MechanismBase<Adder>, public WithMap<Adder> {
 public:
  static constexpr const char* mechanism_name = "adder";
  static constexpr const char* summary = "(softmax(-|q - k|_1 / sqrt(d_a)) + I) v";
  static constexpr const char* complexity = "time O(N^2 d), memory O(N)";

  bool identity = true;
  DistanceGradient score_grad = DistanceGradient::sign;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("identity", identity, "add the identity to the map; requires equal numbers of queries and keys");
    visit("score_grad", score_grad, {"sign", "hardtanh"}, "derivative of the distance |u|: sign(u) or clamp(u, -1, 1)");
  }

  static std::vector<OptionValues> variants() {
    return {
        {}, {{"identity", "false"}}, {{"score_grad", "hardtanh"}}, {{"identity", "false"}, {"score_grad", "hardtanh"}}};
  }

  MechanismTraits traits() const override {
    const bool exact_gradient = score_grad == DistanceGradient::sign;
    return {.cross = !identity,
            .independent_heads = true,
            .surrogate = exact_gradient ? "" : "the Huber function's derivative instead of that of |q - k|"};
  }
  MapTraits map_traits() const override { return {.identity = identity}; }

  void check(const AttentionShape& shape) const override {
    require(!identity || shape.queries == shape.keys,
            "[adder] identity = true requires equal numbers of keys and queries, found {} and {}", shape.keys,
            shape.queries);
  }

  // Saved: A, or the maximum and the sum of exps of each row, from which the backward pass recomputes A.
  template <class T>
  SavedSoftmax<T> saved(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    return lay_out_saved_softmax(shape, layout);
  }

  // Scratch: a block of A, unless A is saved, and one of dA in the backward pass.
  template <class T>
  struct Scratch {
    Matrix<T> A, dA;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    return {keeps_map(shape) ? Matrix<T>() : lay_out_map_block(shape, shape.keys, layout),
            lay_out_map_block(shape, shape.keys, layout)};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const SavedSoftmax<T>& saved,
                   const Scratch<T>& scratch) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<const T> k = in.k[h], v = in.v[h];
      MapBlocks<T>(in.shape, causal).by_queries([&](const MapBlock& b) {
        const Matrix<T> S = saved.map(b, h, scratch.A), A = S;
        // 1. S = -|q - k|_1
        kernels::negative_l1(b.queries(in.q[h]), k, S);
        // 2. A = softmax(S / sqrt(d_a)), in place
        kernels::attention_softmax(b.scores(scale(in.shape)), S, saved.row_sums(b, h));
        // 3. out = A v
        kernels::gemm(A, v, b.queries(out[h]));
      });
      // 4. out += v
      if (identity) add_rows(v, out[h]);
    }
  }

  // Undoing 4: dv += dout. A + I is never formed, since undoing 2 needs A itself.
  // Undoing 3: dv += A^T dout, dA = dout v^T.
  // Undoing 2: dS = A (dA - sum_j A dA) / sqrt(d_a), row by row, as in softmax.cpp.
  // Undoing 1: the derivative of -|q - k| is sign(k - q) with respect to q, and sign(q - k) with respect to k. Hence
  //            dq_i = sum_j dS_ij f(k_j - q_i), dk_j = sum_i dS_ij f(q_i - k_j); f is sign or hardtanh (score_grad).
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> douts, const SavedSoftmax<T>& saved,
                    const Scratch<T>& scratch, const AttentionGradient<T>& gradient) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<const T> k = in.k[h], v = in.v[h];
      MapBlocks<T>(in.shape, causal).by_queries([&](const MapBlock& b) {
        const Update update = b.update(gradient.update);
        const Matrix<const T> q = b.queries(in.q[h]), dout = b.queries(douts[h]);
        const kernels::ScoreRows rows = b.scores(scale(in.shape));
        const Matrix<T> A = saved.map(b, h, scratch.A), dA = b.map(scratch.dA), dS = dA;
        if (!keeps_map(in.shape)) {  // recompute A
          kernels::negative_l1(q, k, A);
          kernels::attention_softmax_again(rows, A, saved.row_sums(b, h));
        }
        // 3.
        kernels::gemm(transposed(A), dout, update, gradient.v[h]);
        kernels::gemm(dout, transposed(v), dA);
        // 2. overwrites dA
        kernels::attention_softmax_backward(rows, A, dA);
        // 1.
        kernels::negative_l1_gradient(score_grad, q, k, dS, gradient.update, b.queries(gradient.q[h]));
        kernels::negative_l1_gradient(score_grad, k, q, transposed(dS), update, gradient.k[h]);
      });
      // 4., after 3. has assigned dv
      if (identity) add_rows(douts[h], gradient.v[h]);
    }
  }

  /// Computes A + I, or A.
  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> map, const SavedSoftmax<T>&, const Scratch<T>&) const {
    const kernels::ScoreRows rows = whole_map(in.shape, causal).scores(scale(in.shape));
    for (Index h = 0; h < in.shape.heads; ++h) {
      kernels::negative_l1(in.q[h], in.k[h], map[h]);
      kernels::attention_softmax(rows, map[h]);
      for (Index i = 0; i < in.shape.queries && identity; ++i) map[h](i, i) += T(1);
    }
  }

  Cost cost(const AttentionShape& shape) const override {
    const MapPairs map(shape, causal);
    const auto [N, M, d, e] = shape.sizes();
    const Counts distances = kernels::negative_l1_counts(map.pairs, d), add_identity{.add = identity ? N * e : 0};
    Cost cost;
    // Forward: 1. S; 2. A; 3. and 4. out.
    cost.forward = distances + kernels::attention_softmax_counts(N, map.pairs) + map.to_queries(e) + add_identity;
    // Backward: 4. and 3. dv and dA; 2. dS; 1. dq and dk; S and A recomputed.
    cost.backward = add_identity + map.to_keys(e) + map.scores(e) +
                    kernels::attention_softmax_backward_counts(N, map.pairs) +
                    kernels::negative_l1_gradient_counts(score_grad, N, M, d) +
                    kernels::negative_l1_gradient_counts(score_grad, M, N, d);
    if (!keeps_map(shape)) cost.backward += distances + kernels::attention_softmax_again_counts(map.pairs);
    cost.distances = map.pairs * d;
    cost.forward_contractions = kernels::negative_l1_contractions(cost.distances) + map.contraction(e);
    cost.backward_contractions = 2 * kernels::negative_l1_gradient_contractions(score_grad, cost.distances) +
                                 2 * map.contraction(e);  // recomputing S is not counted
    cost.attention_exp = cost.forward.exp;
    return shape.heads * cost;
  }

 private:
  static constexpr bool causal = false;

  /// Returns 1 / sqrt(d_a).
  static double scale(const AttentionShape& shape) {
    return 1 / std::sqrt(2 * static_cast<double>(shape.width) * (1 - 2 * std::numbers::inv_pi));
  }

  /// Computes y += x.
  template <class T>
  static void add_rows(MatrixFor<T> x, Matrix<T> y) {
    for (Index r = 0; r < y.rows; ++r)
      for (Index i = 0; i < y.columns; ++i) y(r, i) += x(r, i);
  }
};

template MechanismEntry mechanism_entry<Adder>();

}  // namespace heed
