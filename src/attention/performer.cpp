// Performer: FAVOR+. Choromanski, Likhosherstov, Dohan, Song, Gane, Sarlos, Hawkins, Davis, Mohiuddin, Kaiser,
// Belanger, Colwell, Weller, "Rethinking Attention with Performers", 2021, arXiv:2009.14794v4, Section 2.
//
// Random features whose inner products are softmax's exponentials on average, so that sums over keys serve all queries:
//
//   x' = x / d^(1/4),  u(x) = omega x'                      [m], omega [m, d] a buffer, drawn once
//   phi(x; c)_j = exp(u(x)_j - |x'|^2 / 2 - c) + 1e-4       Lemma 1; its factor m^-1/2 cancels below
//   W_ts = phi(q_t; a_t) . phi(k_s; c_t)                    never made
//   out_t = sum_s W_ts v_s / sum_s W_ts                     [N, e], den_t the sum below
//
// Rows of omega are orthogonal in blocks of d and as long as normal ones (Section 2.4): base/parameters.h. a_t is the
// largest u(q_t)_j. c_t is the largest u(k_s)_j of all keys; with `causal` of those that query t sees, s <= t. As 1e-4
// is added after them, a and c do not cancel, and are differentiated, through the first maximum.
//
// Let E_sj = exp(u(k_s)_j - |k'_s|^2 / 2 - c_s) and sigma_t = sum_j phi(q_t)_j. Then, with 1e-4 apart,
//
//   W_ts = exp(c_s - c_t) phi(q_t) . E_s + 1e-4 sigma_t
//
// where the exponent is 0 without `causal`, and never positive with it, since c grows: nothing overflows, and what is
// far below the largest key so far may vanish. Sums over s of E_s v_s^T, of E_s and of v_s (performer_sums.h) take
// O(N m e); causal ones grow by blocks of keys, and what queries see of their own block is made pair by pair.
//
// Time 2 (N + M) m (d + e), memory O((N + M) m).
#include "performer_head.h"

#include "heed/attention/map_blocks.h"

namespace heed {

class Performer : public MechanismBase<Performer> {
 public:
  static constexpr const char* mechanism_name = "performer";
  static constexpr const char* summary = "phi(q) phi(k)^T v / phi(q) phi(k)^T 1, phi random exponential features";
  static constexpr const char* complexity = "time O(N m d), memory O(N m)";

  Index features = 0;
  bool causal = false;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("features", features, "m, how many random features (required in a model)");
    visit("causal", causal, "a query sees the keys up to its own position only");
  }

  MechanismTraits traits() const override { return {.cross = !causal}; }

  static std::vector<OptionValues> variants() { return {{{"features", "7"}}, {{"features", "3"}, {"causal", "true"}}}; }
  static std::vector<MechanismSetting> settings() {
    return {{"performer", {{"features", "64"}}, true},
            {"performer-causal", {{"features", "64"}, {"causal", "true"}}, true}};
  }

  void read_sizes(const std::map<std::string, Shape>& tensors) override {
    const auto omega = tensors.find("omega");
    if (features == 0 && omega != tensors.end() && omega->second.rank() == 2) features = omega->second[0];
  }

  void check(const AttentionShape&) const override {
    require(features >= 1 && features <= 65'536, "[performer] features is {}; expected 1 to 65536", features);
  }

  std::vector<ParameterSpec> parameters(const AttentionShape& shape) const override {
    return {{"omega", {features, shape.width}, Initial::orthogonal(), false, false}};
  }

  template <class T>
  PerformerSaved<T> saved(const AttentionShape& shape, Carver<T>& carve) const {
    const Index H = shape.heads, N = shape.queries, M = shape.keys;
    return {carve_heads(H, N, features, carve), carve_heads(H, M, features, carve), carve_heads(H, 3, N, carve),
            carve_heads(H, 2, M, carve)};
  }

  template <class T>
  struct Scratch {
    PerformerSums<T> sums;                 ///< over keys; on the way back over keys, then over queries
    T *h, *largest;                        ///< of queries or keys: |x'|^2 / 2 and the largest u
    T *decays, *weights;                   ///< of a block
    Matrix<T> values, channels, products;  ///< of a block: [rows, e], [rows, d], [rows, m]
    Matrix<T> W, R, D;                     ///< causal, of a block [rows, rows]: W, exp(c_s - c_t), the gradient of W
    Matrix<T> G, dphi, dE;                 ///< [N, e]; of a block [rows, m]; [M, m]
    T *delta, *dc, *w;                     ///< [N]; [N], the gradient of c_t; of a block, the sum of D over keys
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& shape, Carver<T>& carve) const {
    const auto [N, M, d, e] = shape.sizes();
    const Index most = std::max(N, M), rows = std::min(blocks<float>(shape).rows(), most), pairs = causal ? rows : 0;
    return {{features, e, carve},
            carve.numbers(most),
            carve.numbers(most),
            carve.numbers(rows),
            carve.numbers(rows),
            carve.matrix(rows, e),
            carve.matrix(rows, d),
            carve.matrix(rows, features),
            carve.matrix(pairs, rows),
            carve.matrix(pairs, rows),
            carve.matrix(pairs, rows),
            carve.matrix(N, e),
            carve.matrix(rows, features),
            carve.matrix(M, features),
            carve.numbers(N),
            carve.numbers(N),
            carve.numbers(rows)};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> outs, const PerformerSaved<T>& saved,
                   const Scratch<T>& scratch) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      const PerformerHead<T> head(in, saved, h);
      // 1. phi and E
      step_1().make(in, head, scratch.h, scratch.largest);
      if (!causal) scratch.sums.assign({head.E, head.v});
      for (const PerformerBlock& b : blocks<T>(in.shape).forward()) {
        const Matrix<T> out = b.rows_of(outs[h]);
        T* const den = head.den + b.first;
        // 2. keys that the sums hold
        if (b.before > 0) sum_before(head, b, scratch, out, den);
        // 3. keys of the block: out += W v, den += W 1
        if (b.keys > 0) {
          make_pairs(head, b, scratch);
          const Matrix<T> W = b.pairs(scratch.W);
          kernels::gemm(W, b.keys_of(head.v), b.after(0), out);
          for (Index i = 0; i < b.rows; ++i)
            for (Index j = 0; j < b.seen(i); ++j) write(b.after(j), den[i], W(i, j));
        }
        if (b.growing) add_keys(head, b, scratch);
        // 4. out / den
        for (Index i = 0; i < b.rows; ++i) {
          const T reciprocal = T(1) / den[i];
          for (T *x = out[i], *const end = x + out.columns; x < end; ++x) *x *= reciprocal;
        }
      }
    }
  }

  // Undoing 4: G = dout / den is the gradient of out before it, delta = -<dout, out> / den that of den, so that of W_ts
  //   is D_ts = <G_t, v_s> + delta_t.
  // Undoing 3 and 2: dv_s = sum_t W_ts G_t; and with R_ts = exp(c_s - c_t), w_t = sum_s D_ts,
  //   dphi_t = sum_s R_ts D_ts E_s + 1e-4 w_t,   dE_s = sum_t R_ts D_ts phi_t.
  //   Scaling phi_t leaves out_t as it is, so <phi_t, dphi_t> = 0; and c_t, in which it scales all exponentials that
  //   t sees, gets -sum_s R_ts D_ts <phi_t, E_s> = -<phi_t, dphi_t - 1e-4 w_t> = 1e-4 sigma_t w_t. (The c_s in R and in
  //   E cancel.)
  // Undoing 1: du = e dphi for the exponential e in phi, du = E dE; g = sum_j du_j gives -g to |x'|^2 / 2, and -g to
  // the
  //   largest u of a query; the u that is c_t gets what c_t gets. dx = omega^T du / d^(1/4) - g x / d^(1/2).
  // Blocks run first to last for sums over keys, dphi and pairs; then last to first for sums over queries.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T> outs, Heads<const T> douts,
                    const PerformerSaved<T>& saved, const Scratch<T>& scratch,
                    const AttentionGradient<T>& gradient) const {
    const Update update = gradient.update;
    for (Index h = 0; h < in.shape.heads; ++h) {
      const PerformerHead<T> head(in, saved, h);
      const Matrix<T> dv = gradient.v[h];
      clear_unseen_keys(causal, in.shape, h, gradient);
      // 4.
      undo_division<T>(outs[h], douts[h], head.den, scratch);
      // 3. and 2. by sums over keys, 1. of queries
      if (!causal) scratch.sums.assign({head.E, head.v});
      for (const PerformerBlock& b : blocks<T>(in.shape).forward()) {
        const Matrix<T> dphi = scratch.dphi.top_rows(b.rows);
        undo_sums(head, b, scratch, update, dv);
        kernels::favor_features_backward(performer_tiny, b.rows_of(head.phi), dphi, scratch.weights);
        for (Index i = 0; i < b.rows; ++i) at_place(dphi[i], head.query_place[b.first + i]) -= scratch.weights[i];
        step_1().undo_product<T>(in, b.rows_of(head.q), dphi, scratch.weights, scratch.channels, update,
                                 b.rows_of(gradient.q[h]));
        if (b.growing) add_keys(head, b, scratch);
      }
      // 3. and 2. by sums over queries, 1. of keys
      T dc(0);  // for the key that c is from
      if (!causal) {
        scratch.sums.assign({head.phi, scratch.G, scratch.delta, head.sigma});
        for (Index t = 0; t < in.shape.queries; ++t) dc += scratch.dc[t];
      }
      for (const PerformerBlock& b : blocks<T>(in.shape).backward()) {
        const Matrix<T> dE = b.keys_of(scratch.dE);
        if (b.keys > 0 && b.later) {
          const T* const decays = causal ? key_decays(head, b, scratch) : nullptr;
          const PerformerRows<T> keys{b.keys_of(head.E), b.keys_of(head.v), nullptr, nullptr, decays};
          scratch.sums.values(keys, causal ? Update::accumulate : update, scratch.values, b.keys_of(dv));
          scratch.sums.features(keys, causal ? Update::accumulate : Update::assign, scratch.products, dE);
        }
        if (b.keys > 0) kernels::favor_features_backward(0, b.keys_of(head.E), dE, scratch.weights);
        for (Index i = b.rows - 1; i >= 0; --i) {
          if (causal) dc += scratch.dc[b.first + i];
          if (i >= b.keys) continue;
          const T place = head.key_place[b.first + i];
          const bool grows = place >= T(0);
          at_place(dE[i], grows ? place : T(0)) += grows ? dc : T(0);
          dc = grows ? T(0) : dc;
        }
        if (b.keys > 0)
          step_1().undo_product<T>(in, b.keys_of(head.k), dE, scratch.weights, scratch.channels, update,
                                   b.keys_of(gradient.k[h]));
        if (causal && b.before > 0) add_queries(head, b, scratch);
      }
    }
  }

  // W / den, row by row.
  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> maps, const PerformerSaved<T>& saved,
               const Scratch<T>& scratch) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      const PerformerHead<T> head(in, saved, h);
      const Matrix<T> map = maps[h];
      step_1().make(in, head, scratch.h, scratch.largest);
      kernels::gemm(head.phi, transposed(head.E), map);
      for (Index t = 0; t < map.rows; ++t) {
        const Index seen = causal ? std::min(t + 1, map.columns) : map.columns;
        T sum(0);
        for (Index s = 0; s < map.columns; ++s) {
          using kernels::exp;
          map(t, s) = s < seen ? exp(head.c[s] - head.c_of(t)) * map(t, s) + T(performer_tiny) * head.sigma[t] : T(0);
          sum += map(t, s);
        }
        for (Index s = 0; s < seen; ++s) map(t, s) = map(t, s) / sum;
      }
    }
  }

  // Of each head the largest u of a key so far, c, and the sums over keys for that c; of all, the sum of v and the
  // number of keys. State and time do not depend on the position.
  AttentionStateSize state_size(const AttentionShape& s, Index) const override {
    return {s.heads * (features * (s.value_width + 1) + 1 + s.value_width) + 1, 2 * features};
  }
  template <class T>
  void run_decode(const AttentionDecoding<T>& call) const {
    const auto& [in, t, out, state, scratch] = call;
    const Index m = features, e = in.shape.value_width;
    Carver<T> carve(state);
    T& keys = *carve.numbers(1);
    keys = t == 0 ? T(1) : keys + T(1);
    const Matrix<T> phi(scratch, 1, m), E(scratch + m, 1, m);
    for (Index h = 0; h < in.shape.heads; ++h) {
      const PerformerSums<T> sums(m, e, carve);
      T& c = *carve.numbers(1);
      const T before = t > 0 ? c : T(0);
      T sigma, den, largest, weight;
      const T h_q = step_1().exponents(in, in.q[h], phi, &largest), h_k = step_1().exponents(in, in.k[h], E, &c);
      kernels::favor_features<T>(step_1().scale(in.shape.width), &largest, &h_q, performer_tiny, phi, &sigma);
      if (t > 0 && c < before) c = before;
      kernels::favor_features<T>(step_1().scale(in.shape.width), &c, &h_k, 0, E, nullptr);
      const T decays[] = {T(1)};
      const Matrix<T> row = out[h];  // scratch memory so far
      sums.add({E, in.v[h], nullptr, nullptr, decays}, t > 0, t > 0 ? decay(before, c) : T(1), row, &weight);
      kernels::row_dots<T>(phi, sums.p, &den);
      den = den + T(performer_tiny) * sigma * keys;
      kernels::gemm(phi, sums.P, row);
      for (Index i = 0; i < e; ++i) row(0, i) = (row(0, i) + T(performer_tiny) * sigma * sums.V(0, i)) / den;
    }
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    const Index m = features;
    Cost cost;
    // Forward: 1.; 4. Backward: 4.; dphi += 1e-4 w and dc; 1., with dc of queries and keys.
    const Index seen = seen_keys(shape);
    cost.forward = step_1().make_counts(N, M, d) + N * Counts{.mul = e, .div = 1};
    cost.backward = kernels::row_dots_counts(N, e) + N * Counts{.mul = e + 1, .div = 1} +
                    N * Counts{.mul = 2, .add = m} + kernels::favor_features_backward_counts(N + seen, m) +
                    step_1().undo_product_counts(N + seen, d) + Counts{.add = 2 * N + seen, .cmp = seen};
    add_sums_counts(shape, cost);
    cost.forward_contractions = product_contractions(N + M, m, d) + product_contractions(N + M, m, e) +
                                Counts{.mul = N * m, .add = (N + M) * m};
    cost.backward_contractions = 2 * cost.forward_contractions;
    cost.attention_exp = cost.forward.exp;
    return shape.heads * cost;
  }

 private:
  PerformerFeatures step_1() const { return {features, causal}; }
  template <class T>
  PerformerBlocks<T> blocks(const AttentionShape& shape) const {
    return {shape.queries, shape.keys, causal};
  }

  template <class T>
  static T& at_place(T* row, T place) {
    return row[static_cast<Index>(static_cast<double>(place))];
  }

  /// One row for all.
  template <class T>
  static Matrix<const T> repeated(Matrix<T> row, Index rows) {
    return {row.data, rows, row.columns, 0};
  }

  /// exp(a - b)
  template <class T>
  static T decay(T a, T b) {
    using kernels::exp;
    return exp(a - b);
  }

  /// exp(c - c_t) for the block's queries, c that of the last key before it; none where all queries have one c.
  template <class T>
  const T* query_decays(const PerformerHead<T>& head, const PerformerBlock& b, const Scratch<T>& scratch) const {
    if (!causal) return nullptr;
    for (Index i = 0; i < b.rows; ++i) scratch.decays[i] = decay(head.c[b.before - 1], head.c_of(b.first + i));
    return scratch.decays;
  }
  /// exp(c_s - c) for the block's keys, c that of the last of them.
  template <class T>
  const T* key_decays(const PerformerHead<T>& head, const PerformerBlock& b, const Scratch<T>& scratch) const {
    for (Index i = 0; i < b.keys; ++i) scratch.decays[i] = decay(head.c[b.first + i], head.c[b.first + b.keys - 1]);
    return scratch.decays;
  }

  /// Sums over keys, of the c before the block, become those of the c of its last key.
  template <class T>
  void add_keys(const PerformerHead<T>& head, const PerformerBlock& b, const Scratch<T>& scratch) const {
    const bool others = b.before > 0;
    const T before = others ? decay(head.c[b.before - 1], head.c[b.first + b.keys - 1]) : T(1);
    scratch.sums.add({b.keys_of(head.E), b.keys_of(head.v), nullptr, nullptr, key_decays(head, b, scratch)}, others,
                     before, scratch.values, scratch.weights);
  }
  /// Sums over later queries, of the c of the block's last query, become those of the c before the block.
  template <class T>
  void add_queries(const PerformerHead<T>& head, const PerformerBlock& b, const Scratch<T>& scratch) const {
    const T before = b.later ? decay(head.c[b.before - 1], head.c_of(b.first + b.rows - 1)) : T(1);
    scratch.sums.add({b.rows_of(head.phi), b.rows_of(scratch.G), scratch.delta + b.first, head.sigma + b.first,
                      query_decays(head, b, scratch)},
                     b.later, before, scratch.values, scratch.weights);
  }

  /// out = decay P^T phi + 1e-4 sigma V, den = decay p . phi + 1e-4 sigma times the number of keys.
  template <class T>
  void sum_before(const PerformerHead<T>& head, const PerformerBlock& b, const Scratch<T>& scratch, Matrix<T> out,
                  T* den) const {
    const PerformerRows<T> queries{
        b.rows_of(head.phi), {}, nullptr, head.sigma + b.first, query_decays(head, b, scratch)};
    scratch.sums.values(queries, Update::assign, {}, out);
    kernels::row_dots(queries.f, repeated(scratch.sums.p, b.rows), den);
    const T tiny(performer_tiny * static_cast<double>(b.before));
    for (Index i = 0; i < b.rows; ++i) den[i] = (causal ? queries.decay[i] * den[i] : den[i]) + tiny * queries.b[i];
  }

  /// R_ts = exp(c_s - c_t) and W_ts = R_ts <phi_t, E_s> + 1e-4 sigma_t for the block's pairs, 0 where t does not see s.
  template <class T>
  void make_pairs(const PerformerHead<T>& head, const PerformerBlock& b, const Scratch<T>& scratch) const {
    const Matrix<T> R = b.pairs(scratch.R), W = b.pairs(scratch.W);
    kernels::gemm(b.rows_of(head.phi), transposed(b.keys_of(head.E)), W);
    for (Index i = 0; i < b.rows; ++i) {
      const T c_t = head.c_of(b.first + i), tiny = T(performer_tiny) * head.sigma[b.first + i];
      const T* const c = head.c + b.first;
      const Index seen = b.seen(i);
      T *const r = R[i], *const w = W[i];
      for (Index j = 0; j < seen; ++j) {
        r[j] = decay(c[j], c_t);
        w[j] = r[j] * w[j] + tiny;
      }
      std::fill(r + seen, r + b.keys, T(0));
      std::fill(w + seen, w + b.keys, T(0));
    }
  }

  /// G = dout / den, delta = -<dout, out> / den.
  template <class T>
  void undo_division(Matrix<const T> out, Matrix<const T> dout, const T* den, const Scratch<T>& scratch) const {
    kernels::row_dots(dout, out, scratch.delta);
    for (Index t = 0; t < out.rows; ++t) {
      const T reciprocal = T(1) / den[t], *const from = dout[t];
      scratch.delta[t] = -(reciprocal * scratch.delta[t]);
      T* const to = scratch.G[t];
#pragma GCC ivdep
      for (Index c = 0; c < out.columns; ++c) to[c] = reciprocal * from[c];
    }
  }

  /// dphi and dc of a block's queries; and of its keys what pairs of the block give to dE and dv.
  template <class T>
  void undo_sums(const PerformerHead<T>& head, const PerformerBlock& b, const Scratch<T>& scratch, Update update,
                 Matrix<T> dv) const {
    const Matrix<T> dphi = scratch.dphi.top_rows(b.rows), G = b.rows_of(scratch.G);
    const T *const delta = scratch.delta + b.first, *const sigma = head.sigma + b.first;
    T* const w = scratch.w;
    if (b.before > 0) {
      scratch.sums.features({b.rows_of(head.phi), G, delta, nullptr, query_decays(head, b, scratch)}, Update::assign,
                            {}, dphi);
      kernels::row_dots(G, repeated(scratch.sums.V, b.rows), w);
      for (Index i = 0; i < b.rows; ++i) w[i] += delta[i] * T(static_cast<double>(b.before));
    }
    if (b.keys > 0) {
      make_pairs(head, b, scratch);
      const Matrix<T> D = b.pairs(scratch.D), R = b.pairs(scratch.R);
      kernels::gemm(G, transposed(b.keys_of(head.v)), D);
      for (Index i = 0; i < b.rows; ++i) {
        for (Index j = 0; j < b.seen(i); ++j) {
          D(i, j) += delta[i];
          write(b.after(j), w[i], D(i, j));
          D(i, j) *= R(i, j);
        }
        std::fill(D[i] + b.seen(i), D[i] + b.keys, T(0));
      }
      kernels::gemm(D, b.keys_of(head.E), b.after(0), dphi);
      kernels::gemm(transposed(D), b.rows_of(head.phi), b.keys_of(scratch.dE));
      kernels::gemm(transposed(b.pairs(scratch.W)), G, update, b.keys_of(dv));
    }
    for (Index i = 0; i < b.rows; ++i) {
      const T tiny = T(performer_tiny) * w[i];
      for (T *x = dphi[i], *const end = x + dphi.columns; x < end; ++x) *x += tiny;
      scratch.dc[b.first + i] = tiny * sigma[i];
    }
  }

  Index seen_keys(const AttentionShape& shape) const { return keys_seen(causal, shape.keys, shape.queries); }

  /// Of steps 2 and 3 and their undoing. Causal ones go query by query: all but the first read sums, those that have a
  /// key of their own make a pair with it, and add it for the next.
  void add_sums_counts(const AttentionShape& shape, Cost& cost) const {
    const auto [N, M, d, e] = shape.sizes();
    const Index m = features;
    const auto keys = [&](Index rows) { return PerformerRowsCost{rows, m, e, false}; };
    const auto queries = [&](Index rows) { return PerformerRowsCost{rows, m, e, true}; };
    const Counts read = kernels::row_dots_counts(1, m) + Counts{.mul = 1, .add = 1};
    const Counts read_back = kernels::row_dots_counts(1, e) + Counts{.mul = 1, .add = 1};
    if (!causal) {
      cost.forward += keys(M).assign() + queries(N).values(false) + N * read;
      cost.backward += keys(M).assign() + queries(N).features(false) + N * read_back + queries(N).assign() +
                       keys(M).values(false) + keys(M).features(false);
      return;
    }
    const Counts one_decay{.add = 1, .exp = 1};
    const Index pairs = seen_keys(shape), added = std::min(M, N - 1);
    const Counts make_pair = product_counts(1, 1, m) + one_decay + Counts{.mul = 2, .add = 1};
    Counts add_all_keys = added * one_decay, add_all_queries = (N - 1) * one_decay;
    if (added > 0) add_all_keys += keys(1).add(false) + (added - 1) * (one_decay + keys(1).add(true));
    if (N > 1) add_all_queries += queries(1).add(false) + (N - 2) * (one_decay + queries(1).add(true));
    cost.forward += (N - 1) * (one_decay + queries(1).values(true) + read + Counts{.mul = 1}) +
                    pairs * (make_pair + product_counts(1, e, 1)) + (pairs - 1) * Counts{.add = e + 1} + add_all_keys;
    cost.backward += (N - 1) * (one_decay + queries(1).features(true) + read_back) +
                     pairs * (make_pair + product_counts(1, 1, e) + Counts{.mul = 1, .add = 1} +
                              2 * product_counts(1, m, 1) + product_counts(1, e, 1)) +
                     (pairs - 1) * Counts{.add = m + 1} + add_all_keys +
                     added * (one_decay + keys(1).values(true) + keys(1).features(true) + Counts{.add = e + m}) +
                     add_all_queries;
  }
};

template MechanismEntry mechanism_entry<Performer>();

}  // namespace heed
