// Part of Performer (performer.cpp): steps 2 to 4 and their backward passes, for a block of one head.
#pragma once

#include "head.h"
#include "src/attention/shared/row_division.h"

#include "heed/attention/map_blocks.h"

namespace heed {

template <class T>
struct PerformerScratch {
  PerformerSums<T> sums;                 ///< sums over keys, with `causal`
  Heads<T> query_sums;                   ///< sums over queries, [1, m e + m + e]
  Matrix<T> phi, E;                      ///< for a block, [rows, m], unless saved
  T *h, *largest, *decays, *weights;     ///< for a block; h = |x'|^2 / 2, `largest` the largest u
  Matrix<T> values, channels, products;  ///< for a block: [rows, e], [rows, d], [rows, m]
  Matrix<T> W, R, D;                     ///< with `causal`, of a block [rows, rows]: W, R = exp(c_s - c_t), R dW
  Matrix<T> G, dE;                       ///< [N, e] and [M, m] with `causal`, otherwise of a block
  T *delta, *dc;                         ///< [N] with `causal`, otherwise of a block; dc is the gradient of c_t
  Matrix<T> dphi;                        ///< for a block, [rows, m]
  T* dc_of_keys;                         ///< per head: gradient for the key that attained the maximum c
};

template <class T>
struct PerformerSteps {
  const AttentionInput<T>& in;
  PerformerFeatures features;
  const PerformerSaved<T>& saved;
  const PerformerScratch<T>& scratch;
  Index h;
  PerformerHead<T> head{in, saved, h};
  PerformerSums<T> sums = causal() ? scratch.sums : sums_in(saved.sums[h][0]);  ///< sums over keys
  PerformerSums<T> query_sums = sums_in(scratch.query_sums[h][0]);              ///< sums over queries

  bool causal() const { return features.causal; }
  /// Returns c_t of query t.
  T c_of(Index t) const { return head.c[causal() ? std::min(t, head.k.rows - 1) : head.k.rows - 1]; }

  /// Run step 1 for a block's queries; in the backward pass only if phi is not saved.
  void make_queries(const PerformerBlock& b) const {
    features.make_queries(in, head, b, phi(b), scratch.h, scratch.largest);
  }
  void make_queries_again(const PerformerBlock& b) const {
    if (!head.keeps_features()) features.make_queries_again(in, head, b, phi(b), scratch.h, scratch.largest);
  }
  Matrix<T> phi(const PerformerBlock& b) const {
    return head.keeps_features() ? b.rows_of(head.phi) : scratch.phi.top_rows(b.rows);
  }

  /// Runs step 1 for the keys from `first` on; without `causal`, also adds these keys to the sums over keys.
  void make_keys(Index first, Index count) const {
    const Matrix<T> E = head.keeps_features() ? head.E.middle_rows(first, count) : scratch.E.top_rows(count);
    features.make_keys(in, head, first, E, scratch.h);
    if (!causal()) sum_keys(first, E);
  }
  /// Returns E of keys: saved, or recomputed.
  Matrix<T> keys_again(Index first, Index count) const {
    if (head.keeps_features()) return head.E.middle_rows(first, count);
    const Matrix<T> E = scratch.E.top_rows(count);
    features.make_keys_again(in, head, first, E, scratch.h);
    return E;
  }

  /// Return G, delta and dc of a block's queries; with `causal` those of all queries are saved for keys_backward.
  Matrix<T> G(const PerformerBlock& b) const { return scratch.G.middle_rows(kept_from(b), b.rows); }
  T* delta(const PerformerBlock& b) const { return scratch.delta + kept_from(b); }
  T* dc(const PerformerBlock& b) const { return scratch.dc + kept_from(b); }

  /// Returns exp(c_s - c_l) for the block's keys s, where l is the last key (of the block if `causal`, else of all
  /// keys); null if not `causal` and the block has all keys, which then share one c.
  const T* key_decays(const PerformerBlock& b) const {
    const Index last = (causal() ? b.first + b.keys : head.k.rows) - 1;
    if (!causal() && b.keys == head.k.rows) return nullptr;
    for (Index i = 0; i < b.keys; ++i) scratch.decays[i] = decay(head.c[b.first + i], head.c[last]);
    return scratch.decays;
  }

  /// Adds a block's queries to the sums over queries. Only called without `causal`, when all queries share one c.
  void sum_queries(const PerformerBlock& b) const {
    query_sums.add({phi(b), G(b), delta(b), head.sigma + b.first}, term_update(b.first));
  }
  /// Adds the block's keys to the sums over keys, which are first rescaled from the c of the key before the block to
  /// that of the block's last key.
  void add_keys(const PerformerBlock& b) const {
    const bool others = b.before > 0;
    const T before = others ? decay(head.c[b.before - 1], head.c[b.first + b.keys - 1]) : T(1);
    sums.add({b.keys_of(head.E), b.keys_of(head.v), nullptr, nullptr, key_decays(b)}, others, before, scratch.values,
             scratch.weights);
  }
  /// Adds the block's queries to the sums over later queries, which are first rescaled from the c of the block's last
  /// query to the c of the last key before the block.
  void add_queries(const PerformerBlock& b) const {
    const T before = b.later ? decay(head.c[b.before - 1], c_of(b.first + b.rows - 1)) : T(1);
    query_sums.add({phi(b), G(b), delta(b), head.sigma + b.first, query_decays(b)}, b.later, before, scratch.values,
                   scratch.weights);
  }

  /// Computes out = decay P^T phi + 1e-4 sigma V, den = decay p . phi + 1e-4 sigma n for the n keys in the sums.
  void sum_before(const PerformerBlock& b, Matrix<T> out, T* den) const {
    const PerformerRows<T> queries{phi(b), {}, nullptr, head.sigma + b.first, query_decays(b)};
    sums.values(queries, Update::assign, {}, out);
    kernels::row_dots(queries.f, repeated(sums.p, b.rows), den);
    const T tiny(performer_tiny * static_cast<double>(b.before));
    for (Index i = 0; i < b.rows; ++i) den[i] = (causal() ? queries.decay[i] * den[i] : den[i]) + tiny * queries.b[i];
  }

  /// Computes R_ts = exp(c_s - c_t), W_ts = R_ts <phi_t, E_s> + 1e-4 sigma_t for the block's pairs; 0 for masked pairs.
  void make_pairs(const PerformerBlock& b) const {
    const Matrix<T> R = b.pairs(scratch.R), W = b.pairs(scratch.W);
    kernels::gemm(phi(b), transposed(b.keys_of(head.E)), W);
    for (Index i = 0; i < b.rows; ++i) {
      const T c_t = c_of(b.first + i), tiny = T(performer_tiny) * head.sigma[b.first + i];
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

  /// Computes G = dout / den and delta = -<dout, out> / den of a block's queries.
  void undo_division(const PerformerBlock& b, Matrix<const T> out, Matrix<const T> dout) const {
    divide_rows_backward(b.rows_of(out), head.den + b.first, b.rows_of(dout), G(b), delta(b));
  }

  /// Computes dphi and dc of a block's queries, and the contributions of the block's pairs to dE and dv of its keys.
  void undo_sums(const PerformerBlock& b, Update update, Matrix<T> dv) const {
    const Matrix<T> dphi = scratch.dphi.top_rows(b.rows), G = this->G(b);
    const T *const delta = this->delta(b), *const sigma = head.sigma + b.first;
    if (b.before > 0) sums.features({phi(b), G, delta, nullptr, query_decays(b)}, Update::assign, {}, dphi);
    if (b.keys > 0) {
      make_pairs(b);
      const Matrix<T> D = b.pairs(scratch.D), R = b.pairs(scratch.R);
      kernels::gemm(G, transposed(b.keys_of(head.v)), D);
      for (Index i = 0; i < b.rows; ++i) {
        for (Index j = 0; j < b.seen(i); ++j) D(i, j) = (D(i, j) + delta[i]) * R(i, j);
        std::fill(D[i] + b.seen(i), D[i] + b.keys, T(0));
      }
      kernels::gemm(D, b.keys_of(head.E), b.after(0), dphi);
      kernels::gemm(transposed(D), phi(b), b.keys_of(scratch.dE));
      kernels::gemm(transposed(b.pairs(scratch.W)), G, update, b.keys_of(dv));
    }
    T* const dc = this->dc(b);
    kernels::row_dots(phi(b), dphi, dc);
    for (Index i = 0; i < b.rows; ++i) {
      dc[i] = -dc[i];
      const T rest = dc[i] / sigma[i];
      for (T *x = dphi[i], *const end = x + dphi.columns; x < end; ++x) *x += rest;
    }
  }

  /// Returns exp(a - b).
  static T decay(T a, T b) {
    using kernels::exp;
    return exp(a - b);
  }

 private:
  PerformerSums<T> sums_in(T* memory) const { return PerformerSums<T>::in(memory, features.m, in.shape.value_width); }

  Index kept_from(const PerformerBlock& b) const { return causal() ? b.first : 0; }

  /// Rescales the sums to the c of the keys from `first` on, and adds these keys. Only called without `causal`.
  void sum_keys(Index first, Matrix<T> E) const {
    if (first > 0) sums.scale(decay(head.c[first - 1], head.c[first]));
    sums.add({E, head.v.middle_rows(first, E.rows)}, term_update(first));
  }

  /// Returns exp(c_l - c_t) for the block's queries t, where l is the last key before the block; null without `causal`,
  /// when all queries share one c.
  const T* query_decays(const PerformerBlock& b) const {
    if (!causal()) return nullptr;
    for (Index i = 0; i < b.rows; ++i) scratch.decays[i] = decay(head.c[b.before - 1], c_of(b.first + i));
    return scratch.decays;
  }
};

/// Adds the costs of steps 2 and 3 and their backward passes. Causal costs are per query: each query except the first
/// reads the sums; each query with a key at its position computes that pair, and adds the key to the sums for the next
/// query. Without `causal`, each of the `blocks` of keys except the first rescales the sums over earlier keys.
inline void add_performer_sums_counts(const AttentionShape& shape, Index m, bool causal, Index blocks, Cost& cost) {
  const auto [N, M, d, e] = shape.sizes();
  const auto keys = [=, e = e](Index rows) { return PerformerRowsCost{rows, m, e, false}; };
  const auto queries = [=, e = e](Index rows) { return PerformerRowsCost{rows, m, e, true}; };
  const Counts read = kernels::row_dots_counts(1, m) + Counts{.mul = 1, .add = 1};
  const Counts one_decay{.add = 1, .exp = 1};
  if (!causal) {
    const bool decays = blocks > 1;
    cost.forward +=
        keys(M).assign() + queries(N).values(false) + N * read + (blocks - 1) * (one_decay + Counts{.mul = m * e + m});
    cost.backward += queries(N).features(false) + queries(N).assign() + keys(M).values(decays) +
                     keys(M).features(decays) + decays * M * one_decay;
    return;
  }
  const Index pairs = keys_seen(causal, M, N), added = std::min(M, N - 1);
  const Counts make_pair = product_counts(1, 1, m) + one_decay + Counts{.mul = 2, .add = 1};
  Counts add_all_keys = added * one_decay, add_all_queries = (N - 1) * one_decay;
  if (added > 0) add_all_keys += keys(1).add(false) + (added - 1) * (one_decay + keys(1).add(true));
  if (N > 1) add_all_queries += queries(1).add(false) + (N - 2) * (one_decay + queries(1).add(true));
  cost.forward += (N - 1) * (one_decay + queries(1).values(true) + read + Counts{.mul = 1}) +
                  pairs * (make_pair + product_counts(1, e, 1)) + (pairs - 1) * Counts{.add = e + 1} + add_all_keys;
  cost.backward += (N - 1) * (one_decay + queries(1).features(true)) +
                   pairs * (make_pair + product_counts(1, 1, e) + Counts{.mul = 1, .add = 1} +
                            2 * product_counts(1, m, 1) + product_counts(1, e, 1)) +
                   (pairs - 1) * Counts{.add = m} + add_all_keys +
                   added * (one_decay + keys(1).values(true) + keys(1).features(true) + Counts{.add = e + m}) +
                   add_all_queries;
}

}  // namespace heed
