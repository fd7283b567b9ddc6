// The mechanism of two_forms.h, computed in blocks: the map is never stored whole, and heed's kernels scale the scores,
// apply the ReLU and compute its derivative. docs/adding-a-mechanism.md explains the changes.
//
//   heed plugin relu_by_blocks.h && heed gradcheck relu_by_blocks --plugin relu_by_blocks.so
#pragma once

#include <heed/attention/map_blocks.h>
#include <heed/kernels/elements/pointwise.h>
#include "two_forms.h"

namespace heed {

class ReluByBlocks : public MechanismBase<ReluByBlocks>,
                     public WithMap<ReluByBlocks>,
                     public WithComposition<ReluByBlocks> {
 public:
  static constexpr const char* mechanism_name = "relu_by_blocks";
  static constexpr const char* summary = "max(q k^T / sqrt(d), 0) / M v, in blocks of the map";
  static constexpr const char* complexity = "time O(N^2 d), memory O(N)";

  template <class Visitor>
  void options(Visitor&) {}
  static std::vector<OptionValues> variants() { return {{}}; }

  // Scratch: blocks of S and A. Nothing is saved.
  template <class T>
  struct Scratch {
    Matrix<T> S, A;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return {lay_out_dense_map_block(s, key_part(s), layout), lay_out_dense_map_block(s, s.keys, layout)};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, NoMemory, const Scratch<T>& scratch) const {
    for (Index h = 0; h < in.shape.heads; ++h)
      MapBlocks<T>(in.shape, /*causal=*/false).by_queries([&](const MapBlock& b) {
        const Matrix<T> A = b.dense_map(scratch.A);
        map(in, h, b, A, A);                                   // 1. S = q k^T; 2. A = max(S / sqrt(d), 0) / M
        kernels::gemm(A, b.keys(in.v[h]), b.queries(out[h]));  // 3. out = A v
      });
  }

  // Undoing 3: dv = A^T dout, dA = dout v^T. Undoing 2: dS. Undoing 1: dq = dS k, dk = dS^T q.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> douts, NoMemory,
                    const Scratch<T>& scratch, const AttentionGradient<T>& to) const {
    for (Index h = 0; h < in.shape.heads; ++h)
      MapBlocks<T>(in.shape, /*causal=*/false).by_keys([&](const MapBlock& b) {
        const Matrix<T> S = b.dense_map(scratch.S), A = b.dense_map(scratch.A), dA = A, dS = A;
        const Matrix<const T> dout = b.queries(douts[h]);
        map(in, h, b, S, A);
        kernels::gemm(transposed(A), dout, b.update(to.update), b.keys(to.v[h]));
        kernels::gemm(dout, transposed(b.keys(in.v[h])), dA);
        kernels::attention_pointwise_backward(rows(in.shape, b), S, dA);  // dS overwrites dA
        kernels::gemm(dS, b.keys(in.k[h]), b.query_update(to.update), b.queries(to.q[h]));
        kernels::gemm(transposed(dS), b.queries(in.q[h]), b.update(to.update), b.keys(to.k[h]));
      });
  }

  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> maps, NoMemory, const Scratch<T>&) const {
    for (Index h = 0; h < in.shape.heads; ++h) map(in, h, whole_map(in.shape, false), maps[h], maps[h]);
  }

  template <class T>
  Var<T> compose(const ComposedInput<T>& in) const {
    return ReluComposed().compose(in);
  }

  // Forward: S and A; out. Backward: S and A; dv and dA; dS; dq and dk.
  Cost cost(const AttentionShape& s) const override {
    const MapPairs map(s, /*causal=*/false);
    const Index d = s.width, e = s.value_width;
    const Counts scores_and_map = map.scores(d) + kernels::attention_pointwise_counts(Pointwise::relu, map.pairs);
    Cost cost;
    cost.forward = scores_and_map + map.to_queries(e);
    cost.backward = scores_and_map + map.to_keys(e) + map.scores(e) +
                    kernels::attention_pointwise_backward_counts(Pointwise::relu, map.pairs) + map.to_queries(d) +
                    map.to_keys(d);
    cost.forward_contractions = map.contraction(d + e);
    cost.backward_contractions = 2 * map.contraction(d + e);
    return s.heads * cost;
  }

 private:
  static kernels::PointwiseRows rows(const AttentionShape& s, const MapBlock& b) {
    return {Pointwise::relu, 1 / static_cast<double>(s.keys), b.scores(score_scale(s))};
  }
  /// Computes S / sqrt(d) and A of a block; A may overwrite S.
  template <class T>
  static void map(const AttentionInput<T>& in, Index h, const MapBlock& b, Matrix<T> S, Matrix<T> A) {
    kernels::gemm(b.queries(in.q[h]), transposed(b.keys(in.k[h])), S);
    kernels::attention_pointwise(rows(in.shape, b), S, A);
  }
};

template MechanismEntry mechanism_entry<ReluByBlocks>();

}  // namespace heed
