// Moore-Penrose inverse of a Gram matrix by Newton-Raphson, with its gradient.
//
// Ben-Israel and Cohen, "On iterative computation of generalized inverses and associated projections", 1966:
//   X_0 = a A,   X_{i+1} = 2 X_i - X_i A X_i.
// X_i is a polynomial in A, so each eigenvalue l of A has a sequence x_i of its own, and 1 - l x_{i+1} = (1 - l x_i)^2:
// the residual squares in each step, starting from 1 - a l^2. It vanishes if 0 < a l^2 < 2, slowly where a l^2 is
// small: it takes about log2(1 / (a l^2)) steps to become small, and a few more. Where l = 0, x stays 0, as a
// pseudo-inverse has it; but what rounding puts into that null space doubles in each step.
#pragma once

#include "heed/cost/counts.h"
#include "heed/kernels/gemm_by_stride.h"

#include <cmath>

namespace heed::kernels {

/// The starting factor a. |A| is the largest column sum; no eigenvalue exceeds it.
enum class NewtonStart {
  damped,    ///< 1.8 / |A|^2: converges for every positive semi-definite A
  plain,     ///< 2 / |A|^2: stalls where an eigenvalue equals |A|, as with a single landmark
  backtrack  ///< 2 b^n / |A|^2, b = 0.5, n the smallest of 0..10 for which |I - a A A| <= 1.01, else 10
};

/// Matrices below are [m, m], contiguous and not overlapping. A is symmetric and has no negative element, as the
/// Gaussian kernel of some rows with themselves: hence column sums are row sums and need no absolute values.
struct NewtonInverse {
  Index m = 0;
  Index iterations = 20;
  NewtonStart start = NewtonStart::damped;

  Index elements() const { return m * m; }
  Index forward_scratch() const { return 2 * elements(); }
  Index backward_scratch() const { return (2 * iterations + 2) * elements(); }
};

/// The starting factor, |A|, and the first row with this sum.
template <class T>
struct NewtonFactor {
  T value, norm;
  Index row;
};

/// scratch [m, m]. Tries every n to the end, so that the cost does not depend on A.
/// Counts: m (m - 1) add, m - 1 cmp, 1 mul, 1 div; backtracking, one product, m^2 + 1 mul, m^2 add and m^2 + m cmp for
/// each of 10 n, and 1 mul.
template <class T>
NewtonFactor<T> newton_factor(const NewtonInverse& s, const T* A, T* scratch) {
  using std::abs;
  const Index m = s.m;
  NewtonFactor<T> factor{};
  for (Index i = 0; i < m; ++i) {
    T sum = A[i * m];
    for (Index j = 1; j < m; ++j) sum += A[i * m + j];
    if (i == 0 || sum > factor.norm) factor.norm = sum, factor.row = i;
  }
  factor.value = T(s.start == NewtonStart::damped ? 1.8 : 2.0) / (factor.norm * factor.norm);
  if (s.start != NewtonStart::backtrack) return factor;

  gemm(Transpose::no, Transpose::no, m, m, m, A, m, A, m, Update::assign, scratch, m);
  const T undamped = factor.value;
  factor.value = T(0x1p-10) * undamped;
  for (int n = 9; n >= 0; --n) {
    const T candidate = T(std::ldexp(1.0, -n)) * undamped;
    T residual(0);
    for (Index i = 0; i < m; ++i) {
      T sum(0);
      for (Index j = 0; j < m; ++j) {
        const T product = candidate * scratch[i * m + j];
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

/// One step: U = X A and, unless next is nullptr, next = 2 X - U X.
/// Counts: two products, m^2 mul and m^2 add; one product without next.
template <class T>
void newton_step(Index m, const T* A, const T* X, T* U, T* next) {
  gemm(Transpose::no, Transpose::no, m, m, m, X, m, A, m, Update::assign, U, m);
  if (!next) return;
  gemm(Transpose::no, Transpose::no, m, m, m, U, m, X, m, Update::assign, next, m);
  for (Index i = 0; i < m * m; ++i) next[i] = T(2) * X[i] - next[i];
}

/// X = the last iterate. observe(k, X_k), if given, sees each, from k = 0 to s.iterations. scratch [forward_scratch()].
/// Counts: newton_inverse_cost().
template <class T, class Observe = decltype([](Index, const T*) {})>
void newton_inverse(const NewtonInverse& s, const T* A, T* X, T* scratch, const Observe& observe = {}) {
  T* const U = scratch;
  T *now = X, *next = U + s.elements();
  if (s.iterations % 2 == 1) std::swap(now, next);  // so that the last iterate is written to X
  const NewtonFactor<T> factor = newton_factor(s, A, U);
  for (Index i = 0; i < s.elements(); ++i) now[i] = factor.value * A[i];
  for (Index i = 0; i < s.iterations; ++i, std::swap(now, next)) {
    observe(i, static_cast<const T*>(now));
    newton_step(s.m, A, now, U, next);
  }
  observe(s.iterations, static_cast<const T*>(X));
}

/// dA = the gradient for dX = d(loss)/d(last iterate): the exact derivative of the above, converged or not, n held
/// constant. Makes the iterates again, then undoes the steps: with D = d(loss)/dX_{i+1}, U = X_i A and B = D X_i^T,
///   X_{i+1} = 2 X_i - U X_i   gives   dU = -B,  and  dX_i = 2 D - U^T D - B A^T,  dA -= X_i^T B.
/// X_0 = a A gives dA += a D and da = <D, A>; a = c / |A|^2 gives d|A| = -2 a / |A| da, for each element of the first
/// row with the sum |A|. Overwrites dX. scratch [backward_scratch()]. Counts: newton_inverse_cost().
template <class T>
void newton_inverse_backward(const NewtonInverse& s, const T* A, T* dX, T* dA, T* scratch) {
  const Index m = s.m, n = s.elements();
  T *const B = scratch, *const R = B + n, *const iterates = R + n, *const products = iterates + s.iterations * n;
  const NewtonFactor<T> factor = newton_factor(s, A, B);
  for (Index i = 0; i < n && s.iterations > 0; ++i) iterates[i] = factor.value * A[i];
  for (Index k = 0; k < s.iterations; ++k)
    newton_step(m, A, iterates + k * n, products + k * n, k + 1 < s.iterations ? iterates + (k + 1) * n : nullptr);

  if (s.iterations == 0) std::fill(dA, dA + n, T(0));
  for (Index k = s.iterations - 1; k >= 0; --k) {
    const T *const X = iterates + k * n, *const U = products + k * n;
    gemm(Transpose::no, Transpose::yes, m, m, m, dX, m, X, m, Update::assign, B, m);
    gemm(Transpose::yes, Transpose::no, m, m, m, X, m, B, m,
         k + 1 == s.iterations ? Update::assign : Update::accumulate, dA, m);
    gemm(Transpose::yes, Transpose::no, m, m, m, U, m, dX, m, Update::assign, R, m);
    gemm(Transpose::no, Transpose::yes, m, m, m, B, m, A, m, Update::accumulate, R, m);
    for (Index i = 0; i < n; ++i) dX[i] = T(2) * dX[i] - R[i];
  }

  T dfactor = dX[0] * A[0];
  for (Index i = 1; i < n; ++i) dfactor += dX[i] * A[i];
  for (Index i = 0; i < n; ++i) dA[i] = factor.value * dX[i] - dA[i];
  const T dnorm = T(-2) * (factor.value * dfactor) / factor.norm;
  for (Index j = 0; j < m; ++j) dA[factor.row * m + j] += dnorm;
}

/// dA = -X^T dX X^T: the gradient of the true inverse, from d(A X) = 0. Right once the iteration has converged and A
/// has full rank; it costs two products. scratch [m, m]. Counts: 2 products.
template <class T>
void inverse_backward(Index m, const T* X, const T* dX, T* dA, T* scratch) {
  gemm(Transpose::yes, Transpose::no, m, m, m, X, m, dX, m, Update::assign, scratch, m);
  gemm(Transpose::no, Transpose::yes, m, m, m, scratch, m, X, m, Update::assign, dA, m);
  for (Index i = 0; i < m * m; ++i) dA[i] = -dA[i];
}

/// Of newton_inverse() and newton_inverse_backward() or, if not `unrolled`, inverse_backward().
inline Cost newton_inverse_cost(const NewtonInverse& s, bool unrolled) {
  const Index m = s.m, n = s.elements(), steps = s.iterations;
  const bool backtrack = s.start == NewtonStart::backtrack;
  const Counts product = product_counts(m, m, m), contraction = product_contractions(m, m, m);
  Counts factor{.mul = 1, .add = m * (m - 1), .div = 1, .cmp = m - 1};
  if (backtrack) factor += product + Counts{.mul = 1} + 10 * Counts{.mul = n + 1, .add = n, .cmp = n + m};
  Cost cost;
  cost.forward = factor + Counts{.mul = n} + steps * (2 * product + Counts{.mul = n, .add = n});
  cost.forward_contractions = (2 * steps + backtrack) * contraction;
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
