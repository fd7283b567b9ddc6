// Matrix product.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counts.h"
#include "heed/kernels/shared/update.h"

namespace heed::kernels {

namespace reference {

/// C = A B, or C += A B, for A [m, k], B [k, n], each a matrix or transposed(one), and C [m, n].
///
///   gemm(q, transposed(k), S);                                 S = q k^T
///   gemm(transposed(A), dout, Update::accumulate, dv);         dv += A^T dout
///
/// C overlaps neither operand. Relative to sum |a||b| (and |C|, where it is added to) the error is at most k eps. In
/// float, each element's value depends on its row of A, its column of B and what was there, and on nothing else:
/// cutting m or n into pieces changes no bit. double goes to BLAS where there is one, single-threaded. Counts:
/// product_counts(m, n, k), and m n add more to accumulate.
template <class T>
void gemm(const OperandFor<T>& a, const OperandFor<T>& b, Update update, const Matrix<T>& c) {
  for (Index i = 0; i < c.rows; ++i)
    for (Index j = 0; j < c.columns; ++j) {
      T sum(0);
      for (Index l = 0; l < a.columns; ++l) {
        const T product = a(i, l) * b(l, j);
        if (l == 0)
          sum = product;
        else
          sum += product;
      }
      write(update, c(i, j), sum);
    }
}

}  // namespace reference

using reference::gemm;
#ifndef HEED_NO_SIMD
void gemm(const Operand<float>& a, const Operand<float>& b, Update update, const Matrix<float>& c);
#endif
#ifndef HEED_NO_BLAS
void gemm(const Operand<double>& a, const Operand<double>& b, Update update, const Matrix<double>& c);
#endif

template <class T>
void gemm(const OperandFor<T>& a, const OperandFor<T>& b, const Matrix<T>& c) {
  gemm(a, b, Update::assign, c);
}

namespace detail {

/// C = bias + addend, of which either may be left out; returns how a product is then added to it. Without both, C is
/// left as it is, for the product to be assigned.
template <class T>
Update assign_addends(const std::type_identity_t<T>* bias, const MatrixFor<T>& addend, const Matrix<T>& c) {
  if (!bias && !addend) return Update::assign;
  for (Index i = 0; i < c.rows; ++i)
    for (Index j = 0; j < c.columns; ++j) c(i, j) = !bias ? addend(i, j) : !addend ? bias[j] : addend(i, j) + bias[j];
  return Update::accumulate;
}

}  // namespace detail

/// C = bias + addend + A B, with bias[j] added to column j and the matrix `addend` [m, n]; either may be left out, and
/// C overlaps neither. All else, and in float the promise about cutting m and n, as in gemm().
template <class T>
void addmm(const OperandFor<T>& a, const OperandFor<T>& b, const std::type_identity_t<T>* bias,
           const MatrixFor<T>& addend, const Matrix<T>& c) {
  gemm(a, b, detail::assign_addends(bias, addend, c), c);
}

inline Counts addmm_counts(Index m, Index n, Index k, bool bias, bool addend) {
  return product_counts(m, n, k) + Counts{.add = (bias + addend) * m * n};
}

#ifndef HEED_NO_SIMD
void addmm(const Operand<float>& a, const Operand<float>& b, const float* bias, const Matrix<const float>& addend,
           const Matrix<float>& c);
#endif

/// What multiplies float and double: "heed AVX3, OpenBLAS 0.3.21 Cooperlake"; "plain loops" where nothing else does.
const char* gemm_library();

}  // namespace heed::kernels
