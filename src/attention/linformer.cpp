// Linformer. Wang, Li, Khabsa, Fang, Ma, "Linformer: Self-Attention with Linear Complexity", 2020, arXiv:2006.04768v3,
// Eq. 7. Keys and values are projected, along the tokens, to `length` = m rows each.
//
//   kp = e k,  vp = f v                    [m, d]; trained e, f [m, M]
//   A = softmax(q kp^T / sqrt(d))          [N, m]
//   out = A vp                             [N, d]
//
// The map A f [N, M] has low rank and is never stored. Time 4 (N + M) m d and N m exps; memory N m.
//
// All heads of a layer share e and f, as in the paper's headwise sharing; its layerwise sharing, and one projection for
// both keys and values, are not implemented. e and f fix the number of tokens.
#include "heed/attention/capabilities/map.h"
#include "heed/attention/map_blocks.h"

namespace heed {

class Linformer : public MechanismBase<Linformer>, public WithMap<Linformer> {
 public:
  static constexpr const char* mechanism_name = "linformer";
  static constexpr const char* summary = "softmax(q (e k)^T / sqrt(d)) f v, e and f learned projections of the tokens";
  static constexpr const char* complexity = "time O(N m d), memory O(N m)";

  Index length = not_set;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("length", length, "number of projected keys and values (required)");
  }

  MechanismTraits traits() const override { return {.cross = true}; }

  static std::vector<OptionValues> variants() { return {{{"length", "3"}}, {{"length", "1"}}}; }
  static std::vector<MechanismSetting> settings() { return {{"linformer", {{"length", "49"}}, true}}; }

  void read_sizes(const std::map<std::string, Shape>& tensors) override {
    if (length == not_set) length = size_of(tensors, "e", "[length, M]", 0);
  }
  void check(const AttentionShape&) const override {
    require(length >= 1 && length <= 65'536, "[linformer] length is {}; expected 1 to 65536", option_text(length));
  }
  std::vector<ParameterSpec> parameters(const AttentionShape& shape) const override {
    const Initial initial = Initial::uniform(1 / std::sqrt(static_cast<double>(length)));
    return {{"e", {length, shape.keys}, initial}, {"f", {length, shape.keys}, initial}};
  }

  // Saved: kp and vp for dq and dA; A for undoing 2 and 3.
  template <class T>
  struct Saved {
    Heads<T> kp, vp, A;
  };
  template <class T>
  Saved<T> saved(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return {lay_out_heads(s.heads, length, s.width, layout), lay_out_heads(s.heads, length, s.value_width, layout),
            lay_out_heads(s.heads, s.queries, length, layout)};
  }

  // Scratch: gradients of kp and vp, and of a block of A.
  template <class T>
  struct Scratch {
    Heads<T> dkp, dvp;
    Matrix<T> dA;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return {lay_out_heads(s.heads, length, s.width, layout), lay_out_heads(s.heads, length, s.value_width, layout),
            lay_out_dense_map_block(s, length, layout)};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const Saved<T>& saved, const Scratch<T>&) const {
    const kernels::Gemm gemm{in.products};
    // 1. kp = e k, vp = f v
    for_each_key_block(in.shape, [&](const KeyBlock& b, Index h) {
      gemm(b.columns(projection(in, 0)), b.rows(in.k[h]), term_update(b.first), saved.kp[h]);
      gemm(b.columns(projection(in, 1)), b.rows(in.v[h]), term_update(b.first), saved.vp[h]);
    });
    MapBlocks<T>(projected(in.shape), false).by_queries([&](const MapBlock& b) {
      for (Index h = 0; h < in.shape.heads; ++h) {
        const Matrix<T> A = b.queries(saved.A[h]);
        // 2. A = softmax(q kp^T / sqrt(d))
        gemm(b.queries(in.q[h]), transposed(saved.kp[h]), A);
        kernels::attention_softmax(rows(in.shape), A);
        // 3. out = A vp
        gemm(A, saved.vp[h], b.queries(out[h]));
      }
    });
  }

  // Undoing 3: dvp = A^T dout, dA = dout vp^T.
  // Undoing 2: dS = A (dA - sum_j A dA) / sqrt(d), row by row; dq = dS kp, dkp = dS^T q.
  // Undoing 1: dk = e^T dkp, de = dkp k^T; dv = f^T dvp, df = dvp v^T.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> douts, const Saved<T>& saved,
                    const Scratch<T>& scratch, const AttentionGradient<T>& to) const {
    const kernels::Gemm gemm{in.products};
    MapBlocks<T>(projected(in.shape), false).by_queries([&](const MapBlock& b) {
      for (Index h = 0; h < in.shape.heads; ++h) {
        const Matrix<const T> q = b.queries(in.q[h]), dout = b.queries(douts[h]);
        const Matrix<T> A = b.queries(saved.A[h]), dA = b.dense_map(scratch.dA), dS = dA;
        // 3.
        gemm(transposed(A), dout, b.update(Update::assign), scratch.dvp[h]);
        gemm(dout, transposed(saved.vp[h]), dA);
        // 2. overwrites dA
        kernels::attention_softmax_backward(rows(in.shape), A, dA);
        gemm(dS, saved.kp[h], to.update, b.queries(to.q[h]));
        gemm(transposed(dS), q, b.update(Update::assign), scratch.dkp[h]);
      }
    });
    // 1.
    const Matrix<T> de = of_keys(to.parameters[0], in.shape), df = of_keys(to.parameters[1], in.shape);
    for_each_key_block(in.shape, [&](const KeyBlock& b, Index h) {
      const Matrix<T> dkp = scratch.dkp[h], dvp = scratch.dvp[h];
      gemm(transposed(b.columns(projection(in, 0))), dkp, to.update, b.rows(to.k[h]));
      gemm(transposed(b.columns(projection(in, 1))), dvp, to.update, b.rows(to.v[h]));
      gemm(dkp, transposed(b.rows(in.k[h])), Update::accumulate, b.columns(de));
      gemm(dvp, transposed(b.rows(in.v[h])), Update::accumulate, b.columns(df));
    });
  }

  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> map, const Saved<T>& saved, const Scratch<T>&) const {
    const kernels::Gemm gemm{in.products};
    for (Index h = 0; h < in.shape.heads; ++h) {
      gemm(projection(in, 0), in.k[h], saved.kp[h]);
      gemm(in.q[h], transposed(saved.kp[h]), saved.A[h]);
      kernels::attention_softmax(rows(in.shape), saved.A[h]);
      gemm(saved.A[h], projection(in, 1), map[h]);
    }
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    const Index m = length;
    Cost cost;
    // Forward: 1. kp and vp; 2. A; 3. out.
    cost.forward = product_counts(m, d, M) + product_counts(m, e, M) + product_counts(N, m, d) +
                   kernels::attention_softmax_counts(N, N * m) + product_counts(N, e, m);
    // Backward: 3. dvp and dA; 2. dS, dq, dkp; 1. dk, dv, de, df.
    cost.backward = product_counts(m, e, N) + product_counts(N, m, e) +
                    kernels::attention_softmax_backward_counts(N, N * m) + product_counts(N, d, m) +
                    product_counts(m, d, N) + product_counts(M, d, m) + product_counts(M, e, m) +
                    product_counts(m, M, d) + product_counts(m, M, e) + Counts{.add = 2 * m * M};
    cost.forward_contractions = product_contractions(N + M, m, d + e);
    cost.backward_contractions = 2 * cost.forward_contractions;
    cost.attention_exp = cost.forward.exp;
    return shape.heads * cost;
  }

 private:
  /// Keys [first, first + count): their rows of k and v, their columns of e and f.
  struct KeyBlock {
    Index first, count;

    template <class T>
    Matrix<T> rows(Matrix<T> x) const {
      return x.middle_rows(first, count);
    }
    template <class T>
    Matrix<T> columns(Matrix<T> x) const {
      return x.middle_columns(first, count);
    }
  };
  /// Calls f(block, head). A block is processed for all heads in turn, since the heads of its keys are adjacent in
  /// memory, and its columns of e and f, 64 KB each with 256 keys and length 64, stay in the cache.
  template <class F>
  static void for_each_key_block(const AttentionShape& shape, const F& f) {
    constexpr Index most = 256;
    for (Index first = 0; first < shape.keys; first += most)
      for (Index h = 0; h < shape.heads; ++h) f(KeyBlock{first, std::min(most, shape.keys - first)}, h);
  }

  /// Returns the shape of attention to the projected keys.
  AttentionShape projected(AttentionShape shape) const {
    shape.keys = length;
    return shape;
  }
  static kernels::ScoreRows rows(const AttentionShape& shape) { return {score_scale(shape)}; }

  /// Returns the columns of e, f, or their gradients, for the sequence's keys: the first columns if the sequence is
  /// below the maximum length.
  template <class T>
  static Matrix<T> of_keys(View<T> projection, const AttentionShape& shape) {
    return as_matrix(projection).middle_columns(0, shape.keys);
  }
  template <class T>
  static Matrix<const T> projection(const AttentionInput<T>& in, std::size_t which) {
    return of_keys(in.parameters[which], in.shape);
  }
};

template MechanismEntry mechanism_entry<Linformer>();

}  // namespace heed
