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
//
#pragma once

#include "heed/attention/aft_biased.h"
#include "heed/kernels/gate.h"

#include <limits>

namespace heed {

struct AftFull {
  static constexpr Index unlimited = std::numeric_limits<Index>::max() / 2;

  Index window = unlimited;  ///< unlimited: full; 0: simple
  bool masked = false, causal = false, query = true;
  Index rank = 0;  ///< w = u p^T with u [N, rank], p [M, rank]; 0: w [N, M] itself

  // Saved: of every query the scale and mass of its sums, which make the weights again, and y for dq and dk.
  Index saved(const AttentionShape& shape) const {
    const Sizes z = sizes(shape);
    return 3 * z.rows * z.D;
  }

  // The gradient of all sums, running sums, the row of a gate, and what the biased keys need.
  Index scratch(const AttentionShape& shape) const {
    const Sizes z = sizes(shape);
    return 3 * (z.rows + 1) * z.D + std::max(z.D, window > 0 ? biased(z).scratch() : 0);
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, T* saved, T* scratch) const {
    const Sizes z = sizes(in.shape);
    const ExpSums<T> sums{saved, saved + z.rows * z.D, saved + 2 * z.rows * z.D};
    // 1. sums over the biased keys
    if (window > 0) biased(z).forward(in, sums, scratch);
    // 2. and over the keys before and after them
    sum_before(in, z, sums, ExpSums<T>{scratch, scratch + z.D, scratch + 2 * z.D});
    sum_after(in, z, sums, ExpSums<T>{scratch, scratch + z.D, scratch + 2 * z.D});
    // 3. y = value / mass
    for (Index i = 0; i < z.rows * z.D; ++i) sums.value[i] = sums.value[i] / sums.mass[i];
    // 4. out = sigma(q) y
    for (Index t = 0; t < z.N; ++t) {
      const T* const y = sums.value + z.row(t) * z.D;
      if (query)
        kernels::gate_forward(z.D, in.q[0] + t * in.q.row_stride, y, out[0] + t * out.row_stride);
      else
        std::copy(y, y + z.D, out[0] + t * out.row_stride);
    }
  }

  // With p[t,s,c] = exp(k[s,c] + w[t,s]) / den[t,c], the weight of key s, and dy[t,c] = d(loss)/dy:
  // Undoing 4:  dy = sigma(q) dout,  dq = sigma'(q) y dout.
  // Undoing 3-1: y is a weighted mean, so dy[t,c]/dx[t,s,c] = p (v[s,c] - y[t,c]) for the exponent x = k + w, hence
  //   dv[s,c] = sum_t p dy[t,c],   dk[s,c] = sum_t p dy[t,c] (v[s,c] - y[t,c]),   dw[t,s] = the same, summed over c.
  // For keys without a bias p = exp(k[s,c]) exp(-scale[t,c]) / mass[t,c]: running sums over queries of
  // exp(-scale) (dy / mass, y dy / mass) serve all keys, as running sums over keys served the queries.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T> dout, const T* saved, T* scratch,
                    const AttentionGradient<T>& gradient) const {
    const Sizes z = sizes(in.shape);
    const Index size = z.rows * z.D;
    const T *const scale = saved, *const mass = saved + size, *const y = saved + 2 * size;
    const ExpSums<T> queries{scratch, scratch + size, scratch + 2 * size};  // -scale, dy / mass, y dy / mass
    const ExpSums<T> running{scratch + 3 * size, scratch + 3 * size + z.D, scratch + 3 * size + 2 * z.D};
    scratch += 3 * size + 3 * z.D;
    // 4. Queries that share one row of sums (simple, not causal) add up their dy.
    for (Index t = 0; t < z.N; ++t) {
      const T* dy = dout[0] + t * dout.row_stride;
      T* const dq = gradient.q[0] + t * gradient.q.row_stride;
      if (query) {
        kernels::gate_backward(z.D, in.q[0] + t * in.q.row_stride, y + z.row(t) * z.D, dy, gradient.update, dq,
                               scratch);
        dy = scratch;
      } else if (gradient.update == Update::assign) {
        std::fill(dq, dq + z.D, T(0));
      }
      const Update update = t == 0 || z.row(t) != z.row(t - 1) ? Update::assign : Update::accumulate;
      for (Index c = 0; c < z.D; ++c) write(update, queries.mass[z.row(t) * z.D + c], dy[c]);
    }
    // 3.
    for (Index i = 0; i < size; ++i) {
      queries.scale[i] = -scale[i];
      queries.mass[i] = queries.mass[i] / mass[i];
      queries.value[i] = y[i] * queries.mass[i];
    }
    // 2. and 1.
    sum_after_backward(in, z, queries, running, gradient);
    sum_before_backward(in, z, queries, running, gradient);
    if (window > 0) biased(z).backward(in, scale, queries.mass, y, scratch, gradient);
  }

  Cost cost(const AttentionShape& shape) const {
    const Sizes z = sizes(shape);
    Index pairs = 0, merges_before = 0, merges_after = 0, first_before = 0;
    for (Index t = 0; t < z.rows; ++t) {
      const AftReach::Range r = z.reach(t);
      pairs += r.last - r.first;
      merges_before += r.before > 0;
      merges_after += r.after < z.M;
      if (first_before == 0) first_before = r.before;
    }
    const Index before = z.reach(z.rows - 1).before, after = z.M - z.reach(0).after, biased = window > 0 ? z.N : 0;
    const Index fresh = window > 0 ? std::max<Index>(z.M - after - before, 0) : 0;
    const Index unbiased = std::min(z.M, before + after);  // keys that some query sees without a bias
    const Counts of_keys{.mul = 1, .add = 3, .exp = 1, .cmp = 1},
        of_rows{.add = -2, .cmp = -1};  // kernels::exp_sums_of
    const Counts add_key{.mul = 3, .add = 3, .exp = 1, .cmp = 1}, merge{.mul = 4, .add = 3, .exp = 1, .cmp = 1};
    const Counts gate{.mul = 1, .add = 1, .div = 1, .exp = 1}, gate_back{.mul = 3, .add = 2, .div = 1, .exp = 1};

    Cost cost;
    // Forward: 1. biased keys; 2. the first keys before and after, further ones, joining them to the biased; 3.; 4.
    cost.forward = product_counts(pairs, 1, rank) + z.D * (pairs * (of_keys + Counts{.add = 2}) + biased * of_rows);
    if (before > 0) cost.forward += z.D * (first_before * of_keys + of_rows + (before - first_before) * add_key);
    if (after > 0) cost.forward += z.D * (of_keys + of_rows + (after - 1) * add_key);
    if (window > 0) cost.forward += z.D * ((merges_before + merges_after) * merge);
    cost.forward += z.rows * z.D * Counts{.div = 1} + (query ? z.N * z.D : 0) * gate;
    // Backward: 4.; 3.; 2. queries met by the keys before and after, and those keys; 1. biased keys, then dw.
    cost.backward = (query ? z.N * z.D : 0) * gate_back + (z.N - z.rows) * z.D * Counts{.add = 1} +
                    z.rows * z.D * Counts{.mul = 1, .div = 1};
    if (after > 0) cost.backward += z.D * (merges_after - 1) * merge;
    if (before > 0) cost.backward += z.D * (merges_before - 1) * merge;
    cost.backward += z.D * (before + after) * Counts{.mul = 3, .add = 2, .exp = 1} +
                     2 * z.D * std::max<Index>(before + after - z.M, 0) * Counts{.add = 1};
    cost.backward += product_counts(pairs, 1, rank) + z.D * pairs * Counts{.mul = 2, .add = 5, .exp = 1} +
                     pairs * sum_counts(z.D) + 2 * z.D * fresh * Counts{.add = -1};
    cost.backward += window > 0 ? rank > 0 ? 2 * product_contractions(pairs, rank, 1) : Counts{.add = pairs} : Counts{};
    // Numerator and denominator of each pair, or of each key without a bias; dv, dk and dw.
    cost.forward_contractions =
        product_contractions(pairs, 1, rank) + z.D * (pairs + unbiased) * Counts{.mul = 1, .add = 2};
    cost.backward_contractions = 2 * product_contractions(pairs, 1, rank) + z.D * pairs * Counts{.mul = 2, .add = 3} +
                                 z.D * unbiased * Counts{.mul = 2, .add = 2};
    cost.attention_exp = cost.forward.exp - (query ? z.N * z.D : 0);  // without the gate's
    return cost;
  }

 private:
  template <class T>
  using ExpSums = kernels::ExpSums<T>;

  struct Sizes {
    Index N, M, D;
    Index rows;  // different rows of sums: where all queries see the same, one
    AftReach reach;

    Index row(Index t) const { return std::min(t, rows - 1); }
  };
  Sizes sizes(const AttentionShape& s) const {
    const bool same = window == 0 && !causal;
    return {s.queries, s.keys, s.width, same ? 1 : s.queries, {window, masked, causal, s.keys}};
  }
  AftBiased biased(const Sizes& z) const { return {z.reach, z.N, z.D, rank}; }

  // ---- Keys without a bias ----

  template <class T>
  void sum_before(const AttentionInput<T>& in, const Sizes& z, ExpSums<T> sums, ExpSums<T> running) const {
    Index seen = 0;
    for (Index t = 0; t < z.rows; ++t) {
      const Index before = z.reach(t).before;
      if (before == 0) continue;
      if (seen == 0) {
        kernels::exp_sums_of(before, z.D, in.k[0], in.k.row_stride, in.v[0], in.v.row_stride,
                             static_cast<const T*>(nullptr), running);
        seen = before;
      }
      for (; seen < before; ++seen) add_key(in, z, seen, running);
      join(z, t, running, sums);
    }
  }

  template <class T>
  void sum_after(const AttentionInput<T>& in, const Sizes& z, ExpSums<T> sums, ExpSums<T> running) const {
    Index seen = z.M;
    for (Index t = z.rows - 1; t >= 0; --t) {
      const Index after = z.reach(t).after;
      if (after == z.M) continue;
      if (seen == z.M) {
        kernels::exp_sums_of(z.M - after, z.D, in.k[0] + after * in.k.row_stride, in.k.row_stride,
                             in.v[0] + after * in.v.row_stride, in.v.row_stride, static_cast<const T*>(nullptr),
                             running);
        seen = after;
      }
      while (seen > after) add_key(in, z, --seen, running);
      join(z, t, running, sums);
    }
  }

  template <class T>
  static void add_key(const AttentionInput<T>& in, const Sizes& z, Index s, ExpSums<T> running) {
    kernels::exp_sums_add(z.D, in.k[0] + s * in.k.row_stride, static_cast<const T*>(nullptr),
                          in.v[0] + s * in.v.row_stride, running);
  }

  /// Adds the running sums to those of query t, which are empty so far if no key is biased.
  template <class T>
  void join(const Sizes& z, Index t, ExpSums<T> running, ExpSums<T> sums) const {
    if (window == 0)
      copy(z, running, sums.at(t * z.D));
    else
      kernels::exp_sums_add<T>(z.D, running.scale, running.mass, running.value, sums.at(t * z.D));
  }

  template <class T>
  static void copy(const Sizes& z, ExpSums<T> from, ExpSums<T> to) {
    std::copy(from.scale, from.scale + z.D, to.scale);
    std::copy(from.mass, from.mass + z.D, to.mass);
    std::copy(from.value, from.value + z.D, to.value);
  }

  /// Key s lies after the window of the queries t with after(t) <= s: the more the larger s.
  template <class T>
  void sum_after_backward(const AttentionInput<T>& in, const Sizes& z, ExpSums<T> queries, ExpSums<T> running,
                          const AttentionGradient<T>& gradient) const {
    Index t = 0;
    for (Index s = z.reach(0).after; s < z.M; ++s) {
      for (; t < z.rows && z.reach(t).after <= s; ++t) add_query(z, t, t == 0, queries, running);
      at_key(in, z, s, running, gradient.update, gradient);
    }
  }

  /// Key s lies before the window of the queries t with before(t) > s: the more the smaller s.
  template <class T>
  void sum_before_backward(const AttentionInput<T>& in, const Sizes& z, ExpSums<T> queries, ExpSums<T> running,
                           const AttentionGradient<T>& gradient) const {
    const Index after = z.reach(0).after;
    Index t = z.rows - 1;
    for (Index s = z.reach(t).before - 1; s >= 0; --s) {
      for (; t >= 0 && z.reach(t).before > s; --t) add_query(z, t, t == z.rows - 1, queries, running);
      at_key(in, z, s, running, s >= after ? Update::accumulate : gradient.update, gradient);
    }
  }

  template <class T>
  static void add_query(const Sizes& z, Index t, bool first, ExpSums<T> queries, ExpSums<T> running) {
    const ExpSums<T> row = queries.at(t * z.D);
    if (first)
      copy(z, row, running);
    else
      kernels::exp_sums_add<T>(z.D, row.scale, row.mass, row.value, running);
  }

  template <class T>
  static void at_key(const AttentionInput<T>& in, const Sizes& z, Index s, ExpSums<T> running, Update update,
                     const AttentionGradient<T>& gradient) {
    kernels::exp_sums_at_key(z.D, in.k[0] + s * in.k.row_stride, in.v[0] + s * in.v.row_stride, running, update,
                             gradient.k[0] + s * gradient.k.row_stride, gradient.v[0] + s * gradient.v.row_stride);
  }
};

}  // namespace heed
