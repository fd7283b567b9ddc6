#include "heed/analysis/newton_residual.h"

#include "heed/kernels/singular_values.h"

#include <algorithm>
#include <limits>

namespace heed {

namespace {

/// The largest singular value; overwrites the matrix.
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
  const std::vector<double> exact(A, A + n);
  std::vector<double> iterate(elements), product(elements), difference(elements), values(static_cast<std::size_t>(m));
  std::vector<T> X(elements), scratch(static_cast<std::size_t>(newton.forward_scratch()));
  difference = exact;
  const double norm = spectral_norm(m, difference, values);
  NewtonResidual residual;
  kernels::newton_inverse(newton, A, X.data(), scratch.data(), [&](Index, const T* X_k) {
    std::copy(X_k, X_k + n, iterate.begin());
    kernels::gemm(Transpose::no, Transpose::no, m, m, m, exact.data(), m, iterate.data(), m, Update::assign,
                  product.data(), m);
    kernels::gemm(Transpose::no, Transpose::no, m, m, m, product.data(), m, exact.data(), m, Update::assign,
                  difference.data(), m);
    for (std::size_t i = 0; i < elements; ++i) difference[i] -= exact[i];
    for (Index i = 0; i < m; ++i) product[static_cast<std::size_t>(i * m + i)] -= 1;
    residual.relative.push_back(spectral_norm(m, difference, values) / norm);
    residual.identity.push_back(spectral_norm(m, product, values));
  });
  return residual;
}

template NewtonResidual newton_residual(const kernels::NewtonInverse&, const float*);
template NewtonResidual newton_residual(const kernels::NewtonInverse&, const double*);

GramCondition gram_condition(Index m, const double* A) {
  std::vector<double> copy(A, A + m * m), values(static_cast<std::size_t>(m)), unused(copy.size());
  const double sum = kernels::newton_factor({.m = m}, A, unused.data()).norm;
  kernels::singular_values(Matrix(copy.data(), m, m), values.data());
  return {sum, values.front(), values.back()};
}

}  // namespace heed
