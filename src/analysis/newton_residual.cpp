#include "heed/analysis/newton_residual.h"

#include "heed/kernels/solvers/singular_values.h"

#include <algorithm>
#include <limits>

namespace heed {

namespace {

/// Returns the largest singular value, infinity if an element is not finite; overwrites the matrix.
double spectral_norm(Index m, std::vector<double>& matrix, std::vector<double>& values) {
  if (!std::all_of(matrix.begin(), matrix.end(), [](double x) { return std::isfinite(x); }))
    return std::numeric_limits<double>::infinity();
  kernels::singular_values(Matrix(matrix.data(), m, m), values.data());
  return values[0];
}

}  // namespace

Index NewtonResidual::steps_below(double threshold) const {
  const auto above = std::find_if(relative.rbegin(), relative.rend(), [&](double r) { return !(r < threshold); });
  const Index steps = above.base() - relative.begin();
  return steps < static_cast<Index>(relative.size()) ? steps : -1;
}

template <class T>
NewtonResidual newton_residual(const kernels::NewtonInverse& newton, const T* A) {
  const Index m = newton.m, n = newton.elements();
  const auto elements = static_cast<std::size_t>(n);
  std::vector<double> exact(A, A + n), iterate(elements), product(elements), difference(exact);
  std::vector<double> values(static_cast<std::size_t>(m));
  const auto matrix = [m](std::vector<double>& numbers) { return Matrix<double>(numbers.data(), m, m); };
  const double norm = spectral_norm(m, difference, values);
  Buffer<T> inverse(n);
  const LaidOut<kernels::NewtonScratch, T> scratch(newton);
  NewtonResidual residual;
  const auto observe = [&](Index, Matrix<const T> X) {
    std::copy_n(X.data, n, iterate.begin());
    kernels::gemm(matrix(exact), matrix(iterate), matrix(product));
    kernels::gemm(matrix(product), matrix(exact), matrix(difference));
    for (std::size_t i = 0; i < elements; ++i) difference[i] -= exact[i];
    for (Index i = 0; i < m; ++i) matrix(product)(i, i) -= 1;
    residual.relative.push_back(spectral_norm(m, difference, values) / norm);
    residual.identity.push_back(spectral_norm(m, product, values));
  };
  kernels::newton_inverse(newton, Matrix(A, m, m), *scratch, Matrix(inverse.data(), m, m), observe);
  return residual;
}

template NewtonResidual newton_residual(const kernels::NewtonInverse&, const float*);
template NewtonResidual newton_residual(const kernels::NewtonInverse&, const double*);

GramCondition gram_condition(Index m, const double* A) {
  std::vector<double> copy(A, A + m * m), values(static_cast<std::size_t>(m));
  const Matrix<double> not_needed;  // empty: no backtracking
  const double sum = kernels::newton_factor({.m = m}, Matrix(A, m, m), not_needed).norm;
  kernels::singular_values(Matrix(copy.data(), m, m), values.data());
  return {sum, values.front(), values.back()};
}

}  // namespace heed
