// Part of SOFT (soft.h): its map S, of which no more is kept than its factors, and products with it.
//
//   S = P^T X P, or with kernel=exact S = G(q, q), made in blocks of rows
#pragma once

#include "heed/attention/mechanism.h"
#include "heed/kernels/gaussian.h"
#include "heed/kernels/newton_inverse.h"
#include "heed/kernels/nystrom.h"
#include "heed/kernels/pooling.h"
#include "heed/kernels/row_sums.h"

namespace heed {

/// What is saved of one head, by the names of soft.h; `scaled` is the X that S is made with, Z1 = P 1, Y1 = X P 1.
template <class T>
struct SoftSaved {
  T *L, *A, *P, *X, *scaled, *root, *Z, *Y, *D, *Z1, *Y1;
};

/// Gradients on their way through a product: dP and dX, or dq itself where S is exact.
template <class T>
struct SoftGradients {
  Update update_q;
  Rows<T> dq;
  T *dP = nullptr, *dX = nullptr;
  Update update = Update::assign;

  /// For a further product: all is added to.
  SoftGradients more() const { return {Update::accumulate, dq, dP, dX, Update::accumulate}; }
};

/// S of one head: N tokens of d channels, values of e, m landmarks.
struct SoftMap {
  Index N, d, e, m;
  double scale;              ///< 1 / (2 sqrt(d))
  bool exact, map, inverse;  ///< kernel=exact, normalize=map, normalize=inverse
  double ridge;
  kernels::Landmarks landmarks;
  kernels::NewtonInverse newton;

  /// Numbers saved per head.
  Index saved() const { return m * (d + N + 2 * m + 2 * e) + (inverse ? m * (m + 1) : 0) + (map ? N + 2 * m : 0); }

  template <class T>
  SoftSaved<T> divide(T* next) const {
    const auto take = [&next](Index count) { return std::exchange(next, next + count); };
    SoftSaved<T> f;
    f.L = take(m * d), f.A = take(m * m), f.P = take(m * N), f.X = take(m * m);
    f.scaled = inverse ? take(m * m) : f.X, f.root = take(inverse ? m : 0);
    f.Z = take(m * e), f.Y = take(m * e);
    f.D = take(map ? N : 0), f.Z1 = take(map ? m : 0), f.Y1 = next;
    return f;
  }

  /// L and A of queries q [N, d]; `tensor` is what the landmarks are sampled with. Not for exact.
  template <class T>
  void make_gram(Rows<const T> q, const T* tensor, T* L, T* A, T* scratch) const {
    kernels::sample_landmarks(landmarks, d, q.data, q.stride, tensor, L, scratch);
    kernels::gaussian(m, m, d, L, d, L, d, scale, A, m);
    for (Index i = 0; i < m && ridge > 0; ++i) A[i * m + i] += T(ridge);
  }

  /// L, A, P and X of queries q likewise.
  template <class T>
  void make(Rows<const T> q, const T* tensor, const SoftSaved<T>& f, T* scratch) const {
    make_gram(q, tensor, f.L, f.A, scratch);
    kernels::gaussian(m, N, d, f.L, d, q.data, q.stride, scale, f.P, N);
    kernels::newton_inverse(newton, f.A, f.X, scratch);
    if (inverse) kernels::scale_inverse(m, f.A, f.X, f.scaled, f.root);
  }

  /// out = S v for v [N, columns]; leaves Z = P v and Y = X Z.
  template <class T>
  void multiply(Rows<const T> q, const SoftSaved<T>& f, Index columns, Rows<const T> v, T* Z, T* Y, Rows<T> out,
                T* scratch) const {
    if (exact)
      kernels::gaussian_product(N, d, columns, q.data, q.stride, scale, v.data, v.stride, out.data, out.stride,
                                scratch);
    else
      kernels::nystrom_product(m, N, columns, f.P, f.scaled, v.data, v.stride, Z, Y, out.data, out.stride);
  }

  /// Undoes it. `update` is for dv, which is left out where its data are nullptr.
  template <class T>
  void multiply_backward(Rows<const T> q, const SoftSaved<const T>& f, Index columns, Rows<const T> v, const T* Z,
                         const T* Y, Rows<const T> dout, Update update, Rows<T> dv, const SoftGradients<T>& df,
                         T* scratch) const {
    if (exact)
      kernels::gaussian_product_backward(N, d, columns, q.data, q.stride, scale, v.data, v.stride, dout.data,
                                         dout.stride, update, dv.data, dv.stride, df.update_q, df.dq.data, df.dq.stride,
                                         scratch);
    else
      kernels::nystrom_product_backward(m, N, columns, f.P, f.scaled, v.data, v.stride, Z, Y, dout.data, dout.stride,
                                        df.update, df.dP, df.dX, update, dv.data, dv.stride, scratch);
  }
};

}  // namespace heed
