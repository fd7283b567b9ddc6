// Product with a matrix in Nystroem's form, P^T X P, which is never made.
#pragma once

#include "heed/cost/counts.h"
#include "heed/kernels/gemm_by_stride.h"

namespace heed::kernels {

/// out = P^T (X (P v)) for P [m, n], X [m, m], v and out [n, e]; rows of v and out are v_stride and out_stride apart.
/// Leaves Z = P v and Y = X Z, both [m, e], for the backward pass. Nothing overlaps. Counts: nystrom_product_cost().
template <class T>
void nystrom_product(Index m, Index n, Index e, const T* P, const T* X, const T* v, Index v_stride, T* Z, T* Y, T* out,
                     Index out_stride) {
  gemm(Transpose::no, Transpose::no, m, e, n, P, n, v, v_stride, Update::assign, Z, e);
  gemm(Transpose::no, Transpose::no, m, e, m, X, m, Z, e, Update::assign, Y, e);
  gemm(Transpose::yes, Transpose::no, n, e, m, P, n, Y, e, Update::assign, out, out_stride);
}

/// Undoing out = P^T Y:  dY = P dout,    dP (+)= Y dout^T.
/// Undoing Y = X Z:      dX (+)= dY Z^T, dZ = X^T dY.
/// Undoing Z = P v:      dP += dZ v^T,   dv (+)= P^T dZ, left out where dv is nullptr.
/// `update` is for dP and dX. scratch [2, m, e]. Counts: nystrom_product_cost().
template <class T>
void nystrom_product_backward(Index m, Index n, Index e, const T* P, const T* X, const T* v, Index v_stride, const T* Z,
                              const T* Y, const T* dout, Index dout_stride, Update update, T* dP, T* dX,
                              Update update_v, T* dv, Index dv_stride, T* scratch) {
  T *const dY = scratch, *const dZ = dY + m * e;
  gemm(Transpose::no, Transpose::no, m, e, n, P, n, dout, dout_stride, Update::assign, dY, e);
  gemm(Transpose::no, Transpose::yes, m, n, e, Y, e, dout, dout_stride, update, dP, n);
  gemm(Transpose::no, Transpose::yes, m, m, e, dY, e, Z, e, update, dX, m);
  gemm(Transpose::yes, Transpose::no, m, e, m, X, m, dY, e, Update::assign, dZ, e);
  gemm(Transpose::no, Transpose::yes, m, n, e, dZ, e, v, v_stride, Update::accumulate, dP, n);
  if (dv) gemm(Transpose::yes, Transpose::no, n, e, m, P, n, dZ, e, update_v, dv, dv_stride);
}

/// With all gradients assigned, or with `added` dP and dX added to what is there and no dv.
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
