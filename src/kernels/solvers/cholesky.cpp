#include "heed/kernels/solvers/cholesky.h"

#ifndef HEED_NO_BLAS

#include "heed/kernels/shared/blas.h"

#include <vector>

/// From LAPACK, which OpenBLAS contains. Matrices are column-major; the last argument is the length of the string
/// `uplo`.
extern "C" void dposv_(const char* uplo, const blasint* n, const blasint* nrhs, double* a, const blasint* lda,
                       double* b, const blasint* ldb, blasint* info, std::size_t);

namespace heed::kernels {

// LAPACK reads the row-major A as its transpose, so the lower triangle of A is passed as the upper one; B is transposed
// explicitly.
bool solve_positive(Matrix<double> A, Matrix<double> B) {
  prepare_call();
  std::vector<double> columns(static_cast<std::size_t>(B.size()));
  const Matrix<double> transposed_B(columns.data(), B.columns, B.rows);
  for (Index i = 0; i < B.rows; ++i)
    for (Index c = 0; c < B.columns; ++c) transposed_B(c, i) = B(i, c);
  const blasint n = narrow(A.rows), sides = narrow(B.columns), stride = narrow(A.stride);
  blasint info = 0;
  dposv_("U", &n, &sides, A.data, &stride, columns.data(), &n, &info, 1);
  for (Index i = 0; i < B.rows; ++i)
    for (Index c = 0; c < B.columns; ++c) B(i, c) = transposed_B(c, i);
  return info == 0;
}

}  // namespace heed::kernels

#endif
