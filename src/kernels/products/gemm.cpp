#include "heed/kernels/products/gemm.h"

#ifndef HEED_NO_BLAS
#include "heed/kernels/shared/blas.h"
#endif
#ifndef HEED_NO_SIMD
#include "pair_sums.h"
#endif

#include <string>

namespace heed::kernels {

namespace {

std::string float_products() {
#ifdef HEED_NO_SIMD
  return "plain loops";
#else
  return std::string("heed ") + hwy::TargetName(HWY_TARGET);
#endif
}

std::string double_products() {
#ifdef HEED_NO_BLAS
  return "plain loops";
#else
  const std::string config = openblas_get_config();  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
  return config.substr(0, config.find(' ', config.find(' ') + 1)) + " " + openblas_get_corename();
#endif
}

}  // namespace

const char* gemm_library() {
  static const std::string name = [] {
    const std::string one = float_products(), other = double_products();
    return one == other ? one : one + ", " + other;
  }();
  return name.c_str();
}

#ifndef HEED_NO_SIMD

void gemm(const Operand<float>& a, const Operand<float>& b, Update update, const Matrix<float>& c) {
  simd::sum_pairs<simd::AddProduct>(a, b, update, c);
}

void addmm(const Operand<float>& a, const Operand<float>& b, const float* bias, const Matrix<const float>& addend,
           const Matrix<float>& c) {
  if (bias == nullptr || a.columns == 0) return gemm(a, b, detail::assign_addends(bias, addend, c), c);
  simd::sum_pairs<simd::AddProduct, true>(a, b, Update::accumulate, c, {bias, nullptr, addend});
}

#endif

#ifndef HEED_NO_BLAS

namespace {

CBLAS_TRANSPOSE cblas(const Operand<double>& operand) { return operand.transposed ? CblasTrans : CblasNoTrans; }

/// Returns the leading dimension. BLAS requires at least the length of a row, even for a single row.
blasint leading(Index stride, Index row) { return narrow(std::max({stride, row, Index{1}})); }
blasint leading(const Operand<double>& x) { return leading(x.stride, x.transposed ? x.rows : x.columns); }

}  // namespace

void gemm(const Operand<double>& a, const Operand<double>& b, Update update, const Matrix<double>& c) {
  prepare_call();
  cblas_dgemm(CblasRowMajor, cblas(a), cblas(b), narrow(c.rows), narrow(c.columns), narrow(a.columns), 1.0, a.data,
              leading(a), b.data, leading(b), update == Update::assign ? 0.0 : 1.0, c.data,
              leading(c.stride, c.columns));
}

#endif

}  // namespace heed::kernels
