// Moore-Penrose inverse of a Gram matrix by Newton-Raphson, with its gradient.
//
// Ben-Israel and Cohen, "On iterative computation of generalized inverses and associated projections", 1966:
//   X_0 = a A,   X_{i+1} = 2 X_i - X_i A X_i.
// X_i is a polynomial in A, so each eigenvalue l of A has a sequence x_i of its own, and 1 - l x_{i+1} = (1 - l x_i)^2:
// the residual squares in each step, starting from 1 - a l^2. It vanishes if 0 < a l^2 < 2, slowly where a l^2 is
// small: it takes about log2(1 / (a l^2)) steps to become small, and a few more. Where l = 0, x stays 0, as a
// pseudo-inverse has it; but what rounding puts into that null space doubles in each step.
#pragma once

#include "heed/base/carver.h"
#include "heed/kernels/products/gemm.h"

#include <cmath>

namespace heed::kernels {

/// The starting factor a. |A| is the largest column sum; no eigenvalue exceeds it.
enum class NewtonStart {
  damped,    ///< 1.8 / |A|^2: converges for every positive semi-definite A
  plain,     ///< 2 / |A|^2: stalls where an eigenvalue equals |A|, as with a single landmark
  backtrack  ///< 2 b^n / |A|^2, b = 0.5, n the smallest of 0..10 for which |I - a A A| <= 1.01, else 10
};

/// Matrices below are [m, m], without gaps and not overlapping. A is symmetric and has no negative element, as the
/// Gaussian kernel of some rows with themselves: hence column sums are row sums and need no absolute values.
struct NewtonInverse {
  Index m = 0;
  Index iterations = 20;
  NewtonStart start = NewtonStart::damped;

  Index elements() const { return m * m; }
};

/// Memory for the iteration: X A of a step and the next iterate. U serves whatever else needs one matrix.
template <class T>
struct NewtonScratch {
  Matrix<T> U, next;

  NewtonScratch(const NewtonInverse& s, Carver<T>& carve) : U(carve.matrix(s.m, s.m)), next(carve.matrix(s.m, s.m)) {}
};

/// Memory for its gradient: X_0, X_1, ... and X_0 A, X_1 A, ... besides, one below the other.
template <class T>
struct NewtonBackwardScratch {
  NewtonScratch<T> step;
  Matrix<T> iterates, products;

  NewtonBackwardScratch(const NewtonInverse& s, Carver<T>& carve)
      : step(s, carve),
        iterates(carve.matrix(s.iterations * s.m, s.m)),
        products(carve.matrix(s.iterations * s.m, s.m)) {}

  /// Those of step k.
  Matrix<T> iterate(Index k) const { return iterates.middle_rows(k * iterates.columns, iterates.columns); }
  Matrix<T> product(Index k) const { return products.middle_rows(k * products.columns, products.columns); }
};

/// The starting factor, |A|, and the first row with this sum.
template <class T>
struct NewtonFactor {
  T value, norm;
  Index row;
};

/// Uses scratch [m, m] to backtrack. Tries every n to the end, so that the cost does not depend on A.
template <class T>
NewtonFactor<T> newton_factor(const NewtonInverse& s, MatrixFor<T> A, Matrix<T> scratch) {
  using std::abs;
  const Index m = s.m;
  NewtonFactor<T> factor{};
  for (Index i = 0; i < m; ++i) {
    T sum = A(i, 0);
    for (Index j = 1; j < m; ++j) sum += A(i, j);
    if (i == 0 || sum > factor.norm) factor.norm = sum, factor.row = i;
  }
  factor.value = T(s.start == NewtonStart::damped ? 1.8 : 2.0) / (factor.norm * factor.norm);
  if (s.start != NewtonStart::backtrack) return factor;

  gemm(A, A, scratch);
  const T undamped = factor.value;
  factor.value = T(0x1p-10) * undamped;
  for (int n = 9; n >= 0; --n) {
    const T candidate = T(std::ldexp(1.0, -n)) * undamped;
    T residual(0);
    for (Index i = 0; i < m; ++i) {
      T sum(0);
      for (Index j = 0; j < m; ++j) {
        const T product = candidate * scratch(i, j);
        const T term = abs(i == j ? T(1) - product : product);
        if (j == 0)
          sum = term;
        else
          sum += term;
      }
      if (i == 0 || sum > residual) residual = sum;
    }
    if (residual <= T(1.01)) factor.value = candidate;
  }
  return factor;
}

/// Backtracking takes a product, and for each of 10 n a matrix I - a A A and its largest row sum.
inline Counts newton_factor_counts(const NewtonInverse& s) {
  const Index m = s.m, n = s.elements();
  Counts counts{.mul = 1, .add = m * (m - 1), .div = 1, .cmp = m - 1};
  if (s.start == NewtonStart::backtrack)
    counts += product_counts(m, m, m) + Counts{.mul = 1} + 10 * Counts{.mul = n + 1, .add = n, .cmp = n + m};
  return counts;
}

/// One step: U = X A and, unless `next` is left out, next = 2 X - U X.
///
/// Both are symmetric but for rounding. Still, neither may be made by half and mirrored. The rounding error of U, some
/// eps |X|, becomes eps |X|^2 in U X, in directions that the next steps correct. A mirrored half of U X puts it in all
/// directions. A mirrored half of U multiplies the error of X by the condition of A in every step.
template <class T>
void newton_step(MatrixFor<T> A, MatrixFor<T> X, Matrix<T> U, Matrix<std::type_identity_t<T>> next) {
  gemm(X, A, U);
  if (!next) return;
  gemm(U, X, next);
  for (Index i = 0; i < X.size(); ++i) next.data[i] = T(2) * X.data[i] - next.data[i];
}

/// X = the last iterate. observe(k, X_k), if given, sees each, from k = 0 to s.iterations.
template <class T, class Observe = decltype([](Index, Matrix<const T>) {})>
void newton_inverse(const NewtonInverse& s, MatrixFor<T> A, const NewtonScratch<std::type_identity_t<T>>& scratch,
                    Matrix<T> X, const Observe& observe = {}) {
  const bool even = s.iterations % 2 == 0;  // so that the last iterate is written to X
  const Matrix<T> iterate[] = {even ? X : scratch.next, even ? scratch.next : X};
  const NewtonFactor<T> factor = newton_factor(s, A, scratch.U);
  for (Index i = 0; i < s.elements(); ++i) iterate[0].data[i] = factor.value * A.data[i];
  for (Index k = 0; k < s.iterations; ++k) {
    observe(k, Matrix<const T>(iterate[k % 2]));
    newton_step(A, iterate[k % 2], scratch.U, iterate[(k + 1) % 2]);
  }
  observe(s.iterations, Matrix<const T>(X));
}

namespace reference {

/// Undoes the steps, of which `scratch` holds the iterates and products: turns dX = d(loss)/d(last iterate) into
/// d(loss)/dX_0, and dA into minus the gradient that goes past X_0. With D = d(loss)/dX_{i+1}, U = X_i A, B = D X_i^T,
///   X_{i+1} = 2 X_i - U X_i   gives   dU = -B,  and  dX_i = 2 D - U^T D - B A^T,  dA -= X_i^T B.
/// Of dA and of d(loss)/dX_0 only the symmetric part is specified, since A is symmetric. It depends on that of D alone,
/// which fast float takes instead of D: then U^T D is the transpose of B A = D U, and 3 products are left of 4. Their
/// rounding errors are those of gemm().
template <class T>
void undo_newton_steps(const NewtonInverse& s, MatrixFor<T> A, Matrix<T> dX, const NewtonBackwardScratch<T>& scratch,
                       Matrix<T> dA) {
  const Matrix<T> B = scratch.step.U, R = scratch.step.next;
  for (Index k = s.iterations - 1; k >= 0; --k) {
    const Matrix<T> X = scratch.iterate(k), U = scratch.product(k);
    kernels::gemm(dX, transposed(X), B);
    kernels::gemm(transposed(X), B, k + 1 == s.iterations ? Update::assign : Update::accumulate, dA);
    kernels::gemm(transposed(U), dX, R);
    kernels::gemm(B, transposed(A), Update::accumulate, R);
    for (Index i = 0; i < s.elements(); ++i) dX.data[i] = T(2) * dX.data[i] - R.data[i];
  }
}

}  // namespace reference

using reference::undo_newton_steps;
#ifndef HEED_NO_SIMD
void undo_newton_steps(const NewtonInverse& s, Matrix<const float> A, Matrix<float> dX,
                       const NewtonBackwardScratch<float>& scratch, Matrix<float> dA);
#endif

/// dA = the gradient for dX = d(loss)/d(last iterate): the exact derivative of the above, converged or not, n held
/// constant. Of dA only the symmetric part is specified. Makes the iterates again, then undoes the steps. X_0 = a A
/// gives dA += a D and da = <D, A>; a = c / |A|^2 gives d|A| = -2 a / |A| da, for each element of the first row with
/// the sum |A|. Overwrites dX.
template <class T>
void newton_inverse_backward(const NewtonInverse& s, MatrixFor<T> A, Matrix<std::type_identity_t<T>> dX,
                             const NewtonBackwardScratch<std::type_identity_t<T>>& scratch, Matrix<T> dA) {
  const Index n = s.elements(), steps = s.iterations;
  const NewtonFactor<T> factor = newton_factor(s, A, scratch.step.U);
  for (Index i = 0; i < n && steps > 0; ++i) scratch.iterates.data[i] = factor.value * A.data[i];
  for (Index k = 0; k < steps; ++k)
    newton_step(A, scratch.iterate(k), scratch.product(k), k + 1 < steps ? scratch.iterate(k + 1) : Matrix<T>{});
  if (steps == 0) fill(dA, T(0));
  undo_newton_steps(s, A, dX, scratch, dA);

  T dfactor = dX.data[0] * A.data[0];
  for (Index i = 1; i < n; ++i) dfactor += dX.data[i] * A.data[i];
  for (Index i = 0; i < n; ++i) dA.data[i] = factor.value * dX.data[i] - dA.data[i];
  const T dnorm = T(-2) * (factor.value * dfactor) / factor.norm;
  for (Index j = 0; j < s.m; ++j) dA(factor.row, j) += dnorm;
}

/// dA = -X^T dX X^T: the gradient of the true inverse, from d(A X) = 0. Right once the iteration has converged and A
/// has full rank; it costs two products. scratch [m, m].
template <class T>
void inverse_backward(MatrixFor<T> X, MatrixFor<T> dX, Matrix<std::type_identity_t<T>> scratch, Matrix<T> dA) {
  gemm(transposed(X), dX, scratch);
  gemm(scratch, transposed(X), dA);
  for (Index i = 0; i < dA.size(); ++i) dA.data[i] = -dA.data[i];
}

/// Of newton_inverse() and newton_inverse_backward() or, if not `unrolled`, inverse_backward().
inline Cost newton_inverse_cost(const NewtonInverse& s, bool unrolled) {
  const Index m = s.m, n = s.elements(), steps = s.iterations;
  const Counts product = product_counts(m, m, m), contraction = product_contractions(m, m, m);
  const Counts factor = newton_factor_counts(s);
  Cost cost;
  cost.forward = factor + Counts{.mul = n} + steps * (2 * product + Counts{.mul = n, .add = n});
  cost.forward_contractions = (2 * steps + (s.start == NewtonStart::backtrack)) * contraction;
  if (!unrolled) {
    cost.backward = 2 * product, cost.backward_contractions = 2 * contraction;
    return cost;
  }
  cost.backward = factor + Counts{.mul = 2 * n + 2, .add = 2 * n - 1 + m, .div = 1};
  if (steps > 0)  // the iterates again, all but the last; then the steps undone
    cost.backward += Counts{.mul = n} + (2 * steps - 1) * product + (steps - 1) * Counts{.mul = n, .add = n} +
                     steps * (4 * product + Counts{.mul = n, .add = 2 * n}) + Counts{.add = (steps - 1) * n};
  cost.backward_contractions = 4 * steps * contraction;  // making the iterates again is not counted
  return cost;
}

}  // namespace heed::kernels
