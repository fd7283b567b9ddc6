// Product with a matrix in Nystroem form, P^T X P, without forming it.
#pragma once

#include "heed/kernels/products/gemm.h"

namespace heed::kernels {

/// Operands and intermediates of S v with S = P^T X P: P [m, n], X [m, m], v [n, e]; Z = P v and Y = X Z [m, e].
template <class T>
struct NystromProduct {
  Matrix<const T> P, X, v;
  Matrix<T> Z, Y;
};

/// Computes out = P^T (X (P v)), and Z and Y for the backward pass. Nothing may overlap.
template <class T>
void nystrom_product(const NystromProduct<std::type_identity_t<T>>& of, Matrix<T> out) {
  gemm(of.P, of.v, of.Z);
  gemm(of.X, of.Z, of.Y);
  gemm(transposed(of.P), of.Y, out);
}

/// Gradients of the operands (dv may be empty), and scratch memory for dZ and dY.
template <class T>
struct NystromGradient {
  Update update;
  Matrix<T> dP, dX;
  Update update_v;
  Matrix<T> dv;
  Matrix<T> dZ, dY;
};

/// Computes the gradients of the operands.
///   Undoing out = P^T Y:  dY = P dout,    dP (+)= Y dout^T.
///   Undoing Y = X Z:      dX (+)= dY Z^T, dZ = X^T dY.
///   Undoing Z = P v:      dP += dZ v^T,   dv (+)= P^T dZ.
template <class T>
void nystrom_product_backward(const NystromProduct<T>& of, MatrixFor<T> dout,
                              const NystromGradient<std::type_identity_t<T>>& gradient) {
  const auto& [update, dP, dX, update_v, dv, dZ, dY] = gradient;
  gemm(of.P, dout, dY);
  gemm(of.Y, transposed(dout), update, dP);
  gemm(dY, transposed(of.Z), update, dX);
  gemm(transposed(of.X), dY, dZ);
  gemm(dZ, transposed(of.v), Update::accumulate, dP);
  if (dv) gemm(transposed(of.P), dZ, update_v, dv);
}

/// Returns the cost of both passes with all gradients assigned or, if `added`, with dP and dX accumulated and no dv.
inline Cost nystrom_product_cost(Index m, Index n, Index e, bool added) {
  const Counts tall = product_contractions(m, n, e), square = product_contractions(m, m, e);
  Cost cost;
  cost.forward = product_counts(m, e, n) + product_counts(m, e, m) + product_counts(n, e, m);
  cost.backward = product_counts(m, e, n) + 2 * product_counts(m, n, e) + Counts{.add = m * n} +
                  product_counts(m, m, e) + product_counts(m, e, m) +
                  (added ? Counts{.add = m * (m + n)} : product_counts(n, e, m));
  cost.forward_contractions = 2 * tall + square;
  cost.backward_contractions = (added ? 3 : 4) * tall + 2 * square;
  return cost;
}

}  // namespace heed::kernels
