#include "heed/ops/layer_norm.h"

#include "row_functions.h"
#include "heed/cost/for_each_number.h"
#include "heed/kernels/rows/layer_norm.h"

#include <array>

namespace heed {

namespace {

/// The row function gamma xn + beta for rows of n elements (kernels/rows/layer_norm.h). Saved: mean and 1 /
/// sqrt(variance + eps) of each row.
template <class T>
struct LayerNormRows {
  static constexpr const char *name = "layer_norm", *linear_name = "layer_norm_linear";
  std::array<Var<T>, 2> parameters;  ///< gamma, beta
  double eps;
  Index n;
  Matrix<T> statistics;  ///< [rows, 2]

  /// Constructs the function for x [..., n]. Throws Error, which names `operation`, unless gamma and beta are [n].
  LayerNormRows(const char* operation, Var<T> x, Var<T> gamma, Var<T> beta, double epsilon)
      : parameters{gamma, beta}, eps(epsilon), n(x.shape().row_size()) {
    require(gamma.shape() == Shape{n} && beta.shape() == Shape{n},
            "[{}] x has rows of {}, gamma has shape {}, beta {}; expected [{}]", operation, n, gamma.shape(),
            beta.shape(), n);
    const Index rows = x.shape().rows();
    statistics = {x.tape().memory(2 * rows), rows, 2};
  }

  Index work() const { return 6 * n; }
  Counts forward_counts(Index rows) const { return kernels::layer_norm_forward_counts(rows, n); }
  Counts recompute_counts(Index rows) const { return kernels::layer_norm_again_counts(rows, n); }
  Counts backward_counts(Index rows) const { return kernels::layer_norm_backward_counts(rows, n); }
  Counts sums_counts(Index rows) const { return kernels::layer_norm_parameter_counts(rows, n); }

  void forward(Index first, Matrix<const T> x, Matrix<T> y) const {
    kernels::layer_norm_forward(norm(), x, {}, y, of(first, x));
  }
  void backward(Index first, Matrix<const T> x, Matrix<const T> df, Update update, Matrix<T> dx, Matrix<T> fx) const {
    if (fx) kernels::layer_norm_again(norm(), x, of(first, x), fx);
    kernels::layer_norm_backward(parameters[0].data(), x, of(first, x), df, update, dx);
  }

  Index sums(Tape<T>& tape) const { return tape.wanted(parameters[0]) || tape.wanted(parameters[1]) ? 2 * n : 0; }
  void add_sums(Tape<T>& tape, Index first, Matrix<const T> x, Matrix<const T> df, Update update, T* sums) const {
    sum_over_row_ranges(tape, x.rows, 2 * n, 2 * n, update, sums, [=, this](Index begin, Index end, Update u, T* sum) {
      const auto range = [=](auto m) { return m.middle_rows(begin, end - begin); };
      kernels::layer_norm_parameter_gradients(range(x), range(of(first, x)), range(df), u, Matrix<T>(sum, 2, n));
    });
  }
  void give_sums(Tape<T>& tape, const T* sums) const {
    for (std::size_t p = 0; p < 2; ++p)
      if (const auto target = tape.target(parameters[p]))
        write_all(target.update, n, sums + static_cast<Index>(p) * n, target.data);
  }

 private:
  kernels::RowNorm<T> norm() const { return {parameters[0].data(), parameters[1].data(), eps}; }

  /// Returns the statistics of the rows x, which begin at row `first`.
  Matrix<T> of(Index first, Matrix<const T> x) const { return statistics.middle_rows(first, x.rows); }
};

}  // namespace

template <class T>
Var<T> layer_norm(Var<T> x, Var<T> gamma, Var<T> beta, double eps) {
  using Rows = LayerNormRows<T>;
  return rows_of(Rows(Rows::name, x, gamma, beta, eps), x);
}

template <class T>
Var<T> layer_norm_linear(Var<T> x, Var<T> gamma, Var<T> beta, Var<T> weight, Var<T> bias, Var<T> residual, double eps) {
  using Rows = LayerNormRows<T>;
  return linear_of(Rows(Rows::linear_name, x, gamma, beta, eps), x, weight, bias, residual);
}

#define INSTANTIATE(T)                                        \
  template Var<T> layer_norm(Var<T>, Var<T>, Var<T>, double); \
  template Var<T> layer_norm_linear(Var<T>, Var<T>, Var<T>, Var<T>, Var<T>, Var<T>, double);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
