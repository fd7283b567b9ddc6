// Part of Reformer (reformer.cpp): a round of one head. Tokens are in the order of the round; a chunk sees itself and
// the previous chunk; the chunk before the first is the last. Steps are numbered as in reformer.cpp.
#pragma once

#include "order.h"

#include "heed/attention/mechanism_base.h"
#include "heed/base/math.h"
#include "heed/kernels/products/gemm.h"
#include "heed/kernels/rows/row_hash.h"
#include "heed/kernels/rows/softmax.h"

namespace heed {

/// Saved, for each head: |q|, k; per round the order of tokens, and in that order the maximum and the sum of exps of
/// each row of S; and the weights of the rounds for each token.
template <class T>
struct ReformerSaved {
  Heads<T> norms, k;              ///< [1, N], [N, d]
  Heads<T> order, rows, weights;  ///< [rounds, N], [rounds N, 2], [rounds, N]
};

template <class T>
struct ReformerScratch {
  Matrix<T> q, k, v, dq, dk, dv;           ///< in the order of a round; k, v, dk, dv begin with the last chunk's copy
  Matrix<T> A, dA, rows, values;           ///< for a chunk: A, its gradient, each row's maximum and sum of exps, O
  Matrix<T> u, O;                          ///< u of one round; O of all rounds
  T *buckets, *starts;                     ///< for a round: the tokens' buckets, and the start of each bucket
  Matrix<T> query_gradient, key_gradient;  ///< sums over rounds
  T* dots;                                 ///< <dout, out>
};

template <class T>
struct ReformerRound {
  const AttentionInput<T>& in;
  const ReformerSaved<T>& saved;
  const ReformerScratch<T>& scratch;
  Index chunk, h, r;

  Index tokens() const { return in.shape.queries; }
  Index chunks() const { return tokens() / chunk; }
  const T* order() const { return saved.order[h][r]; }

  /// Returns this round's rows of a matrix of all rounds.
  template <class U>
  Matrix<U> of_round(Matrix<U> x) const {
    return x.middle_rows(r * tokens(), tokens());
  }

  /// 2. Sorts the tokens by the bucket of q rotations[r].
  void sort() const {
    const Index d = in.shape.width, half = scratch.u.columns;
    kernels::gemm(in.q[h], Matrix<const T>(in.parameters[0].data() + r * d * half, d, half), scratch.u);
    kernels::hash_rows(scratch.u, scratch.buckets);
    sort_by_bucket(tokens(), scratch.buckets, 2 * half, scratch.starts, saved.order[h][r]);
  }

  /// Copies q, k and v to scratch, in the order of the round.
  void gather() const {
    const Index N = tokens();
    gather_rows<T>(order(), in.q[h], scratch.q);
    gather_rows<T>(order(), saved.k[h], scratch.k.middle_rows(chunk, N));
    gather_rows<T>(order(), in.v[h], scratch.v.middle_rows(chunk, N));
    gather_rows<T>(order() + N - chunk, saved.k[h], scratch.k.top_rows(chunk));
    gather_rows<T>(order() + N - chunk, in.v[h], scratch.v.top_rows(chunk));
  }

  /// 3. and 4. Computes O of the round, in the tokens' original order, and L, in the memory of the weights.
  void attend() const {
    const Matrix<T> O = of_round(scratch.O);
    for (Index c = 0; c < chunks(); ++c) {
      make_scores(c);
      const Matrix<T> kept = of_chunk(of_round(saved.rows[h]), c);
      kernels::attention_softmax({scale()}, scratch.A, kept);
      kernels::gemm(scratch.A, seen_by(scratch.v, c), scratch.values);
      for (Index i = 0; i < chunk; ++i) {
        using math::log;
        const Index token = as_index(order()[c * chunk + i]);
        saved.weights[h](r, token) = kept(i, 0) + log(kept(i, 1));
        std::copy_n(scratch.values[i], O.columns, O[token]);
      }
    }
  }

  /// Computes P of a chunk; overwrites A.
  void make_weights(Index c) const {
    make_scores(c);
    const Matrix<T> kept = of_chunk(of_round(saved.rows[h]), c);
    for (Index i = 0; i < chunk; ++i) {
      scratch.rows(i, 0) = kept(i, 0);
      scratch.rows(i, 1) = kept(i, 1) / saved.weights[h](r, as_index(order()[c * chunk + i]));
    }
    kernels::attention_softmax_again({scale()}, scratch.A, scratch.rows);
  }

  /// Runs the backward pass of 6. to 3.: computes dq, dk and dv, in the round's order, from dout in the original order.
  void undo(Matrix<const T> douts) const {
    const Matrix<T> dout = scratch.O.top_rows(tokens());  // overwrites O
    gather_rows<T>(order(), douts, dout);
    fill(scratch.dk, T(0)), fill(scratch.dv, T(0));
    for (Index c = 0; c < chunks(); ++c) undo_chunk(c, of_chunk(dout, c));
  }

 private:
  static constexpr double self_score = -5e4;

  double scale() const { return score_scale(in.shape); }

  /// Returns the rows that chunk c sees. x begins with a copy of the last chunk.
  Matrix<T> seen_by(Matrix<T> x, Index c) const { return x.middle_rows(c * chunk, 2 * chunk); }
  Matrix<T> of_chunk(Matrix<T> x, Index c) const { return x.middle_rows(c * chunk, chunk); }

  /// Calls f(i, j) for each query i of a chunk and each position j at which it would see itself: two positions if there
  /// is only one chunk.
  template <class F>
  void each_self(const F& f) const {
    for (Index i = 0; i < chunk; ++i) {
      f(i, chunk + i);
      if (chunks() == 1) f(i, i);
    }
  }

  /// Computes sqrt(d) S of a chunk.
  void make_scores(Index c) const {
    kernels::gemm(of_chunk(scratch.q, c), transposed(seen_by(scratch.k, c)), scratch.A);
    each_self([&](Index i, Index j) { scratch.A(i, j) = T(self_score / scale()); });
  }

  void undo_chunk(Index c, Matrix<const T> dout) const {
    make_weights(c);
    const Matrix<T> P = scratch.A, dS = scratch.dA;
    // 6. and 4.
    kernels::gemm(transposed(P), dout, Update::accumulate, seen_by(scratch.dv, c));
    kernels::gemm(dout, transposed(seen_by(scratch.v, c)), dS);
    for (Index i = 0; i < chunk; ++i) {
      const T dot = scratch.dots[as_index(order()[c * chunk + i])], factor(scale());
      const T* const p = P[i];
      T* const row = dS[i];
#pragma GCC ivdep
      for (Index j = 0; j < 2 * chunk; ++j) row[j] = factor * (p[j] * (row[j] - dot));
    }
    each_self([&](Index i, Index j) { dS(i, j) = T(0); });
    // 3.
    kernels::gemm(dS, seen_by(scratch.k, c), of_chunk(scratch.dq, c));
    kernels::gemm(transposed(dS), of_chunk(scratch.q, c), Update::accumulate, seen_by(scratch.dk, c));
  }
};

}  // namespace heed
