#include "heed/kernels/solvers/singular_values.h"

#ifndef HEED_NO_BLAS

#include "heed/kernels/shared/blas.h"

#include <vector>

/// From LAPACK, which OpenBLAS contains. Matrices are column-major; the last two arguments are the lengths of the
/// strings `jobu` and `jobvt`.
extern "C" void dgesvd_(const char* jobu, const char* jobvt, const blasint* m, const blasint* n, double* a,
                        const blasint* lda, double* s, double* u, const blasint* ldu, double* vt, const blasint* ldvt,
                        double* work, const blasint* lwork, blasint* info, std::size_t, std::size_t);

namespace heed::kernels {

// LAPACK reads the row-major A as its transpose, which has the same singular values.
void singular_values(Matrix<double> A, double* values) {
  prepare_call();
  constexpr Index work_columns = 64;  // dgesvd needs at least 5; more allow larger blocks
  const blasint rows = narrow(A.rows), width = narrow(A.columns), stride = narrow(A.stride), one = 1,
                work_size = narrow(work_columns * std::max(A.rows, A.columns));
  std::vector<double> work(static_cast<std::size_t>(work_size));
  blasint info = 0;
  double none = 0;
  dgesvd_("N", "N", &width, &rows, A.data, &stride, values, &none, &one, &none, &one, work.data(), &work_size, &info, 1,
          1);
  HEED_ASSERT(info == 0);  // fails to converge only if A is not finite
}

}  // namespace heed::kernels

#endif
