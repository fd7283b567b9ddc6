// Matrix product of numbers rounded to bfloat16: a float without its lower 16 bits of 23 behind the point. Products of
// two normal ones are exact in float, and processors with AVX512-BF16 add up twice as many of them as of floats in the
// same time.
#pragma once

#include "heed/kernels/gemm.h"

#include <type_traits>

namespace heed {

/// What a product makes of its operands first.
enum class Products {
  exact,  ///< nothing
  bf16,   ///< rounds them to bfloat16
};

namespace kernels {

/// The bfloat16 nearest to x, of two the one whose last bit is 0; numbers below 2^-126 become 0, as the instructions
/// make them.
float round_to_bf16(float x);

/// Why this build cannot multiply in bfloat16, as a clause; null if it can.
const char* bf16_obstacle();

/// C = op(A) op(B), or C += op(A) op(B), with the numbers of A and B rounded to bfloat16; sums are floats. Shapes and
/// independence of how m and n are cut as in gemm(). Each product of normal numbers is within 2^-7 |a||b| of the exact
/// one.
void gemm_bf16(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const float* a, Index lda,
               const float* b, Index ldb, Update update, float* c, Index ldc);

/// The same for addmm().
void addmm_bf16(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const float* a, Index lda,
                const float* b, Index ldb, const float* bias, const float* addend, Index ldd, float* c, Index ldc);

/// gemm() or gemm_bf16(). Only floats have products in bfloat16.
template <class T>
void gemm(Products products, Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const T* a,
          Index lda, const T* b, Index ldb, Update update, T* c, Index ldc) {
  if constexpr (std::is_same_v<T, float>)
    if (products == Products::bf16) return gemm_bf16(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, update, c, ldc);
  HEED_ASSERT(products == Products::exact);
  gemm(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, update, c, ldc);
}

/// addmm() or addmm_bf16().
template <class T>
void addmm(Products products, Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const T* a,
           Index lda, const T* b, Index ldb, const T* bias, const T* addend, Index ldd, T* c, Index ldc) {
  if constexpr (std::is_same_v<T, float>)
    if (products == Products::bf16)
      return addmm_bf16(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, bias, addend, ldd, c, ldc);
  HEED_ASSERT(products == Products::exact);
  addmm(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, bias, addend, ldd, c, ldc);
}

}  // namespace kernels
}  // namespace heed
