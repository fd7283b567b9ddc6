#include "heed/kernels/solvers/newton_inverse.h"

#ifndef HEED_NO_SIMD

#include "src/kernels/products/panels.h"

namespace heed::kernels {

void undo_newton_steps(const NewtonInverse& s, Matrix<const float>, Matrix<float> dX,
                       const NewtonBackwardScratch<float>& scratch, Matrix<float> dA) {
  const Index n = s.elements();
  const Matrix<float> B = scratch.step.U, R = scratch.step.next;
  simd::transpose(dX, B);
  for (Index i = 0; i < n; ++i) dX.data[i] = 0.5F * (dX.data[i] + B.data[i]);
  for (Index k = s.iterations - 1; k >= 0; --k) {
    const Matrix<float> X = scratch.iterate(k), U = scratch.product(k);
    gemm(dX, X, B);
    gemm(X, B, k + 1 == s.iterations ? Update::assign : Update::accumulate, dA);
    gemm(dX, U, R);
    simd::transpose(R, B);
    for (Index i = 0; i < n; ++i) dX.data[i] = 2 * dX.data[i] - (R.data[i] + B.data[i]);
  }
}

}  // namespace heed::kernels

#endif
