// Matrix products of batches.
#pragma once

#include "heed/ops/elementary/shapes.h"

namespace heed {

/// A tensor whose last two axes are read in reverse order. matmul() reads it in place; conversion to Var copies it.
template <class T>
struct TransposedVar {
  Var<T> of;
  operator Var<T>() const { return swap_axes(of, -2, -1); }
};

/// Returns x with its last two axes exchanged: matmul(q, transposed(k)) computes q k^T.
template <class T>
TransposedVar<T> transposed(Var<T> x) {
  return {x};
}

/// Computes y = a b for each pair of matrices: a [..., m, k], b [..., k, n], y [..., m, n]. Each operand may be
/// transposed(x). The leading axes are broadcast by NumPy's rules.
///
///   da += dy b^T,  db += a^T dy, summed over all products that use a broadcast matrix
template <class T>
Var<T> matmul(Var<T> a, Var<T> b);
template <class T>
Var<T> matmul(Var<T> a, TransposedVar<T> b);
template <class T>
Var<T> matmul(TransposedVar<T> a, Var<T> b);
template <class T>
Var<T> matmul(TransposedVar<T> a, TransposedVar<T> b);

}  // namespace heed
