// Squared distances, the Gaussian kernel matrix between two sets of rows, and products with it.
#pragma once

#include "heed/base/carver.h"
#include "heed/kernels/shared/exp.h"
#include "heed/kernels/products/gemm.h"

#include <cmath>

namespace heed::kernels {

namespace reference {

/// out[i,j] = sum_c (x[i,c] - y[j,c])^2 for the m rows of x and the n rows of y, of d numbers each. x and y may be the
/// same rows; out overlaps neither. The differences are squared, never the square expanded: |x|^2 + |y|^2 - 2 x.y
/// cancels where rows are close or far from the origin, and may turn negative. So equal rows are at distance 0, out is
/// symmetric where x = y to the last bit, and the relative error is at most (d + 2) eps, whatever the rows. Finite
/// where |x - y| < sqrt(largest / d).
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

}  // namespace reference

using reference::squared_distances;
#ifndef HEED_NO_SIMD
void squared_distances(Matrix<const float> x, Matrix<const float> y, Matrix<float> out);
#endif

/// Of so many pairs of rows.
inline Counts squared_distance_counts(Index pairs, Index d) { return {.mul = pairs * d, .add = pairs * (2 * d - 1)}; }

/// G[i,j] = exp(-scale |x_i - y_j|^2), shapes and overlap as above, scale > 0. In [0, 1], also where the distance
/// overflows; 1 for equal rows.
template <class T>
void gaussian(MatrixFor<T> x, MatrixFor<T> y, double scale, Matrix<T> G) {
  squared_distances(x, y, G);
  const Matrix<T> rows = G.joined();
  for (Index i = 0; i < rows.rows; ++i)
    for (Index j = 0; j < rows.columns; ++j) rows(i, j) = exp(T(-scale) * rows(i, j));
}

inline Counts gaussian_counts(Index pairs, Index d) {
  return squared_distance_counts(pairs, d) + Counts{.mul = pairs, .exp = pairs};
}

/// G as gaussian() left it, and what it was made of.
template <class T>
struct GaussianMatrix {
  Matrix<const T> x, y;
  double scale;
  Matrix<const T> G;
};

namespace reference {

/// The gradient of gaussian(). As d exp(-s |x - y|^2) / dx = -2 s exp(-s |x - y|^2) (x - y),
///   w[i,j] = -2 scale G[i,j] dG[i,j],   dx_i (+)= sum_j w[i,j] (x_i - y_j),   dy_j (+)= sum_i w[i,j] (y_j - x_i).
/// dG [m, n] has G's stride. dy may be left out. dx and dy overlap nothing else, nor each other.
/// Differences are summed one by one, for the reason above: x_i sum_j w - sum_j w y_j would lose them. Fast float:
/// relative to the sum of |w (x - y)|, and what it is added to, the error is at most (terms + 5) eps.
template <class T>
void gaussian_backward(const GaussianMatrix<std::type_identity_t<T>>& of, MatrixFor<T> dG, Update update_x,
                       Matrix<T> dx, Update update_y = Update::assign, Matrix<std::type_identity_t<T>> dy = {}) {
  for (Index i = 0; i < dG.rows; ++i)
    for (Index j = 0; j < dG.columns; ++j) {
      const T *const a = of.x[i], *const b = of.y[j];
      const T w = T(-2 * of.scale) * (of.G(i, j) * dG(i, j));
      const Update update_a = j == 0 ? update_x : Update::accumulate, update_b = i == 0 ? update_y : Update::accumulate;
      for (Index c = 0; c < dx.columns; ++c) {
        const T step = w * (a[c] - b[c]);
        write(update_a, dx(i, c), step);
        if (dy) write(update_b, dy(j, c), -step);
      }
    }
}

}  // namespace reference

using reference::gaussian_backward;
#ifndef HEED_NO_SIMD
void gaussian_backward(const GaussianMatrix<float>& of, Matrix<const float> dG, Update update_x, Matrix<float> dx,
                       Update update_y = Update::assign, Matrix<float> dy = {});
#endif

/// The gradient where x and y are the same rows. Each of them is on either side, hence dx += that for dG + dG^T, which
/// takes dG's place. What G has on its diagonal does not matter, since a row is at distance 0 from itself.
template <class T>
void gaussian_gram_backward(const GaussianMatrix<std::type_identity_t<T>>& of, Matrix<std::type_identity_t<T>> dG,
                            Matrix<T> dx) {
  for (Index i = 0; i < dG.rows; ++i)
    for (Index j = 0; j <= i; ++j) dG(i, j) = dG(j, i) = dG(i, j) + dG(j, i);
  gaussian_backward(of, dG, Update::accumulate, dx);
}

/// Of gaussian() and gaussian_backward() with both gradients assigned. As papers count, a term of a squared distance is
/// 1 mul and 2 add, its gradient 1 mul, 1 sub and 1 add for each of dx and dy.
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

/// Of gaussian() of m rows with themselves and gaussian_gram_backward().
inline Cost gaussian_gram_cost(Index m, Index d) {
  Cost cost = gaussian_cost(m, m, d);
  cost.backward.add = 2 * m * m * d + m * (m + 1) / 2;
  cost.backward_contractions.add = 2 * m * m * d;
  return cost;
}

/// Memory for the rows of G that the products below make at a time, and of its gradient. For n = 4096, 64 float rows of
/// both are 2 MB.
template <class T>
struct GaussianRows {
  static constexpr Index most = 64;
  Matrix<T> G, dG;

  GaussianRows() = default;
  GaussianRows(Index n, Carver<T>& carve) : G(carve.matrix(most, n)), dG(carve.matrix(most, n)) {}
};

/// Some rows of G up to its diagonal: columns 0 to first + count of the rows from `first` on. G is symmetric, so the
/// columns before `first` stand above the diagonal, too.
struct GaussianBlock {
  Index first, count;

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
  /// Memory for these rows.
  template <class T>
  Matrix<T> rows(Matrix<T> memory) const {
    return memory.top_rows(count).middle_columns(0, first + count);
  }
  template <class T>
  Matrix<T> left(Matrix<T> rows) const {
    return rows.middle_columns(0, first);
  }
  template <class T>
  Matrix<T> diagonal(Matrix<T> rows) const {
    return rows.middle_columns(first, count);
  }
};

/// G v with G = gaussian(x, x), for the n rows of x [n, d] and v [n, e]. As G is symmetric, only its blocks up to the
/// diagonal are made. Up to 64 rows are one block, so that all of G is made, and so it is counted.
template <class T>
struct GaussianProduct {
  Matrix<const T> x;
  double scale;
  Matrix<const T> v;
  GaussianRows<T> rows;

  /// Calls f(block) for one block after the other.
  template <class F>
  void each_block(const F& f) const {
    for (Index first = 0; first < x.rows; first += rows.most)
      f(GaussianBlock{first, std::min(rows.most, x.rows - first)});
  }
};

/// y (+)= G v, of which `G` holds the block's rows, for rows v and y of the whole: what its rows give, and its columns.
template <class T>
void gaussian_block_product(const GaussianBlock& b, Matrix<T> G, MatrixFor<T> v, Update update, Matrix<T> y) {
  gemm(G, b.seen(v), update, b.own(y));
  if (b.first > 0) gemm(transposed(b.left(G)), b.own(v), Update::accumulate, b.before(y));
}

/// out = G v, in blocks of rows. No overlap.
template <class T>
void gaussian_product(const GaussianProduct<std::type_identity_t<T>>& of, Matrix<T> out) {
  of.each_block([&](const GaussianBlock& b) {
    const Matrix<T> G = b.rows(of.rows.G);
    gaussian(b.own(of.x), b.seen(of.x), of.scale, G);
    gaussian_block_product(b, G, of.v, Update::assign, out);
  });
}

/// dv (+)= G^T dout = G dout, and dx (+)= the gradient through dG = dout v^T. dv may be left out. As in
/// gaussian_gram_backward() a row is on either side, and takes dG + dG^T: a second product instead of a second sum over
/// differences, which takes three times as long.
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

/// With dx and dv assigned; or, for a second product with the same G (`added`), with dx added to what is there and no
/// dv. Each makes G anew; as papers count, G and the gradient through it are of the first alone.
inline Cost gaussian_product_cost(Index n, Index d, Index e, bool added) {
  const Index pairs = n * n;
  const Cost G = gaussian_cost(n, n, d);
  Cost cost;
  cost.forward = G.forward + product_counts(n, e, n);
  cost.backward = G.forward + 2 * product_counts(n, n, e) + Counts{.add = pairs} +
                  Counts{.mul = pairs * (d + 2), .add = 2 * pairs * d - (added ? 0 : n * d)} +
                  (added ? Counts{} : product_counts(n, e, n));
  cost.forward_contractions = product_contractions(n, e, n);
  cost.backward_contractions = (added ? 1 : 2) * product_contractions(n, e, n);
  cost.attention_exp = G.attention_exp;
  if (added) return cost;
  cost.forward_contractions += G.forward_contractions;
  cost.backward_contractions += G.backward_contractions;
  return cost;
}

}  // namespace heed::kernels
