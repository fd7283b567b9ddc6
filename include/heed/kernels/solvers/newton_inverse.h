// Moore-Penrose inverse of a Gram matrix by Newton-Raphson, with its gradient.
//
// Ben-Israel and Cohen, "On iterative computation of generalized inverses and associated projections", 1966:
//   X_0 = a A,   X_{i+1} = 2 X_i - X_i A X_i.
// X_i is a polynomial in A, so each eigenvalue l of A gives a sequence x_i, and 1 - l x_{i+1} = (1 - l x_i)^2: the
// residual is squared in each step, starting from 1 - a l^2. It converges to 0 if 0 < a l^2 < 2, slowly if a l^2 is
// small: after about log2(1 / (a l^2)) steps and a few more. If l = 0, x stays 0, as in a pseudo-inverse; but rounding
// errors in the null space of A double in each step.
#pragma once

#include "heed/base/memory_layout.h"
#include "heed/kernels/products/gemm.h"

#include <cmath>

namespace heed::kernels {

/// The starting factor a. |A| is the largest column sum, an upper bound on the eigenvalues.
enum class NewtonStart {
  damped,    ///< 1.8 / |A|^2: converges for every positive semi-definite A
  plain,     ///< 2 / |A|^2: stalls if an eigenvalue equals |A|, as with a single landmark
  backtrack  ///< 2 b^n / |A|^2, b = 0.5, n the smallest of 0..10 for which |I - a A A| <= 1.01, else 10
};

/// Settings of the iteration. All matrices are [m, m], contiguous, and must not overlap. A is symmetric and
/// non-negative, like a Gaussian kernel matrix G(x, x): column sums are row sums and need no absolute values.
struct NewtonInverse {
  Index m = 0;
  Index iterations = 20;
  NewtonStart start = NewtonStart::damped;

  Index elements() const { return m * m; }
};

/// Scratch memory of the iteration: the product U = X A of a step, and the next iterate. newton_factor() uses U as
/// scratch too.
template <class T>
struct NewtonScratch {
  Matrix<T> U, next;

  NewtonScratch(const NewtonInverse& s, MemoryLayout<T>& layout)
      : U(layout.matrix(s.m, s.m)), next(layout.matrix(s.m, s.m)) {}
};

/// Scratch memory of the gradient: additionally X_0, X_1, ... and X_0 A, X_1 A, ..., stacked vertically.
template <class T>
struct NewtonBackwardScratch {
  NewtonScratch<T> step;
  Matrix<T> iterates, products;

  NewtonBackwardScratch(const NewtonInverse& s, MemoryLayout<T>& layout)
      : step(s, layout),
        iterates(layout.matrix(s.iterations * s.m, s.m)),
        products(layout.matrix(s.iterations * s.m, s.m)) {}

  /// Return the iterate X_k and the product X_k A.
  Matrix<T> iterate(Index k) const { return iterates.middle_rows(k * iterates.columns, iterates.columns); }
  Matrix<T> product(Index k) const { return products.middle_rows(k * products.columns, products.columns); }
};

/// The starting factor, |A|, and the first row whose sum is |A|.
template <class T>
struct NewtonFactor {
  T value, norm;
  Index row;
};

/// Returns the starting factor. Backtracking uses scratch [m, m] and tries every n, so that the cost does not depend on
/// A.
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
        write(term_update(j), sum, T(abs(i == j ? T(1) - product : product)));
      }
      if (i == 0 || sum > residual) residual = sum;
    }
    if (residual <= T(1.01)) factor.value = candidate;
  }
  return factor;
}

/// Returns the counts of newton_factor(). Backtracking takes a product and, for each of 10 values of n, I - a A A and
/// its largest row sum.
inline Counts newton_factor_counts(const NewtonInverse& s) {
  const Index m = s.m, n = s.elements();
  Counts counts{.mul = 1, .add = m * (m - 1), .div = 1, .cmp = m - 1};
  if (s.start == NewtonStart::backtrack)
    counts += product_counts(m, m, m) + Counts{.mul = 1} + 10 * Counts{.mul = n + 1, .add = n, .cmp = n + m};
  return counts;
}

/// Computes one step: U = X A and, unless `next` is empty, next = 2 X - U X.
///
/// U and U X are symmetric except for rounding errors. Still, neither may be computed as one half and mirrored. The
/// rounding error of U, about eps |X|, becomes eps |X|^2 in U X, in directions that the next steps correct. Mirroring
/// half of U X spreads it to all directions. Mirroring half of U multiplies the error of X by the condition number of A
/// in every step.
template <class T>
void newton_step(MatrixFor<T> A, MatrixFor<T> X, Matrix<T> U, Matrix<std::type_identity_t<T>> next) {
  gemm(X, A, U);
  if (!next) return;
  gemm(U, X, next);
  for (Index i = 0; i < X.size(); ++i) next.data[i] = T(2) * X.data[i] - next.data[i];
}

/// Computes X = the last iterate. Calls observe(k, X_k) for each k from 0 to s.iterations.
template <class T, class Observe = decltype([](Index, Matrix<const T>) {})>
void newton_inverse(const NewtonInverse& s, MatrixFor<T> A, const NewtonScratch<std::type_identity_t<T>>& scratch,
                    Matrix<T> X, const Observe& observe = {}) {
  const bool even = s.iterations % 2 == 0;  // X and scratch.next alternate; X holds the last
  const Matrix<T> iterate[] = {even ? X : scratch.next, even ? scratch.next : X};
  const NewtonFactor<T> factor = newton_factor(s, A, scratch.U);
  for (Index i = 0; i < s.elements(); ++i) iterate[0].data[i] = factor.value * A.data[i];
  for (Index k = 0; k < s.iterations; ++k) {
    observe(k, Matrix<const T>(iterate[k % 2]));
    newton_step(A, iterate[k % 2], scratch.U, iterate[(k + 1) % 2]);
  }
  observe(s.iterations, Matrix<const T>(X));
}

inline namespace reference {

/// Runs the backward pass of all steps, whose iterates and products are in `scratch`. Replaces dX = d(loss)/d(last
/// iterate) by d(loss)/dX_0, and writes minus the gradient of A, without the part through X_0, to dA. With
/// D = d(loss)/dX_{i+1}, U = X_i A, B = D X_i^T,
///   X_{i+1} = 2 X_i - U X_i   gives   dU = -B,  and  dX_i = 2 D - U^T D - B A^T,  dA -= X_i^T B.
/// Only the symmetric parts of dA and of d(loss)/dX_0 are specified, since A is symmetric. They depend only on the
/// symmetric part of D, which fast float uses instead of D: then U^T D is the transpose of B A = D U, which saves one
/// of four products. Rounding errors are as in gemm().
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

#ifndef HEED_NO_SIMD
/// Fast version for float.
void undo_newton_steps(const NewtonInverse& s, Matrix<const float> A, Matrix<float> dX,
                       const NewtonBackwardScratch<float>& scratch, Matrix<float> dA);
#endif

/// Computes dA, the gradient for dX = d(loss)/d(last iterate): the exact derivative of newton_inverse(), converged or
/// not, with backtracking's n constant. Only the symmetric part of dA is specified. Recomputes the iterates, then runs
/// the backward pass of the steps. With D = d(loss)/dX_0, X_0 = a A gives dA += a D and da = <D, A>; a = c / |A|^2
/// gives d|A| = -2 a / |A| da, which is added to dA for each element of the first row with the sum |A|. Overwrites dX.
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

/// Computes dA = -X^T dX X^T, the gradient of the true inverse, derived from d(A X) = 0. Exact if the iteration has
/// converged and A has full rank. Takes two products. scratch [m, m].
template <class T>
void inverse_backward(MatrixFor<T> X, MatrixFor<T> dX, Matrix<std::type_identity_t<T>> scratch, Matrix<T> dA) {
  gemm(transposed(X), dX, scratch);
  gemm(scratch, transposed(X), dA);
  for (Index i = 0; i < dA.size(); ++i) dA.data[i] = -dA.data[i];
}

/// Returns the cost of newton_inverse() and of newton_inverse_backward() or, if not `unrolled`, inverse_backward().
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
  if (steps > 0)  // recomputes the iterates, except the last; then the backward pass of the steps
    cost.backward += Counts{.mul = n} + (2 * steps - 1) * product + (steps - 1) * Counts{.mul = n, .add = n} +
                     steps * (4 * product + Counts{.mul = n, .add = 2 * n}) + Counts{.add = (steps - 1) * n};
  cost.backward_contractions = 4 * steps * contraction;  // recomputing the iterates is not counted
  return cost;
}

}  // namespace heed::kernels
