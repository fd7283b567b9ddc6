// ReLU-attention and its family. Wortsman, Lee, Gilmer, Kornblith, "Replacing softmax with ReLU in Vision
// Transformers", 2023, arXiv:2309.08586v2, Eq. 1 and "Scaled point-wise attention" of Section 3.
//
//   S = q k^T / sqrt(d)        [N, M]
//   A = M^-alpha phi(S)        element by element
//   out = A v                  [N, e]
//
// phi is relu, relu^2, gelu, softplus, identity, relu6 or the logistic function. A row of softmax sums to 1, so its
// elements are 1/M on average; dividing by M (alpha = 1, the paper's choice) keeps that order of magnitude, and no row
// depends on a sum over its keys.
//
// Time 4 N M d and one phi per pair. As in softmax.cpp the map is computed in blocks of queries. S is saved for the
// backward pass if it is small, and recomputed otherwise, so memory is O(N).
//
// The paper's layer normalisation of q and k, and its gate, are options of the layer (nn/attention.h). With `causal`
// (not in the paper) the divisor is M^alpha, whatever the number of keys a query sees; in a growing sequence, M is the
// maximum length, so that existing rows do not change.
#include "src/attention/shared/decoding.h"
#include "heed/attention/capabilities/map.h"
#include "heed/attention/map_blocks.h"
#include "heed/base/math.h"
#include "heed/kernels/elements/pointwise.h"

namespace heed {

class PointwiseAttention : public MechanismBase<PointwiseAttention>,
                           public WithMap<PointwiseAttention>,
                           public WithDecoding<PointwiseAttention> {
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
          "activation of the scaled scores; relu2: the square of relu");
    visit("alpha", alpha, "activated scores are divided by the number of keys to this power, 0 to 1");
    visit("causal", causal, "a query sees the keys up to its own position only");
  }

  MechanismTraits traits() const override { return {.cross = !causal, .independent_heads = true}; }

  static std::vector<OptionValues> variants() {
    std::vector<OptionValues> variants{{}};
    for (const char* phi : {"relu2", "gelu", "softplus", "identity", "relu6", "sigmoid"})
      variants.push_back({{"phi", phi}});
    variants.push_back({{"phi", "softplus"}, {"alpha", "0.5"}, {"causal", "true"}});
    return variants;
  }

  static std::vector<MechanismSetting> settings() { return {{"relu"}, {"softplus", {{"phi", "softplus"}}}}; }

  void check(const AttentionShape&) const override {
    require(alpha >= 0 && alpha <= 1, "[pointwise] alpha is {}; expected 0 to 1", alpha);
  }

  // Saved: S / sqrt(d), or nothing if S is recomputed from q and k.
  template <class T>
  Heads<T> saved(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    return keeps_map(shape) ? lay_out_heads(shape.heads, shape.queries, shape.keys, layout) : Heads<T>();
  }

  // Scratch: a block of S, unless S is saved, and one of A, which dA overwrites in the backward pass. In the forward
  // pass A overwrites S, unless S is saved.
  template <class T>
  struct Scratch {
    Matrix<T> S, A;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    return {keeps_map(shape) ? Matrix<T>() : lay_out_dense_map_block(shape, key_part(shape), layout),
            lay_out_dense_map_block(shape, key_part(shape), layout)};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, Heads<T> saved, const Scratch<T>& scratch) const {
    const kernels::Gemm gemm{in.products};
    const MapBlocks<T> blocks(in.shape, causal);
    kernels::SharedOperand<T> k_t;
    for (Index h = 0; h < in.shape.heads; ++h)
      blocks.by_keys([&](const MapBlock& b) {
        const Matrix<const T> q = b.queries(in.q[h]), k = b.keys(in.k[h]), v = b.keys(in.v[h]);
        const Matrix<T> A = b.dense_map(scratch.A), S = keeps_map(in.shape) ? b.part(saved[h]) : A;
        // 1. S = q k^T
        blocks.share(k_t, b, gemm, transposed(k));
        k_t.product(q, S);
        // 2. A = M^-alpha phi(S / sqrt(d)); if S is separate, S / sqrt(d) overwrites it
        kernels::attention_pointwise(rows(in.shape, b), S, A);
        // 3. out = A v
        gemm(A, v, b.query_update(Update::assign), b.queries(out[h]));
      });
  }

  // Undoing 3: dv = A^T dout, dA = dout v^T.
  // Undoing 2: dS = M^-alpha phi'(S / sqrt(d)) dA / sqrt(d), element by element.
  // Undoing 1: dq = dS k, dk = dS^T q.
  // For each block of keys, the last block of queries is processed first: it sees all keys that the other blocks of
  // queries see, so it assigns dk and dv, and the others add to them.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> douts, Heads<T> saved,
                    const Scratch<T>& scratch, const AttentionGradient<T>& gradient) const {
    const kernels::Gemm gemm{in.products};
    const MapBlocks<T> blocks(in.shape, causal);
    kernels::SharedOperand<T> k_t, v_t;
    for (Index h = 0; h < in.shape.heads; ++h) {
      clear_unseen_keys(causal, in.shape, h, gradient);
      blocks.by_keys([&](const MapBlock& b) {
        prefetch_next_block(b, in.q[h], douts[h], gradient.q[h]);
        const Matrix<const T> q = b.queries(in.q[h]), k = b.keys(in.k[h]), v = b.keys(in.v[h]);
        const Matrix<const T> dout = b.queries(douts[h]);
        const Matrix<T> S = keeps_map(in.shape) ? b.part(saved[h]) : b.dense_map(scratch.S);
        const Matrix<T> A = b.dense_map(scratch.A), dA = A, dS = A;
        // recompute A, from S or from q and k
        if (keeps_map(in.shape)) {
          kernels::attention_pointwise_again(rows(in.shape, b), S, A);
        } else {
          blocks.share(k_t, b, gemm, transposed(k));
          k_t.product(q, S);
          kernels::attention_pointwise(rows(in.shape, b), S, A);
        }
        // 3. dA overwrites A
        gemm(transposed(A), dout, b.update(gradient.update), b.keys(gradient.v[h]));
        blocks.share(v_t, b, gemm, transposed(v));
        v_t.product(dout, dA);
        // 2. dS overwrites dA
        kernels::attention_pointwise_backward(rows(in.shape, b), S, dA);
        // 1.
        gemm(dS, k, b.query_update(gradient.update), b.queries(gradient.q[h]));
        gemm(transposed(dS), q, b.update(gradient.update), b.keys(gradient.k[h]));
      });
    }
  }

  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> map, Heads<T>, const Scratch<T>&) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      kernels::Gemm{in.products}(in.q[h], transposed(in.k[h]), map[h]);
      kernels::attention_pointwise(rows(in.shape, whole_map(in.shape, causal)), map[h], map[h]);
    }
  }

  AttentionStateSize state_size(const AttentionShape& s, Index tokens) const override {
    return row_state_size(s, tokens);
  }
  template <class T>
  void run_decode(const AttentionDecoding<T>& call) const {
    decode_by_row(call, [&](Matrix<T> A) {
      kernels::attention_pointwise({phi, factor(call.in.shape), {score_scale(call.in.shape)}}, A, A);
    });
  }

  Cost cost(const AttentionShape& shape) const override {
    const MapPairs map(shape, causal);
    const Index d = shape.width, e = shape.value_width;
    const Counts scores_and_map = map.scores(d) + kernels::attention_pointwise_counts(phi, map.pairs);
    Cost cost;
    // Forward: 1. S; 2. A; 3. out.
    cost.forward = scores_and_map + map.to_queries(e);
    // Backward: A recomputed, and S unless saved; 3. dv and dA; 2. dS; 1. dq and dk.
    const Counts again = keeps_map(shape) ? kernels::attention_pointwise_again_counts(phi, map.pairs) : scores_and_map;
    cost.backward = again + map.to_keys(e) + map.scores(e) +
                    kernels::attention_pointwise_backward_counts(phi, map.pairs) + map.to_queries(d) + map.to_keys(d);
    cost.forward_contractions = map.contraction(d + e);
    cost.backward_contractions = 2 * map.contraction(d + e);  // recomputing S is not counted
    cost.attention_exp = cost.forward.exp;
    return shape.heads * cost;
  }

 private:
  /// Returns M^-alpha.
  double factor(const AttentionShape& shape) const {
    return math::pow(static_cast<double>(shape.growing ? shape.longest : shape.keys), -alpha);
  }
  kernels::PointwiseRows rows(const AttentionShape& shape, const MapBlock& b) const {
    return {phi, factor(shape), b.scores(score_scale(shape))};
  }
};

template MechanismEntry mechanism_entry<PointwiseAttention>();

}  // namespace heed
