// Squared distances, the Gaussian kernel matrix of two sets of rows, and products with it.
#pragma once

#include "heed/base/memory_layout.h"
#include "heed/kernels/shared/exp.h"
#include "heed/kernels/products/gemm.h"

namespace heed::kernels {

/// Operands and result of gaussian().
template <class T>
struct GaussianMatrix {
  Matrix<const T> x, y;
  double scale;
  Matrix<const T> G;
};

inline namespace reference {

/// Computes out[i,j] = sum_c (x[i,c] - y[j,c])^2 for the rows of x [m, d] and y [n, d]. x and y may be the same rows;
/// out must not overlap them. The sum is over squared differences: the expanded form |x|^2 + |y|^2 - 2 x.y cancels for
/// rows close to each other or far from the origin, and may be negative. Equal rows thus have distance 0, out is
/// exactly symmetric if x = y, and the relative error is at most (d + 2) eps for all rows. The result is finite if
/// every |x[i,c] - y[j,c]| < sqrt(largest T / d).
template <class T>
void squared_distances(MatrixFor<T> x, MatrixFor<T> y, Matrix<T> out) {
  for (Index i = 0; i < out.rows; ++i)
    for (Index j = 0; j < out.columns; ++j) {
      const T *const a = x[i], *const b = y[j];
      const T first = a[0] - b[0];
      T sum = first * first;
      for (Index c = 1; c < x.columns; ++c) {
        const T difference = a[c] - b[c];
        sum += difference * difference;
      }
      out(i, j) = sum;
    }
}

/// Returns the counts for `pairs` pairs of rows.
inline Counts squared_distance_counts(Index pairs, Index d) { return {.mul = pairs * d, .add = pairs * (2 * d - 1)}; }

/// Computes the gradient of gaussian(). As d exp(-s |x - y|^2) / dx = -2 s exp(-s |x - y|^2) (x - y),
///   w[i,j] = -2 scale G[i,j] dG[i,j],   dx_i (+)= sum_j w[i,j] (x_i - y_j),   dy_j (+)= sum_i w[i,j] (y_j - x_i).
/// dG [m, n] must have the same stride as G. dy may be empty. dx and dy must not overlap anything. The differences are
/// summed individually, since x_i sum_j w - sum_j w y_j cancels for rows far from the origin. Fast float: error at most
/// (terms + 5) eps relative to the sum of |w (x - y)| and the previous value.
template <class T>
void gaussian_backward(const GaussianMatrix<std::type_identity_t<T>>& of, MatrixFor<T> dG, Update update_x,
                       Matrix<T> dx, Update update_y = Update::assign, Matrix<std::type_identity_t<T>> dy = {}) {
  for (Index i = 0; i < dG.rows; ++i)
    for (Index j = 0; j < dG.columns; ++j) {
      const T *const a = of.x[i], *const b = of.y[j];
      const T w = T(-2 * of.scale) * (of.G(i, j) * dG(i, j));
      const Update update_a = term_update(j, update_x), update_b = term_update(i, update_y);
      for (Index c = 0; c < dx.columns; ++c) {
        const T step = w * (a[c] - b[c]);
        write(update_a, dx(i, c), step);
        if (dy) write(update_b, dy(j, c), -step);
      }
    }
}

}  // namespace reference

#ifndef HEED_NO_SIMD
/// Fast versions for float.
void squared_distances(Matrix<const float> x, Matrix<const float> y, Matrix<float> out);
void gaussian_backward(const GaussianMatrix<float>& of, Matrix<const float> dG, Update update_x, Matrix<float> dx,
                       Update update_y = Update::assign, Matrix<float> dy = {});
#endif

/// Computes G[i,j] = exp(-scale |x_i - y_j|^2), scale > 0, with the shapes and aliasing rules of squared_distances().
/// The result is in [0, 1], even if the distance overflows, and 1 for equal rows.
template <class T>
void gaussian(MatrixFor<T> x, MatrixFor<T> y, double scale, Matrix<T> G) {
  squared_distances(x, y, G);
  const Matrix<T> rows = G.joined();
  for (Index i = 0; i < rows.rows; ++i)
    for (Index j = 0; j < rows.columns; ++j) rows(i, j) = exp(T(-scale) * rows(i, j));
}

/// Returns the counts for `pairs` pairs of rows of d values.
inline Counts gaussian_counts(Index pairs, Index d) {
  return squared_distance_counts(pairs, d) + Counts{.mul = pairs, .exp = pairs};
}

/// Adds the gradient of gaussian(x, x) to dx. Each row is both an x and a y, so dx accumulates the gradient for
/// dG + dG^T. Overwrites dG. The diagonal of dG contributes nothing, since the distance of a row to itself is constant.
template <class T>
void gaussian_gram_backward(const GaussianMatrix<std::type_identity_t<T>>& of, Matrix<std::type_identity_t<T>> dG,
                            Matrix<T> dx) {
  for (Index i = 0; i < dG.rows; ++i)
    for (Index j = 0; j <= i; ++j) dG(i, j) = dG(j, i) = dG(i, j) + dG(j, i);
  gaussian_backward(of, dG, Update::accumulate, dx);
}

/// Returns the cost of gaussian() and of gaussian_backward() with both gradients assigned. As counted in papers, a term
/// of a squared distance is 1 mul and 2 add; its gradient is 1 mul, 1 sub, and 1 add for each of dx and dy.
inline Cost gaussian_cost(Index m, Index n, Index d) {
  const Index pairs = m * n;
  Cost cost;
  cost.forward = gaussian_counts(pairs, d);
  cost.backward = {.mul = pairs * (d + 2), .add = 3 * pairs * d - (m + n) * d};
  cost.forward_contractions = pairs * d * Counts{.mul = 1, .add = 2};
  cost.backward_contractions = pairs * d * Counts{.mul = 1, .add = 3};
  cost.attention_exp = cost.forward.exp;
  return cost;
}

/// Returns the cost of gaussian(x, x) for m rows and of gaussian_gram_backward().
inline Cost gaussian_gram_cost(Index m, Index d) {
  Cost cost = gaussian_cost(m, m, d);
  cost.backward.add = 2 * m * m * d + m * (m + 1) / 2;
  cost.backward_contractions.add = 2 * m * m * d;
  return cost;
}

/// Scratch memory for a block of rows of G and its gradient in the products below. For n = 4096, 64 float rows of both
/// take 2 MB.
template <class T>
struct GaussianRows {
  static constexpr Index most = 64;
  Matrix<T> G, dG;

  GaussianRows() = default;
  GaussianRows(Index n, MemoryLayout<T>& layout) : G(layout.matrix(most, n)), dG(layout.matrix(most, n)) {}
};

/// A block of rows [first, first + count) of G, up to the diagonal: columns [0, first + count). By symmetry, the part
/// left of the diagonal block, transposed, is also columns [first, first + count) of the rows above.
struct GaussianBlock {
  Index first, count;

  /// Return the block's rows of x, the rows above them, and both together.
  template <class T>
  Matrix<T> own(Matrix<T> x) const {
    return x.middle_rows(first, count);
  }
  template <class T>
  Matrix<T> before(Matrix<T> x) const {
    return x.top_rows(first);
  }
  template <class T>
  Matrix<T> seen(Matrix<T> x) const {
    return x.top_rows(first + count);
  }
  /// Returns the block's slice of the scratch memory.
  template <class T>
  Matrix<T> rows(Matrix<T> memory) const {
    return memory.top_rows(count).middle_columns(0, first + count);
  }
  /// Return the columns left of the diagonal block, and those in it.
  template <class T>
  Matrix<T> left(Matrix<T> rows) const {
    return rows.middle_columns(0, first);
  }
  template <class T>
  Matrix<T> diagonal(Matrix<T> rows) const {
    return rows.middle_columns(first, count);
  }
};

/// Operands of G v with G = gaussian(x, x): x [n, d], v [n, e]. G is symmetric, so only its blocks up to the diagonal
/// are computed; if n <= 64, one block holds all of G.
template <class T>
struct GaussianProduct {
  Matrix<const T> x;
  double scale;
  Matrix<const T> v;
  GaussianRows<T> rows;

  /// Calls f(block) for each block, in order.
  template <class F>
  void each_block(const F& f) const {
    for (Index first = 0; first < x.rows; first += rows.most)
      f(GaussianBlock{first, std::min(rows.most, x.rows - first)});
  }
};

/// Computes the block's contribution to y (+)= G v: that of its rows and, by symmetry, that of its columns. v and y
/// have all n rows; `G` holds the block.
template <class T>
void gaussian_block_product(const GaussianBlock& b, Matrix<T> G, MatrixFor<T> v, Update update, Matrix<T> y) {
  gemm(G, b.seen(v), update, b.own(y));
  if (b.first > 0) gemm(transposed(b.left(G)), b.own(v), Update::accumulate, b.before(y));
}

/// Computes out = G v, in blocks of rows. Operands and results must not overlap.
template <class T>
void gaussian_product(const GaussianProduct<std::type_identity_t<T>>& of, Matrix<T> out) {
  of.each_block([&](const GaussianBlock& b) {
    const Matrix<T> G = b.rows(of.rows.G);
    gaussian(b.own(of.x), b.seen(of.x), of.scale, G);
    gaussian_block_product(b, G, of.v, Update::assign, out);
  });
}

/// Computes dv (+)= G^T dout = G dout, and dx (+)= the gradient through dG = dout v^T. dv may be empty. As in
/// gaussian_gram_backward(), the gradient of a row uses dG + dG^T; dG^T is computed as a second product, which is three
/// times faster than a second sum over differences.
template <class T>
void gaussian_product_backward(const GaussianProduct<std::type_identity_t<T>>& of, MatrixFor<T> dout, Update update_v,
                               Matrix<std::type_identity_t<T>> dv, Update update_x, Matrix<T> dx) {
  of.each_block([&](const GaussianBlock& b) {
    const Matrix<T> G = b.rows(of.rows.G), dG = b.rows(of.rows.dG);
    gaussian(b.own(of.x), b.seen(of.x), of.scale, G);
    if (dv) gaussian_block_product(b, G, dout, update_v, dv);
    gemm(b.own(dout), transposed(b.seen(of.v)), dG);
    gemm(b.own(of.v), transposed(b.seen(dout)), Update::accumulate, dG);
    gaussian_backward({b.own(of.x), b.own(of.x), of.scale, b.diagonal(G)}, b.diagonal(dG), update_x, b.own(dx));
    if (b.first > 0)
      gaussian_backward({b.own(of.x), b.before(of.x), of.scale, b.left(G)}, b.left(dG), Update::accumulate, b.own(dx),
                        Update::accumulate, b.before(dx));
  });
}

/// Returns the cost of both passes with dx and dv assigned or, if `added`, the cost of a second product with the same
/// G, which accumulates into dx and has no dv. Each product computes G, but the contractions include G and its gradient
/// for the first product only. The contractions count all pairs of rows, not only those of the computed blocks; the
/// difference is declared in left_out.
inline Cost gaussian_product_cost(Index n, Index d, Index e, bool added) {
  // Pairs of rows within a block, and pairs of a row of a block and a row before the block.
  const Index most = GaussianRows<float>::most, last = n % most, diagonal = (n - last) * most + last * last;
  const Index left = (n * n - diagonal) / 2, pairs = diagonal + left;
  const Cost G = gaussian_cost(n, n, d);
  const Counts G_computed = gaussian_counts(pairs, d);
  Cost cost;
  cost.forward = G_computed + product_counts(n, e, n);
  cost.backward = G_computed + Counts{.mul = 2 * pairs * e, .add = pairs * (2 * e - 1)} +
                  Counts{.mul = pairs * (d + 2), .add = (2 * diagonal + 3 * left - (added ? 0 : n)) * d} +
                  (added ? Counts{} : product_counts(n, e, n));
  cost.forward_contractions = product_contractions(n, e, n);
  cost.backward_contractions = (added ? 1 : 2) * product_contractions(n, e, n);
  if (added) {
    cost.left_out = pairs * d * Counts{.mul = 1, .add = 2}, cost.left_out.exp = G_computed.exp;
    return cost;
  }
  cost.left_out = (pairs - n * n) * d * Counts{.mul = 1, .add = 2};
  cost.attention_exp = G_computed.exp;
  cost.forward_contractions += G.forward_contractions;
  cost.backward_contractions += G.backward_contractions;
  return cost;
}

}  // namespace heed::kernels
