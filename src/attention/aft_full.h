// AFT-full, AFT-local and AFT-simple: one computation, which differs in the keys that have a bias.
//
// One head, channel c by channel c; the query t meets two kinds of keys s:
//   biased:  |t - s| < window, with the exponent k[s,c] + w[t,s];
//   others:  w = 0, with the exponent k[s,c] (Eq. 4), or left out (`masked`, the ablation of Section 5.3).
// In full all keys are biased, in simple none is (Eq. 5). Causal rows keep the keys s <= t.
//
//   den[t,c] = sum_s exp(k[s,c] + w[t,s])               [N, D]
//   y[t,c]   = sum_s exp(k[s,c] + w[t,s]) v[s,c] / den  [N, D]
//   out      = sigma(q) y                               [N, D]     Eq. 2
//
// Biased keys cost O(D) for each pair (t, s). The others before the window are the same for query t and t + 1 but for
// one key, so running sums serve all queries in O(N D); likewise those after it. All sums carry a scale of their own
// (kernels/exp_sums.h): neither far-apart keys nor far-apart rows become 0 / 0.
#pragma once

#include "aft_biased.h"

#include "heed/kernels/gate.h"

#include <limits>

namespace heed {

struct AftFull {
  template <class T>
  using ExpSums = kernels::ExpSums<T>;

  static constexpr Index unlimited = std::numeric_limits<Index>::max() / 2;

  Index window = unlimited;  ///< unlimited: full; 0: simple
  bool masked = false, causal = false, query = true;
  Index rank = 0;  ///< w = u p^T with u [N, rank], p [M, rank]; 0: w [N, M] itself

  // Prepared: the bias and what follows from it.
  template <class T>
  AftBias<T> prepared(const AttentionShape& shape, Carver<T>& carve) const {
    const AftBiasMatrix w = bias(sizes(shape));
    return w.prepared() ? w.memory(shape.queries, carve) : AftBias<T>{};
  }

  // Saved: of every query the scale and mass of its sums, which make the weights again, and y for dq and dk.
  template <class T>
  struct Saved {
    Matrix<T> scale, mass, y;
  };
  template <class T>
  Saved<T> saved(const AttentionShape& shape, Carver<T>& carve) const {
    const Sizes z = sizes(shape);
    return {carve.matrix(z.rows, z.D), carve.matrix(z.rows, z.D), carve.matrix(z.rows, z.D)};
  }

  // Running sums; on the way back -scale, dy / mass, y dy / mass of every query; what biased keys need.
  template <class T>
  struct Scratch {
    ExpSums<T> running, queries;
    AftBiased::Scratch<T> biased;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& shape, Carver<T>& carve) const {
    const Sizes z = sizes(shape);
    Scratch<T> scratch{
        kernels::carve_exp_sums(1, z.D, z.D, carve), kernels::carve_exp_sums(z.rows, z.D, z.D, carve), {}};
    if (window > 0) scratch.biased = biased(z).scratch(carve);
    return scratch;
  }

  template <class T>
  void run_prepare(const AttentionPreparation<T>& of, const AftBias<T>& prepared) const {
    bias(sizes(of.shape)).prepare(of.parameters, prepared);
  }
  template <class T>
  void run_prepare_backward(const AttentionPreparation<T>& of, const AftBias<T>& prepared, const AftBias<T>& dprepared,
                            std::span<const View<T>> gradient) const {
    bias(sizes(of.shape)).prepare_backward(of.parameters, prepared, dprepared, gradient);
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> outs, const AftBias<const T>& prepared, const Saved<T>& saved,
                   const Scratch<T>& scratch) const {
    const Sizes z = sizes(in.shape);
    const Matrix<T> y = saved.y, out = outs[0];
    const ExpSums<T> sums{saved.scale, saved.mass, y};
    // 1. sums over the biased keys
    if (window > 0) biased(z).forward(in, prepared, sums, scratch.biased);
    // 2. and over the keys before and after them
    sum_before(in, z, sums, scratch.running);
    sum_after(in, z, sums, scratch.running);
    // 3. y = value / mass
    for (Index i = 0; i < y.size(); ++i) y.data[i] = sums.value.data[i] / sums.mass.data[i];
    // 4. out = sigma(q) y
    if (query) return kernels::gate_forward(in.q[0], z.of_queries(y), out);
    for (Index t = 0; t < z.N; ++t) std::copy_n(z.of_queries(y)[t], z.D, out[t]);
  }

  // With p[t,s,c] = exp(k[s,c] + w[t,s]) / den[t,c], the weight of key s, and dy[t,c] = d(loss)/dy:
  // Undoing 4:  dy = sigma(q) dout,  dq = sigma'(q) y dout.
  // Undoing 3-1: y is a weighted mean, so dy[t,c]/dx[t,s,c] = p (v[s,c] - y[t,c]) for the exponent x = k + w, hence
  //   dv[s,c] = sum_t p dy[t,c],   dk[s,c] = sum_t p dy[t,c] (v[s,c] - y[t,c]),   dw[t,s] = the same, summed over c.
  // For keys without a bias p = exp(k[s,c]) exp(-scale[t,c]) / mass[t,c]: running sums over queries of
  // exp(-scale) (dy / mass, y dy / mass) serve all keys, as running sums over keys served the queries.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T> douts, const AftBias<const T>& prepared,
                    const Saved<T>& saved, const Scratch<T>& scratch, const AttentionGradient<T>& gradient,
                    const AftBias<T>& dprepared) const {
    const Sizes z = sizes(in.shape);
    const ExpSums<T> queries = scratch.queries;
    // 4. Queries that share one row of sums (simple, not causal) add up their dy.
    const Matrix<const T> dout = douts[0];
    const Matrix<T> dq = gradient.q[0], dy = z.of_queries(queries.mass);
    if (query) {
      kernels::gate_backward(in.q[0], z.of_queries(saved.y), dout, gradient.update, dq, dy);
    } else {
      for (Index t = 0; t < z.N; ++t) write_all(kernels::sum_update(t, dy), z.D, dout[t], dy[t]);
      if (gradient.update == Update::assign) fill(dq, T(0));
    }
    // 3.
    for (Index i = 0; i < saved.y.size(); ++i) {
      queries.scale.data[i] = -saved.scale.data[i];
      queries.mass.data[i] = queries.mass.data[i] / saved.mass.data[i];
      queries.value.data[i] = saved.y.data[i] * queries.mass.data[i];
    }
    // 2. and 1.
    sum_after_backward(in, z, queries, scratch.running, gradient);
    sum_before_backward(in, z, queries, scratch.running, gradient);
    if (window > 0)
      biased(z).backward(in, prepared, {saved.scale, saved.y, queries.mass}, scratch.biased, gradient, dprepared);
  }

  /// Of what is prepared for all images.
  Cost preparation_cost(const AttentionShape& shape) const {
    const Sizes z = sizes(shape);
    return bias(z).prepared() ? bias(z).cost(z.pairs()) : Cost{};
  }

  /// These are the counts of the sums key by key, as a textbook has them. float and double take the sums over biased
  /// keys by matrix products instead where exponents allow it (aft_biased.h).
  Cost cost(const AttentionShape& shape) const {
    const Sizes z = sizes(shape);
    const Index pairs = z.pairs();
    Index merges_before = 0, merges_after = 0, first_before = 0;
    for (Index t = 0; t < z.rows; ++t) {
      const AftReach::Range r = z.reach(t);
      merges_before += r.before > 0;
      merges_after += r.after < z.M;
      if (first_before == 0) first_before = r.before;
    }
    const Index before = z.reach(z.rows - 1).before, after = z.M - z.reach(0).after;
    const Index fresh =
        window > 0 ? std::max<Index>(z.M - after - before, 0) : 0;  // keys that every query has a bias for
    const Index twice = std::max<Index>(before + after - z.M, 0);   // lie before one window and after another
    const Index gated = query ? z.N * z.D : 0;
    const Counts add_key = kernels::exp_sums_add_counts(z.D, false), merge = kernels::exp_sums_add_counts(z.D, true);

    Cost cost;
    if (!bias(z).prepared()) {
      cost = bias(z).cost(pairs);
      cost.backward += cost.forward;  // w again; as papers count, once
    }
    // Forward: 1. biased keys; 2. the first keys before and after, further ones, joining them to the biased; 3.; 4.
    if (window > 0)
      for (Index t = 0; t < z.N; ++t) {
        const AftReach::Range r = z.reach(t);
        cost.forward += kernels::exp_sums_of_counts(r.last - r.first, z.D, true);
      }
    if (before > 0)
      cost.forward += kernels::exp_sums_of_counts(first_before, z.D, false) + (before - first_before) * add_key;
    if (after > 0) cost.forward += kernels::exp_sums_of_counts(1, z.D, false) + (after - 1) * add_key;
    if (window > 0) cost.forward += (merges_before + merges_after) * merge;
    cost.forward += z.rows * z.D * Counts{.div = 1} + kernels::gate_forward_counts(gated);
    // Backward: 4.; 3.; 2. queries met by the keys before and after, and those keys; 1. biased keys.
    cost.backward += kernels::gate_backward_counts(gated, Update::assign) + (z.N - z.rows) * z.D * Counts{.add = 1} +
                     z.rows * z.D * Counts{.mul = 1, .div = 1};
    if (after > 0) cost.backward += (merges_after - 1) * merge;
    if (before > 0) cost.backward += (merges_before - 1) * merge;
    cost.backward += (before + after - twice) * kernels::exp_sums_at_key_counts(z.D, Update::assign) +
                     twice * kernels::exp_sums_at_key_counts(z.D, Update::accumulate) +
                     kernels::exp_sums_backward_counts(fresh, z.D, Update::assign) +
                     kernels::exp_sums_backward_counts(pairs - fresh, z.D, Update::accumulate);
    // Numerator and denominator of each pair, or of each key without a bias; dv, dk and dw.
    const Index unbiased = before + after - twice;  // keys that some query sees without a bias
    cost.forward_contractions += z.D * (pairs + unbiased) * Counts{.mul = 1, .add = 2};
    cost.backward_contractions +=
        z.D * pairs * Counts{.mul = 2, .add = 3} + z.D * unbiased * Counts{.mul = 2, .add = 2};
    cost.attention_exp = cost.forward.exp - gated;  // without the gate's
    return cost;
  }

 private:
  struct Sizes {
    Index N, M, D;
    Index rows;  // different rows of sums: where all queries see the same, one
    AftReach reach;

    /// A row for each query, of a matrix that has one for each row of sums.
    template <class T>
    Matrix<T> of_queries(Matrix<T> m) const {
      return {m.data, N, m.columns, rows == 1 ? 0 : m.stride};
    }

    /// Of queries and keys for which they have a bias.
    Index pairs() const {
      Index pairs = 0;
      for (Index t = 0; t < rows; ++t) pairs += reach(t).last - reach(t).first;
      return pairs;
    }
  };
  Sizes sizes(const AttentionShape& s) const {
    const bool same = window == 0 && !causal;
    return {s.queries, s.keys, s.width, same ? 1 : s.queries, {window, masked, causal, s.queries, s.keys}};
  }
  AftBiasMatrix bias(const Sizes& z) const { return {z.reach, z.D, rank}; }
  AftBiased biased(const Sizes& z) const { return {bias(z)}; }

  // ---- Keys without a bias ----

  template <class T>
  static kernels::KeysAndValues<const T> keys(const AttentionInput<T>& in, Index first, Index count) {
    return {in.k[0].middle_rows(first, count), in.v[0].middle_rows(first, count)};
  }

  template <class T>
  void sum_before(const AttentionInput<T>& in, const Sizes& z, const ExpSums<T>& sums,
                  const ExpSums<T>& running) const {
    Index seen = 0;
    for (Index t = 0; t < z.rows; ++t) {
      const Index before = z.reach(t).before;
      if (before == 0) continue;
      if (seen == 0) {
        kernels::exp_sums_of(keys(in, 0, before), nullptr, running);
        seen = before;
      }
      for (; seen < before; ++seen) add_key(in, seen, running);
      join(t, running, sums);
    }
  }

  template <class T>
  void sum_after(const AttentionInput<T>& in, const Sizes& z, const ExpSums<T>& sums, const ExpSums<T>& running) const {
    Index seen = z.M;
    for (Index t = z.rows - 1; t >= 0; --t) {
      const Index after = z.reach(t).after;
      if (after == z.M) continue;
      if (seen == z.M) {
        kernels::exp_sums_of(keys(in, after, z.M - after), nullptr, running);
        seen = after;
      }
      while (seen > after) add_key(in, --seen, running);
      join(t, running, sums);
    }
  }

  template <class T>
  static void add_key(const AttentionInput<T>& in, Index s, const ExpSums<T>& running) {
    kernels::exp_sums_add({in.k[0].middle_rows(s, 1), {}, in.v[0].middle_rows(s, 1)}, running);
  }

  /// Adds the running sums to those of query t, which are empty so far if no key is biased.
  template <class T>
  void join(Index t, const ExpSums<T>& running, const ExpSums<T>& sums) const {
    if (window == 0)
      copy(running, sums.row(t));
    else
      kernels::exp_sums_add(running, sums.row(t));
  }

  template <class T>
  static void copy(const ExpSums<T>& from, const ExpSums<T>& to) {
    const auto copy_row = [](Matrix<T> row, Matrix<T> to) { std::copy_n(row.data, row.columns, to.data); };
    copy_row(from.scale, to.scale), copy_row(from.mass, to.mass), copy_row(from.value, to.value);
  }

  /// Key s lies after the window of the queries t with after(t) <= s: the more the larger s.
  template <class T>
  void sum_after_backward(const AttentionInput<T>& in, const Sizes& z, const ExpSums<T>& queries,
                          const ExpSums<T>& running, const AttentionGradient<T>& gradient) const {
    Index t = 0;
    for (Index s = z.reach(0).after; s < z.M; ++s) {
      for (; t < z.rows && z.reach(t).after <= s; ++t) add_query(t, t == 0, queries, running);
      at_key(in, s, running, gradient.update, gradient);
    }
  }

  /// Key s lies before the window of the queries t with before(t) > s: the more the smaller s.
  template <class T>
  void sum_before_backward(const AttentionInput<T>& in, const Sizes& z, const ExpSums<T>& queries,
                           const ExpSums<T>& running, const AttentionGradient<T>& gradient) const {
    const Index after = z.reach(0).after;
    Index t = z.rows - 1;
    for (Index s = z.reach(t).before - 1; s >= 0; --s) {
      for (; t >= 0 && z.reach(t).before > s; --t) add_query(t, t == z.rows - 1, queries, running);
      at_key(in, s, running, s >= after ? Update::accumulate : gradient.update, gradient);
    }
  }

  template <class T>
  static void add_query(Index t, bool first, const ExpSums<T>& queries, const ExpSums<T>& running) {
    if (first)
      copy(queries.row(t), running);
    else
      kernels::exp_sums_add(queries.row(t), running);
  }

  template <class T>
  static void at_key(const AttentionInput<T>& in, Index s, const ExpSums<T>& running, Update update,
                     const AttentionGradient<T>& gradient) {
    const kernels::KeysAndValues<T> dkey{gradient.k[0].middle_rows(s, 1), gradient.v[0].middle_rows(s, 1)};
    kernels::exp_sums_at_key(keys(in, s, 1), running, update, dkey);
  }
};

}  // namespace heed
