#include "heed/kernels/gemm.h"

#ifndef HEED_REFERENCE

#include "pair_sums.h"

namespace heed::kernels {

using namespace simd;

void gemm(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const float* a, Index lda,
          const float* b, Index ldb, Update update, float* c, Index ldc) {
  sum_pairs<AddProduct>(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, update, c, ldc);
}

void addmm(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const float* a, Index lda,
           const float* b, Index ldb, const float* bias, const float* addend, Index ldd, float* c, Index ldc) {
  if (bias == nullptr || k == 0)
    return addmm<float>(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, bias, addend, ldd, c, ldc);
  sum_pairs<AddProduct, true>(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, Update::accumulate, c, ldc,
                              {bias, nullptr, addend, ldd});
}

}  // namespace heed::kernels

#endif
