// Nearest neighbours: for each row of a matrix, the rows of another with the largest dot products. There are no counts,
// since the number of insertions depends on the values.
#pragma once

#include "heed/base/matrix.h"

namespace heed::kernels {

/// Finds, for each row of x [m, d], the k rows of y [n, d] with the largest products x[i] . y[j], 1 <= k <= n. Writes
/// the products in descending order to products [m, k] and the row indices j to rows [m, k]; ties are ordered by index.
/// All values and products must be finite. The m x n products are computed in blocks and never stored as a whole.
template <class T>
void largest_products(const MatrixFor<T>& x, const MatrixFor<T>& y, const Matrix<T>& products,
                      const Matrix<Index>& rows);

}  // namespace heed::kernels
