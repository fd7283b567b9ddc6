#include "heed/analysis/classifiers.h"

#include "heed/base/math.h"
#include "heed/base/parallel.h"
#include "heed/kernels/solvers/cholesky.h"
#include "heed/kernels/products/gemm.h"
#include "heed/kernels/products/largest_products.h"
#include "heed/kernels/rows/unit_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heed {

namespace {

template <class T>
Matrix<T> rows_of(Tensor<T>& tensor) {
  return {tensor.data(), tensor.shape()[0], tensor.shape()[1]};
}
template <class T>
Matrix<const T> rows_of(const Tensor<T>& tensor) {
  return {tensor.data(), tensor.shape()[0], tensor.shape()[1]};
}

/// Divides each row by a power of two if its squared norm might overflow. Only elements that underflow are rounded; the
/// row's direction is otherwise unchanged.
template <class T>
void bring_near(Matrix<T> rows) {
  const T most = std::sqrt(std::numeric_limits<T>::max() / static_cast<T>(rows.columns)) / 2;
  for (Index r = 0; r < rows.rows; ++r) {
    T largest = 0;
    for (Index c = 0; c < rows.columns; ++c) largest = std::max(largest, std::abs(rows(r, c)));
    if (largest <= most) continue;
    const int exponent = std::ilogb(largest);
    for (Index c = 0; c < rows.columns; ++c) rows(r, c) = std::ldexp(rows(r, c), -exponent);
  }
}

/// Divides each row by its Euclidean norm.
template <class T>
void normalise(Matrix<T> rows) {
  Buffer<T> lengths(rows.rows);
  parallel_ranges(rows.rows, 1 << 8, [&](Index begin, Index end) {
    const Matrix<T> part = rows.middle_rows(begin, end - begin);
    bring_near(part);
    kernels::unit_rows<T>(part, lengths.data() + begin, part);
  });
}

/// Standardisation of features for the regression.
class Standardiser {
 public:
  template <class T>
  Standardiser(Matrix<const T> teachers, double bias)
      : mean_(static_cast<std::size_t>(teachers.columns)), factor_(mean_.size()), bias_(bias) {
    constexpr double least = 1e-5;
    const double n = static_cast<double>(teachers.rows);
    // Sums differences from the first row, so that the mean and deviation of a constant feature are exact. Otherwise,
    // rounding errors of the mean, divided by 1e-5, would become noise.
    const T* const first = teachers[0];
    for (Index r = 1; r < teachers.rows; ++r)
      for (std::size_t c = 0; c < mean_.size(); ++c)
        mean_[c] += static_cast<double>(teachers[r][c]) - static_cast<double>(first[c]);
    for (std::size_t c = 0; c < mean_.size(); ++c) mean_[c] = static_cast<double>(first[c]) + mean_[c] / n;
    for (Index r = 0; r < teachers.rows; ++r)
      for (std::size_t c = 0; c < mean_.size(); ++c) {
        const double off = static_cast<double>(teachers[r][c]) - mean_[c];
        factor_[c] += off * off / n;
      }
    for (double& factor : factor_) factor = 1 / (std::sqrt(factor) + least);
  }

  /// Returns the rows of the regression: standardised features and a bias column.
  template <class T>
  Tensor<double> operator()(Matrix<const T> features) const {
    const Index width = features.columns;
    Tensor<double> x(Shape{features.rows, width + 1});
    for (Index r = 0; r < features.rows; ++r) {
      double* const row = x.data() + r * (width + 1);
      for (std::size_t c = 0; c < mean_.size(); ++c)
        row[c] = (static_cast<double>(features[r][c]) - mean_[c]) * factor_[c];
      row[width] = bias_;
    }
    return x;
  }

 private:
  std::vector<double> mean_, factor_;
  double bias_;
};

/// Computes right := (system + l2 I)^-1 right.
void solve_ridge(Tensor<double> system, double l2, Tensor<double>& right) {
  const Matrix<double> m = rows_of(system);
  for (Index i = 0; i < m.rows; ++i) m(i, i) += l2;
  require(kernels::solve_positive(m, rows_of(right)),
          "ridge regression, l2 = {}: the system of {} unknowns is singular; set a larger l2", l2, m.rows);
}

/// Returns the W [width, classes] that minimises |X W - Y|^2 + l2 |W|^2, for X [n, width] and Y [n, classes].
Tensor<double> ridge_weights(const Tensor<double>& X, Tensor<double> Y, double l2) {
  const Matrix<const double> x = rows_of(X);
  const Index n = x.rows, width = x.columns, smaller = std::min(n, width);
  Tensor<double> system(Shape{smaller, smaller}), weights(Shape{width, Y.shape()[1]});
  if (width <= n) {
    kernels::gemm(transposed(x), x, rows_of(system));
    kernels::gemm(transposed(x), rows_of(std::as_const(Y)), rows_of(weights));
    solve_ridge(std::move(system), l2, weights);
  } else {
    kernels::gemm(x, transposed(x), rows_of(system));
    solve_ridge(std::move(system), l2, Y);
    kernels::gemm(transposed(x), rows_of(std::as_const(Y)), rows_of(weights));
  }
  return weights;
}

}  // namespace

Index classes_of(const std::vector<int>& labels) {
  return labels.empty() ? 0 : 1 + *std::max_element(labels.begin(), labels.end());
}

std::vector<int> answers_of(const Tensor<double>& scores) {
  const Index classes = scores.shape()[1];
  std::vector<int> answers;
  for (const double* row = scores.begin(); row != scores.end(); row += classes)
    answers.push_back(static_cast<int>(std::max_element(row, row + classes) - row));
  return answers;
}

template <class T>
Neighbours<T>::Neighbours(Features<T> teachers, Index classes, const NeighbourRule& rule)
    : teachers_(std::move(teachers)), classes_(classes), rule_(rule) {
  require(rule.k >= 1 && rule.k <= teachers_.count(),
          "k = {} nearest neighbours of {} training examples; expected 1 to {}", rule.k, teachers_.count(),
          teachers_.count());
  const double most = static_cast<double>(rule.k) * math::exp(1 / rule.temperature);
  require(rule.temperature > 0 && std::isfinite(static_cast<T>(most)),
          "nearest neighbours, temperature = {}: expected more than 0, and large enough that {} exp(1 / temperature) "
          "is finite",
          rule.temperature, rule.k);
  normalise(rows_of(teachers_.values));
}

template <class T>
Tensor<double> Neighbours<T>::scores(Tensor<T> test) const {
  normalise(rows_of(test));
  const Index count = test.shape()[0];
  Tensor<T> cosines(Shape{count, rule_.k});
  Tensor<Index> nearest(cosines.shape());
  kernels::largest_products<T>(rows_of(std::as_const(test)), rows_of(teachers_.values), rows_of(cosines),
                               rows_of(nearest));
  Tensor<double> scores(Shape{count, classes_});
  for (Index i = 0; i < cosines.size(); ++i)
    scores[i / rule_.k * classes_ + teachers_.labels[static_cast<std::size_t>(nearest[i])]] +=
        math::exp(static_cast<double>(cosines[i]) / rule_.temperature);
  return scores;
}

template <class T>
Tensor<double> ridge_scores(const Features<T>& teachers, const Tensor<T>& test, Index classes, const RidgeRule& rule) {
  require(rule.l2 >= 0 && std::isfinite(rule.l2) && std::isfinite(rule.bias),
          "ridge regression with l2 = {} and bias = {}; expected finite numbers, l2 at least 0", rule.l2, rule.bias);
  const Standardiser standardise(rows_of(teachers.values), rule.bias);
  Tensor<double> targets(Shape{teachers.count(), classes});
  std::fill(targets.begin(), targets.end(), -1.0);
  for (Index i = 0; i < teachers.count(); ++i) targets[i * classes + teachers.labels[static_cast<std::size_t>(i)]] = 1;
  const Tensor<double> weights = ridge_weights(standardise(rows_of(teachers.values)), std::move(targets), rule.l2);

  const Matrix<const T> rows = rows_of(test);
  Tensor<double> scores(Shape{rows.rows, classes});
  constexpr Index block = 256;
  parallel_for((rows.rows + block - 1) / block, [&](Index i) {
    const Index first = i * block, count = std::min(block, rows.rows - first);
    const Tensor<double> x = standardise(rows.middle_rows(first, count));
    kernels::gemm(rows_of(x), rows_of(weights), rows_of(scores).middle_rows(first, count));
  });
  return scores;
}

template class Neighbours<float>;
template class Neighbours<double>;
template Tensor<double> ridge_scores(const Features<float>&, const Tensor<float>&, Index, const RidgeRule&);
template Tensor<double> ridge_scores(const Features<double>&, const Tensor<double>&, Index, const RidgeRule&);

}  // namespace heed
