// Kernel attention: what mechanisms share whose map is a product of features, f_i of query i and g_j of key j.
//
//   S = sum_j g_j v_j^T            [p, e]
//   z = sum_j g_j                  [p]
//   D_i = f_i z + eps
//   out_i = f_i S / D_i            [N, e]; or f_i S, where rows are not normalised
//
// The map f_i g_j / D_i [N, M] is never made: time O((N + M) p e), memory O((N + M) p).
//
// Causal, S and z are running sums, over the keys up to the query's own position. Queries come in blocks: S holds the
// keys that all queries of a block see; those that only some of them see come in by a product within the block,
//
//   P_ij = f_i g_j for j <= i, 0 beyond:      y_i = f_i S + sum_j P_ij v_j,     D_i = f_i z + sum_j P_ij + eps.
//
// A block of one query has no such keys: these are the running sums of the textbook, and so they are counted.
#pragma once

#include "heed/attention/mechanism_base.h"
#include "heed/kernels/rows.h"

namespace heed {

/// Some queries; the keys that they all see and no earlier block added to the sums; and the `later` keys behind those,
/// of which query r of the block sees the first r.
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

/// Of one head: gradients of the features, which backward leaves here; of y = f S, D, S and z; P and its gradient.
template <class T>
struct KernelScratch {
  Matrix<T> df, dg, dy, dD, dS, dz, P, dP;
};

/// Sizes and options for one shape.
struct KernelAttention {
  Index heads, N, M, p, e;
  bool normalised = true, causal = false;
  double eps = 0;

  template <class T>
  KernelSaved<T> saved(Carver<T>& carve) const {
    const auto take = [&](Index rows, Index columns) { return carve_heads(heads, rows, columns, carve); };
    return {take(N, p), take(M, p), take(p, e), take(normalised, p), take(normalised * N, 1)};
  }
  template <class T>
  KernelScratch<T> scratch(Carver<T>& carve) const {
    const Index n = normalised, rows = causal * most_rows;
    return {carve.matrix(N, p), carve.matrix(M, p), carve.matrix(n * N, e),        carve.matrix(n * N, 1),
            carve.matrix(p, e), carve.matrix(n, p), carve.matrix(rows, most_rows), carve.matrix(rows, most_rows)};
  }

  /// One head: its parts of the memory, and its values.
  template <class T>
  struct Head {
    const KernelAttention& of;
    kernels::Gemm gemm;
    Matrix<T> f, g, S, z, r;
    Matrix<const T> v;
    const KernelScratch<T>& scratch;

    /// Makes out [N, e] from the features.
    void forward(Matrix<T> out) const {
      for (Index i = 0; i < of.blocks<T>(); ++i) {
        const KernelBlock b = of.block<T>(i);
        const Matrix<T> fb = b.queries(f), y = b.queries(out), D = b.queries(r);
        // 1. S and z: the block's keys
        add_keys(b);
        // 2. y_i = f_i S, D_i = f_i z
        gemm(fb, S, y);
        if (of.normalised) kernels::row_dots(fb, repeated(z, b.rows), D.data);
        // 3. P, and what it adds to both
        if (b.later > 0) {
          const Matrix<T> P = within(b, scratch.P);
          gemm(fb, transposed(b.within(g)), P);
          clear_unseen(P);
          gemm(P, b.within(v), Update::accumulate, y);
          for (Index r = 0; r < b.rows && of.normalised; ++r)
            for (Index j = 0; j < r && j < b.later; ++j) D(r, 0) += P(r, j);
        }
        // 4. out_i = y_i / D_i
        if (of.normalised) divide(y, D);
      }
    }

    // Undoing 4: dy_i = dout_i / D_i,  dD_i = -<dout_i, out_i> / D_i.
    // Undoing 1 and 2, for the keys: with dS = sum_i f_i dy_i^T and dz = sum_i dD_i f_i over the queries that see j,
    //            dg_j = dS v_j + dz,  dv_j = g_j dS. Causal, these sums run from the last block to the first.
    // Undoing 2, for the queries: df_i = S dy_i + dD_i z.
    // Undoing 3: dP_ij = <dy_i, v_j> + dD_i for j <= i;
    //            df_i += sum_j dP_ij g_j,  dg_j += sum_i dP_ij f_i,  dv_j += sum_i P_ij dy_i.
    /// Leaves df and dg in scratch, and writes dv.
    void backward(Matrix<const T> out, Matrix<const T> dout, Update update, Matrix<T> dv) const {
      // 4.
      const Matrix<const T> dy = of.normalised ? Matrix<const T>(scratch.dy) : dout;
      if (of.normalised) divide_backward(out, dout);
      // 1. and 2. for the keys
      for (Index i = of.blocks<T>() - 1; i >= 0; --i) backward_of_keys(of.block<T>(i), dy, update, dv);
      for (Index i = 0; i < of.blocks<T>(); ++i) {
        const KernelBlock b = of.block<T>(i);
        const Matrix<const T> fb = b.queries(f), dyb = b.queries(dy), gw = b.within(g);
        const Matrix<T> df = b.queries(scratch.df), dD = b.queries(scratch.dD);
        // S and z again, where later blocks have added to them
        if (of.causal) add_keys(b);
        // 2. for the queries
        gemm(dyb, transposed(S), df);
        if (of.normalised) kernels::gemm(dD, z, Update::accumulate, df);
        // 3.
        if (b.later == 0) continue;
        const Matrix<T> P = within(b, scratch.P), dP = within(b, scratch.dP);
        gemm(fb, transposed(gw), P);
        gemm(dyb, transposed(b.within(v)), dP);
        for (Index r = 0; r < b.rows && of.normalised; ++r)
          for (Index j = 0; j < b.later; ++j) dP(r, j) += dD(r, 0);
        clear_unseen(P), clear_unseen(dP);
        gemm(dP, gw, Update::accumulate, df);
        gemm(transposed(dP), fb, Update::accumulate, b.within(scratch.dg));
        gemm(transposed(P), dyb, Update::accumulate, b.within(dv));
      }
    }

    /// The map from the features [N, M].
    void make_map(Matrix<T> map) const {
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

    /// y_i / (D_i + eps); the divisors' reciprocals take the place of D.
    void divide(Matrix<T> y, Matrix<T> D) const {
      for (Index i = 0; i < y.rows; ++i) {
        const T reciprocal = T(1) / (D(i, 0) + T(of.eps));
        D(i, 0) = reciprocal;
        for (Index c = 0; c < y.columns; ++c) y(i, c) = reciprocal * y(i, c);
      }
    }
    void divide_backward(Matrix<const T> out, Matrix<const T> dout) const {
      const Matrix<T> dD = scratch.dD, dy = scratch.dy;
      kernels::row_dots(dout, out, dD.data);
      for (Index i = 0; i < of.N; ++i) {
        const T reciprocal = r(i, 0);
        dD(i, 0) = -(reciprocal * dD(i, 0));
        for (Index c = 0; c < of.e; ++c) dy(i, c) = reciprocal * dout(i, c);
      }
    }

    /// dS and dz of the keys that the block added, and then dg and dv. Behind the keys that its last block added, these
    /// are zero so far.
    void backward_of_keys(const KernelBlock& b, Matrix<const T> dy, Update update, Matrix<T> dv) const {
      const bool last = b.first + b.rows == of.N;
      const Update sums = last ? Update::assign : Update::accumulate;
      gemm(transposed(b.queries(f)), b.queries(dy), sums, scratch.dS);
      if (of.normalised) kernels::gemm(transposed(b.queries(scratch.dD)), b.queries(f), sums, scratch.dz);
      if (last) {
        const Index added = b.key + b.keys, rest = of.M - added;
        fill(scratch.dg.middle_rows(added, rest), T(0));
        if (update == Update::assign) fill(dv.middle_rows(added, rest), T(0));
      }
      if (b.keys == 0) return;
      gemm.add(b.added(v), transposed(scratch.dS), scratch.dz.data, {}, b.added(scratch.dg));
      gemm(b.added(g), scratch.dS, update, b.added(dv));
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
    // Forward: 1. S; 2. y. Backward: dS, dg, dv; df.
    cost.forward = product_counts(p, e, seen) + product_counts(N, e, p);
    cost.backward =
        product_counts(p, e, N) + product_counts(seen, p, e) + product_counts(seen, e, p) + product_counts(N, p, e);
    cost.forward_contractions = product_contractions(N + seen, p, e);
    cost.backward_contractions = 2 * cost.forward_contractions;
    const Counts sums = product_counts(p, e, seen);
    if (causal) cost.backward += sums;  // S again; as papers count, once
    if (!normalised) return cost;
    // Forward: 1. z; 2. D; 4. out. Backward: 4. dy and dD; dz, its part of dg and of df.
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
  /// Queries of a causal block: the product within it then takes about as long as those with S.
  static constexpr Index most_rows = 64;

  template <class T>
  Index rows_of_block() const {
    return !causal ? N : std::is_same_v<T, Counted> ? 1 : most_rows;
  }
  template <class T>
  Index blocks() const {
    return (N + rows_of_block<T>() - 1) / rows_of_block<T>();
  }
  template <class T>
  KernelBlock block(Index i) const {
    if (!causal) return {0, N, 0, M, 0};
    const Index step = rows_of_block<T>(), first = i * step, rows = std::min(step, N - first);
    const Index before = i == 0 ? 0 : std::min(first - step + 1, M), all = std::min(first + 1, M);
    return {first, rows, before, all - before, std::min(first + rows, M) - all};
  }
};

}  // namespace heed
