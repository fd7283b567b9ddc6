// Performer: FAVOR+. Choromanski, Likhosherstov, Dohan, Song, Gane, Sarlos, Hawkins, Davis, Mohiuddin, Kaiser,
// Belanger, Colwell, Weller, "Rethinking Attention with Performers", 2021, arXiv:2009.14794v4, Section 2.
//
// Random features whose inner products equal softmax's exps in expectation, so that all queries share sums over keys:
//
//   x' = x / d^(1/4),  u(x) = omega x'                      [m], omega [m, d] a buffer, drawn once
//   phi(x; c)_j = exp(u(x)_j - |x'|^2 / 2 - c) + 1e-4       Lemma 1; its factor m^-1/2 cancels below
//   W_ts = phi(q_t; a_t) . phi(k_s; c_t)                    never stored
//   out_t = sum_s W_ts v_s / sum_s W_ts                     [N, e], den_t is the divisor
//
// Rows of omega are orthogonal in blocks of d, with the lengths of normal vectors (Section 2.4): base/parameters.h. a_t
// is the largest u(q_t)_j. c_t is the largest u(k_s)_j of all keys; with `causal`, of the keys s <= t. Because of the
// added 1e-4, a and c do not cancel; so they are differentiated, through the first of the elements that attain the
// maximum.
//
// Let E_sj = exp(u(k_s)_j - |k'_s|^2 / 2 - c_s) and sigma_t = sum_j phi(q_t)_j. Then, with the 1e-4 separated,
//
//   W_ts = exp(c_s - c_t) phi(q_t) . E_s + 1e-4 sigma_t
//
// where the exponent is never positive, since c is non-decreasing: nothing overflows; terms far below the largest key
// so far may vanish. (Without `causal`, c_t is the c of the last key, and c_s that of the last key in the block of s.)
// Sums over s of E_s v_s^T, E_s and v_s (sums.h) take O(N m e). Causal sums grow by blocks of keys, and pairs of
// queries and keys of the same block are computed directly.
//
// Time 2 (N + M) m (d + e), memory O((N + M) m).
#include "src/attention/shared/decoding.h"
#include "steps.h"

#include "heed/attention/capabilities/map.h"
#include "heed/base/math.h"

namespace heed {

class Performer : public MechanismBase<Performer>, public WithMap<Performer>, public WithDecoding<Performer> {
 public:
  static constexpr const char* mechanism_name = "performer";
  static constexpr const char* summary = "phi(q) phi(k)^T v / phi(q) phi(k)^T 1, phi random exponential features";
  static constexpr const char* complexity = "time O(N m d), memory O(N m)";

  Index features = not_set;
  bool causal = false;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("features", features, "m, number of random features (required in a model)");
    visit("causal", causal, "a query sees the keys up to its own position only");
  }

  MechanismTraits traits() const override { return {.cross = !causal}; }

  static std::vector<OptionValues> variants() { return {{{"features", "7"}}, {{"features", "3"}, {"causal", "true"}}}; }
  static std::vector<MechanismSetting> settings() {
    return {{"performer", {{"features", "64"}}, true},
            {"performer-causal", {{"features", "64"}, {"causal", "true"}}, true}};
  }

  void read_sizes(const std::map<std::string, Shape>& tensors) override {
    if (features == not_set) features = size_of(tensors, "omega", "[features, d]", 0);
  }

  void check(const AttentionShape&) const override {
    require(features >= 1 && features <= 65'536, "[performer] features is {}; expected 1 to 65536, the rows of omega",
            option_text(features));
  }

  std::vector<ParameterSpec> parameters(const AttentionShape& shape) const override {
    return {{"omega", {features, shape.width}, Initial::orthogonal(), false, false}};
  }

  template <class T>
  PerformerSaved<T> saved(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    const Index H = shape.heads, N = shape.queries, M = shape.keys, kept = keeps_features(shape);
    return {.phi = lay_out_heads(H, kept * N, features, layout),
            .E = lay_out_heads(H, kept * M, features, layout),
            .sums = lay_out_heads(H, !causal, PerformerSums<T>::size(features, shape.value_width), layout),
            .of_queries = lay_out_heads(H, 3, N, layout),
            .of_keys = lay_out_heads(H, 2, M, layout)};
  }

  template <class T>
  PerformerScratch<T> scratch(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    const auto [N, M, d, e] = shape.sizes();
    const Index most = std::max(N, M), rows = std::min(blocks<float>(shape).rows(), most), pairs = causal ? rows : 0;
    const Index again = !keeps_features(shape), queries = causal ? N : rows;
    return {.sums = {causal * features, e, layout},
            .query_sums = lay_out_heads(shape.heads, 1, PerformerSums<T>::size(features, e), layout),
            .phi = layout.matrix(again * rows, features),
            .E = layout.matrix(again * rows, features),
            .h = layout.numbers(rows),
            .largest = layout.numbers(rows),
            .decays = layout.numbers(rows),
            .weights = layout.numbers(rows),
            .values = layout.matrix(rows, e),
            .channels = layout.matrix(rows, d),
            .products = layout.matrix(rows, features),
            .W = layout.matrix(pairs, rows),
            .R = layout.matrix(pairs, rows),
            .D = layout.matrix(pairs, rows),
            .G = layout.matrix(queries, e),
            .dE = layout.matrix(causal ? M : rows, features),
            .delta = layout.numbers(queries),
            .dc = layout.numbers(queries),
            .dphi = layout.matrix(rows, features),
            .dc_of_keys = layout.numbers(shape.heads)};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> outs, const PerformerSaved<T>& saved,
                   const PerformerScratch<T>& scratch) const {
    // 1. E
    make_keys(in, saved, scratch);
    const PerformerBlocks<T> blocks = this->blocks<T>(in.shape);
    blocks.each(in.shape.heads, blocks.forward(), [&](Index h, const PerformerBlock& b) {
      const PerformerSteps<T> steps{in, step_1(), saved, scratch, h};
      const PerformerHead<T>& head = steps.head;
      // 1. phi
      steps.make_queries(b);
      const Matrix<T> out = b.rows_of(outs[h]);
      T* const den = head.den + b.first;
      // 2. keys before the block, from the sums
      if (b.before > 0) steps.sum_before(b, out, den);
      // 3. keys of the block: out += W v, den += W 1
      if (b.keys > 0) {
        steps.make_pairs(b);
        const Matrix<T> W = b.pairs(scratch.W);
        kernels::gemm(W, b.keys_of(head.v), b.after(0), out);
        for (Index i = 0; i < b.rows; ++i)
          for (Index j = 0; j < b.seen(i); ++j) write(b.after(j), den[i], W(i, j));
      }
      if (b.growing) steps.add_keys(b);
      // 4. out / den
      divide_rows(out, den);
    });
  }

  // Undoing 4: the gradients of the numerator, of den and of W_ts are G = dout / den, delta = -<dout, out> / den and
  //   D_ts = <G_t, v_s> + delta_t.
  // Undoing 3 and 2: dv_s = sum_t W_ts G_t; and with R_ts = exp(c_s - c_t),
  //   dphi_t = p_t + 1e-4 sum_s D_ts,   p_t = sum_s R_ts D_ts E_s,   dE_s = sum_t R_ts D_ts phi_t.
  //   c_t scales all exps that t sees: dc_t = -<phi_t, p_t>. (The gradients through c_s in R and in E cancel.)
  //   Scaling phi_t does not change out_t, so <phi_t, dphi_t> = 0 and dphi_t = p_t + dc_t / sigma_t. This avoids
  //   the sum of D_ts, which is mostly rounding error where attention is nearly uniform.
  // Undoing 1: du = (phi - 1e-4) dphi for queries, du = E dE for keys. With g = sum_j du_j, the gradients of |x'|^2 / 2
  //   and of the largest u of a query are -g; the gradient of the u that attains c_t is dc_t.
  //   dx = omega^T du / d^(1/4) - g x / d^(1/2).
  // Blocks run first to last for sums over keys, dphi and pairs; then last to first for sums over queries.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T> outs, Heads<const T> douts,
                    const PerformerSaved<T>& saved, const PerformerScratch<T>& scratch,
                    const AttentionGradient<T>& gradient) const {
    const Update update = gradient.update;
    // Undoes step 4, steps 3 and 2 with sums over keys, and step 1 for queries.
    const auto queries_backward = [&](Index h, const PerformerBlock& b) {
      const PerformerSteps<T> steps{in, step_1(), saved, scratch, h};
      const PerformerHead<T>& head = steps.head;
      const Matrix<T> dphi = scratch.dphi.top_rows(b.rows);
      steps.make_queries_again(b);
      steps.undo_division(b, outs[h], douts[h]);
      if (!causal) steps.sum_queries(b);
      steps.undo_sums(b, update, gradient.v[h]);
      kernels::favor_features_backward(performer_tiny, steps.phi(b), dphi, scratch.weights);
      for (Index i = 0; i < b.rows; ++i) dphi(i, as_index(head.query_place[b.first + i])) -= scratch.weights[i];
      step_1().undo_product<T>(in, b.rows_of(head.q), dphi, scratch.weights, scratch.channels, update,
                               b.rows_of(gradient.q[h]));
      if (b.growing) steps.add_keys(b);
      T& dc = scratch.dc_of_keys[h];
      if (b.first == 0) dc = T(0);
      for (Index i = 0; i < b.rows && !causal; ++i) dc += steps.dc(b)[i];
    };
    // Undoes steps 3 and 2 with sums over queries, and step 1 for keys.
    const auto keys_backward = [&](Index h, const PerformerBlock& b) {
      const PerformerSteps<T> steps{in, step_1(), saved, scratch, h};
      const PerformerHead<T>& head = steps.head;
      const Matrix<T> dE = causal ? b.keys_of(scratch.dE) : scratch.dE.top_rows(b.keys);
      const Matrix<T> E = b.keys > 0 ? steps.keys_again(b.first, b.keys) : head.E;
      if (b.keys > 0 && b.later) {
        const PerformerRows<T> keys{E, b.keys_of(head.v), nullptr, nullptr, steps.key_decays(b)};
        steps.query_sums.values(keys, causal ? Update::accumulate : update, scratch.values, b.keys_of(gradient.v[h]));
        steps.query_sums.features(keys, causal ? Update::accumulate : Update::assign, scratch.products, dE);
      }
      if (b.keys > 0) kernels::favor_features_backward(0, E, dE, scratch.weights);
      T& dc = scratch.dc_of_keys[h];
      for (Index i = b.rows - 1; i >= 0; --i) {
        if (causal) dc += steps.dc(b)[i];
        if (i >= b.keys) continue;
        const T place = head.key_place[b.first + i];
        const bool grows = place >= T(0);
        dE(i, grows ? as_index(place) : 0) += grows ? dc : T(0);
        dc = grows ? T(0) : dc;
      }
      if (b.keys > 0)
        step_1().undo_product<T>(in, b.keys_of(head.k), dE, scratch.weights, scratch.channels, update,
                                 b.keys_of(gradient.k[h]));
      if (causal && b.before > 0) steps.add_queries(b);
    };
    for (Index h = 0; h < in.shape.heads; ++h) clear_unseen_keys(causal, in.shape, h, gradient);
    const PerformerBlocks<T> blocks = this->blocks<T>(in.shape);
    const std::vector<PerformerBlock> forward = blocks.forward(), backward = blocks.backward();
    if (causal) {
      for (Index h = 0; h < in.shape.heads; ++h) {
        for (const PerformerBlock& b : forward) queries_backward(h, b);
        for (const PerformerBlock& b : backward) keys_backward(h, b);
      }
    } else {
      blocks.each(in.shape.heads, forward, queries_backward);
      blocks.each(in.shape.heads, backward, keys_backward);
    }
  }

  // Computes W / den, row by row.
  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> maps, const PerformerSaved<T>& saved,
               const PerformerScratch<T>& scratch) const {
    make_keys(in, saved, scratch);
    for (Index h = 0; h < in.shape.heads; ++h) {
      const PerformerSteps<T> steps{in, step_1(), saved, scratch, h};
      const PerformerHead<T>& head = steps.head;
      const Matrix<T> map = maps[h];
      for (const PerformerBlock& b : blocks<T>(in.shape).forward()) {
        steps.make_queries(b);
        for (Index s = 0; s < map.columns; s += b.rows) {
          const Matrix<T> E = steps.keys_again(s, std::min(b.rows, map.columns - s));
          kernels::gemm(steps.phi(b), transposed(E), b.rows_of(map).middle_columns(s, E.rows));
        }
      }
      for (Index t = 0; t < map.rows; ++t) {
        const Index seen = causal ? std::min(t + 1, map.columns) : map.columns;
        T sum(0);
        for (Index s = 0; s < map.columns; ++s) {
          using kernels::exp;
          map(t, s) = s < seen ? exp(head.c[s] - steps.c_of(t)) * map(t, s) + T(performer_tiny) * head.sigma[t] : T(0);
          sum += map(t, s);
        }
        for (Index s = 0; s < seen; ++s) map(t, s) = map(t, s) / sum;
      }
    }
  }

  // The state: the number of keys and, per head, c, the largest u of a key so far, the sums P and p over keys for this
  // c, and V, the sum of v. Its size and the time per token do not depend on the position.
  AttentionStateSize state_size(const AttentionShape& s, Index) const override {
    return {.sums = s.heads * (StateSums::size(features, s.value_width) + 1 + s.value_width) + 1,
            .scratch = 2 * features};
  }
  template <class T>
  void run_decode(const AttentionDecoding<T>& call) const {
    const auto& [in, t, out, unused, memory, scratch] = call;
    const Index m = features, e = in.shape.value_width;
    MemoryLayout<double> layout(memory);
    double& keys = *layout.numbers(1);
    keys = t == 0 ? 1 : keys + 1;
    const Matrix<T> phi(scratch, 1, m), E(scratch + m, 1, m);
    for (Index h = 0; h < in.shape.heads; ++h) {
      const StateSums sums(m, e, layout);
      double *const V = layout.numbers(e), &c = *layout.numbers(1);
      T sigma, of_query, of_key;
      const T h_q = step_1().exponents(in, in.q[h], phi, &of_query), h_k = step_1().exponents(in, in.k[h], E, &of_key);
      kernels::favor_features(step_1().scale(in.shape.width), &of_query, &h_q, performer_tiny, phi, &sigma);
      if (t == 0) {
        sums.clear();
        std::fill_n(V, e, 0.0);
        c = of_key;
      } else if (of_key > c) {
        sums.scale(math::exp(c - of_key));
        c = of_key;
      }
      const T largest = static_cast<T>(c);
      kernels::favor_features(step_1().scale(in.shape.width), &largest, &h_k, 0, E, static_cast<T*>(nullptr));
      const T *const k = E[0], *const v = in.v[h][0];
      sums.add(k, v);
      for (Index i = 0; i < e; ++i) V[i] += v[i];
      T* const row = out[h][0];
      const double tiny = performer_tiny * sigma, den = sums.read(phi[0], row) + tiny * keys;
      for (Index i = 0; i < e; ++i) row[i] = static_cast<T>((row[i] + tiny * V[i]) / den);
    }
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    const Index m = features;
    Cost cost;
    // Forward: 1.; 4. Backward: 4.; dc and dphi; 1., with dc of queries and keys.
    const Index seen = keys_seen(causal, M, N);
    cost.forward = step_1().make_counts(N, M, d) + N * Counts{.mul = e, .div = 1};
    cost.backward = kernels::row_dots_counts(N, e) + N * Counts{.mul = e + 1} + N * Counts{.add = m, .div = 1} +
                    kernels::row_dots_counts(N, m) + kernels::favor_features_backward_counts(N + seen, m) +
                    step_1().undo_product_counts(N + seen, d) + Counts{.add = 2 * N + seen, .cmp = seen};
    if (!keeps_features(shape)) cost.backward += step_1().again_counts(N, M, d);
    add_performer_sums_counts(shape, features, causal, blocks<float>(shape).of_keys(), cost);
    const Counts omega = product_contractions(N + M, m, d);  // omega is not trained
    const Counts products = product_contractions(N + seen, m, e) + Counts{.mul = N * m, .add = (N + seen) * m};
    cost.forward_contractions = omega + products;
    // Recomputing features is not counted. The backward pass of the sum of features takes one addition per seen key and
    // feature, not two: the sum's gradient is added to each key's.
    cost.backward_contractions = product_contractions(N + seen, m, d) + 2 * products + Counts{.add = -seen * m};
    // Left out: |x|^2; the 1e-4 terms of values and denominators; rescaled sums; sums of features.
    const Index rescaled = (blocks<float>(shape).of_keys() - 1) * m * e;
    cost.left_out = product_contractions((N + M) * d + N * (e + 1) + rescaled, 1, 1) + Counts{.add = -seen * m};
    cost.bounded = causal;
    cost.attention_exp = cost.forward.exp;
    return shape.heads * cost;
  }

 private:
  PerformerFeatures step_1() const { return {features, causal}; }

  /// Returns true if the features are saved for the backward pass. Above 4 MB, recomputing takes no longer than writing
  /// and reading them. With `causal` they are always saved, since the backward pass reads them twice.
  bool keeps_features(const AttentionShape& s) const {
    return causal || s.heads * (s.queries + s.keys) * features <= Index{1} << 20;
  }

  /// Runs step 1 for the keys of all heads.
  template <class T>
  void make_keys(const AttentionInput<T>& in, const PerformerSaved<T>& saved,
                 const PerformerScratch<T>& scratch) const {
    const Index M = in.shape.keys, rows = blocks<T>(in.shape).rows();
    for (Index first = 0; first < M; first += rows)
      for (Index h = 0; h < in.shape.heads; ++h)
        PerformerSteps<T>{in, step_1(), saved, scratch, h}.make_keys(first, std::min(rows, M - first));
  }

  template <class T>
  PerformerBlocks<T> blocks(const AttentionShape& shape) const {
    return {shape.queries, shape.keys, causal};
  }
};

template MechanismEntry mechanism_entry<Performer>();

}  // namespace heed
