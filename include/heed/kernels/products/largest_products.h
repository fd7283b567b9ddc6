// For each row of a matrix, the rows of another that it has the largest products with: nearest neighbours. There are no
// counts, since how often a row is better than those found so far depends on the numbers.
#pragma once

#include "heed/base/matrix.h"

namespace heed::kernels {

/// The k rows y[j] with the largest products x[i] . y[j], for each row of x [m, d] and with y [n, d], 1 <= k <= n:
/// products [m, k] begins with the largest, rows [m, k] has their numbers j; of equal ones lower numbers come first.
/// All numbers must be finite, products too. The m x n products are made block by block and never exist together.
template <class T>
void largest_products(const MatrixFor<T>& x, const MatrixFor<T>& y, const Matrix<T>& products,
                      const Matrix<Index>& rows);

}  // namespace heed::kernels
