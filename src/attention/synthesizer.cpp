// Synthesizer. Tay, Bahri, Metzler, Juan, Zhao, Zheng, "Synthesizer: Rethinking Self-Attention in Transformer Models",
// 2020, arXiv:2005.00743v3, Section 3: maps that do not compare tokens. There are no keys and, with kind=random, no
// queries.
//
//   kind=dense     Y = relu(q w1 + b1)          [N, d]      a row of scores from each query alone       Eq. 2 and 3
//                  S = Y w2 + b2                [N, M]      trained w1 [d, d], b1 [d], w2 [d, M], b2 [M]
//   kind=random    S = logits                   [N, N]      trained, one matrix for each head               Section 3.2
//
//   A = softmax(S)     row by row
//   out = A v          [N, e]
//
// Time 2 N d^2 + 4 N M d (dense) or 2 N^2 e (random), and N M exps; S is not scaled by 1 / sqrt(d). w2 or the logits
// fix the number of tokens. Dense computes its map in blocks of queries and saves only Y, and the maximum and the sum
// of exps of each row, from which the backward pass recomputes the row. The map of `random` is the same for all images,
// so it is prepared once per step, a tensor of N^2 elements per head like the logits; maps larger than most_prepared
// are computed in blocks for each image instead. The map of a sequence below the maximum length is computed in blocks
// from the first rows and columns of w2, b2 and the logits. If causal, a query sees the keys up to its position.
//
// Differs from the paper: w1 is applied to q, a projection of the tokens; the paper's first layer is applied to the
// tokens themselves. All heads share w1, b1, w2 and b2.
#include "src/attention/shared/decoding.h"
#include "heed/attention/capabilities/map.h"
#include "heed/attention/capabilities/preparation.h"
#include "heed/attention/map_blocks.h"
#include "heed/kernels/elements/activation.h"
#include "heed/kernels/rows/rows.h"

namespace heed {

class Synthesizer : public MechanismBase<Synthesizer>,
                    public WithMap<Synthesizer>,
                    public WithPreparation<Synthesizer>,
                    public WithDecoding<Synthesizer> {
 public:
  static constexpr const char* mechanism_name = "synthesizer";
  static constexpr const char* summary =
      "softmax of learned scores, times v; the scores depend on q alone or on no input";
  static constexpr const char* complexity = "time O(N^2 d); memory O(N d) dense, O(N^2) random";

  enum class Kind { dense, random };
  Kind kind = Kind::dense;
  bool causal = false;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("kind", kind, {"dense", "random"}, "scores from two layers applied to each query, or learned parameters");
    visit("causal", causal, "a query sees the keys up to its own position only");
  }

  static std::vector<OptionValues> variants() {
    std::vector<OptionValues> variants;
    for (const char* kind : {"dense", "random"})
      for (const char* causal : {"false", "true"}) variants.push_back({{"kind", kind}, {"causal", causal}});
    return variants;
  }
  static std::vector<MechanismSetting> settings() {
    return {{"synthesizer"}, {"synthesizer-random", {{"kind", "random"}}}};
  }

  MechanismTraits traits() const override { return {.qk_norm = false}; }
  AttentionLayout layout(Index dim, Index heads) const override {
    return {heads, dense() ? dim / heads : 0, 0, dim / heads};
  }
  void check(const AttentionShape& s) const override {
    require(dense() || s.queries == s.keys,
            "[synthesizer] there are {} queries and {} keys; kind=random requires equal numbers", s.queries, s.keys);
  }
  std::vector<ParameterSpec> parameters(const AttentionShape& s) const override {
    const Initial weight = Initial::truncated_normal(0.02), bias = Initial::constant(0);
    if (!dense()) return {{"logits", {s.heads, s.queries, s.keys}, weight}};
    return {{"w1", {s.width, s.width}, weight},
            {"b1", {s.width}, bias, false},
            {"w2", {s.width, s.keys}, weight},
            {"b2", {s.keys}, bias, false}};
  }

  // Prepared, unless the map is computed in blocks: A of each head.
  template <class T>
  Heads<T> prepared(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return in_blocks(s) ? Heads<T>{} : lay_out_heads(s.heads, s.queries, s.keys, layout);
  }

  // Saved, if the map is computed in blocks: the maximum and the sum of exps of each row of S; if dense, also Y.
  template <class T>
  struct Saved {
    Heads<T> Y, kept;
  };
  template <class T>
  Saved<T> saved(const AttentionShape& s, MemoryLayout<T>& layout) const {
    if (!in_blocks(s)) return {};
    return {lay_out_heads(s.heads, dense() ? s.queries : 0, s.width, layout),
            lay_out_heads(s.heads, s.queries, 2, layout)};
  }

  // Scratch, if the map is computed in blocks: a block of A and one of dA; if dense, also dY.
  template <class T>
  struct Scratch {
    Matrix<T> A, dA, dY;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& s, MemoryLayout<T>& layout) const {
    if (!in_blocks(s)) return {};
    return {lay_out_map_block(s, s.keys, layout), lay_out_map_block(s, s.keys, layout),
            layout.matrix(dense() ? s.queries : 0, s.width)};
  }

  // A whole map may not fit in the cache, so each row is completed before the next.
  template <class T>
  void run_prepare(const AttentionPreparation<T>& of, Heads<T> A) const {
    const kernels::ScoreRows rows = whole_rows(of.shape);
    for (Index h = 0; h < A.count; ++h) {
      const Matrix<const T> logits = of_head(of.parameters[0], h);
      for (Index i = 0; i < A[h].rows; ++i) {
        std::copy_n(logits[i], logits.columns, A[h][i]);
        kernels::attention_softmax(rows.from(i), A[h].middle_rows(i, 1));
      }
    }
  }

  // Computes dS = A (dA - sum_j A dA), row by row; overwrites dA.
  template <class T>
  void run_prepare_backward(const AttentionPreparation<T>& of, Heads<T> A, Heads<T> dA,
                            std::span<const View<T>> gradient) const {
    const kernels::ScoreRows rows = whole_rows(of.shape);
    for (Index h = 0; h < A.count; ++h) {
      const Matrix<T> dS = dA[h], dlogits = of_head(gradient[0], h);
      for (Index i = 0; i < dS.rows; ++i) {
        kernels::attention_softmax_backward(rows.from(i), A[h].middle_rows(i, 1), dS.middle_rows(i, 1));
        write_all(Update::accumulate, rows.length(i, dS.columns), dS[i], dlogits[i]);
      }
    }
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const Saved<T>& saved, const Scratch<T>& scratch) const {
    const kernels::Gemm gemm{in.products};
    const Heads<const T> random = this->prepared_of(in.shape, in.prepared);
    for (Index h = 0; h < in.shape.heads; ++h) {
      // 1. Y = relu(q w1 + b1)
      if (dense()) make_hidden(in, in.q[h], saved.Y[h]);
      MapBlocks<T>(in.shape, causal).by_queries([&](const MapBlock& b) {
        // 2. S = Y w2 + b2, 3. A = softmax(S)
        if (in_blocks(in.shape)) {
          const Matrix<T> S = b.map(scratch.A);
          make_scores<T>(in, b, h, saved.Y, S);
          kernels::attention_softmax(b.scores(1), S, b.queries(saved.kept[h]));
        }
        // 4. out = A v
        gemm(in_blocks(in.shape) ? Matrix<const T>(b.map(scratch.A)) : part(b, random[h]), b.keys(in.v[h]),
             b.queries(out[h]));
      });
    }
  }

  // Undoing 4: dv = A^T dout, dA = dout v^T.
  // Undoing 3: dS = A (dA - sum_j A dA), row by row.
  // Undoing 2: dw2 = Y^T dS, db2 = sum_i dS_i, dY = dS w2^T.
  // Undoing 1: with dZ = dY where Y > 0, dq = dZ w1^T, dw1 = q^T dZ, db1 = sum_i dZ_i.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> douts, const Saved<T>& saved,
                    const Scratch<T>& scratch, const AttentionGradient<T>& to) const {
    const kernels::Gemm gemm{in.products};
    const Heads<const T> random = this->prepared_of(in.shape, in.prepared);
    const Heads<T> drandom = this->prepared_of(in.shape, to.prepared);
    for (Index h = 0; h < in.shape.heads; ++h) {
      clear_unseen_keys(causal, in.shape, h, to);
      MapBlocks<T>(in.shape, causal).by_queries([&](const MapBlock& b) {
        const Matrix<const T> v = b.keys(in.v[h]), dout = b.queries(douts[h]);
        const Matrix<T> dv = b.keys(to.v[h]);
        if (!in_blocks(in.shape)) {
          // 4.
          gemm(transposed(part(b, random[h])), dout, b.update(to.update), dv);
          gemm(dout, transposed(v), Update::accumulate, part(b, drandom[h]));
          return;
        }
        const Matrix<T> A = b.map(scratch.A), dA = b.map(scratch.dA), dS = dA;
        // recompute S and A
        make_scores<T>(in, b, h, saved.Y, A);
        kernels::attention_softmax_again(b.scores(1), A, b.queries(saved.kept[h]));
        // 4.
        gemm(transposed(A), dout, b.update(to.update), dv);
        gemm(dout, transposed(v), dA);
        // 3. overwrites dA
        kernels::attention_softmax_backward(b.scores(1), A, dA);
        // 2. With kind=random, S is a part of the logits, to whose gradient dS is added.
        if (!dense()) {
          const Matrix<T> dlogits = part(b, of_head(to.parameters[0], h));
          for (Index i = 0; i < dS.rows; ++i) write_all(Update::accumulate, dS.columns, dS[i], dlogits[i]);
          return;
        }
        const Matrix<const T> Y = b.queries(Matrix<const T>(saved.Y[h]));
        gemm(transposed(Y), dS, Update::accumulate, seen(b, as_matrix(to.parameters[w2])));
        kernels::column_sums(dS, Update::accumulate, to.parameters[b2].data());
        gemm(dS, transposed(seen(b, as_matrix(in.parameters[w2]))), b.queries(scratch.dY));
      });
      // 1. dZ overwrites dY
      if (!dense()) continue;
      const Matrix<T> dZ = scratch.dY;
      kernels::relu_backward(dZ.size(), saved.Y[h].data, dZ.data, Update::assign, dZ.data);
      gemm(dZ, transposed(as_matrix(in.parameters[w1])), to.update, to.q[h]);
      gemm(transposed(in.q[h]), dZ, Update::accumulate, as_matrix(to.parameters[w1]));
      kernels::column_sums(dZ, Update::accumulate, to.parameters[b1].data());
    }
  }

  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> map, const Saved<T>& saved, const Scratch<T>&) const {
    const MapBlock whole = whole_map(in.shape, causal);
    const Heads<const T> random = this->prepared_of(in.shape, in.prepared);
    for (Index h = 0; h < in.shape.heads; ++h) {
      if (!in_blocks(in.shape)) {
        for (Index i = 0; i < map[h].rows; ++i) std::copy_n(random[h][i], map[h].columns, map[h][i]);
        continue;
      }
      if (dense()) make_hidden(in, in.q[h], saved.Y[h]);
      make_scores<T>(in, whole, h, saved.Y, map[h]);
      kernels::attention_softmax(whole.scores(1), map[h]);
    }
  }

  // Decoding a token takes one row of the map. The state V holds the values of all tokens so far.
  AttentionStateSize state_size(const AttentionShape& s, Index tokens) const override {
    return {.state = s.heads * tokens * s.value_width, .scratch = s.longest + s.width};
  }
  template <class T>
  void run_decode(const AttentionDecoding<T>& call) const {
    const auto& [in, t, out, state, sums, scratch] = call;
    MemoryLayout<T> layout(state), scratch_layout(scratch);
    const Heads<T> V = kept_rows(in.shape.heads, in.shape.longest, in.shape.value_width, layout);
    keep_row(in.v, t, V);
    const Matrix<T> A = scratch_layout.matrix(1, t + 1), Y = scratch_layout.matrix(1, in.shape.width);
    const MapBlock row{{t, 1, 0, t + 1}, true, true};
    for (Index h = 0; h < in.shape.heads; ++h) {
      if (dense()) make_hidden(in, in.q[h], Y);
      make_rows<T>(in, row, h, Y, A);
      kernels::attention_softmax({1}, A);
      kernels::gemm(A, V[h].top_rows(t + 1), out[h]);
    }
  }

  Cost preparation_cost(const AttentionShape& shape) const override {
    if (dense()) return {};
    const MapPairs map(shape, causal);
    Cost cost;
    cost.forward = kernels::attention_softmax_counts(shape.queries, map.pairs);
    cost.backward = kernels::attention_softmax_backward_counts(shape.queries, map.pairs) + Counts{.add = map.pairs};
    cost.attention_exp = cost.forward.exp;
    return shape.heads * cost;
  }

  Cost cost(const AttentionShape& shape) const override {
    const MapPairs map(shape, causal);
    const Index N = shape.queries, d = shape.width, e = shape.value_width;
    Cost cost;
    // 4. out; dv
    cost.forward = map.to_queries(e);
    cost.backward = map.to_keys(e);
    cost.forward_contractions = map.contraction(e);
    if (in_blocks(shape)) {
      // Forward: 3. A. Backward: A recomputed; 4. dA; 3. dS; 2. db2, or dS added to the gradient of the logits.
      cost.forward += kernels::attention_softmax_counts(N, map.pairs);
      cost.backward += kernels::attention_softmax_again_counts(map.pairs) + map.scores(e) +
                       kernels::attention_softmax_backward_counts(N, map.pairs) + Counts{.add = map.pairs};
      cost.attention_exp = cost.forward.exp;
    } else {
      cost.backward += map.contraction(e);  // dA is accumulated
    }
    if (dense()) {
      const Counts scores = map.scores(d) + Counts{.add = map.pairs}, square = product_counts(N, d, d);
      // Forward: 1. Y; 2. S. Backward: S recomputed; 2. dw2, dY; 1. dZ, dq, dw1, db1.
      cost.forward += kernels::addmm_counts(N, d, d, true, false) + kernels::relu_forward_counts(N * d) + scores;
      cost.backward += scores + map.contraction(d) + map.to_queries(d);
      cost.backward +=
          kernels::relu_backward_counts(N * d) + square + product_counts(d, d, N) + Counts{.add = d * d + N * d};
      cost.forward_contractions += map.contraction(d) + product_contractions(N, d, d);
    }
    cost.backward_contractions = 2 * cost.forward_contractions;  // recomputing S is not counted
    return shape.heads * cost;
  }

 private:
  enum Tensors : std::size_t { w1, b1, w2, b2 };

  bool dense() const { return kind == Kind::dense; }

  /// Maximum number of elements of the prepared maps of all heads, 4 MB of floats. Larger maps exceed a core's private
  /// cache; recomputing them for each image in blocks is faster than reading them from outside it.
  static constexpr Index most_prepared = 1 << 20;

  /// Returns true if the map is computed in blocks of queries, for each image.
  bool in_blocks(const AttentionShape& shape) const {
    return dense() || !shape.whole || shape.heads * shape.queries * shape.keys > most_prepared;
  }

  /// Returns the scaling and masking of the rows of a whole map.
  kernels::ScoreRows whole_rows(const AttentionShape& shape) const { return whole_map(shape, causal).scores(1); }

  /// Return the columns of a block's keys, and the block's part of a map.
  template <class T>
  static Matrix<T> seen(const MapBlock& b, Matrix<T> m) {
    return m.middle_columns(0, b.seen);
  }
  template <class T>
  static Matrix<T> part(const MapBlock& b, Matrix<T> map) {
    return seen(b, b.queries(map));
  }

  template <class T>
  static void make_hidden(const AttentionInput<T>& in, Matrix<const T> q, Matrix<T> Y) {
    kernels::Gemm{in.products}.add(q, as_matrix(in.parameters[w1]), in.parameters[b1].data(), {}, Y);
    kernels::relu_forward(Y.size(), Y.data, Y.data);
  }
  template <class T>
  void make_scores(const AttentionInput<T>& in, const MapBlock& b, Index h, Heads<T> Y, Matrix<T> S) const {
    make_rows<T>(in, b, h, dense() ? b.queries(Y[h]) : Matrix<T>{}, S);
  }
  /// Computes S of a block from the block's rows of Y; with kind=random, copies the block's logits.
  template <class T>
  void make_rows(const AttentionInput<T>& in, const MapBlock& b, Index h, Matrix<const T> Y, Matrix<T> S) const {
    if (dense())
      return kernels::Gemm{in.products}.add(Y, seen(b, as_matrix(in.parameters[w2])), in.parameters[b2].data(), {}, S);
    const Matrix<const T> logits = part(b, of_head(in.parameters[0], h));
    for (Index i = 0; i < S.rows; ++i) std::copy_n(logits[i], S.columns, S[i]);
  }

  /// Returns the logits of head h, or their gradient.
  template <class T>
  static Matrix<T> of_head(View<T> logits, Index h) {
    const Index rows = logits.shape()[1], columns = logits.shape()[2];
    return {logits.data() + h * rows * columns, rows, columns};
  }
};

template MechanismEntry mechanism_entry<Synthesizer>();

}  // namespace heed
