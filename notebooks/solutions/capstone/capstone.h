// Fastformer. Wu, Wu, Qi, Huang, Xie, "Fastformer: Additive Attention Can Be All You Need", 2021, arXiv:2108.09084: one
// global query and one global key per head instead of a map.
//
//   g = pool(q, wq)              [d]       Eq. 3, 4
//   p_i = g k_i                  [N, d]    channel by channel
//   c = pool(p, wk)              [d]       Eq. 5, 6
//   out_i = c v_i + q_i          [N, d]    channel by channel
//   pool(x, w) = sum_i a_i x_i,  a = softmax_i(x_i . w / sqrt(d));  wq, wk [H, d] are learned
//
// Time O(N d), memory O(N d), 2 N exponentials.
// Differs: the paper transforms c v_i linearly before adding q_i; here the output projection transforms the sum.
#include "heed/attention/mechanism_base.h"
#include "heed/kernels/rows/softmax.h"

namespace heed {

class MyAttention : public MechanismBase<MyAttention> {
 public:
  static constexpr const char* mechanism_name = "my_attention";
  static constexpr const char* summary = "v times a global key, channel by channel, plus q";
  static constexpr const char* complexity = "time O(N d), memory O(N d)";

  template <class Visitor>
  void options(Visitor&) {}
  static std::vector<OptionValues> variants() { return {{}}; }
  static std::vector<MechanismSetting> settings() { return {{.label = "my_attention", .linear = true}}; }

  void check(const AttentionShape& s) const override {
    require(s.queries == s.keys, "[my_attention] {} queries and {} keys; expected as many", s.queries, s.keys);
    require(s.width == s.value_width, "[my_attention] q has {} channels, v {}; they must match", s.width,
            s.value_width);
  }
  std::vector<ParameterSpec> parameters(const AttentionShape& s) const override {
    const Initial initial = Initial::uniform(1 / std::sqrt(static_cast<double>(s.width)));
    return {{"wq", {s.heads, s.width}, initial}, {"wk", {s.heads, s.width}, initial}};
  }

  // Saved, for each head: the weights of both pools, one row each, for undoing 3 and 1; g and c; p.
  template <class T>
  struct Saved {
    Heads<T> alpha, beta, g, c, p;
  };
  template <class T>
  Saved<T> saved(const AttentionShape& s, MemoryLayout<T>& layout) const {
    const auto take = [&](Index rows, Index columns) { return lay_out_heads(s.heads, rows, columns, layout); };
    return {take(1, s.queries), take(1, s.queries), take(1, s.width), take(1, s.width), take(s.queries, s.width)};
  }

  // Scratch, for one head: gradients of g, c and p, and of a pool's weights.
  template <class T>
  struct Scratch {
    Matrix<T> dg, dc, dp, da;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& s, MemoryLayout<T>& layout) const {
    return {layout.matrix(1, s.width), layout.matrix(1, s.width), layout.matrix(s.queries, s.width),
            layout.matrix(1, s.queries)};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, const Saved<T>& f, const Scratch<T>&) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<const T> q = in.q[h], k = in.k[h], v = in.v[h];
      const Matrix<T> g = f.g[h], c = f.c[h], p = f.p[h];
      // 1. g = pool(q, wq)
      pool<T>(q, weights(in, 0, h), f.alpha[h], g);
      // 2. p_i = g k_i
      for (Index i = 0; i < k.rows; ++i)
        for (Index j = 0; j < k.columns; ++j) p(i, j) = g(0, j) * k(i, j);
      // 3. c = pool(p, wk)
      pool<T>(p, weights(in, 1, h), f.beta[h], c);
      // 4. out_i = c v_i + q_i
      for (Index i = 0; i < v.rows; ++i)
        for (Index j = 0; j < v.columns; ++j) out[h](i, j) = c(0, j) * v(i, j) + q(i, j);
    }
  }

  // Undoing 4: dq = dout, dv_i = c dout_i, dc = sum_i dout_i v_i.
  // Undoing 3: dp and dwk, from dc (pool_backward).
  // Undoing 2: dk_i = g dp_i, dg = sum_i dp_i k_i.
  // Undoing 1: dq += and dwq, from dg.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, const Saved<T>& f,
                    const Scratch<T>& to, const AttentionGradient<T>& gradient) const {
    const Update update = gradient.update;
    for (Index h = 0; h < in.shape.heads; ++h) {
      const Matrix<const T> k = in.k[h], v = in.v[h];
      // 4.
      for (Index i = 0; i < v.rows; ++i)
        for (Index j = 0; j < v.columns; ++j) {
          write(update, gradient.q[h](i, j), dout[h](i, j));
          write(update, gradient.v[h](i, j), f.c[h](0, j) * dout[h](i, j));
          write(after(i), to.dc(0, j), dout[h](i, j) * v(i, j));
        }
      // 3.
      pool_backward<T>(f.p[h], weights(in, 1, h), f.beta[h], to.dc, to.da, Update::assign, to.dp,
                       weight_gradient(gradient, 1, h));
      // 2.
      for (Index i = 0; i < k.rows; ++i)
        for (Index j = 0; j < k.columns; ++j) {
          write(update, gradient.k[h](i, j), f.g[h](0, j) * to.dp(i, j));
          write(after(i), to.dg(0, j), to.dp(i, j) * k(i, j));
        }
      // 1.
      pool_backward<T>(in.q[h], weights(in, 0, h), f.alpha[h], to.dg, to.da, Update::accumulate, gradient.q[h],
                       weight_gradient(gradient, 0, h));
    }
  }

  // Forward: two pools; p; out. Backward: 4. dv and dc; 3. and 1. two pools, the second of which adds to dq; 2. dk and
  // dg.
  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    Cost cost;
    cost.forward = 2 * (product_counts(1, N, d) + kernels::attention_softmax_counts(1, N) + product_counts(1, d, N)) +
                   N * d * Counts{.mul = 2, .add = 1};
    const Counts by_token{.mul = 2 * N * d, .add = (N - 1) * d};
    const Counts pooling = product_counts(1, N, d) + kernels::attention_softmax_backward_counts(1, N) +
                           product_counts(1, d, N) + 2 * product_counts(N, d, 1) + Counts{.add = d + N * d};
    cost.backward = 2 * by_token + 2 * pooling + Counts{.add = N * d};
    cost.forward_contractions = 4 * product_contractions(1, N, d);
    cost.backward_contractions = 2 * cost.forward_contractions;
    cost.attention_exp = 2 * N;
    return shape.heads * cost;
  }

 private:
  static Update after(Index terms) { return terms == 0 ? Update::assign : Update::accumulate; }
  static double scale(Index width) { return 1 / std::sqrt(static_cast<double>(width)); }

  /// Returns head h's wq (which = 0) or wk (1), or its gradient, as a row.
  template <class T>
  static Matrix<const T> weights(const AttentionInput<T>& in, std::size_t which, Index h) {
    return {in.parameters[which].data() + h * in.shape.width, 1, in.shape.width};
  }
  template <class T>
  static Matrix<T> weight_gradient(const AttentionGradient<T>& gradient, std::size_t which, Index h) {
    const Index width = gradient.q.first.columns;
    return {gradient.parameters[which].data() + h * width, 1, width};
  }

  /// a = softmax(x w^T / sqrt(d)) [1, N] over the tokens, mean = a x [1, d].
  template <class T>
  static void pool(Matrix<const T> x, Matrix<const T> w, Matrix<T> a, Matrix<T> mean) {
    kernels::gemm(w, transposed(x), a);
    kernels::attention_softmax({scale(x.columns)}, a);
    kernels::gemm(a, x, mean);
  }

  /// da = dmean x^T, ds from da as in softmax attention, dx (+)= a^T dmean + ds^T w, dw += ds x.
  template <class T>
  static void pool_backward(Matrix<const T> x, Matrix<const T> w, Matrix<const T> a, Matrix<T> dmean, Matrix<T> da,
                            Update update, Matrix<T> dx, Matrix<T> dw) {
    const Matrix<T> ds = da;
    kernels::gemm(dmean, transposed(x), da);
    kernels::attention_softmax_backward({scale(x.columns)}, a, da);
    kernels::gemm(transposed(a), dmean, update, dx);
    kernels::gemm(transposed(ds), w, Update::accumulate, dx);
    kernels::gemm(ds, x, Update::accumulate, dw);
  }
};

template MechanismEntry mechanism_entry<MyAttention>();

}  // namespace heed
