// Lambda layers. Bello, "LambdaNetworks: Modeling Long-Range Interactions Without Attention", 2021, arXiv:2102.08602v1,
// Section 3.
//
// Each query has a linear function lambda_n, a small matrix computed from all keys, values and positions, and no map is
// stored. All heads of queries share the keys and values, and thus the functions:
//
//   ks = softmax(k)                   [M, c], channel by channel over the tokens
//   L = ks^T v                        [c, e], the content lambda
//   lambda_n = L + E[n]^T v           [c, e], with the position lambda of query n; E [N, M, c] is trained
//   out_n = q_n lambda_n              [heads, e] for q_n [heads, c]
//
//   positions=false    lambda_n = L for all n: time linear in the tokens
//
// Time 2 N M c e + 2 H N c e, M c exps; memory N c e, in addition to E.
//
// Differs from the paper: q and v are not batch-normalised, the intra-depth is 1, and E (in files `e`) has a row for
// each pair of positions; the paper's E depends only on their offset.
#include "heed/attention/capabilities/map.h"
#include "heed/attention/mechanism_base.h"
#include "heed/kernels/products/gemm.h"
#include "heed/kernels/sums/softmax_columns.h"

namespace heed {

class Lambda : public MechanismBase<Lambda>, public WithMap<Lambda> {
 public:
  static constexpr const char* mechanism_name = "lambda";
  static constexpr const char* summary = "q (softmax(k)^T v + e^T v), e by query and key; one head of keys and values";
  static constexpr const char* complexity =
      "time O(N^2 c d), memory O(N^2 c); without positions time O(N c d), memory O(N d)";

  Index key_dim = not_set;
  bool positions = true;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("key_dim", key_dim, "c, channels of the keys and of each head of queries (required in a model)");
    visit("positions", positions, "add position lambdas to the content lambda");
  }

  static std::vector<OptionValues> variants() {
    return {{{"key_dim", "3"}}, {{"key_dim", "2"}, {"positions", "false"}}};
  }
  static std::vector<MechanismSetting> settings() {
    return {{"lambda", {{"key_dim", "16"}}}, {"lambda-content", {{"key_dim", "16"}, {"positions", "false"}}, true}};
  }

  AttentionLayout layout(Index dim, Index heads) const override { return {heads, key_dim, key_dim, dim / heads, 1}; }

  void read_sizes(const std::map<std::string, Shape>& tensors) override {
    if (key_dim == not_set) key_dim = size_of(tensors, "k", "[B, 1, M, key_dim]", 3);
  }

  void check(const AttentionShape& shape) const override {
    require(key_dim >= 1 && key_dim <= 65'536, "[lambda] key_dim is {}; expected 1 to 65536", option_text(key_dim));
    require(shape.width == key_dim, "[lambda] q has {} channels; expected key_dim, {}", shape.width, key_dim);
    require(!positions || shape.queries == shape.keys,
            "[lambda] there are {} queries and {} keys; positions=true requires equal numbers", shape.queries,
            shape.keys);
  }

  std::vector<ParameterSpec> parameters(const AttentionShape& shape) const override {
    if (!positions) return {};
    return {{"e", {shape.queries, shape.keys, shape.width}, Initial::normal(1)}};
  }

  // Saved: ks, for undoing 2 and 1, and the lambdas, for undoing 4: one per query, or L for all.
  template <class T>
  struct Saved {
    Matrix<T> ks;      ///< [M, c]
    Heads<T> lambdas;  ///< [c, e] each
  };
  template <class T>
  Saved<T> saved(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    const auto [N, M, c, e] = shape.sizes();
    return {layout.matrix(M, c), lay_out_heads(positions ? N : 1, c, e, layout)};
  }

  // Scratch: L, unused if it is the only lambda and thus saved; gradients of L, of one lambda and of ks.
  template <class T>
  struct Scratch {
    Matrix<T> L, dL, dlambda, dks;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    const auto [N, M, c, e] = shape.sizes();
    return {layout.matrix(c, e), layout.matrix(c, e), layout.matrix(c, e), layout.matrix(M, c)};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const Saved<T>& saved, const Scratch<T>& scratch) const {
    const Matrix<const T> v = in.v[0];
    // 1. ks = softmax(k)
    kernels::softmax_columns(in.k[0], saved.ks);
    if (!positions) {
      // 2. L = ks^T v
      kernels::gemm(transposed(saved.ks), v, saved.lambdas[0]);
      // 4. out = q L
      for (Index h = 0; h < in.shape.heads; ++h) kernels::gemm(in.q[h], saved.lambdas[0], out[h]);
      return;
    }
    // 2. L = ks^T v
    kernels::gemm(transposed(saved.ks), v, scratch.L);
    for (Index n = 0; n < in.shape.queries; ++n) {
      // 3. lambda_n = L + E[n]^T v
      kernels::addmm(transposed(of_query(in.parameters[0], n, in.shape.keys)), v, nullptr, scratch.L, saved.lambdas[n]);
      // 4. out_n = q_n lambda_n
      kernels::gemm(of_query(in.q, n), saved.lambdas[n], of_query(out, n));
    }
  }

  // Undoing 4: dq_n = dout_n lambda_n^T, dlambda_n = q_n^T dout_n.
  // Undoing 3: dL = sum_n dlambda_n, dE[n] = v dlambda_n^T, dv = sum_n E[n] dlambda_n.
  // Undoing 2: dks = v dL^T, dv += ks dL.
  // Undoing 1: dk = ks (dks - sum over tokens of ks dks).
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, const Saved<T>& saved,
                    const Scratch<T>& scratch, const AttentionGradient<T>& gradient) const {
    const Matrix<const T> v = in.v[0];
    const Matrix<T> dL = scratch.dL, dlambda = scratch.dlambda, dv = gradient.v[0];
    if (!positions) {
      for (Index h = 0; h < in.shape.heads; ++h) {
        // 4.
        kernels::gemm(dout[h], transposed(saved.lambdas[0]), gradient.update, gradient.q[h]);
        kernels::gemm(transposed(in.q[h]), dout[h], term_update(h), dL);
      }
    } else {
      for (Index n = 0; n < in.shape.queries; ++n) {
        // 4.
        kernels::gemm(of_query(dout, n), transposed(saved.lambdas[n]), gradient.update, of_query(gradient.q, n));
        kernels::gemm(transposed(of_query(in.q, n)), of_query(dout, n), dlambda);
        // 3.
        write_all(term_update(n), dL.size(), dlambda.data, dL.data);
        kernels::gemm(v, transposed(dlambda), Update::accumulate, of_query(gradient.parameters[0], n, in.shape.keys));
        kernels::gemm(of_query(in.parameters[0], n, in.shape.keys), dlambda, term_update(n, gradient.update), dv);
      }
    }
    // 2.
    kernels::gemm(v, transposed(dL), scratch.dks);
    kernels::gemm(saved.ks, dL, positions ? Update::accumulate : gradient.update, dv);
    // 1.
    kernels::softmax_columns_backward(saved.ks, scratch.dks, gradient.update, gradient.k[0]);
  }

  // Computes the weight of key m for query n of a head: q_n . (ks_m + E[n,m]).
  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> map, const Saved<T>& saved, const Scratch<T>&) const {
    kernels::softmax_columns(in.k[0], saved.ks);
    for (Index h = 0; h < in.shape.heads; ++h) kernels::gemm(in.q[h], transposed(saved.ks), map[h]);
    for (Index n = 0; positions && n < in.shape.queries; ++n)
      kernels::gemm(of_query(in.q, n), transposed(of_query(in.parameters[0], n, in.shape.keys)), Update::accumulate,
                    of_query(map, n));
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, c, e] = shape.sizes();
    const Index H = shape.heads, lambda = c * e;
    const Counts of_tokens = product_counts(c, e, M), to_keys = product_counts(M, c, e),
                 to_values = product_counts(M, e, c);
    Cost cost;
    // Forward: 1. ks; 2. L; 4. out.
    cost.forward = kernels::softmax_columns_counts(M, c) + of_tokens + product_counts(H * N, e, c);
    cost.forward_contractions = product_contractions(c, e, M) + product_contractions(H * N, e, c);
    // Backward: 4. dq; 2. dks and dv; 1. dk.
    cost.backward = product_counts(H * N, c, e) + to_keys + to_values + kernels::softmax_columns_backward_counts(M, c);
    if (positions) {
      // Forward: 3. Backward: 4. dlambda; 3. dL, dE (accumulated) and dv; 2. accumulates into dv.
      cost.forward += N * (of_tokens + Counts{.add = lambda});
      cost.forward_contractions += N * product_contractions(c, e, M);
      cost.backward += N * product_counts(c, e, H) + Counts{.add = (N - 1) * lambda} +
                       N * (to_keys + Counts{.add = M * c} + to_values + Counts{.add = M * e});
    } else {
      // Backward: 4. dL, a sum over heads.
      cost.backward += H * product_counts(c, e, N) + Counts{.add = (H - 1) * lambda};
    }
    cost.backward_contractions = 2 * cost.forward_contractions;
    cost.attention_exp = cost.forward.exp;
    return cost;
  }

 private:
  /// Returns row n of all heads as a matrix, a row per head.
  template <class T>
  static Matrix<T> of_query(Heads<T> x, Index n) {
    return {x.first[n], x.count, x.first.columns, x.distance};
  }

  /// Returns the first M rows of E[n], [M, c]; E[n] has more rows if the sequence is below the maximum length.
  template <class T>
  static Matrix<T> of_query(View<T> e, Index n, Index M) {
    const Index c = e.shape()[2];
    return {e.data() + n * e.shape()[1] * c, M, c};
  }
};

template MechanismEntry mechanism_entry<Lambda>();

}  // namespace heed
