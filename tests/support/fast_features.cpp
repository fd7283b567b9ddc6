// Kernels of random features, hashes and softmax over columns.
#include "support/fast_kernel.h"

#include "heed/kernels/rows/favor.h"
#include "heed/kernels/rows/row_hash.h"
#include "heed/kernels/sums/softmax_columns.h"

namespace heed::test {

namespace {

constexpr double scale = 0.25, added = 1e-4;

/// Returns true if row r of the first array has a NaN.
bool has_nan(const Call& call, Index r) {
  const auto& x = call.given[0];
  for (Index c = 0; c < x.columns; ++c)
    if (std::isnan(x(r, c))) return true;
  return false;
}

double feature_bound(const Call& call, Index r, Index j) {
  const double e = call.results[0](r, j) - added, u_j = std::abs(scale * call.given[0](r, j));
  return e * (3e-7 + 2.4e-7 * (u_j + std::abs(call.given[1](0, r)) + call.given[2](0, r))) +
         2 * u * call.results[0](r, j);
}

double slope_bound(const Call& call, Index r, Index j) {
  return 2 * u * (call.given[0](r, j) + added) * std::abs(call.given[1](r, j));
}

}  // namespace

std::vector<FastKernel> fast_kernels_of_features() {
  return {fast_kernel(
              "favor_maxima",
              [](Index rows, Index m) {
                return std::vector<Array>{{rows, m}, {1, rows, Role::made}, {1, rows, Role::made}};
              },
              []<class T>(const std::vector<Matrix<T>>& m) {
                kernels::favor_maxima(scale, m[0], kernels::RowMaxima<T>{m[1].data, m[2].data});
              },
              [](const Call& call, std::size_t a, Index, Index r) {
                if (has_nan(call, r)) return unspecified;
                return a == 1 ? u * std::abs(call.results[1](0, r)) : 0;
              }),
          fast_kernel(
              "favor_features",
              [](Index rows, Index m) {
                return std::vector<Array>{
                    {rows, m, Role::changed}, {1, rows}, {1, rows, Role::read, Range::positive}, {1, rows, Role::made}};
              },
              [](const auto& m) { kernels::favor_features(scale, m[1].data, m[2].data, added, m[0], m[3].data); },
              [](const Call& call, std::size_t a, Index r, Index c) {
                if (a == 0) return feature_bound(call, r, c);
                const Index m = call.given[0].columns;
                return sum_over(m, [&](Index j) { return feature_bound(call, c, j); }) +
                       static_cast<double>(m) * u * call.results[3](0, c);
              }),
          fast_kernel(
              "favor_features_backward",
              [](Index rows, Index m) {
                return std::vector<Array>{
                    {rows, m, Role::read, Range::positive}, {rows, m, Role::changed}, {1, rows, Role::made}};
              },
              [](const auto& m) { kernels::favor_features_backward(added, m[0], m[1], m[2].data); },
              [](const Call& call, std::size_t a, Index r, Index c) {
                if (a == 1) return slope_bound(call, r, c);
                const Index m = call.given[0].columns;
                return static_cast<double>(m + 2) * sum_over(m, [&](Index j) { return slope_bound(call, c, j); });
              }),
          fast_kernel(
              "hash_rows",
              [](Index rows, Index n) {
                return std::vector<Array>{{rows, n}, {1, rows, Role::made}};
              },
              [](const auto& m) { kernels::hash_rows(m[0], m[1].data); },
              [](const Call& call, std::size_t, Index, Index r) { return has_nan(call, r) ? unspecified : 0.0; }),
          fast_kernel(
              "softmax_columns",
              [](Index rows, Index n) {
                return std::vector<Array>{{rows + 1, n}, {rows + 1, n, Role::made}};
              },
              [](const auto& m) { kernels::softmax_columns(m[0], m[1]); },
              [](const Call& call, std::size_t, Index r, Index c) {
                const auto& x = call.given[0];
                const double most = largest_over(x.rows, [&](Index row) { return x(row, c); });
                return call.results[1](r, c) *
                       (3e-7 + u * (static_cast<double>(x.rows) / 4 + std::abs(x(r, c) - most)));
              }),
          fast_kernel(
              "softmax_columns_backward",
              [](Index rows, Index n) {
                return std::vector<Array>{
                    {rows + 1, n, Role::read, Range::positive}, {rows + 1, n}, {rows + 1, n, Role::changed}};
              },
              [](const auto& m) { kernels::softmax_columns_backward(m[0], m[1], Update::accumulate, m[2]); },
              [](const Call& call, std::size_t, Index r, Index c) {
                const auto &y = call.given[0], &dy = call.given[1];
                const double sum = sum_over(y.rows, [&](Index row) { return std::abs(y(row, c) * dy(row, c)); });
                return static_cast<double>(y.rows + 3) * 2 * u * y(r, c) * (std::abs(dy(r, c)) + sum) +
                       2 * u * std::abs(call.given[2](r, c));
              })};
}

}  // namespace heed::test
