#include "heed/kernels/products/gemm.h"

#ifndef HEED_NO_SIMD

#include "pair_sums.h"

namespace heed::kernels {

using namespace simd;

void gemm(const Operand<float>& a, const Operand<float>& b, Update update, const Matrix<float>& c) {
  sum_pairs<AddProduct>(a, b, update, c);
}

void addmm(const Operand<float>& a, const Operand<float>& b, const float* bias, const Matrix<const float>& addend,
           const Matrix<float>& c) {
  if (bias == nullptr || a.columns == 0) return gemm(a, b, detail::assign_addends(bias, addend, c), c);
  sum_pairs<AddProduct, true>(a, b, Update::accumulate, c, {bias, nullptr, addend});
}

}  // namespace heed::kernels

#endif
