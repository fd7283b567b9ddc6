#include "heed/kernels/products/largest_products.h"

#include "heed/base/parallel.h"
#include "heed/kernels/products/gemm.h"

#include <algorithm>
#include <limits>

namespace heed::kernels {

namespace {

/// The largest values so far in descending order, and their indices.
template <class T>
struct Largest {
  T* values;
  Index* indices;
  Index count;

  T least() const { return values[count - 1]; }

  /// Inserts `value`, which must exceed the smallest, after equal values, whose indices are smaller.
  void insert(T value, Index index) {
    Index at = count - 1;
    for (; at > 0 && values[at - 1] < value; --at) {
      values[at] = values[at - 1];
      indices[at] = indices[at - 1];
    }
    values[at] = value;
    indices[at] = index;
  }
};

/// Inserts the values that are large enough; values[0] has index `first`. Compares sixteen at a time, since most are
/// too small.
template <class T>
void scan(const T* values, Index count, Index first, Largest<T> largest) {
  constexpr Index step = 16;
  const auto insert_from = [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i)
      if (values[i] > largest.least()) largest.insert(values[i], first + i);
  };
  Index i = 0;
  for (; i + step <= count; i += step) {
    const T least = largest.least();
    int larger = 0;
    for (Index j = 0; j < step; ++j) larger |= values[i + j] > least;
    if (larger) insert_from(i, i + step);
  }
  insert_from(i, count);
}

}  // namespace

template <class T>
void largest_products(const MatrixFor<T>& x, const MatrixFor<T>& y, const Matrix<T>& products,
                      const Matrix<Index>& rows) {
  // 96 x 1024 products in float are 384 KB and stay in an L2 cache of 1 MB.
  constexpr Index x_block = 96, y_block = 1024;
  const Index k = products.columns, whole = y.rows / y_block * y_block, left = y.rows - whole, width = x.columns;
  HEED_ASSERT(k >= 1 && k <= y.rows);
  // Equal rows of y must have equal products, but a BLAS may add in a different order in small matrices and in the last
  // columns of large ones. The last rows of y are therefore padded with zeros to a full block.
  Buffer<T> last(left > 0 ? y_block * width : 0);
  for (Index j = 0; j < left; ++j)
    for (Index d = 0; d < width; ++d) last.data()[j * width + d] = y(whole + j, d);
  std::fill_n(last.data() + left * width, last.size() - left * width, T(0));
  fill(products, -std::numeric_limits<T>::infinity());
  parallel_for((x.rows + x_block - 1) / x_block, [&](Index block) {
    const Index first = block * x_block, count = std::min(x_block, x.rows - first);
    Buffer<T> block_products(x_block * y_block);
    for (Index from = 0; from < y.rows; from += y_block) {
      const Matrix<T> part(block_products.data(), count, y_block);
      const Matrix<const T> others =
          from < whole ? y.middle_rows(from, y_block) : Matrix<const T>(last.data(), y_block, width);
      gemm(x.middle_rows(first, count), transposed(others), part);
      for (Index i = 0; i < count; ++i)
        scan(part[i], std::min(y_block, y.rows - from), from, Largest<T>{products[first + i], rows[first + i], k});
    }
  });
}

template void largest_products(const MatrixFor<float>&, const MatrixFor<float>&, const Matrix<float>&,
                               const Matrix<Index>&);
template void largest_products(const MatrixFor<double>&, const MatrixFor<double>&, const Matrix<double>&,
                               const Matrix<Index>&);

}  // namespace heed::kernels
