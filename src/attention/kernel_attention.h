// Kernel attention: what mechanisms share whose map is a product of features, f_i of query i and g_j of key j.
//
//   S = sum_j g_j v_j^T            [p, e]
//   z = sum_j g_j                  [p]
//   D_i = f_i z + eps
//   out_i = f_i S / D_i            [N, e]; or f_i S, where rows are not normalised
//
// The map f_i g_j / D_i [N, M] is never made: time O((N + M) p e), memory O((N + M) p). Keys come in blocks that are
// added to the sums, and then queries, so that a block's features are used while they are in the cache.
//
// Causal, S and z are running sums, over the keys up to the query's own position. A block has keys and queries: S holds
// the keys that all its queries see; those that only some of them see come in by a product within the block,
//
//   P_ij = f_i g_j for j <= i, 0 beyond:      y_i = f_i S + sum_j P_ij v_j,     D_i = f_i z + sum_j P_ij + eps.
//
// A block of one query has no such keys: these are the running sums of the textbook, and so they are counted.
#pragma once

#include "heed/attention/mechanism_base.h"
#include "heed/kernels/rows.h"

namespace heed {

/// Some queries; the keys that they all see and no earlier block added to the sums; and the `later` keys behind those,
/// of which query r of the block sees the first r. A block may be without queries or without keys.
struct KernelBlock {
  Index first, rows;
  Index key, keys, later;

  template <class T>
  Matrix<T> queries(Matrix<T> m) const {
    return m.middle_rows(first, rows);
  }
  template <class T>
  Matrix<T> added(Matrix<T> m) const {
    return m.middle_rows(key, keys);
  }
  template <class T>
  Matrix<T> within(Matrix<T> m) const {
    return m.middle_rows(key + keys, later);
  }
};

/// What is saved for the backward pass: the features, S, z and 1 / D.
template <class T>
struct KernelSaved {
  Heads<T> f, g;     ///< [N, p], [M, p]
  Heads<T> S, z, r;  ///< [p, e], [1, p], [N, 1]
};

/// Of one head: gradients of the features of a block, of y = f S, D, S and z; P and its gradient. Causal, those of all
/// keys and of all y are kept.
template <class T>
struct KernelScratch {
  Matrix<T> df, dg, dy, dD, dS, dz, P, dP;
};

/// Sizes and options for one shape.
struct KernelAttention {
  Index heads, N, M, p, e;
  bool normalised = true, causal = false;
  double eps = 0;
  bool keys_together = false;  ///< do the features of a key depend on all keys? Then they are a single block

  template <class T>
  KernelSaved<T> saved(Carver<T>& carve) const {
    const auto take = [&](Index rows, Index columns) { return carve_heads(heads, rows, columns, carve); };
    return {take(N, p), take(M, p), take(p, e), take(normalised, p), take(normalised * N, 1)};
  }
  template <class T>
  KernelScratch<T> scratch(Carver<T>& carve) const {
    const Index n = normalised, rows = std::min(block_queries(), N), within = causal * rows;
    return {carve.matrix(rows, p),
            carve.matrix(causal ? M : std::min(block_keys(), M), p),
            carve.matrix(n * (causal ? N : rows), e),
            carve.matrix(n * N, 1),
            carve.matrix(p, e),
            carve.matrix(n, p),
            carve.matrix(within, within),
            carve.matrix(within, within)};
  }

  /// One head: its parts of the memory, and its values.
  template <class T>
  struct Head {
    const KernelAttention& of;
    kernels::Gemm gemm;
    Matrix<T> f, g, S, z, r;
    Matrix<const T> v;
    const KernelScratch<T>& scratch;

    /// Makes out [N, e]. make_f(first, f) and make_g(first, g) make the features of some queries or keys, from `first`
    /// on, a row each.
    template <class MakeF, class MakeG>
    void forward(const MakeF& make_f, const MakeG& make_g, Matrix<T> out) const {
      Index made = 0;
      for (Index i = 0; i < of.blocks<T>(); ++i) {
        const KernelBlock b = of.block<T>(i);
        // 1. the features
        const Index end = b.key + b.keys + b.later;
        if (end > made) make_g(made, g.middle_rows(made, end - made));
        if (b.rows > 0) make_f(b.first, b.queries(f));
        made = end;
        // 2. S and z: the block's keys
        add_keys(b);
        if (b.rows == 0) continue;
        // 3. y_i = f_i S, D_i = f_i z
        const Matrix<T> fb = b.queries(f), y = b.queries(out), D = of.normalised ? b.queries(r) : r;
        gemm(fb, S, y);
        if (of.normalised) kernels::row_dots(fb, repeated(z, b.rows), D.data);
        // 4. P, and what it adds to both
        if (b.later > 0) {
          const Matrix<T> P = within(b, scratch.P);
          gemm(fb, transposed(b.within(g)), P);
          clear_unseen(P);
          gemm(P, b.within(v), Update::accumulate, y);
          for (Index r = 0; r < b.rows && of.normalised; ++r)
            for (Index j = 0; j < r && j < b.later; ++j) D(r, 0) += P(r, j);
        }
        // 5. out_i = y_i / D_i
        if (of.normalised) divide(y, D);
      }
      // Keys that no query sees have a gradient of zero, through their features.
      if (made < of.M) make_g(made, g.middle_rows(made, of.M - made));
    }

    // Undoing 5: dy_i = dout_i / D_i,  dD_i = -<dout_i, out_i> / D_i.
    // Undoing 2 and 3, for the keys: with dS = sum_i f_i dy_i^T and dz = sum_i dD_i f_i over the queries that see j,
    //            dg_j = dS v_j + dz,  dv_j = g_j dS. Causal, these sums run from the last block to the first.
    // Undoing 3, for the queries: df_i = S dy_i + dD_i z.
    // Undoing 4: dP_ij = <dy_i, v_j> + dD_i for j <= i;
    //            df_i += sum_j dP_ij g_j,  dg_j += sum_i dP_ij f_i,  dv_j += sum_i P_ij dy_i.
    // Undoing 1: undo_f and undo_g.
    /// Writes dv, and calls undo_f(first, f, df) and undo_g(first, g, dg) for all queries and keys, some at a time.
    template <class UndoF, class UndoG>
    void backward(Matrix<const T> out, Matrix<const T> dout, Update update, const UndoF& undo_f, const UndoG& undo_g,
                  Matrix<T> dv) const {
      for (Index i = of.blocks<T>() - 1; i >= 0; --i) {
        const KernelBlock b = of.block<T>(i);
        if (b.rows > 0) {
          const Matrix<const T> dy = divide_backward(b, out, dout);
          add_queries(b, dy);
          if (!of.causal) undo_f(b.first, b.queries(f), queries_backward(b, dy, dv));
        }
        if (b.first + b.rows == of.N) clear_unadded(b.key + b.keys, update, dv);
        if (b.keys > 0) {
          const Matrix<T> dg = of.causal ? b.added(scratch.dg) : scratch.dg.top_rows(b.keys);
          gemm.add(b.added(v), transposed(scratch.dS), scratch.dz.data, {}, dg);
          gemm(b.added(g), scratch.dS, update, b.added(dv));
          if (!of.causal) undo_g(b.key, b.added(g), dg);
        }
      }
      if (!of.causal) return;
      // S and z again, block after block
      for (Index i = 0; i < of.blocks<T>(); ++i) {
        const KernelBlock b = of.block<T>(i);
        add_keys(b);
        undo_f(b.first, b.queries(f), queries_backward(b, of.normalised ? b.queries(scratch.dy) : b.queries(dout), dv));
      }
      undo_g(0, g, scratch.dg);
    }

    /// The map [N, M].
    template <class MakeF, class MakeG>
    void make_map(const MakeF& make_f, const MakeG& make_g, Matrix<T> map) const {
      make_f(0, f), make_g(0, g);
      gemm(f, transposed(g), map);
      for (Index i = 0; i < of.N; ++i) {
        const Index seen = of.causal ? std::min(i + 1, of.M) : of.M;
        std::fill(map[i] + seen, map[i] + of.M, T(0));
        T sum(of.eps);
        for (Index j = 0; j < seen; ++j) sum += map(i, j);
        for (Index j = 0; j < seen && of.normalised; ++j) map(i, j) = map(i, j) / sum;
      }
    }

   private:
    void add_keys(const KernelBlock& b) const {
      if (b.keys == 0) return;
      const Update update = b.key == 0 ? Update::assign : Update::accumulate;
      gemm(transposed(b.added(g)), b.added(v), update, S);
      if (of.normalised) kernels::column_sums(b.added(g), update, z.data);
    }
    /// To dS and dz.
    void add_queries(const KernelBlock& b, Matrix<const T> dy) const {
      const Update update = b.first + b.rows == of.N ? Update::assign : Update::accumulate;
      gemm(transposed(b.queries(f)), dy, update, scratch.dS);
      if (of.normalised) kernels::gemm(transposed(b.queries(scratch.dD)), b.queries(f), update, scratch.dz);
    }

    /// y_i / (D_i + eps); the divisors' reciprocals take the place of D.
    void divide(Matrix<T> y, Matrix<T> D) const {
      for (Index i = 0; i < y.rows; ++i) {
        const T reciprocal = T(1) / (D(i, 0) + T(of.eps));
        D(i, 0) = reciprocal;
        for (Index c = 0; c < y.columns; ++c) y(i, c) = reciprocal * y(i, c);
      }
    }
    /// Makes a block's dD and returns its dy.
    Matrix<const T> divide_backward(const KernelBlock& b, Matrix<const T> out, Matrix<const T> dout) const {
      const Matrix<const T> dout_b = b.queries(dout);
      if (!of.normalised) return dout_b;
      const Matrix<T> dD = b.queries(scratch.dD), dy = of.causal ? b.queries(scratch.dy) : scratch.dy.top_rows(b.rows);
      kernels::row_dots(dout_b, b.queries(out), dD.data);
      for (Index i = 0; i < b.rows; ++i) {
        const T reciprocal = r(b.first + i, 0);
        dD(i, 0) = -(reciprocal * dD(i, 0));
        for (Index c = 0; c < of.e; ++c) dy(i, c) = reciprocal * dout_b(i, c);
      }
      return dy;
    }

    /// A block's df, and what dg and dv get from within the block.
    Matrix<T> queries_backward(const KernelBlock& b, Matrix<const T> dy, Matrix<T> dv) const {
      const Matrix<const T> fb = b.queries(f), gw = b.within(g);
      const Matrix<T> df = scratch.df.top_rows(b.rows), dD = of.normalised ? b.queries(scratch.dD) : scratch.dD;
      gemm(dy, transposed(S), df);
      if (of.normalised) kernels::gemm(dD, z, Update::accumulate, df);
      if (b.later == 0) return df;
      const Matrix<T> P = within(b, scratch.P), dP = within(b, scratch.dP);
      gemm(fb, transposed(gw), P);
      gemm(dy, transposed(b.within(v)), dP);
      for (Index r = 0; r < b.rows && of.normalised; ++r)
        for (Index j = 0; j < b.later; ++j) dP(r, j) += dD(r, 0);
      clear_unseen(P), clear_unseen(dP);
      gemm(dP, gw, Update::accumulate, df);
      gemm(transposed(dP), fb, Update::accumulate, b.within(scratch.dg));
      gemm(transposed(P), dy, Update::accumulate, b.within(dv));
      return df;
    }

    /// Causal: dg and dv of the keys from `added` on, which no block adds to the sums, are zero so far.
    void clear_unadded(Index added, Update update, Matrix<T> dv) const {
      if (!of.causal) return;
      fill(scratch.dg.middle_rows(added, of.M - added), T(0));
      if (update == Update::assign) fill(dv.middle_rows(added, of.M - added), T(0));
    }

    /// A block of P, or of its gradient.
    static Matrix<T> within(const KernelBlock& b, Matrix<T> memory) {
      return {memory.data, b.rows, b.later, memory.stride};
    }
    static void clear_unseen(Matrix<T> P) {
      for (Index r = 0; r < P.rows; ++r) std::fill(P[r] + std::min(r, P.columns), P[r] + P.columns, T(0));
    }
    /// The same row so many times.
    static Matrix<const T> repeated(Matrix<T> row, Index rows) { return {row.data, rows, row.columns, 0}; }
  };

  template <class T>
  Head<T> head(Index h, const AttentionInput<T>& in, const KernelSaved<T>& saved,
               const KernelScratch<T>& scratch) const {
    return {*this,  kernels::Gemm{in.products}, saved.f[h], saved.g[h], saved.S[h], saved.z[h], saved.r[h], in.v[h],
            scratch};
  }

  /// Of one head, without its features.
  Cost cost() const {
    const Index seen = causal ? std::min(N, M) : M;
    Cost cost;
    // Forward: 2. S; 3. y. Backward: dS, dg, dv; df.
    cost.forward = product_counts(p, e, seen) + product_counts(N, e, p);
    cost.backward =
        product_counts(p, e, N) + product_counts(seen, p, e) + product_counts(seen, e, p) + product_counts(N, p, e);
    cost.forward_contractions = product_contractions(N + seen, p, e);
    cost.backward_contractions = 2 * cost.forward_contractions;
    if (causal) cost.backward += product_counts(p, e, seen);  // S again; as papers count, once
    if (!normalised) return cost;
    // Forward: 2. z; 3. D; 5. out. Backward: 5. dy and dD; dz, its part of dg and of df.
    const Counts z = kernels::column_sums_counts(seen, p), of_keys{.add = seen * p};
    cost.forward += z + kernels::row_dots_counts(N, p) + N * Counts{.mul = e, .add = 1, .div = 1};
    cost.backward += kernels::row_dots_counts(N, e) + N * Counts{.mul = e + 1} + product_counts(1, p, N) + of_keys +
                     N * Counts{.mul = p, .add = p};
    if (causal) cost.backward += z;
    cost.forward_contractions += of_keys + product_contractions(N, 1, p);
    cost.backward_contractions += of_keys + 2 * product_contractions(N, 1, p);
    return cost;
  }

 private:
  /// Queries and keys of a block. Causal, of 64 queries, the product within it takes about as long as those with S;
  /// otherwise 256 rows of 64 features are 64 KB, which a few such matrices leave room for in an L2 cache.
  Index block_queries() const { return causal ? 64 : 256; }
  Index block_keys() const { return keys_together ? M : 256; }

  static Index parts(Index whole, Index part) { return (whole + part - 1) / part; }
  template <class T>
  Index causal_queries() const {
    return std::is_same_v<T, Counted> ? 1 : block_queries();
  }
  template <class T>
  Index blocks() const {
    return causal ? parts(N, causal_queries<T>()) : parts(M, block_keys()) + parts(N, block_queries());
  }
  template <class T>
  KernelBlock block(Index i) const {
    if (causal) {
      const Index step = causal_queries<T>(), first = i * step, rows = std::min(step, N - first);
      const Index before = i == 0 ? 0 : std::min(first - step + 1, M), all = std::min(first + 1, M);
      return {first, rows, before, all - before, std::min(first + rows, M) - all};
    }
    if (const Index key = i * block_keys(); key < M) return {0, 0, key, std::min(block_keys(), M - key), 0};
    const Index first = (i - parts(M, block_keys())) * block_queries();
    return {first, std::min(block_queries(), N - first), M, 0, 0};
  }
};

}  // namespace heed
