// Convergence of the Newton-Raphson inverse of a Gram matrix. Lu et al., "SOFT", arXiv:2110.11945v2, Section 4.4
// and Figure 4.
//
// For A with eigenvalues l >= 0, the largest of which is l_1, and X_0 = a A (kernels/solvers/newton_inverse.h), the
// residual at l after k steps is 1 - l x_k = (1 - a l^2)^(2^k), where x_k is the eigenvalue of X_k, so that
//
//   |A X_k A - A| / |A| = max_l  l/l_1 |1 - a l^2|^(2^k)      the paper's residual, in spectral norms
//   |I - A X_k|         = max_l  |1 - a l^2|^(2^k)
//
// If a l^2 <= 1, then |1 - a l^2|^(2^k) is at most exp(-a l^2 2^k). The product of l and this bound is largest at
// l = 1 / sqrt(2 a 2^k), so these l contribute at most 1 / (l_1 sqrt(2 e a 2^k)) to the paper's residual, whatever the
// condition number of A. With a = 1.8 / c^2, where c >= l_1 is the largest column sum of A, this is
// 0.32 c / l_1 / 2^(k/2), which is below 0.001 from k = 17 + 2 log2(c / l_1) on. The l with a l^2 > 1 contribute at
// most 0.8^(2^k), negligible from k = 6 on. |I - A X_k| stays near 1 until 2^k is about 1 / (a l^2) for the smallest l.
#pragma once

#include "heed/kernels/solvers/newton_inverse.h"

#include <vector>

namespace heed {

/// Residuals of X_0 ... X_iterations, in spectral norms; infinite for non-finite iterates.
struct NewtonResidual {
  std::vector<double> relative;  ///< |A X_k A - A| / |A|
  std::vector<double> identity;  ///< |I - A X_k|

  /// Returns the first k from which on all relative residuals are below `threshold`; -1 if there is none.
  Index steps_below(double threshold) const;
};

/// Runs the iteration on A [m, m] in T, float or double, and returns its residuals, computed in double.
template <class T>
NewtonResidual newton_residual(const kernels::NewtonInverse& newton, const T* A);

/// Norms that determine convergence for a symmetric A [m, m] without negative elements.
struct GramCondition {
  double column_sum = 0;             ///< the largest column sum
  double largest = 0, smallest = 0;  ///< singular values, the magnitudes of the eigenvalues

  /// Returns the condition number.
  double condition() const { return largest / smallest; }
};

/// Returns the norms of A [m, m], which must be symmetric without negative elements.
GramCondition gram_condition(Index m, const double* A);

}  // namespace heed
