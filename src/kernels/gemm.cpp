#include "heed/kernels/gemm.h"

#ifdef HEED_REFERENCE

const char* heed::kernels::gemm_library() { return "plain loops"; }

#else

#include "heed/kernels/blas.h"

#include <hwy/highway.h>

#include <string>

namespace heed::kernels {

namespace {

CBLAS_TRANSPOSE cblas(Transpose transpose) { return transpose == Transpose::no ? CblasNoTrans : CblasTrans; }

/// BLAS requires a leading dimension of at least one row's length, also where there is a single row.
blasint leading(Index ld, Index row) { return narrow(std::max({ld, row, Index{1}})); }

}  // namespace

void gemm(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const double* a, Index lda,
          const double* b, Index ldb, Update update, double* c, Index ldc) {
  single_threaded();
  cblas_dgemm(CblasRowMajor, cblas(transpose_a), cblas(transpose_b), narrow(m), narrow(n), narrow(k), 1.0, a,
              leading(lda, transpose_a == Transpose::no ? k : m), b, leading(ldb, transpose_b == Transpose::no ? n : k),
              update == Update::assign ? 0.0 : 1.0, c, leading(ldc, n));
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
