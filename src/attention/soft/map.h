// Part of SOFT (soft.cpp): its map S, stored as factors only, and products with it.
//
//   S = P^T X P, or with kernel=exact S = G(q, q), computed in blocks of rows
#pragma once

#include "heed/attention/mechanism_base.h"
#include "heed/kernels/elements/activation.h"
#include "heed/kernels/distances/gaussian.h"
#include "heed/kernels/rows/layer_norm.h"
#include "heed/kernels/solvers/newton_inverse.h"
#include "heed/kernels/products/nystrom.h"
#include "heed/kernels/grids/pooling.h"
#include "heed/kernels/rows/row_sums.h"

namespace heed {

/// Sizes and options for one shape, named as in soft.cpp.
struct SoftSetting {
  Index heads, N, d, e, m;
  double scale;  ///< 1 / (2 sqrt(d))
  double ridge;
  bool exact;               ///< kernel=exact, without landmarks
  bool normalizes_map;      ///< normalize=map
  bool normalizes_inverse;  ///< normalize=inverse
  bool unrolled;            ///< inverse_grad=unrolled
  bool activates;           ///< landmark_act
  kernels::Landmarks landmarks;
  kernels::NewtonInverse newton;
};

/// Saved for the backward pass, named as in soft.cpp.
template <class T>
struct SoftSaved {
  Heads<T> L, A, P, X;    ///< [m, d], [m, m], [m, N], [m, m]
  Heads<T> scaled, root;  ///< with normalize=inverse E^-1/2 X E^-1/2 and E^-1/2 [m, 1]; else X itself
  Heads<T> Z, Y;          ///< P v and X Z, [m, e]
  Heads<T> S, H, norms;   ///< landmark_act: sampled landmarks / d^(1/4), normalised ones, statistics [m, 2]
  Heads<T> D, Z1, Y1;     ///< normalize=map: D = S 1 [N, 1], computed from Z1 = P 1 and Y1 = X P 1 [m, 1]

  SoftSaved(const SoftSetting& s, MemoryLayout<T>& layout) {
    const auto take = [&](Index rows, Index columns) { return lay_out_heads(s.heads, rows, columns, layout); };
    L = take(s.m, s.d), A = take(s.m, s.m), P = take(s.m, s.N), X = take(s.m, s.m);
    scaled = s.normalizes_inverse ? take(s.m, s.m) : X;
    if (s.normalizes_inverse) root = take(s.m, 1);
    Z = take(s.m, s.e), Y = take(s.m, s.e);
    if (s.activates) S = take(s.m, s.d), H = take(s.m, s.d), norms = take(s.m, 2);
    if (s.normalizes_map) D = take(s.N, 1), Z1 = take(s.m, 1), Y1 = take(s.m, 1);
  }
};

template <class T>
struct SoftScratch {
  Matrix<T> dL, dA, dE, dX, dP, dZ, dY;  ///< for one head; dP also holds X P while S is computed
  Matrix<T> ones, dD, w, dscaled, dw;    ///< normalize=map: 1, dD, w = D^-1/2 v, D^-1/2 dout and dw
  Matrix<T> norm_sums;                   ///< landmark_act: gradients of gamma and beta
  kernels::NewtonBackwardScratch<T> newton;
  kernels::LandmarkScratch<T> landmarks;
  kernels::GaussianRows<T> rows;  ///< rows of S, with kernel=exact

  SoftScratch(const SoftSetting& s, MemoryLayout<T>& layout)
      : newton(s.newton, layout), landmarks(s.landmarks, s.d, layout) {
    dL = layout.matrix(s.m, s.d), dA = layout.matrix(s.m, s.m), dE = layout.matrix(s.m, 1);
    dX = layout.matrix(s.m, s.m), dP = layout.matrix(s.m, s.N);
    dZ = layout.matrix(s.m, s.e), dY = layout.matrix(s.m, s.e);
    if (s.activates) norm_sums = layout.matrix(2, s.d);
    if (s.exact) rows = {s.N, layout};
    if (!s.normalizes_map) return;
    ones = layout.matrix(s.N, 1), dD = layout.matrix(s.N, 1);
    w = layout.matrix(s.N, s.e), dscaled = layout.matrix(s.N, s.e), dw = layout.matrix(s.N, s.e);
  }
};

/// Operand v [N, e] or [N, 1] of a product with S, and, unless S is exact, Z = P v and Y = X Z.
template <class T>
struct SoftProduct {
  Matrix<const T> v;
  Matrix<T> Z, Y;
};

/// The tensors from which landmarks are computed, or their gradients: the sampling tensor, if any, and, with
/// landmark_act, gamma and beta of the norm.
template <class T>
struct SoftTensors {
  Matrix<T> sampling;
  T *gamma = nullptr, *beta = nullptr;
};

/// S of one head.
template <class T>
struct SoftMap {
  const SoftSetting& s;
  const SoftSaved<T>& saved;
  const SoftScratch<T>& scratch;
  Index h;
  Matrix<const T> q;
  SoftTensors<const T> tensors;
  Matrix<T> L = saved.L[h], A = saved.A[h], P = saved.P[h], X = saved.X[h], scaled = saved.scaled[h];

  /// With landmark_act, replaces L by d^(1/4) gelu(norm(L / d^(1/4))). The authors first divide q by d^(1/4) and
  /// compare it with the result of the gelu; the factors of d^(1/4) here give the same map.
  void activate() const {
    if (!s.activates) return;
    const Matrix<T> S = saved.S[h], H = saved.H[h];
    const T root(std::sqrt(std::sqrt(static_cast<double>(s.d))));
    for (Index i = 0; i < S.size(); ++i) S.data[i] = L.data[i] / root;
    kernels::layer_norm_forward({tensors.gamma, tensors.beta, eps}, S, {}, H, saved.norms[h]);
    kernels::gelu_forward(L.size(), H.data, L.data);
    for (Index i = 0; i < L.size(); ++i) L.data[i] = root * L.data[i];
  }

  /// Runs the backward pass of activate(): replaces dL by the gradient of its input, and adds to the gradients of gamma
  /// and beta.
  void activate_backward(const SoftTensors<T>& d) const {
    if (!s.activates) return;
    const Matrix<T> S = saved.S[h], dL = scratch.dL, sums = scratch.norm_sums;
    const T root(std::sqrt(std::sqrt(static_cast<double>(s.d))));
    for (Index i = 0; i < dL.size(); ++i) dL.data[i] = root * dL.data[i];
    kernels::gelu_backward(dL.size(), static_cast<const T*>(saved.H[h].data), static_cast<const T*>(dL.data),
                           Update::assign, dL.data);
    kernels::layer_norm_parameter_gradients(S, saved.norms[h], dL, Update::assign, sums);
    write_all(Update::accumulate, s.d, sums[0], d.gamma);
    write_all(Update::accumulate, s.d, sums[1], d.beta);
    kernels::layer_norm_backward(tensors.gamma, S, saved.norms[h], dL, Update::assign, dL);
    for (Index i = 0; i < dL.size(); ++i) dL.data[i] = dL.data[i] / root;
  }

  static constexpr double eps = 1e-5;

  /// Returns the cost of activate() and its gradient.
  static Cost activation_cost(Index m, Index d) {
    Cost cost;
    cost.forward = m * d * Counts{.mul = 1, .div = 1} + kernels::layer_norm_forward_counts(m, d) +
                   kernels::gelu_forward_counts(m * d);
    cost.backward = m * d * Counts{.mul = 1, .div = 1} + kernels::gelu_backward_counts(m * d) +
                    kernels::layer_norm_parameter_counts(m, d) + Counts{.add = 2 * d} +
                    kernels::layer_norm_backward_counts(m, d);
    cost.left_out = m * d * Counts{.mul = 1, .add = 2};  // variances
    return cost;
  }

  /// Computes L and A.
  void make_gram() const {
    kernels::sample_landmarks({s.landmarks, q, tensors.sampling, scratch.landmarks}, L);
    activate();
    kernels::gaussian(L, L, s.scale, A);
    for (Index i = 0; i < s.m && s.ridge > 0; ++i) A(i, i) += T(s.ridge);
  }

  /// Computes the factors of S: 1. L, 2. A and P, 3. X.
  void make() const {
    if (s.exact) return;
    make_gram();
    kernels::gaussian(L, q, s.scale, P);
    kernels::newton_inverse(s.newton, A, scratch.newton.step, X);
    if (s.normalizes_inverse) kernels::scale_inverse(A, X, saved.root[h], scaled);
  }

  /// Runs the backward pass of make(): computes dq from dP and dX in scratch, and adds to the gradients of the tensors.
  ///   Undoing 3: kernels/solvers/newton_inverse.h.
  ///   Undoing 2: dL and dq from dP; dL from dA: both the rows and the columns of A are landmarks.
  ///   Undoing 1: dq from dL.
  void make_backward(const SoftTensors<T>& dtensors, Update update, Matrix<T> dq) const {
    if (s.exact) return;
    const Matrix<T> dL = scratch.dL, dA = scratch.dA, dX = scratch.dX, dE = scratch.dE;
    // 3.
    if (s.normalizes_inverse) kernels::scale_inverse_backward(saved.root[h], scaled, dX, dE);
    if (s.unrolled)
      kernels::newton_inverse_backward(s.newton, A, dX, scratch.newton, dA);
    else
      kernels::inverse_backward(X, dX, scratch.newton.step.U, dA);
    for (Index i = 0; i < s.m && s.normalizes_inverse; ++i)
      for (Index j = 0; j < s.m; ++j) dA(i, j) += dE(i, 0);
    // 2.
    kernels::gaussian_backward({L, q, s.scale, P}, scratch.dP, Update::assign, dL, update, dq);
    kernels::gaussian_gram_backward({L, L, s.scale, A}, dA, dL);
    // 1.
    activate_backward(dtensors);
    kernels::sample_landmarks_backward({s.landmarks, q, tensors.sampling, scratch.landmarks}, dL, dtensors.sampling,
                                       dq);
  }

  /// Computes S itself, [N, N].
  void make_map(Matrix<T> map) const {
    if (s.exact) return kernels::gaussian(q, q, s.scale, map);
    const Matrix<T> XP = scratch.dP;
    kernels::gemm(scaled, P, XP);
    kernels::gemm(transposed(P), XP, map);
  }

  /// Computes out = S v, and Z and Y.
  void multiply(const SoftProduct<T>& product, Matrix<T> out) const {
    const auto [v, Z, Y] = product;
    if (s.exact)
      kernels::gaussian_product({q, s.scale, v, scratch.rows}, out);
    else
      kernels::nystrom_product({P, scaled, v, Z, Y}, out);
  }

  /// Runs the backward pass of multiply(): writes dv, unless empty, and dP and dX in scratch, or dq if S is exact.
  void multiply_backward(const SoftProduct<T>& product, Matrix<const T> dout, Update update_v, Matrix<T> dv,
                         Update update, Matrix<T> dq) const {
    const auto [v, Z, Y] = product;
    const Matrix<T> dZ(scratch.dZ.data, s.m, v.columns), dY(scratch.dY.data, s.m, v.columns);
    if (s.exact)
      kernels::gaussian_product_backward({q, s.scale, v, scratch.rows}, dout, update_v, dv, update, dq);
    else
      kernels::nystrom_product_backward(kernels::NystromProduct<T>{P, scaled, v, Z, Y}, dout,
                                        {update, scratch.dP, scratch.dX, update_v, dv, dZ, dY});
  }
};

}  // namespace heed
