#include "kernel_blocks.h"
#include "row_division.h"

#include "heed/cost/for_each_number.h"
#include "heed/kernels/rows/rows.h"

namespace heed {

namespace {

/// One head: its slices of the operands and of the memory.
template <class T>
struct KernelHead {
  using Features = KernelFeatures<T>;

  const KernelAttention& of;
  const AttentionInput<T>& in;
  const Features& features;
  const KernelSaved<T>& saved;
  const KernelScratch<T>& scratch;
  Index h;
  kernels::Gemm gemm{in.products};
  Matrix<const T> q = in.q[h], k = in.k[h], v = in.v[h];
  Matrix<T> f = saved.f[h], g = saved.g[h], S = saved.S[h], z = saved.z[h], r = saved.r[h];
  Matrix<T> dS = scratch.dS[h], dz = scratch.dz[h];

  /// Computes a block's rows of out.
  void forward(const KernelBlock& b, Matrix<T> outs) const {
    // 1. features of the block's keys; in the last block also of keys that no query sees, whose gradient is zero
    const Index made = of.causal ? std::min(b.first, of.M) : b.first_key;
    const Index end = of.causal && b.first + b.rows == of.N ? of.M : b.first_key + b.seen + b.later;
    if (end > made) make_keys(made, end - made);
    // 2. the block's keys, added to S and z
    add_keys(b);
    if (b.rows == 0) return;
    // 3. y_i = f_i S, D_i = f_i z
    const Matrix<T> fb = make_queries(b.first, b.rows), y = b.queries(outs), D = of.normalised ? b.queries(r) : r;
    gemm(fb, S, y);
    if (of.normalised) kernels::row_dots(fb, repeated(z, b.rows), D.data);
    // 4. P, added to y and D
    if (b.later > 0) {
      const Matrix<T> P = within(b, scratch.P);
      gemm(fb, transposed(b.within(g)), P);
      clear_unseen(P);
      gemm(P, b.within(v), Update::accumulate, y);
      for (Index i = 0; i < b.rows && of.normalised; ++i)
        for (Index j = 0; j < i && j < b.later; ++j) D(i, 0) += P(i, j);
    }
    // 5. out_i = y_i / D_i
    if (of.normalised) {
      for (Index i = 0; i < b.rows; ++i) D(i, 0) += T(of.eps);
      divide_rows(y, D.data);
    }
  }

  // Undoing 5: dy_i = dout_i / D_i,  dD_i = -<dout_i, out_i> / D_i.
  // Undoing 2 and 3, for the keys: with dS = sum_i f_i dy_i^T and dz = sum_i dD_i f_i over the queries that see j,
  //            dg_j = dS v_j + dz,  dv_j = g_j dS. If causal, these sums run from the last block to the first.
  // Undoing 3, for the queries: df_i = S dy_i + dD_i z.
  // Undoing 4: dP_ij = <dy_i, v_j> + dD_i for j <= i;
  //            df_i += sum_j dP_ij g_j,  dg_j += sum_i dP_ij f_i,  dv_j += sum_i P_ij dy_i.
  // Undoing 1: KernelFeatures::undo().
  /// Adds a block's queries to dS and dz; computes dg and dv of the block's keys and, unless causal, dq and dk. Called
  /// from the last block to the first.
  void backward(const KernelBlock& b, Matrix<const T> out, Matrix<const T> dout, Update update, Matrix<T> dq,
                Matrix<T> dk, Matrix<T> dv) const {
    if (b.rows > 0) {
      const Matrix<T> fb = queries_again(b.first, b.rows);
      const Matrix<const T> dy = divide_backward(b, out, dout);
      add_queries(b, fb, dy);
      if (!of.causal) undo_queries(b, fb, queries_backward(b, fb, dy, dv), update, dq);
    }
    if (b.first + b.rows == of.N) clear_unadded(b.first_key + b.seen, update, dv);
    if (b.seen == 0) return;
    const Matrix<T> dg = of.causal ? b.keys(scratch.dg) : scratch.dg.top_rows(b.seen);
    const Matrix<T> gb = keys_again(b.first_key, b.seen);
    gemm.add(b.keys(v), transposed(dS), dz.data, {}, dg);
    gemm(gb, dS, update, b.keys(dv));
    if (!of.causal) features.undo(Features::keys, b.first_key, b.keys(k), gb, dg, update, b.keys(dk));
  }

  /// Recomputes S and z up to this block, and computes dq and the contributions of the block's pairs to dg and dv.
  /// Called only if causal, from the first block to the last.
  void backward_again(const KernelBlock& b, Matrix<const T> dout, Update update, Matrix<T> dq, Matrix<T> dv) const {
    add_keys(b);
    const Matrix<T> fb = b.queries(f);
    const Matrix<const T> dy = of.normalised ? b.queries(scratch.dy) : b.queries(dout);
    undo_queries(b, fb, queries_backward(b, fb, dy, dv), update, dq);
  }

  /// Computes the map [N, M].
  void make_map(Matrix<T> map) const {
    if (of.keeps_keys()) make_keys(0, of.M);
    for (Index i = 0; i < of.N; i += of.block_queries()) {
      const Matrix<T> fb = make_queries(i, std::min(of.block_queries(), of.N - i));
      for (Index j = 0; j < of.M; j += of.block_keys()) {
        const Index keys = std::min(of.block_keys(), of.M - j);
        gemm(fb, transposed(keys_again(j, keys)), map.middle_rows(i, fb.rows).middle_columns(j, keys));
      }
    }
    for (Index i = 0; i < of.N; ++i) {
      const Index seen = of.causal ? std::min(i + 1, of.M) : of.M;
      std::fill(map[i] + seen, map[i] + of.M, T(0));
      T sum(of.eps);
      for (Index j = 0; j < seen; ++j) sum += map(i, j);
      for (Index j = 0; j < seen && of.normalised; ++j) map(i, j) = map(i, j) / sum;
    }
  }

 private:
  /// Return memory for the features of queries or keys: saved, or scratch.
  Matrix<T> queries_at(Index first, Index rows) const {
    return of.keeps_queries() ? f.middle_rows(first, rows) : scratch.f.top_rows(rows);
  }
  Matrix<T> keys_at(Index first, Index rows) const {
    return of.keeps_keys() ? g.middle_rows(first, rows) : scratch.g.top_rows(rows);
  }
  Matrix<T> make_queries(Index first, Index rows) const {
    features.make(Features::queries, first, q.middle_rows(first, rows), queries_at(first, rows));
    return queries_at(first, rows);
  }
  Matrix<T> make_keys(Index first, Index rows) const {
    features.make(Features::keys, first, k.middle_rows(first, rows), keys_at(first, rows));
    return keys_at(first, rows);
  }
  /// Return the features of queries or keys, recomputed unless saved.
  Matrix<T> queries_again(Index first, Index rows) const {
    return of.keeps_queries() ? queries_at(first, rows) : make_queries(first, rows);
  }
  Matrix<T> keys_again(Index first, Index rows) const {
    return of.keeps_keys() ? keys_at(first, rows) : make_keys(first, rows);
  }

  void undo_queries(const KernelBlock& b, Matrix<T> fb, Matrix<T> df, Update update, Matrix<T> dq) const {
    features.undo(Features::queries, b.first, b.queries(q), fb, df, update, b.queries(dq));
  }

  void add_keys(const KernelBlock& b) const {
    if (b.seen == 0) return;
    const Update update = term_update(b.first_key);
    const Matrix<T> gb = keys_at(b.first_key, b.seen);
    gemm(transposed(gb), b.keys(v), update, S);
    if (of.normalised) kernels::column_sums(gb, update, z.data);
  }
  /// Adds the contribution of a block's queries to dS and dz.
  void add_queries(const KernelBlock& b, Matrix<T> fb, Matrix<const T> dy) const {
    const Update update = b.first + b.rows == of.N ? Update::assign : Update::accumulate;
    gemm(transposed(fb), dy, update, dS);
    if (of.normalised) kernels::gemm(transposed(of_block(b, scratch.dD)), fb, update, dz);
  }

  /// Computes a block's dD and returns its dy.
  Matrix<const T> divide_backward(const KernelBlock& b, Matrix<const T> out, Matrix<const T> dout) const {
    const Matrix<const T> dout_b = b.queries(dout);
    if (!of.normalised) return dout_b;
    const Matrix<T> dD = of_block(b, scratch.dD), dy = of_block(b, scratch.dy);
    divide_rows_backward(b.queries(out), b.queries(r).data, dout_b, dy, dD.data);
    return dy;
  }

  /// Computes a block's df, and the contributions of the block's pairs to dg and dv.
  Matrix<T> queries_backward(const KernelBlock& b, Matrix<const T> fb, Matrix<const T> dy, Matrix<T> dv) const {
    const Matrix<T> df = scratch.df.top_rows(b.rows), dD = of_block(b, scratch.dD);
    gemm(dy, transposed(S), df);
    if (of.normalised) kernels::gemm(dD, z, Update::accumulate, df);
    if (b.later == 0) return df;
    const Matrix<const T> gw = b.within(g);
    const Matrix<T> P = within(b, scratch.P), dP = within(b, scratch.dP);
    gemm(fb, transposed(gw), P);
    gemm(dy, transposed(b.within(v)), dP);
    for (Index i = 0; i < b.rows && of.normalised; ++i)
      for (Index j = 0; j < b.later; ++j) dP(i, j) += dD(i, 0);
    clear_unseen(P), clear_unseen(dP);
    gemm(dP, gw, Update::accumulate, df);
    gemm(transposed(dP), fb, Update::accumulate, b.within(scratch.dg));
    gemm(transposed(P), dy, Update::accumulate, b.within(dv));
    return df;
  }

  /// If causal, zeroes dg and, unless accumulated, dv of the keys from `added` on, which no block adds to the sums.
  void clear_unadded(Index added, Update update, Matrix<T> dv) const {
    if (!of.causal) return;
    fill(scratch.dg.middle_rows(added, of.M - added), T(0));
    if (update == Update::assign) fill(dv.middle_rows(added, of.M - added), T(0));
  }

  /// Returns the block's rows of scratch memory, which holds all queries if causal, otherwise one block.
  Matrix<T> of_block(const KernelBlock& b, Matrix<T> memory) const {
    if (!of.normalised) return memory;
    return of.causal ? b.queries(memory) : memory.top_rows(b.rows);
  }
  /// Returns the block's part of the memory of P, or of its gradient.
  static Matrix<T> within(const KernelBlock& b, Matrix<T> memory) {
    return {memory.data, b.rows, b.later, memory.stride};
  }
  static void clear_unseen(Matrix<T> P) {
    for (Index i = 0; i < P.rows; ++i) std::fill(P[i] + std::min(i, P.columns), P[i] + P.columns, T(0));
  }
};

}  // namespace

template <class T>
void KernelAttention::forward(const AttentionInput<T>& in, const KernelFeatures<T>& features, Heads<T> out,
                              const KernelSaved<T>& saved, const KernelScratch<T>& scratch) const {
  const KernelBlocks<T> blocks{*this};
  const auto run = [&](Index i, Index h) {
    KernelHead<T>{*this, in, features, saved, scratch, h}.forward(blocks[i], out[h]);
  };
  if (causal) {
    for (Index h = 0; h < heads; ++h)
      for (Index i = 0; i < blocks.count(); ++i) run(i, h);
  } else {
    for (Index i = 0; i < blocks.count(); ++i)
      for (Index h = 0; h < heads; ++h) run(i, h);
  }
}

template <class T>
void KernelAttention::backward(const AttentionInput<T>& in, const KernelFeatures<T>& features, Heads<const T> out,
                               Heads<const T> dout, const KernelSaved<T>& saved, const KernelScratch<T>& scratch,
                               const AttentionGradient<T>& to) const {
  const KernelBlocks<T> blocks{*this};
  const auto run = [&](Index i, Index h) {
    KernelHead<T>{*this, in, features, saved, scratch, h}.backward(blocks[i], out[h], dout[h], to.update, to.q[h],
                                                                   to.k[h], to.v[h]);
  };
  if (!causal) {
    for (Index i = blocks.count() - 1; i >= 0; --i)
      for (Index h = 0; h < heads; ++h) run(i, h);
    return;
  }
  for (Index h = 0; h < heads; ++h) {
    for (Index i = blocks.count() - 1; i >= 0; --i) run(i, h);
    const KernelHead<T> head{*this, in, features, saved, scratch, h};
    for (Index i = 0; i < blocks.count(); ++i) head.backward_again(blocks[i], dout[h], to.update, to.q[h], to.v[h]);
    features.undo(KernelFeatures<T>::keys, 0, in.k[h], saved.g[h], scratch.dg, to.update, to.k[h]);
  }
}

template <class T>
void KernelAttention::make_map(const AttentionInput<T>& in, const KernelFeatures<T>& features, Heads<T> map,
                               const KernelSaved<T>& saved, const KernelScratch<T>& scratch) const {
  for (Index h = 0; h < heads; ++h) KernelHead<T>{*this, in, features, saved, scratch, h}.make_map(map[h]);
}

#define INSTANTIATE(T)                                                                                        \
  template void KernelAttention::forward(const AttentionInput<T>&, const KernelFeatures<T>&, Heads<T>,        \
                                         const KernelSaved<T>&, const KernelScratch<T>&) const;               \
  template void KernelAttention::backward(const AttentionInput<T>&, const KernelFeatures<T>&, Heads<const T>, \
                                          Heads<const T>, const KernelSaved<T>&, const KernelScratch<T>&,     \
                                          const AttentionGradient<T>&) const;                                 \
  template void KernelAttention::make_map(const AttentionInput<T>&, const KernelFeatures<T>&, Heads<T>,       \
                                          const KernelSaved<T>&, const KernelScratch<T>&) const;
HEED_FOR_EACH_NUMBER(INSTANTIATE)

Cost KernelAttention::cost(const Counts& queries, const Counts& keys) const {
  const Index seen = causal ? std::min(N, M) : M;
  Cost cost;
  // Forward: 1. features; 2. S; 3. y. Backward: dS, dg, dv; df; features recomputed, unless saved.
  cost.forward = queries + keys + product_counts(p, e, seen) + product_counts(N, e, p);
  cost.backward =
      product_counts(p, e, N) + product_counts(seen, p, e) + product_counts(seen, e, p) + product_counts(N, p, e);
  cost.forward_contractions = product_contractions(N + seen, p, e);
  cost.backward_contractions = 2 * cost.forward_contractions;
  if (!keeps_queries()) cost.backward += queries;
  if (!keeps_keys()) cost.backward += keys;
  cost.attention_exp = queries.exp + keys.exp;
  if (causal) cost.backward += product_counts(p, e, seen);  // recomputes S; not counted as contractions
  if (!normalised) return cost;
  // Forward: 2. z; 3. D; 5. out. Backward: 5. dy and dD; dz; dz added to dg, and dD z to df.
  const Counts z = kernels::column_sums_counts(seen, p), of_keys{.add = seen * p};
  cost.forward += z + kernels::row_dots_counts(N, p) + N * Counts{.mul = e, .add = 1, .div = 1};
  cost.backward += kernels::row_dots_counts(N, e) + N * Counts{.mul = e + 1} + product_counts(1, p, N) + of_keys +
                   N * Counts{.mul = p, .add = p};
  if (causal) cost.backward += z;
  cost.forward_contractions += of_keys + product_contractions(N, 1, p);
  cost.left_out = -1 * of_keys;  // sums, not products
  cost.backward_contractions += of_keys + 2 * product_contractions(N, 1, p);
  return cost;
}

}  // namespace heed
