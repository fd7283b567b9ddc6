// Matrix product.
#pragma once

#include "heed/kernels/update.h"
#include "heed/base/tensor.h"

namespace heed {

enum class Transpose { no, yes };

namespace kernels {

/// C = op(A) op(B), or C += op(A) op(B).
///
/// C is m x n with rows `ldc` elements apart; op(A) is m x k: A itself, rows `lda` apart, or with
/// Transpose::yes the transpose of the k x m matrix A; op(B) is k x n likewise. C overlaps neither operand.
/// Relative to sum |a||b| (and |C|, where it is added to) the error is at most k eps. In float, each element's value
/// depends on its row of op(A), its column of op(B) and what was there, and on nothing else: cutting m or n into
/// pieces changes no bit. double goes to BLAS, single-threaded. Counts m n k mul, m n (k - 1) add to assign and
/// m n k add to accumulate.
template <class T>
void gemm(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const T* a, Index lda, const T* b,
          Index ldb, Update update, T* c, Index ldc) {
  const Index a_row = transpose_a == Transpose::no ? lda : 1, a_column = transpose_a == Transpose::no ? 1 : lda;
  const Index b_row = transpose_b == Transpose::no ? ldb : 1, b_column = transpose_b == Transpose::no ? 1 : ldb;
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      T sum(0);
      for (Index l = 0; l < k; ++l) {
        const T product = a[i * a_row + l * a_column] * b[l * b_row + j * b_column];
        if (l == 0)
          sum = product;
        else
          sum += product;
      }
      write(update, c[i * ldc + j], sum);
    }
}

#ifndef HEED_REFERENCE
void gemm(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const float* a, Index lda,
          const float* b, Index ldb, Update update, float* c, Index ldc);
void gemm(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const double* a, Index lda,
          const double* b, Index ldb, Update update, double* c, Index ldc);
#endif

/// C = bias + addend + op(A) op(B), with bias[j] added to column j and the matrix `addend`, rows `ldd` apart; either
/// may be nullptr, and C overlaps neither. All else, and in float the promise about cutting m and n, as in gemm().
/// Counts as a product that is assigned, and m n add for each of the two.
template <class T>
void addmm(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const T* a, Index lda, const T* b,
           Index ldb, const T* bias, const T* addend, Index ldd, T* c, Index ldc) {
  if (bias == nullptr && addend == nullptr)
    return gemm(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, Update::assign, c, ldc);
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j)
      c[i * ldc + j] = !bias ? addend[i * ldd + j] : !addend ? bias[j] : addend[i * ldd + j] + bias[j];
  gemm(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, Update::accumulate, c, ldc);
}

#ifndef HEED_REFERENCE
void addmm(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const float* a, Index lda,
           const float* b, Index ldb, const float* bias, const float* addend, Index ldd, float* c, Index ldc);
#endif

/// What multiplies float and double: "heed AVX3, OpenBLAS 0.3.21 Cooperlake", or "plain loops".
const char* gemm_library();

}  // namespace kernels
}  // namespace heed
