// Sizes, cost and products shared by linear (alone or after a row function), adder_linear, conv2d and patch_embedding.
#pragma once

#include "heed/kernels/products/gemm_bf16.h"
#include "heed/kernels/rows/rows.h"
#include "heed/ops/rows.h"

namespace heed {

/// Sizes of y [..., out] for x [..., in], weight [out, in], and an optional bias [out] and residual [..., out].
struct LinearSizes {
  Index rows, in, out;
  Shape y;
};

/// Returns the sizes. Throws Error if shapes do not match.
template <class T>
LinearSizes linear_sizes(const char* operation, Var<T> x, Var<T> weight, Var<T> bias, Var<T> residual = {});

/// Computes db += sum over rows of dy [rows, out], if wanted.
template <class T>
void bias_backward(Tape<T>& tape, Var<T> bias, Matrix<const T> dy);

/// Returns the cost of a linear layer over `rows` rows; without `input_gradient`, dx is not computed.
Cost linear_cost(Index rows, Index in, Index out, bool bias, bool residual = false, bool input_gradient = true);

/// The weight B [in, out] of products A B, packed or not. If there is a packed copy, only add() with an addend but no
/// bias reads B itself.
template <class T>
struct WeightOperand {
  kernels::Gemm gemm;
  const kernels::PackedWeight* packed;  ///< packed copy of B, or null
  Operand<T> b;

  /// Computes C = bias + addend + columns [column, column + C.columns) of A B; bias and addend are optional.
  void add(Matrix<const T> a, Index column, const T* bias, Matrix<const T> addend, Matrix<T> c) const;

  /// Computes C (+)= A B.
  void product(Matrix<const T> a, Update update, Matrix<T> c) const;
};

/// Products of a linear layer with its weight W [out, in], or with packed copies of it if there are any.
template <class T>
class LinearProducts {
 public:
  LinearProducts(Tape<T>& tape, Var<T> weight)
      : LinearProducts({tape.pass().execution.products}, {weight.data(), weight.shape()[0], weight.shape()[1]},
                       tape.packed(weight)) {}

  /// Computes y = x W^T + b + r: x [rows, in]; bias [out] and residual [rows, out] optional; y [rows, out].
  void forward(Matrix<const T> x, const T* bias, Matrix<const T> residual, Matrix<T> y) const;

  /// Computes dx (+)= dy W.
  void input_gradient(Matrix<const T> dy, Update update, Matrix<T> dx) const;

  /// Computes dW (+)= dy^T x, if wanted.
  void weight_gradient(Matrix<const T> x, Matrix<const T> dy, const typename Tape<T>::Target& dw) const;

 private:
  LinearProducts(kernels::Gemm gemm, Matrix<const T> weight, const LinearWeight* packed)
      : weight_(weight),
        forward_{gemm, packed ? &packed->forward : nullptr, transposed(weight)},
        backward_{gemm, packed ? packed->for_gradients() : nullptr, weight} {}

  Matrix<const T> weight_;
  WeightOperand<T> forward_, backward_;
};

}  // namespace heed
