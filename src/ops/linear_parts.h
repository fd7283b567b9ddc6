// What operations that map the last axis have in common: linear, alone or after a function of rows, adder_linear,
// patches. Defined in linear.cpp.
#pragma once

#include "heed/kernels/products/gemm_bf16.h"
#include "heed/kernels/rows/rows.h"
#include "heed/ops/rows.h"

namespace heed {

/// Sizes of y [..., out] for x [..., in], weight [out, in], and bias [out] and residual [..., out] or none.
struct LinearSizes {
  Index rows, in, out;
  Shape y;
};

/// Throws Error if they do not fit each other.
template <class T>
LinearSizes linear_sizes(const char* operation, Var<T> x, Var<T> weight, Var<T> bias, Var<T> residual = {});

/// db += sum over rows of dy [rows, out], if the bias wants a gradient.
template <class T>
void bias_backward(Tape<T>& tape, Var<T> bias, Matrix<const T> dy);

/// Cost of a linear layer over `rows` rows; where no `input_gradient` is wanted, without dx.
Cost linear_cost(Index rows, Index in, Index out, bool bias, bool residual = false, bool input_gradient = true);

/// The products of a linear layer with its weight W [out, in], by the arranged copies of it where there are any.
template <class T>
class LinearProducts {
 public:
  LinearProducts(Tape<T>& tape, Var<T> weight)
      : gemm_{tape.pass().products},
        weight_(weight.data(), weight.shape()[0], weight.shape()[1]),
        packed_(tape.packed(weight)) {}

  /// y = x W^T + b + r: x [rows, in]; bias [out] and residual [rows, out], each may be left out; y [rows, out].
  void forward(Matrix<const T> x, const T* bias, Matrix<const T> residual, Matrix<T> y) const;

  /// dx (+)= dy W
  void input_gradient(Matrix<const T> dy, Update update, Matrix<T> dx) const;

  /// dW (+)= dy^T x, if that is wanted.
  void weight_gradient(Matrix<const T> x, Matrix<const T> dy, const typename Tape<T>::Target& dw) const;

 private:
  kernels::Gemm gemm_;
  Matrix<const T> weight_;
  const LinearWeight* packed_;
};

}  // namespace heed
