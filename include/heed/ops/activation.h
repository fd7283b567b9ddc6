// gelu, relu and silu, alone and before a linear layer.
#pragma once

#include "heed/kernels/activation.h"
#include "heed/ops/row_functions.h"

#include <array>

namespace heed {

/// x Phi(x), exact (kernels/activation.h). dx += dy (Phi(x) + x phi(x)).
struct Gelu {
  static constexpr const char *name = "gelu", *linear_name = "gelu_linear";
  static constexpr auto forward_counts = kernels::gelu_forward_counts, backward_counts = kernels::gelu_backward_counts,
                        again_counts = kernels::gelu_again_counts;
  static constexpr Index work = 8;
  static constexpr auto forward = [](auto... arguments) { kernels::gelu_forward(arguments...); };
  static constexpr auto backward = [](auto... arguments) { kernels::gelu_backward(arguments...); };
};

/// max(x, 0). dx += dy where x > 0.
struct Relu {
  static constexpr const char *name = "relu", *linear_name = "relu_linear";
  static constexpr auto forward_counts = kernels::relu_forward_counts, backward_counts = kernels::relu_backward_counts,
                        again_counts = kernels::relu_again_counts;
  static constexpr Index work = 1;
  static constexpr auto forward = [](auto... arguments) { kernels::relu_forward(arguments...); };
  static constexpr auto backward = [](auto... arguments) { kernels::relu_backward(arguments...); };
};

/// x / (1 + exp(-x)). dx += dy s (1 + x (1 - s)), s the logistic function of x (kernels/activation.h).
struct Silu {
  static constexpr const char *name = "silu", *linear_name = "silu_linear";
  static constexpr auto forward_counts = kernels::silu_forward_counts, backward_counts = kernels::silu_backward_counts,
                        again_counts = kernels::silu_again_counts;
  static constexpr Index work = 8;
  static constexpr auto forward = [](auto... arguments) { kernels::silu_forward(arguments...); };
  static constexpr auto backward = [](auto... arguments) { kernels::silu_backward(arguments...); };
};

/// An activation as a function of rows of n.
template <class T, class Activation>
struct ActivationRows {
  static constexpr const char *name = Activation::name, *linear_name = Activation::linear_name;
  std::array<Var<T>, 2> parameters{};
  Index n;

  /// For x [..., n].
  explicit ActivationRows(Var<T> x) : n(x.shape().row_size()) {}

  Index work() const { return Activation::work * n; }
  Counts forward_counts(Index rows) const { return Activation::forward_counts(rows * n); }
  Counts again_counts(Index rows) const { return Activation::again_counts(rows * n); }
  Counts backward_counts(Index rows) const { return Activation::backward_counts(rows * n); }
  Counts sums_counts(Index) const { return {}; }

  void forward(Index, Matrix<const T> x, Matrix<T> y) const { Activation::forward(x.size(), x.data, y.data); }
  void backward(Index, Matrix<const T> x, Matrix<const T> df, Update update, Matrix<T> dx, Matrix<T> again) const {
    Activation::backward(x.size(), x.data, df.data, update, dx.data, again.data);
  }

  Index sums(Tape<T>&) const { return 0; }
  void add_sums(Tape<T>&, Index, Matrix<const T>, Matrix<const T>, Update, T*) const {}
  void give_sums(Tape<T>&, const T*) const {}
};

/// y = f(x), f one of the above.
template <class Activation, class T>
Var<T> activation(Var<T> x) {
  return rows_of(ActivationRows<T, Activation>(x), x);
}

/// y = f(x) W^T + b + r, of which f(x) is not kept (linear_of).
template <class Activation, class T>
Var<T> activation_linear(Var<T> x, Var<T> weight, Var<T> bias = {}, Var<T> residual = {}) {
  return linear_of(ActivationRows<T, Activation>(x), x, weight, bias, residual);
}

template <class T>
Var<T> gelu(Var<T> x) {
  return activation<Gelu>(x);
}
template <class T>
Var<T> relu(Var<T> x) {
  return activation<Relu>(x);
}
template <class T>
Var<T> silu(Var<T> x) {
  return activation<Silu>(x);
}

}  // namespace heed
