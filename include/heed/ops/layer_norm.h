// Layer normalisation, alone and before a linear layer.
#pragma once

#include "heed/kernels/layer_norm.h"
#include "heed/ops/row_functions.h"

#include <array>

namespace heed {

/// gamma xn + beta as a function of rows of n (kernels/layer_norm.h). Saved: mean and 1 / sqrt(variance + eps) of each
/// row.
///
///   dgamma += sum dy xn,  dbeta += sum dy
template <class T>
struct LayerNormRows {
  static constexpr const char *name = "layer_norm", *linear_name = "layer_norm_linear";
  std::array<Var<T>, 2> parameters;  ///< gamma, beta
  double eps;
  Index n;
  T *mean, *scale;

  /// For x [..., n]. Throws Error in the name of `operation` if gamma and beta are not [n].
  LayerNormRows(const char* operation, Var<T> x, Var<T> gamma, Var<T> beta, double epsilon)
      : parameters{gamma, beta}, eps(epsilon), n(x.shape().row_size()) {
    require(gamma.shape() == Shape{n} && beta.shape() == Shape{n},
            "[{}] x has rows of {}, gamma has shape {}, beta {}; expected [{}]", operation, n, gamma.shape(),
            beta.shape(), n);
    mean = x.tape().memory(x.shape().rows());
    scale = x.tape().memory(x.shape().rows());
  }

  Index work() const { return 6 * n; }
  Counts forward_counts(Index rows) const { return kernels::layer_norm_forward_counts(rows, n); }
  Counts again_counts(Index rows) const { return kernels::layer_norm_again_counts(rows, n); }
  Counts backward_counts(Index rows) const { return kernels::layer_norm_backward_counts(rows, n); }
  Counts sums_counts(Index rows) const { return kernels::layer_norm_parameter_counts(rows, n); }

  void forward(Index first, Index count, const T* x, T* y) const {
    kernels::layer_norm_forward(count, n, n, x, gamma(), beta(), eps, nullptr, y, mean + first, scale + first);
  }
  void backward(Index first, Index count, const T* x, const T* df, Update update, T* dx, T* again) const {
    if (again) kernels::layer_norm_again(count, n, n, x, gamma(), beta(), mean + first, scale + first, again);
    kernels::layer_norm_backward(count, n, n, x, gamma(), mean + first, scale + first, df, update, dx);
  }

  Index sums(Tape<T>& tape) const { return tape.wanted(parameters[0]) || tape.wanted(parameters[1]) ? 2 * n : 0; }
  void add_sums(Tape<T>& tape, Index first, Index count, const T* x, const T* df, Update update, T* sums) const {
    sum_over_row_ranges(tape, count, 2 * n, 2 * n, update, sums, [=, this](Index begin, Index end, Update u, T* sum) {
      kernels::layer_norm_parameter_gradients(end - begin, n, n, x + begin * n, mean + first + begin,
                                              scale + first + begin, df + begin * n, u, sum, sum + n);
    });
  }
  void give_sums(Tape<T>& tape, const T* sums) const {
    for (std::size_t p = 0; p < 2; ++p)
      if (const auto target = tape.target(parameters[p]))
        write_all(target.update, n, sums + static_cast<Index>(p) * n, target.data);
  }

 private:
  const T* gamma() const { return parameters[0].data(); }
  const T* beta() const { return parameters[1].data(); }
};

/// y = gamma (x - mean) / sqrt(variance + eps) + beta over the last axis: x [..., n], gamma, beta [n].
template <class T>
Var<T> layer_norm(Var<T> x, Var<T> gamma, Var<T> beta, double eps = 1e-6) {
  using Rows = LayerNormRows<T>;
  return rows_of(Rows(Rows::name, x, gamma, beta, eps), x);
}

/// y = layer_norm(x) W^T + b + r, of which the norm is not kept (linear_of).
template <class T>
Var<T> layer_norm_linear(Var<T> x, Var<T> gamma, Var<T> beta, Var<T> weight, Var<T> bias = {}, Var<T> residual = {},
                         double eps = 1e-6) {
  using Rows = LayerNormRows<T>;
  return linear_of(Rows(Rows::linear_name, x, gamma, beta, eps), x, weight, bias, residual);
}

}  // namespace heed
