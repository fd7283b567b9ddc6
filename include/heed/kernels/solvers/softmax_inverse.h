// Inverse of a matrix whose rows are softmax weights, by an iteration of third order, with its gradient.
//
// Razavi, Kerayechian, Gachpazan, Shateyi, "A new iterative method for finding approximate inverses of complex
// matrices", 2014, doi:10.1155/2014/563787; as in Xiong et al., "Nystroemformer", 2021, arXiv:2102.03902v3, Eq. 11:
//
//   Z_0 = A^T / (|A|_1 |A|_inf),     Z_{k+1} = Z_k (13 I - W (15 I - W (7 I - W))) / 4,  W = A Z_k.
//
// Z_k is A^T times a polynomial in A A^T. An eigenvalue w of W has the residual r = 1 - w; the next residual is
// r^3 (3 + r) / 4. A small w grows by a factor of 13/4 in each step. The smallest w starts near 1 / K^2 for a condition
// number K of A, so its growth takes about 2 ln K / ln (13/4) = 1.2 log2 K steps; then r converges cubically.
#pragma once

#include "heed/base/memory_layout.h"
#include "heed/kernels/products/gemm.h"

namespace heed::kernels {

/// Settings of the iteration. All matrices are [m, m], contiguous, and must not overlap. A is non-negative and its rows
/// sum to one, so |A|_inf, the largest row sum, is 1, and |A|_1 is the largest column sum. (The gradient may treat
/// |A|_inf as constant too: a gradient equal for all elements of a row vanishes in the backward pass of the softmax
/// that computed the row.)
struct SoftmaxInverse {
  Index m = 0, iterations = 6;
};

/// The matrices of a step: Z, W = A Z, U = 15 I - 7 W + W W and V = 13 I - W U, so that Z_{k+1} = Z V / 4.
template <class T>
struct SoftmaxInverseStep {
  Matrix<T> Z, W, U, V;
};

/// Scratch memory for all steps, and for the gradient of one.
template <class T>
struct SoftmaxInverseScratch {
  SoftmaxInverseStep<T> steps;     ///< all steps, stacked vertically
  Matrix<T> dZ, dnext, dV, P, dW;  ///< P = -dU

  SoftmaxInverseScratch(const SoftmaxInverse& s, MemoryLayout<T>& layout) {
    const auto all = [&] { return layout.matrix(s.iterations * s.m, s.m); };
    const auto one = [&] { return layout.matrix(s.m, s.m); };
    steps = {all(), all(), all(), all()};
    dZ = one(), dnext = one(), dV = one(), P = one(), dW = one();
  }

  SoftmaxInverseStep<T> step(Index k) const {
    const auto of = [k](Matrix<T> m) { return m.middle_rows(k * m.columns, m.columns); };
    return {of(steps.Z), of(steps.W), of(steps.U), of(steps.V)};
  }
};

/// |A|_1 and the first column with this sum.
template <class T>
struct LargestColumn {
  T sum;
  Index column;
};

/// Returns the column with the largest sum. `sums` is scratch memory of m elements.
template <class T>
LargestColumn<T> largest_column(MatrixFor<T> A, T* sums) {
  std::copy_n(A[0], A.columns, sums);
  for (Index i = 1; i < A.rows; ++i)
    for (Index j = 0; j < A.columns; ++j) sums[j] += A(i, j);
  LargestColumn<T> largest{sums[0], 0};
  for (Index j = 1; j < A.columns; ++j)
    if (sums[j] > largest.sum) largest = {sums[j], j};
  return largest;
}

/// Computes Z = A^T / |A|_1.
template <class T>
void softmax_inverse_start(MatrixFor<T> A, T norm, Matrix<T> Z) {
  const T factor = T(1) / norm;
  for (Index i = 0; i < A.rows; ++i)
    for (Index j = 0; j < A.columns; ++j) Z(j, i) = factor * A(i, j);
}

/// Computes W, U and V of a step from its Z.
template <class T>
void softmax_inverse_step(MatrixFor<T> A, const SoftmaxInverseStep<T>& s) {
  const Index m = A.rows;
  gemm(A, s.Z, s.W);
  gemm(s.W, s.W, s.U);
  for (Index i = 0; i < m * m; ++i) s.U.data[i] -= T(7) * s.W.data[i];
  for (Index i = 0; i < m; ++i) s.U(i, i) += T(15);
  gemm(s.W, s.U, s.V);
  for (Index i = 0; i < m * m; ++i) s.V.data[i] = -s.V.data[i];
  for (Index i = 0; i < m; ++i) s.V(i, i) += T(13);
}

/// Computes the next Z.
template <class T>
void softmax_inverse_next(const SoftmaxInverseStep<T>& s, Matrix<T> next) {
  gemm(s.Z, s.V, next);
  for (Index i = 0; i < next.size(); ++i) next.data[i] = T(0.25) * next.data[i];
}

/// Computes Z = the last iterate.
template <class T>
void softmax_inverse(const SoftmaxInverse& s, MatrixFor<T> A,
                     const SoftmaxInverseScratch<std::type_identity_t<T>>& scratch, Matrix<T> Z) {
  // Alternates between the memory of two steps, which stays in the cache.
  const auto iterate = [&](Index k) { return k == s.iterations ? Z : scratch.step(k % 2).Z; };
  softmax_inverse_start(A, largest_column(A, scratch.P.data).sum, iterate(0));
  for (Index k = 0; k < s.iterations; ++k) {
    softmax_inverse_step<T>(A, scratch.step(k % 2));
    softmax_inverse_next(scratch.step(k % 2), iterate(k + 1));
  }
}

/// Computes dA, the gradient for dZ = d(loss)/d(last iterate): the exact derivative of softmax_inverse(), converged or
/// not. Recomputes the steps, then runs their backward passes from last to first. With G = dZ_{k+1} / 4:
///   Z_{k+1} = Z V / 4         gives  dV = Z^T G,  dZ = G V^T;
///   V = 13 I - W U            gives  dU = -W^T dV,  dW = -dV U^T;
///   U = 15 I - 7 W + W W      gives  dW += -7 dU + dU W^T + W^T dU;
///   W = A Z                   gives  dA += dW Z^T,  dZ += A^T dW.
/// Z_0 = A^T / |A|_1 gives dA += dZ_0^T / |A|_1, and d|A|_1 = -<dZ_0, Z_0> / |A|_1 for each element of the first column
/// with the sum |A|_1.
template <class T>
void softmax_inverse_backward(const SoftmaxInverse& s, MatrixFor<T> A, MatrixFor<T> dZ_last,
                              const SoftmaxInverseScratch<std::type_identity_t<T>>& scratch, Matrix<T> dA) {
  const Index m = s.m, n = m * m;
  const LargestColumn<T> largest = largest_column(A, scratch.P.data);
  const T factor = T(1) / largest.sum;
  // Alternates between two buffers, so that the gradient of the first iterate is in dZ.
  const auto gradient = [&](Index k) { return k % 2 == 0 ? scratch.dZ : scratch.dnext; };
  std::copy_n(dZ_last.data, n, gradient(s.iterations).data);
  fill(dA, T(0));
  for (Index k = 0; k < s.iterations; ++k) {
    if (k == 0)
      softmax_inverse_start(A, largest.sum, scratch.step(0).Z);
    else
      softmax_inverse_next(scratch.step(k - 1), scratch.step(k).Z);
    softmax_inverse_step<T>(A, scratch.step(k));
  }
  for (Index k = s.iterations - 1; k >= 0; --k) {
    const auto [Z, W, U, V] = scratch.step(k);
    const Matrix<T> G = gradient(k + 1), dZ = gradient(k), dV = scratch.dV, P = scratch.P, dW = scratch.dW;
    for (Index i = 0; i < n; ++i) G.data[i] = T(0.25) * G.data[i];
    gemm(transposed(Z), G, dV);
    gemm(G, transposed(V), dZ);
    gemm(transposed(W), dV, P);  // -dU
    gemm(dV, transposed(U), dW);
    gemm(P, transposed(W), Update::accumulate, dW);
    gemm(transposed(W), P, Update::accumulate, dW);
    for (Index i = 0; i < n; ++i) dW.data[i] = T(7) * P.data[i] - dW.data[i];
    gemm(dW, transposed(Z), Update::accumulate, dA);
    gemm(transposed(A), dW, Update::accumulate, dZ);
  }
  T product(0);
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < m; ++j) {
      const T dscaled = factor * gradient(0)(j, i);
      dA(i, j) += dscaled;
      product += dscaled * A(i, j);
    }
  const T dnorm = -(factor * product);
  for (Index i = 0; i < m; ++i) dA(i, largest.column) += dnorm;
}

/// Returns the cost of softmax_inverse() and softmax_inverse_backward().
inline Cost softmax_inverse_cost(const SoftmaxInverse& s) {
  const Index m = s.m, n = m * m, steps = s.iterations;
  const Counts product = product_counts(m, m, m), scaled{.mul = n};
  const Counts start = Counts{.add = m * (m - 1), .div = 1, .cmp = m - 1};
  const Counts step = 3 * product + Counts{.mul = n, .add = n + 2 * m}, next = product + scaled;
  Cost cost;
  cost.forward = start + scaled + steps * (step + next);
  cost.backward = start + Counts{.mul = 2 * n + 1, .add = 2 * n + m};
  if (steps > 0)  // recomputes the steps, except the last iterate; then their backward passes
    cost.backward += Counts{.mul = n, .div = 1} + steps * step + (steps - 1) * next +
                     steps * (8 * product + 2 * scaled + Counts{.add = 5 * n});
  cost.forward_contractions = 4 * steps * product_contractions(m, m, m);
  cost.backward_contractions = 2 * cost.forward_contractions;  // recomputing the steps is not counted
  cost.left_out = steps * Counts{.mul = n, .add = n};          // computing and subtracting 7 W
  return cost;
}

}  // namespace heed::kernels
