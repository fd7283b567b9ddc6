// Softmax attention. Vaswani et al., "Attention is all you need", 2017, arXiv:1706.03762v7, Eq. 1.
//
//   S = q k^T                  [N, M]
//   A = softmax(S / sqrt(d))   row by row
//   out = A v                  [N, d]
//
// Time 4 N M d and N M exps. Rows of the map are computed in blocks of queries. A map no larger than q, k, v and out
// together is saved for the backward pass. Otherwise only the maximum and the sum of exps of each row are saved, from
// which the backward pass recomputes the rows (Dao et al., "FlashAttention", 2022, arXiv:2205.14135, Section 3.1). So
// memory is O(N).
#include "src/attention/shared/decoding.h"
#include "heed/attention/capabilities/map.h"
#include "heed/attention/map_blocks.h"
#include "heed/kernels/rows/rows.h"

namespace heed {

class Softmax : public MechanismBase<Softmax>, public WithMap<Softmax>, public WithDecoding<Softmax> {
 public:
  static constexpr const char* mechanism_name = "softmax";
  static constexpr const char* summary = "softmax(q k^T / sqrt(d)) v";
  static constexpr const char* complexity = "time O(N^2 d), memory O(N)";

  bool causal = false;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("causal", causal, "a query sees the keys up to its own position only");
  }

  MechanismTraits traits() const override { return {.cross = !causal, .independent_heads = true}; }

  static std::vector<OptionValues> variants() { return {{}, {{"causal", "true"}}}; }

  // Saved: A, or the maximum and the sum of exps of each row, from which the backward pass recomputes A.
  template <class T>
  SavedSoftmax<T> saved(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    return lay_out_saved_softmax(shape, layout);
  }

  // Scratch: a block of A, unless A is saved; in the backward pass also a block of dA and, if rows are split across
  // blocks, D, with an element per query.
  template <class T>
  struct Scratch {
    Matrix<T> A, dA;
    T* D;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    return {keeps_map(shape) ? Matrix<T>() : lay_out_map_block(shape, key_part(shape), layout),
            lay_out_map_block(shape, key_part(shape), layout),
            layout.numbers(key_part(shape) < shape.keys ? shape.queries : 0)};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const SavedSoftmax<T>& saved,
                   const Scratch<T>& scratch) const {
    const kernels::Gemm gemm{in.products};
    const MapBlocks<T> blocks(in.shape, causal);
    if (blocks.splits_rows() && !keeps_map(in.shape)) return run_forward_by_keys(blocks, in, out, saved, scratch);
    kernels::SharedOperand<T> k_t;
    for (Index h = 0; h < in.shape.heads; ++h)
      blocks.by_queries([&](const MapBlock& b) {
        const Matrix<const T> q = b.queries(in.q[h]), k = b.keys(in.k[h]), v = b.keys(in.v[h]);
        const Matrix<T> S = saved.map(b, h, scratch.A), A = S;
        // 1. S = q k^T
        blocks.share(k_t, b, gemm, transposed(k));
        k_t.product(q, S);
        report_map_step("S", h, in.shape, b, S);
        // 2. A = softmax(S / sqrt(d)), in place
        kernels::attention_softmax(b.scores(score_scale(in.shape)), S, saved.row_sums(b, h));
        report_map_step("A", h, in.shape, b, A);
        // 3. out = A v
        gemm(A, v, b.queries(out[h]));
      });
  }

  // Computes out for long rows, which are split across blocks. With m, the maximum of the row so far, step 2 computes
  // the exps E = exp(S / sqrt(d) - m) and rescales out if m has grown; step 3 adds E v to out, which is divided by the
  // sum of E at the end (Dao et al., Section 3.1, Algorithm 1).
  template <class T>
  void run_forward_by_keys(const MapBlocks<T>& blocks, const AttentionInput<T>& in, Heads<T> out,
                           const SavedSoftmax<T>& saved, const Scratch<T>& scratch) const {
    const kernels::Gemm gemm{in.products};
    kernels::SharedOperand<T> k_t;
    for (Index h = 0; h < in.shape.heads; ++h) {
      blocks.by_keys([&](const MapBlock& b) {
        prefetch_next_block(b, in.q[h], out[h]);
        const Matrix<T> S = b.map(scratch.A), E = S, block_out = b.queries(out[h]);
        const Update update = b.query_update(Update::assign);
        blocks.share(k_t, b, gemm, transposed(b.keys(in.k[h])));
        k_t.product(b.queries(in.q[h]), S);
        kernels::attention_softmax_part(b.scores(score_scale(in.shape)), S, update, saved.row_sums(b, h), block_out);
        gemm(E, b.keys(in.v[h]), update, block_out);
      });
      kernels::divide_by_sums(saved.rows[h], out[h]);
    }
  }

  // Undoing 3: dv = A^T dout, dA = dout v^T.
  // Undoing 2: a row p = softmax(s) has dp_i/ds_j = p_i (1 - p_i) if i = j, else -p_i p_j. With s = S / sqrt(d):
  //            dS_ij = A_ij (dA_ij - D_i) / sqrt(d) with D_i = sum_l A_il dA_il. If a row is split across
  //            blocks, D_i is computed as <out_i, dout_i>, which equals sum_l A_il <v_l, dout_i>.
  // Undoing 1: dq = dS k, dk = dS^T q.
  // For each block of keys, the last block of queries is processed first: it sees all keys that the other blocks of
  // queries see, so it assigns dk and dv, and the others add to them.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T> outs, Heads<const T> douts,
                    const SavedSoftmax<T>& saved, const Scratch<T>& scratch,
                    const AttentionGradient<T>& gradient) const {
    const kernels::Gemm gemm{in.products};
    kernels::SharedOperand<T> k_t, v_t;
    for (Index h = 0; h < in.shape.heads; ++h) {
      clear_unseen_keys(causal, in.shape, h, gradient);
      const MapBlocks<T> blocks(in.shape, causal);
      if (blocks.splits_rows()) kernels::row_dots(outs[h], douts[h], scratch.D);
      blocks.by_keys([&](const MapBlock& b) {
        prefetch_next_block(b, in.q[h], douts[h], gradient.q[h]);
        const Matrix<const T> q = b.queries(in.q[h]), k = b.keys(in.k[h]), v = b.keys(in.v[h]);
        const Matrix<const T> dout = b.queries(douts[h]);
        const kernels::ScoreRows rows = b.scores(score_scale(in.shape));
        const Matrix<T> A = saved.map(b, h, scratch.A), dA = b.map(scratch.dA), dS = dA;
        if (!keeps_map(in.shape)) {  // recompute A
          blocks.share(k_t, b, gemm, transposed(k));
          k_t.product(q, A);
          kernels::attention_softmax_again(rows, A, saved.row_sums(b, h));
        }
        // 3.
        gemm(transposed(A), dout, b.update(gradient.update), b.keys(gradient.v[h]));
        blocks.share(v_t, b, gemm, transposed(v));
        v_t.product(dout, dA);
        report_map_step("dA", h, in.shape, b, dA);
        // 2. overwrites dA
        if (blocks.splits_rows())
          kernels::attention_softmax_backward_from_sums(rows, A, scratch.D + b.first, dA);
        else
          kernels::attention_softmax_backward(rows, A, dA);
        report_map_step("dS", h, in.shape, b, dS);
        // 1.
        gemm(dS, k, b.query_update(gradient.update), b.queries(gradient.q[h]));
        gemm(transposed(dS), q, b.update(gradient.update), b.keys(gradient.k[h]));
      });
    }
  }

  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> map, const SavedSoftmax<T>&, const Scratch<T>&) const {
    const kernels::ScoreRows rows = whole_map(in.shape, causal).scores(score_scale(in.shape));
    for (Index h = 0; h < in.shape.heads; ++h) {
      kernels::Gemm{in.products}(in.q[h], transposed(in.k[h]), map[h]);
      kernels::attention_softmax(rows, map[h]);
    }
  }

  AttentionStateSize state_size(const AttentionShape& s, Index tokens) const override {
    return row_state_size(s, tokens);
  }
  template <class T>
  void run_decode(const AttentionDecoding<T>& call) const {
    decode_by_row(call, [&](Matrix<T> A) { kernels::attention_softmax({score_scale(call.in.shape)}, A); });
  }

  Cost cost(const AttentionShape& shape) const override {
    const MapPairs map(shape, causal);
    const Index N = shape.queries, d = shape.width, e = shape.value_width;
    Cost cost;
    // Forward: 1. S; 2. A; 3. out.
    cost.forward = map.scores(d) + kernels::attention_softmax_counts(N, map.pairs) + map.to_queries(e);
    // Backward: 3. dv and dA; 2. dS; 1. dq and dk; S and A recomputed.
    cost.backward = map.to_keys(e) + map.scores(e) + kernels::attention_softmax_backward_counts(N, map.pairs) +
                    map.to_queries(d) + map.to_keys(d);
    if (!keeps_map(shape)) cost.backward += map.scores(d) + kernels::attention_softmax_again_counts(map.pairs);
    cost.forward_contractions = map.contraction(d + e);
    cost.backward_contractions = 2 * map.contraction(d + e);  // recomputing S is not counted
    cost.attention_exp = cost.forward.exp;
    return shape.heads * cost;
  }
};

template MechanismEntry mechanism_entry<Softmax>();

}  // namespace heed
