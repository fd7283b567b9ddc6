// Reformer: attention among tokens that hash alike. Kitaev, Kaiser, Levskaya, "Reformer: The Efficient Transformer",
// 2020, arXiv:2001.04451v2, Section 2.
//
// Queries serve as keys. Each of several rounds sorts the tokens by a hash of their direction and cuts the sorted row
// into chunks; a token sees those of its own chunk and of the chunk before, which for the first is the last:
//
//   k = q / |q|                                     [N, d], token by token
//   u = q rotations[r],  bucket = arg max [u, -u]   rotations [rounds, d, buckets / 2] a buffer, drawn once
//   order: tokens by bucket, equal ones as they stand
//   S_ij = q_i . k_j / sqrt(d),  S_ii = -5e4        [chunk, 2 chunk] per chunk; a token sees itself only if nothing
//   else A = softmax(S),  L_i = log sum_j exp(S_ij)      row by row O = A v                                         [N,
//   e] per round out_i = sum_r w_ri O_ri,  w_i = softmax over rounds of L_i
//
// The rounds' weights make it one softmax over all that token i sees in all rounds, twice if it sees it twice, which is
// what the backward pass undoes.
//
// Time 4 N chunk d and N d buckets / 2 per round, memory O(rounds N d). Differs from the paper, as the authors of
// reformer-pytorch do: tokens of other buckets in reach are seen, and what several rounds see is not divided among
// them. |q| below 1e-12 is replaced by that constant. The hash has no gradient.
#include "reformer_order.h"

#include "heed/attention/mechanism_base.h"
#include "heed/kernels/gemm.h"
#include "heed/kernels/normalize.h"
#include "heed/kernels/row_hash.h"
#include "heed/kernels/rows.h"
#include "heed/kernels/softmax.h"
#include "heed/kernels/softmax_columns.h"

#include <cmath>

namespace heed {

class Reformer : public MechanismBase<Reformer> {
 public:
  static constexpr const char* mechanism_name = "reformer";
  static constexpr const char* summary = "softmax(q k^T / sqrt(d)) v, k = q / |q|, among tokens that hash alike";
  static constexpr const char* complexity = "time O(N chunk d) per round, memory O(N d) per round";

  Index rounds = 0, buckets = -1, chunk = 0;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("rounds", rounds, "of hashing (required in a model)");
    visit("buckets", buckets, "of a round's hash, an even number (required in a model); 0: as many as chunks");
    visit("chunk", chunk, "tokens of a chunk (required); it must divide their number");
  }

  static std::vector<OptionValues> variants() {
    return {{{"rounds", "2"}, {"buckets", "2"}, {"chunk", "4"}},
            {{"rounds", "1"}, {"buckets", "4"}, {"chunk", "3"}},
            {{"rounds", "3"}, {"buckets", "0"}, {"chunk", "2"}}};
  }
  static std::vector<MechanismSetting> settings() {
    return {{"reformer", {{"rounds", "2"}, {"buckets", "0"}, {"chunk", "64"}}, true}};
  }

  MechanismTraits traits() const override { return {.qk_norm = false}; }
  AttentionLayout layout(Index dim, Index heads) const override { return {heads, dim / heads, 0, dim / heads}; }

  void read_sizes(const std::map<std::string, Shape>& tensors) override {
    const auto rotations = tensors.find("rotations");
    if (rotations == tensors.end() || rotations->second.rank() != 3) return;
    if (rounds == 0) rounds = rotations->second[0];
    if (buckets == -1) buckets = 2 * rotations->second[2];
  }

  void check(const AttentionShape& shape) const override {
    const Index N = shape.queries;
    require(N == shape.keys, "[reformer] there are {} queries and {} keys; q serves as k, so they must be the same", N,
            shape.keys);
    require(rounds >= 1 && rounds <= 1024, "[reformer] rounds is {}; expected 1 to 1024", rounds);
    require(chunk >= 1 && N % chunk == 0, "[reformer] chunk is {}; it must divide the {} tokens", chunk, N);
    require(buckets >= 0 && buckets % 2 == 0,
            "[reformer] buckets is {}; expected an even number, or 0 for one per chunk", buckets);
    require(bucket_count(shape) <= N, "[reformer] buckets is {}; expected at most {}, the tokens there are",
            bucket_count(shape), N);
  }

  std::vector<ParameterSpec> parameters(const AttentionShape& shape) const override {
    return {{"rotations", {rounds, shape.width, bucket_count(shape) / 2}, Initial::normal(1), false, false}};
  }

  // Saved, of each head: |q|, k; of each round the order of tokens, and in that order the maximum and sum of each row
  // of A; and the rounds' weights of each token.
  template <class T>
  struct Saved {
    Heads<T> norms, k;              ///< [1, N], [N, d]
    Heads<T> order, rows, weights;  ///< [rounds, N], [rounds N, 2], [rounds, N]
  };
  template <class T>
  Saved<T> saved(const AttentionShape& shape, Carver<T>& carve) const {
    const Index H = shape.heads, N = shape.queries;
    return {carve_heads(H, 1, N, carve), carve_heads(H, N, shape.width, carve), carve_heads(H, rounds, N, carve),
            carve_heads(H, rounds * N, 2, carve), carve_heads(H, rounds, N, carve)};
  }

  template <class T>
  struct Scratch {
    Matrix<T> q, k, v, dq, dk, dv;  ///< in the order of a round; the last chunk of k and v also in front of the first
    Matrix<T> A, dA, rows, values;  ///< of a chunk: A, its gradient, maximum and sum of each row, O
    Matrix<T> u, O;                 ///< of a round; of all rounds
    T *buckets, *starts;            ///< of a round: the tokens' buckets, and where each bucket begins
    Matrix<T> query_gradient, key_gradient;  ///< sums over rounds
    T* dots;                                 ///< <dout, out>
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& shape, Carver<T>& carve) const {
    const auto [N, M, d, e] = shape.sizes();
    return {carve.matrix(N, d),
            carve.matrix(N + chunk, d),
            carve.matrix(N + chunk, e),
            carve.matrix(N, d),
            carve.matrix(N + chunk, d),
            carve.matrix(N + chunk, e),
            carve.matrix(chunk, 2 * chunk),
            carve.matrix(chunk, 2 * chunk),
            carve.matrix(chunk, 2),
            carve.matrix(chunk, e),
            carve.matrix(N, bucket_count(shape) / 2),
            carve.matrix(rounds * N, e),
            carve.numbers(N),
            carve.numbers(bucket_count(shape)),
            carve.matrix(N, d),
            carve.matrix(N, d),
            carve.numbers(N)};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> outs, const Saved<T>& saved, const Scratch<T>& scratch) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      // 1. to 5.
      run_rounds(in, h, saved, scratch);
      // 6. out_i = sum_r w_ri O_ri
      const Matrix<T> out = outs[h], w = saved.weights[h];
      for (Index r = 0; r < rounds; ++r) {
        const Matrix<T> O = of_round(scratch.O, r, out.rows);
        const Update update = r == 0 ? Update::assign : Update::accumulate;
        for (Index i = 0; i < out.rows; ++i) {
          const T weight = w(r, i), *const from = O[i];
          T* const to = out[i];
#pragma GCC ivdep
          for (Index c = 0; c < out.columns; ++c) write(update, to[c], weight * from[c]);
        }
      }
    }
  }

  // P_rij = w_ri A_rij = exp(S_rij) / sum over all rounds and keys of exp(S_i), one softmax:
  // Undoing 6 and 4: dv_j += sum P_rij dout_i,  dP_rij = <dout_i, v_j>,
  //                  dS_rij = P_rij (dP_rij - <dout_i, out_i>) / sqrt(d), 0 for i = j, whose S is a constant.
  // Undoing 3: dq_i = sum dS_rij k_j,  dk_j = sum dS_rij q_i.
  // Undoing 1: dq += (dk - k <k, dk>) / |q|, or dk / 1e-12 where that is the divisor.
  // Rounds are undone one by one, in their own order of tokens.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T> outs, Heads<const T> douts, const Saved<T>& saved,
                    const Scratch<T>& scratch, const AttentionGradient<T>& gradient) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      kernels::row_dots(douts[h], outs[h], scratch.dots);
      for (Index r = 0; r < rounds; ++r) {
        // 6. to 3., in the order of the round, where dout takes the place of O
        gather_round(in, h, saved, r, scratch);
        const T* const order = saved.order[h][r];
        const Matrix<T> dout = of_round(scratch.O, 0, in.shape.queries);
        gather_rows<T>(order, douts[h], dout);
        fill(scratch.dk, T(0)), fill(scratch.dv, T(0));
        for (Index c = 0; c < chunks(in.shape); ++c) undo_chunk<T>(in.shape, saved, h, r, c, dout, scratch);
        const Update first = r == 0 ? Update::assign : Update::accumulate;
        scatter_rows(order, scratch.dq, first, scratch.query_gradient);
        scatter_rows(order, joined_ends(scratch.dk), first, scratch.key_gradient);
        scatter_rows(order, joined_ends(scratch.dv), r == 0 ? gradient.update : Update::accumulate, gradient.v[h]);
      }
      // 1.
      undo_norm<T>(saved.k[h], saved.norms[h][0], scratch, gradient.update, gradient.q[h]);
    }
  }

  // P, summed over rounds and over all places where a token sees another.
  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> maps, const Saved<T>& saved, const Scratch<T>& scratch) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      run_rounds(in, h, saved, scratch);
      fill(maps[h], T(0));
      for (Index r = 0; r < rounds; ++r) {
        gather_round(in, h, saved, r, scratch);
        for (Index c = 0; c < chunks(in.shape); ++c) {
          make_weights(in.shape, saved, h, r, c, scratch);
          for (Index i = 0; i < chunk; ++i)
            for (Index j = 0; j < 2 * chunk; ++j) {
              const T* const order = saved.order[h][r];
              const Index query = token_at(order[c * chunk + i]);
              const Index key = token_at(order[(in.shape.queries + (c - 1) * chunk + j) % in.shape.queries]);
              maps[h](query, key) += scratch.A(i, j);
            }
        }
      }
    }
  }

  Cost cost(const AttentionShape& shape) const override {
    const auto [N, M, d, e] = shape.sizes();
    const Index seen = 2 * chunk, pairs = N * seen, half = bucket_count(shape) / 2;
    const Counts scores = product_counts(N, seen, d);
    Cost cost;
    // Forward: 1. |q| and k; 2. u and buckets; 3. S; 4. A, L and O; 5. w; 6. out.
    cost.forward = kernels::row_dots_counts(N, d) + N * Counts{.div = d, .sqrt = 1, .cmp = 1} +
                   rounds * (product_counts(N, half, d) + kernels::hash_rows_counts(N, half) + scores +
                             kernels::attention_softmax_counts(N, pairs) + N * Counts{.add = 1, .log = 1} +
                             product_counts(N, e, seen)) +
                   kernels::softmax_columns_counts(rounds, N) + product_counts(N, e, rounds);
    // Backward: <dout, out>; per round A again, dv, dP, dS, dq and dk, and the sums over places and rounds; 1.
    cost.backward =
        kernels::row_dots_counts(N, e) +
        rounds * (scores + kernels::attention_softmax_again_counts(pairs) + N * Counts{.div = 1} +
                  product_counts(N, seen, e) + Counts{.mul = 2 * pairs, .add = pairs} + product_counts(N, d, seen) +
                  product_counts(pairs, d + e, 1) + Counts{.add = (pairs + chunk) * (d + e)}) +
        (rounds - 1) * Counts{.add = N * (2 * d + e)} +
        N * (product_counts(1, 1, d) + Counts{.mul = d, .add = 2 * d, .div = d, .cmp = 1});
    const Counts attention = product_contractions(N, d + e, seen);
    cost.forward_contractions = rounds * (product_contractions(N, half, d) + attention);
    cost.backward_contractions = rounds * 2 * attention;
    cost.attention_exp = cost.forward.exp;
    return shape.heads * cost;
  }

 private:
  static constexpr double self_score = -5e4;

  Index chunks(const AttentionShape& shape) const { return shape.queries / chunk; }
  Index bucket_count(const AttentionShape& shape) const {
    return buckets > 0 ? buckets : std::max<Index>(chunks(shape) / 2 * 2, 2);
  }
  static double scale(Index width) { return 1 / std::sqrt(static_cast<double>(width)); }

  template <class T>
  static Matrix<T> of_round(Matrix<T> x, Index r, Index N) {
    return x.middle_rows(r * N, N);
  }
  /// What chunk c sees of rows that begin with the last chunk again.
  template <class T>
  Matrix<T> seen_by(Matrix<T> x, Index c) const {
    return x.middle_rows(c * chunk, 2 * chunk);
  }
  template <class T>
  Matrix<T> of_chunk(Matrix<T> x, Index c) const {
    return x.middle_rows(c * chunk, chunk);
  }
  /// Steps 1 to 5: leaves O of all rounds in scratch, in the tokens' own order.
  template <class T>
  void run_rounds(const AttentionInput<T>& in, Index h, const Saved<T>& saved, const Scratch<T>& scratch) const {
    const Index N = in.shape.queries;
    // 1. |q| and k = q / |q|
    normalize<T>(in.q[h], saved.k[h], saved.norms[h][0]);
    for (Index r = 0; r < rounds; ++r) {
      // 2. the order of the tokens
      sort_tokens(in, h, r, saved.order[h][r], scratch);
      gather_round(in, h, saved, r, scratch);
      const Matrix<T> rows = of_round(saved.rows[h], r, N), O = of_round(scratch.O, r, N);
      for (Index c = 0; c < chunks(in.shape); ++c) {
        // 3. S
        make_scores(in.shape, c, scratch);
        // 4. A, L and O
        const Matrix<T> kept = of_chunk(rows, c);
        kernels::attention_softmax({scale(in.shape.width)}, scratch.A, kept);
        kernels::gemm(scratch.A, seen_by(scratch.v, c), scratch.values);
        for (Index i = 0; i < chunk; ++i) {
          using std::log;
          const Index token = token_at(saved.order[h][r][c * chunk + i]);
          saved.weights[h](r, token) = kept(i, 0) + log(kept(i, 1));
          std::copy_n(scratch.values[i], O.columns, O[token]);
        }
      }
    }
    // 5. w = softmax over rounds of L
    kernels::softmax_columns(saved.weights[h], saved.weights[h]);
  }

  template <class T>
  static void normalize(Matrix<const T> q, Matrix<T> k, T* norms) {
    using std::sqrt;
    kernels::row_dots(q, q, norms);
    for (Index i = 0; i < q.rows; ++i) {
      norms[i] = sqrt(norms[i]);
      const T divisor = norms[i] < T(kernels::least_norm) ? T(kernels::least_norm) : norms[i];
      const T* const from = q[i];
      T* const to = k[i];
#pragma GCC ivdep
      for (Index c = 0; c < q.columns; ++c) to[c] = from[c] / divisor;
    }
  }

  template <class T>
  void sort_tokens(const AttentionInput<T>& in, Index h, Index r, T* order, const Scratch<T>& scratch) const {
    const Index d = in.shape.width, half = bucket_count(in.shape) / 2;
    kernels::gemm(in.q[h], Matrix<const T>(in.parameters[0].data() + r * d * half, d, half), scratch.u);
    kernels::hash_rows(scratch.u, scratch.buckets);
    sort_by_bucket(in.shape.queries, scratch.buckets, 2 * half, scratch.starts, order);
  }

  template <class T>
  void gather_round(const AttentionInput<T>& in, Index h, const Saved<T>& saved, Index r,
                    const Scratch<T>& scratch) const {
    const Index N = in.shape.queries;
    const T* const order = saved.order[h][r];
    gather_rows<T>(order, in.q[h], scratch.q);
    gather_rows<T>(order, saved.k[h], scratch.k.middle_rows(chunk, N));
    gather_rows<T>(order, in.v[h], scratch.v.middle_rows(chunk, N));
    gather_rows<T>(order + N - chunk, saved.k[h], scratch.k.top_rows(chunk));
    gather_rows<T>(order + N - chunk, in.v[h], scratch.v.top_rows(chunk));
  }

  /// Calls f(i, j) for each query of a chunk and each place where it would see itself: twice if there is one chunk.
  template <class F>
  void each_self(const AttentionShape& shape, const F& f) const {
    for (Index i = 0; i < chunk; ++i) {
      f(i, chunk + i);
      if (chunks(shape) == 1) f(i, i);
    }
  }

  /// sqrt(d) S.
  template <class T>
  void make_scores(const AttentionShape& shape, Index c, const Scratch<T>& scratch) const {
    kernels::gemm(of_chunk(scratch.q, c), transposed(seen_by(scratch.k, c)), scratch.A);
    each_self(shape, [&](Index i, Index j) { scratch.A(i, j) = T(self_score / scale(shape.width)); });
  }

  /// P in the place of A.
  template <class T>
  void make_weights(const AttentionShape& shape, const Saved<T>& saved, Index h, Index r, Index c,
                    const Scratch<T>& scratch) const {
    make_scores(shape, c, scratch);
    const Matrix<T> kept = of_chunk(of_round(saved.rows[h], r, shape.queries), c);
    for (Index i = 0; i < chunk; ++i) {
      scratch.rows(i, 0) = kept(i, 0);
      scratch.rows(i, 1) = kept(i, 1) / saved.weights[h](r, token_at(saved.order[h][r][c * chunk + i]));
    }
    kernels::attention_softmax_again({scale(shape.width)}, scratch.A, scratch.rows);
  }

  /// Steps 6 to 3 of a chunk, from dout in the order of the round.
  template <class T>
  void undo_chunk(const AttentionShape& shape, const Saved<T>& saved, Index h, Index r, Index c, Matrix<const T> douts,
                  const Scratch<T>& scratch) const {
    make_weights(shape, saved, h, r, c, scratch);
    const Matrix<const T> dout = of_chunk(douts, c);
    const Matrix<T> P = scratch.A, dS = scratch.dA;
    const T* const order = saved.order[h][r] + c * chunk;
    // 6. and 4.
    kernels::gemm(transposed(P), dout, Update::accumulate, seen_by(scratch.dv, c));
    kernels::gemm(dout, transposed(seen_by(scratch.v, c)), dS);
    for (Index i = 0; i < chunk; ++i) {
      const T dot = scratch.dots[token_at(order[i])], factor(scale(shape.width));
      const T* const p = P[i];
      T* const row = dS[i];
#pragma GCC ivdep
      for (Index j = 0; j < 2 * chunk; ++j) row[j] = factor * (p[j] * (row[j] - dot));
    }
    each_self(shape, [&](Index i, Index j) { dS(i, j) = T(0); });
    // 3.
    kernels::gemm(dS, seen_by(scratch.k, c), of_chunk(scratch.dq, c));
    kernels::gemm(transposed(dS), of_chunk(scratch.q, c), Update::accumulate, seen_by(scratch.dk, c));
  }

  /// Adds what the rows in front got to the last chunk, whose tokens they are; what is left are the tokens in order.
  template <class T>
  Matrix<T> joined_ends(Matrix<T> x) const {
    const Index N = x.rows - chunk;
    for (Index i = 0; i < chunk; ++i) write_all<T>(Update::accumulate, x.columns, x[i], x[N + i]);
    return x.middle_rows(chunk, N);
  }

  /// dq (+)= the gradient of q as queries and, through k = q / |q|, as keys.
  template <class T>
  void undo_norm(Matrix<const T> k, const T* norms, const Scratch<T>& scratch, Update update, Matrix<T> dq) const {
    for (Index i = 0; i < dq.rows; ++i) {
      const T *const as_query = scratch.query_gradient[i], *const dk = scratch.key_gradient[i], *const row = k[i];
      T* const to = dq[i];
      const bool clamped = norms[i] < T(kernels::least_norm);
      const T divisor = clamped ? T(kernels::least_norm) : norms[i];
      T dot;
      kernels::row_dots(Matrix<const T>(row, 1, k.columns), Matrix<const T>(dk, 1, k.columns), &dot);
      if (clamped) dot = T(0);
#pragma GCC ivdep
      for (Index c = 0; c < dq.columns; ++c) write(update, to[c], as_query[c] + (dk[c] - row[c] * dot) / divisor);
    }
  }
};

template MechanismEntry mechanism_entry<Reformer>();

}  // namespace heed
