#include "heed/kernels/gemm.h"

#ifdef HEED_REFERENCE

const char* heed::kernels::gemm_library() { return "plain loops"; }

#else

#include "heed/kernels/blas.h"

#include <hwy/highway.h>

#include <string>

namespace heed::kernels {

namespace {

CBLAS_TRANSPOSE cblas(const Operand<double>& operand) { return operand.transposed ? CblasTrans : CblasNoTrans; }

/// BLAS requires a leading dimension of at least one row's length, also where there is a single row.
blasint leading(Index stride, Index row) { return narrow(std::max({stride, row, Index{1}})); }
blasint leading(const Operand<double>& x) { return leading(x.stride, x.transposed ? x.rows : x.columns); }

}  // namespace

void gemm(const Operand<double>& a, const Operand<double>& b, Update update, const Matrix<double>& c) {
  single_threaded();
  cblas_dgemm(CblasRowMajor, cblas(a), cblas(b), narrow(c.rows), narrow(c.columns), narrow(a.columns), 1.0, a.data,
              leading(a), b.data, leading(b), update == Update::assign ? 0.0 : 1.0, c.data,
              leading(c.stride, c.columns));
}

const char* gemm_library() {
  static const std::string name = [] {
    const std::string config = openblas_get_config();  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
    const std::size_t version = config.find(' ');
    return std::string("heed ") + hwy::TargetName(HWY_TARGET) + ", " + config.substr(0, config.find(' ', version + 1)) +
           " " + openblas_get_corename();
  }();
  return name.c_str();
}

}  // namespace heed::kernels

#endif
