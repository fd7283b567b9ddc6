// Products by pointers and strides, for callers that have no matrices yet.
#pragma once

#include "heed/kernels/packed_weight.h"

namespace heed {

enum class Transpose { no, yes };

namespace kernels {

template <class T>
Operand<T> operand(Transpose transpose, Index rows, Index columns, const T* data, Index stride) {
  if (transpose == Transpose::no) return Matrix<const T>(data, rows, columns, stride);
  return transposed(Matrix<const T>(data, columns, rows, stride));
}

template <class T>
void gemm(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const T* a, Index lda, const T* b,
          Index ldb, Update update, T* c, Index ldc) {
  gemm(operand(transpose_a, m, k, a, lda), operand(transpose_b, k, n, b, ldb), update, Matrix<T>(c, m, n, ldc));
}
template <class T>
void gemm(Products products, Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const T* a,
          Index lda, const T* b, Index ldb, Update update, T* c, Index ldc) {
  Gemm{products}(operand(transpose_a, m, k, a, lda), operand(transpose_b, k, n, b, ldb), update,
                 Matrix<T>(c, m, n, ldc));
}

}  // namespace kernels
}  // namespace heed
