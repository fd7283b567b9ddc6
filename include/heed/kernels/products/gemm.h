// Matrix product. Computed with Highway in float, with OpenBLAS in double, and by plain loops otherwise.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counted.h"
#include "heed/kernels/shared/update.h"

namespace heed::kernels {

inline namespace reference {

/// Computes C (+)= A B for A [m, k], B [k, n], each a matrix or transposed(matrix), and C [m, n].
///
///   gemm(q, transposed(k), S);                                 S = q k^T
///   gemm(transposed(A), dout, Update::accumulate, dv);         dv += A^T dout
///
/// C must not overlap A or B. Error: at most k eps relative to sum |a||b| (plus |C| if it accumulates). In float an
/// element depends only on its row of A, its column of B and its previous value: splitting m or n into blocks changes
/// no bit. double uses single-threaded BLAS if the build has one. Counts: product_counts(m, n, k), and m n more
/// additions to accumulate.
template <class T>
void gemm(const OperandFor<T>& a, const OperandFor<T>& b, Update update, const Matrix<T>& c) {
  for (Index i = 0; i < c.rows; ++i)
    for (Index j = 0; j < c.columns; ++j) {
      T sum(0);
      for (Index l = 0; l < a.columns; ++l) write(term_update(l), sum, a(i, l) * b(l, j));
      write(update, c(i, j), as_sum(sum));
    }
}

}  // namespace reference

#ifndef HEED_NO_SIMD
/// Fast versions for float.
void gemm(const Operand<float>& a, const Operand<float>& b, Update update, const Matrix<float>& c);
void addmm(const Operand<float>& a, const Operand<float>& b, const float* bias, const Matrix<const float>& addend,
           const Matrix<float>& c);
#endif
#ifndef HEED_NO_BLAS
/// Fast version for double, by BLAS.
void gemm(const Operand<double>& a, const Operand<double>& b, Update update, const Matrix<double>& c);
#endif

/// Computes C = A B.
template <class T>
void gemm(const OperandFor<T>& a, const OperandFor<T>& b, const Matrix<T>& c) {
  gemm(a, b, Update::assign, c);
}

namespace detail {

/// Computes C = bias + addend and returns the update that adds a product to it. Either may be empty; if both are empty,
/// does not change C and returns assign.
template <class T>
Update assign_addends(const std::type_identity_t<T>* bias, const MatrixFor<T>& addend, const Matrix<T>& c) {
  if (!bias && !addend) return Update::assign;
  for (Index i = 0; i < c.rows; ++i)
    for (Index j = 0; j < c.columns; ++j) c(i, j) = !bias ? addend(i, j) : !addend ? bias[j] : addend(i, j) + bias[j];
  return Update::accumulate;
}

}  // namespace detail

/// Computes C = bias + addend + A B, with bias[j] added to column j and a matrix `addend` [m, n]. Bias and addend may
/// be empty; C must not overlap them. Otherwise as gemm(): in float, splitting m or n into blocks changes no bit.
template <class T>
void addmm(const OperandFor<T>& a, const OperandFor<T>& b, const std::type_identity_t<T>* bias,
           const MatrixFor<T>& addend, const Matrix<T>& c) {
  gemm(a, b, detail::assign_addends(bias, addend, c), c);
}

/// Returns the counts of addmm() with a [m, k] and b [k, n].
inline Counts addmm_counts(Index m, Index n, Index k, bool bias, bool addend) {
  return product_counts(m, n, k) + Counts{.add = (bias + addend) * m * n};
}

/// Returns the names of the implementations for float and double, such as "heed AVX3, OpenBLAS 0.3.21 Cooperlake", or
/// "plain loops".
const char* gemm_library();

}  // namespace heed::kernels
