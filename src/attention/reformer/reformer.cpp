// Reformer: attention among tokens with similar hashes. Kitaev, Kaiser, Levskaya, "Reformer: The Efficient
// Transformer", 2020, arXiv:2001.04451v2, Section 2.
//
// Queries serve as keys. Each of several rounds sorts the tokens by a hash of their direction and divides the sorted
// tokens into chunks; a token sees its own chunk and the previous one; the chunk before the first is the last:
//
//   k = q / |q|                                     [N, d], token by token
//   u = q rotations[r],  bucket = arg max [u, -u]   rotations [rounds, d, buckets / 2] a buffer, drawn once
//   order: tokens by bucket, stably sorted
//   S_ij = q_i . k_j / sqrt(d),  S_ii = -5e4        [chunk, 2 chunk] per chunk; A_ii = 0 unless i is alone
//   A = softmax(S),  L_i = log sum_j exp(S_ij)      row by row
//   O = A v                                         [N, e] per round
//   out_i = sum_r w_ri O_ri                         w_i = softmax over rounds of L_i
//
// With the rounds' weights, out_i is one softmax over all keys that token i sees in any round; a key seen in n rounds
// counts n times. The backward pass differentiates this softmax.
//
// Time 8 N chunk d and N d buckets per round, memory O(rounds N d). Differs from the paper, like reformer-pytorch:
// tokens of other buckets in the two chunks are seen, and keys seen in several rounds are not down-weighted. |q| below
// 1e-12 is replaced by that constant. The hash has no gradient.
#include "round.h"

#include "heed/attention/capabilities/map.h"
#include "heed/kernels/sums/normalize.h"
#include "heed/kernels/rows/row_hash.h"
#include "heed/kernels/rows/rows.h"
#include "heed/kernels/sums/softmax_columns.h"

namespace heed {

class Reformer : public MechanismBase<Reformer>, public WithMap<Reformer> {
 public:
  static constexpr const char* mechanism_name = "reformer";
  static constexpr const char* summary = "softmax(q k^T / sqrt(d)) v, k = q / |q|, among tokens with similar hashes";
  static constexpr const char* complexity = "time O(N chunk d) per round, memory O(N d) per round";

  Index rounds = not_set, buckets = not_set, chunk = not_set;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("rounds", rounds, "number of hash rounds (required in a model)");
    visit(
        "buckets", buckets,
        "number of buckets in a round, even (required in a model); 0: the number of chunks, rounded to an even number");
    visit("chunk", chunk, "tokens per chunk (required); must divide the number of tokens");
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
    const auto axis = [&](Index i) { return size_of(tensors, "rotations", "[rounds, d, buckets / 2]", i); };
    if (rounds == not_set) rounds = axis(0);
    if (buckets == not_set) buckets = 2 * axis(2);
  }

  void check(const AttentionShape& shape) const override {
    const Index N = shape.queries;
    require(N == shape.keys,
            "[reformer] there are {} queries and {} keys; the numbers must be equal, since keys are computed from q", N,
            shape.keys);
    require(rounds >= 1 && rounds <= 1024, "[reformer] rounds is {}; expected 1 to 1024", option_text(rounds));
    require(shape.full_length(),
            "[reformer] a sequence has {} tokens; expected {}, the full length, which is divided into chunks", N,
            shape.longest);
    require(chunk >= 1 && N % chunk == 0, "[reformer] chunk is {}; it must divide the {} tokens", option_text(chunk),
            N);
    require(buckets >= 0 && buckets % 2 == 0,
            "[reformer] buckets is {}; expected an even number, or 0 for one per chunk", option_text(buckets));
    require(bucket_count(shape) <= N, "[reformer] buckets is {}; expected at most {}, the number of tokens",
            bucket_count(shape), N);
  }

  std::vector<ParameterSpec> parameters(const AttentionShape& shape) const override {
    return {{"rotations", {rounds, shape.width, bucket_count(shape) / 2}, Initial::normal(1), false, false}};
  }

  template <class T>
  ReformerSaved<T> saved(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    const Index H = shape.heads, N = shape.queries;
    return {lay_out_heads(H, 1, N, layout), lay_out_heads(H, N, shape.width, layout),
            lay_out_heads(H, rounds, N, layout), lay_out_heads(H, rounds * N, 2, layout),
            lay_out_heads(H, rounds, N, layout)};
  }

  template <class T>
  ReformerScratch<T> scratch(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    const auto [N, M, d, e] = shape.sizes();
    return {.q = layout.matrix(N, d),
            .k = layout.matrix(N + chunk, d),
            .v = layout.matrix(N + chunk, e),
            .dq = layout.matrix(N, d),
            .dk = layout.matrix(N + chunk, d),
            .dv = layout.matrix(N + chunk, e),
            .A = layout.matrix(chunk, 2 * chunk),
            .dA = layout.matrix(chunk, 2 * chunk),
            .rows = layout.matrix(chunk, 2),
            .values = layout.matrix(chunk, e),
            .u = layout.matrix(N, bucket_count(shape) / 2),
            .O = layout.matrix(rounds * N, e),
            .buckets = layout.numbers(N),
            .starts = layout.numbers(bucket_count(shape)),
            .query_gradient = layout.matrix(N, d),
            .key_gradient = layout.matrix(N, d),
            .dots = layout.numbers(N)};
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> outs, const ReformerSaved<T>& saved,
                   const ReformerScratch<T>& scratch) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      // 1. to 5.
      run_rounds(in, h, saved, scratch);
      // 6. out_i = sum_r w_ri O_ri
      const Matrix<T> out = outs[h], w = saved.weights[h];
      for (Index r = 0; r < rounds; ++r) {
        const Matrix<T> O = ReformerRound<T>{in, saved, scratch, chunk, h, r}.of_round(scratch.O);
        const Update update = term_update(r);
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
  //                  dS_rij = P_rij (dP_rij - <dout_i, out_i>) / sqrt(d), 0 for i = j, since S_ii is constant.
  // Undoing 3: dq_i = sum dS_rij k_j,  dk_j = sum dS_rij q_i.
  // Undoing 1: dq += (dk - k <k, dk>) / |q|, or dk / 1e-12 if that is the divisor. The backward pass runs round by
  // round, in each round's order of tokens.
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T> outs, Heads<const T> douts,
                    const ReformerSaved<T>& saved, const ReformerScratch<T>& scratch,
                    const AttentionGradient<T>& gradient) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      kernels::row_dots(douts[h], outs[h], scratch.dots);
      for (Index r = 0; r < rounds; ++r) {
        // 6. to 3., with the tokens in the round's order
        const ReformerRound<T> round{in, saved, scratch, chunk, h, r};
        round.gather();
        round.undo(douts[h]);
        const Update first = term_update(r);
        scatter_rows(round.order(), scratch.dq, first, scratch.query_gradient);
        scatter_rows(round.order(), joined_ends(scratch.dk), first, scratch.key_gradient);
        scatter_rows(round.order(), joined_ends(scratch.dv), term_update(r, gradient.update), gradient.v[h]);
      }
      // 1.
      undo_norm<T>(saved.k[h], saved.norms[h][0], scratch, gradient.update, gradient.q[h]);
    }
  }

  // Computes the map: for each pair, the sum of P over all rounds and positions at which the query sees the key.
  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> maps, const ReformerSaved<T>& saved,
               const ReformerScratch<T>& scratch) const {
    for (Index h = 0; h < in.shape.heads; ++h) {
      run_rounds(in, h, saved, scratch);
      fill(maps[h], T(0));
      for (Index r = 0; r < rounds; ++r) {
        const ReformerRound<T> round{in, saved, scratch, chunk, h, r};
        round.gather();
        for (Index c = 0; c < round.chunks(); ++c) {
          round.make_weights(c);
          for (Index i = 0; i < chunk; ++i)
            for (Index j = 0; j < 2 * chunk; ++j) {
              const Index query = as_index(round.order()[c * chunk + i]);
              const Index key = as_index(round.order()[(in.shape.queries + (c - 1) * chunk + j) % in.shape.queries]);
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
    // Backward: <dout, out>; per round A recomputed, dv, dP, dS, dq and dk, and the sums over positions and rounds; 1.
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
    cost.left_out = product_contractions(N, d + rounds * e, 1);  // |q| and step 6
    cost.attention_exp = cost.forward.exp;
    return shape.heads * cost;
  }

 private:
  Index chunks(const AttentionShape& shape) const { return shape.queries / chunk; }
  Index bucket_count(const AttentionShape& shape) const {
    return buckets > 0 ? buckets : std::max<Index>(chunks(shape) / 2 * 2, 2);
  }

  /// Runs steps 1 to 5. O of all rounds is in scratch afterwards, in the tokens' original order.
  template <class T>
  void run_rounds(const AttentionInput<T>& in, Index h, const ReformerSaved<T>& saved,
                  const ReformerScratch<T>& scratch) const {
    // 1. |q| and k = q / |q|
    normalize<T>(in.q[h], saved.k[h], saved.norms[h][0]);
    for (Index r = 0; r < rounds; ++r) {
      const ReformerRound<T> round{in, saved, scratch, chunk, h, r};
      // 2. the order of the tokens
      round.sort();
      // 3. and 4. S, A, L and O
      round.gather();
      round.attend();
    }
    // 5. w = softmax over rounds of L
    kernels::softmax_columns(saved.weights[h], saved.weights[h]);
  }

  template <class T>
  static void normalize(Matrix<const T> q, Matrix<T> k, T* norms) {
    using std::sqrt;
    using Sum = kernels::detail::Sum<T>;
    for (Index i = 0; i < q.rows; ++i) {
      Sum squares = Sum(q(i, 0)) * Sum(q(i, 0));
      for (Index c = 1; c < q.columns; ++c) squares += Sum(q(i, c)) * Sum(q(i, c));
      norms[i] = T(sqrt(squares));
      const T divisor = norms[i] < T(kernels::least_norm) ? T(kernels::least_norm) : norms[i];
      const T* const from = q[i];
      T* const to = k[i];
#pragma GCC ivdep
      for (Index c = 0; c < q.columns; ++c) to[c] = from[c] / divisor;
    }
  }

  /// Adds the leading rows, which belong to the copy of the last chunk, to the last chunk. Returns all other rows.
  template <class T>
  Matrix<T> joined_ends(Matrix<T> x) const {
    const Index N = x.rows - chunk;
    for (Index i = 0; i < chunk; ++i) write_all<T>(Update::accumulate, x.columns, x[i], x[N + i]);
    return x.middle_rows(chunk, N);
  }

  /// Computes dq (+)= the gradient of q as queries and, through k = q / |q|, as keys.
  template <class T>
  void undo_norm(Matrix<const T> k, const T* norms, const ReformerScratch<T>& scratch, Update update,
                 Matrix<T> dq) const {
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
