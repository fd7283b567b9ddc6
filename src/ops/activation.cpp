#include "heed/ops/activation.h"

#include "row_functions.h"
#include "heed/cost/for_each_number.h"
#include "heed/kernels/elements/activation.h"

#include <array>

namespace heed {

namespace {

/// An activation: names, work per element, costs of n elements, kernels.
template <class T>
struct Activation {
  const char *name, *linear_name;
  Index work;
  Counts (*forward_counts)(Index n);
  Counts (*backward_counts)(Index n);
  Counts (*recompute_counts)(Index n);
  void (*forward)(Index n, const T* x, T* y);
  void (*backward)(Index n, const T* x, const T* dy, Update update, T* dx, T* y);
};

template <class T>
constexpr Activation<T> gelu_function{"gelu",
                                      "gelu_linear",
                                      8,
                                      kernels::gelu_forward_counts,
                                      kernels::gelu_backward_counts,
                                      kernels::gelu_again_counts,
                                      kernels::gelu_forward,
                                      kernels::gelu_backward};
template <class T>
constexpr Activation<T> relu_function{"relu",
                                      "relu_linear",
                                      1,
                                      kernels::relu_forward_counts,
                                      kernels::relu_backward_counts,
                                      kernels::relu_again_counts,
                                      kernels::relu_forward,
                                      kernels::relu_backward};
template <class P, class T>
constexpr Activation<T> logistic_function(const char* name, const char* linear_name) {
  return {name,
          linear_name,
          8,
          kernels::logistic_forward_counts<P>,
          kernels::logistic_backward_counts<P>,
          kernels::logistic_again_counts<P>,
          kernels::logistic_forward<P, T>,
          kernels::logistic_backward<P, T>};
}
template <class T>
constexpr auto silu_function = logistic_function<kernels::Silu, T>("silu", "silu_linear");
template <class T>
constexpr auto gelu_tanh_function = logistic_function<kernels::TanhGelu, T>("gelu_tanh", "gelu_tanh_linear");
template <class T>
constexpr auto quick_gelu_function = logistic_function<kernels::QuickGelu, T>("quick_gelu", "quick_gelu_linear");

/// An activation as a row function, for rows of n elements.
template <class T>
struct ActivationRows {
  const Activation<T>& of;
  const char *name = of.name, *linear_name = of.linear_name;
  Index n;
  std::array<Var<T>, 2> parameters{};

  /// Constructs the function for x [..., n].
  ActivationRows(const Activation<T>& activation, Var<T> x) : of(activation), n(x.shape().row_size()) {}

  Index work() const { return of.work * n; }
  Counts forward_counts(Index rows) const { return of.forward_counts(rows * n); }
  Counts recompute_counts(Index rows) const { return of.recompute_counts(rows * n); }
  Counts backward_counts(Index rows) const { return of.backward_counts(rows * n); }
  Counts sums_counts(Index) const { return {}; }

  void forward(Index, Matrix<const T> x, Matrix<T> y) const { of.forward(x.size(), x.data, y.data); }
  void backward(Index, Matrix<const T> x, Matrix<const T> df, Update update, Matrix<T> dx, Matrix<T> fx) const {
    of.backward(x.size(), x.data, df.data, update, dx.data, fx.data);
  }

  Index sums(Tape<T>&) const { return 0; }
  void add_sums(Tape<T>&, Index, Matrix<const T>, Matrix<const T>, Update, T*) const {}
  void give_sums(Tape<T>&, const T*) const {}
};

}  // namespace

template <class T>
Var<T> gelu(Var<T> x) {
  return rows_of(ActivationRows<T>(gelu_function<T>, x), x);
}

template <class T>
Var<T> relu(Var<T> x) {
  return rows_of(ActivationRows<T>(relu_function<T>, x), x);
}

template <class T>
Var<T> silu(Var<T> x) {
  return rows_of(ActivationRows<T>(silu_function<T>, x), x);
}

template <class T>
Var<T> gelu_tanh(Var<T> x) {
  return rows_of(ActivationRows<T>(gelu_tanh_function<T>, x), x);
}

template <class T>
Var<T> quick_gelu(Var<T> x) {
  return rows_of(ActivationRows<T>(quick_gelu_function<T>, x), x);
}

template <class T>
Var<T> gelu_linear(Var<T> x, Var<T> weight, Var<T> bias, Var<T> residual) {
  return linear_of(ActivationRows<T>(gelu_function<T>, x), x, weight, bias, residual);
}

template <class T>
Var<T> relu_linear(Var<T> x, Var<T> weight, Var<T> bias, Var<T> residual) {
  return linear_of(ActivationRows<T>(relu_function<T>, x), x, weight, bias, residual);
}

template <class T>
Var<T> silu_linear(Var<T> x, Var<T> weight, Var<T> bias, Var<T> residual) {
  return linear_of(ActivationRows<T>(silu_function<T>, x), x, weight, bias, residual);
}

template <class T>
Var<T> gelu_tanh_linear(Var<T> x, Var<T> weight, Var<T> bias, Var<T> residual) {
  return linear_of(ActivationRows<T>(gelu_tanh_function<T>, x), x, weight, bias, residual);
}

template <class T>
Var<T> quick_gelu_linear(Var<T> x, Var<T> weight, Var<T> bias, Var<T> residual) {
  return linear_of(ActivationRows<T>(quick_gelu_function<T>, x), x, weight, bias, residual);
}

#define INSTANTIATE(T)                                              \
  template Var<T> gelu(Var<T>);                                     \
  template Var<T> relu(Var<T>);                                     \
  template Var<T> silu(Var<T>);                                     \
  template Var<T> gelu_tanh(Var<T>);                                \
  template Var<T> quick_gelu(Var<T>);                               \
  template Var<T> gelu_linear(Var<T>, Var<T>, Var<T>, Var<T>);      \
  template Var<T> relu_linear(Var<T>, Var<T>, Var<T>, Var<T>);      \
  template Var<T> silu_linear(Var<T>, Var<T>, Var<T>, Var<T>);      \
  template Var<T> gelu_tanh_linear(Var<T>, Var<T>, Var<T>, Var<T>); \
  template Var<T> quick_gelu_linear(Var<T>, Var<T>, Var<T>, Var<T>);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
