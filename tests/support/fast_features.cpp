// Kernels of single mechanisms: softmax over the tokens, random features, hashes.
#include "support/fast_kernel.h"

#include "heed/kernels/favor.h"
#include "heed/kernels/row_hash.h"
#include "heed/kernels/softmax_columns.h"

namespace heed::test {

namespace {

std::vector<FastKernel> of_columns() {
  return {fast_kernel(
              "softmax_columns",
              [](Index rows, Index n) {
                return std::vector<Array>{{rows + 1, n}, {rows + 1, n, Role::made}};
              },
              [](const auto& m) { kernels::softmax_columns(m[0], m[1]); },
              [](const Call& call, std::size_t, Index r, Index c) {
                const auto& x = call.given[0];
                const double most = largest_over(x.rows, [&](Index i) { return x(i, c); });
                return call.results[1](r, c) * (3e-7 + u * (static_cast<double>(x.rows) / 4 + most - x(r, c)));
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
                const double sum = sum_over(y.rows, [&](Index i) { return std::abs(y(i, c) * dy(i, c)); });
                return static_cast<double>(y.rows + 3) * 2 * u * y(r, c) * (std::abs(dy(r, c)) + sum) +
                       2 * u * std::abs(call.given[2](r, c));
              })};
}

std::vector<FastKernel> of_features() {
  constexpr double scale = 0.5, added = 1e-4;
  // In an array of U, c, h and sums: of a feature.
  const auto feature_bound = [=](const Call& call, Index r, Index j) {
    const double feature = call.results[0](r, j);
    const double argument =
        std::abs(scale * call.given[0](r, j)) + std::abs(call.given[1](0, r)) + std::abs(call.given[2](0, r));
    return (feature - added) * (3e-7 + 4 * u * argument) + 2 * u * feature;
  };
  // In an array of F, dF and sums: what the gradient's error is relative to.
  const auto magnitude = [=](const Call& call, Index r, Index j) {
    return (call.given[0](r, j) + added) * std::abs(call.given[1](r, j));
  };
  return {fast_kernel(
              "favor_maxima",
              [](Index rows, Index n) {
                return std::vector<Array>{
                    {rows, n, Role::read, Range::finite}, {1, rows, Role::made}, {1, rows, Role::made}};
              },
              []<class T>(const std::vector<Matrix<T>>& m) {
                kernels::favor_maxima(scale, m[0], kernels::RowMaxima<T>{m[1].data, m[2].data});
              },
              [](const Call& call, std::size_t a, Index, Index r) {
                return a == 1 ? 2 * u * std::abs(call.results[1](0, r)) : 0;
              }),
          fast_kernel(
              "favor_features",
              [](Index rows, Index n) {
                return std::vector<Array>{
                    {rows, n, Role::changed}, {1, rows}, {1, rows, Role::read, Range::positive}, {1, rows, Role::made}};
              },
              []<class T>(const std::vector<Matrix<T>>& m) {
                kernels::favor_features(scale, m[1].data, m[2].data, added, m[0], m[3].data);
              },
              [=](const Call& call, std::size_t a, Index r, Index c) {
                if (a == 0) return feature_bound(call, r, c);
                const Index n = call.given[0].columns;
                return sum_over(n, [&](Index j) { return feature_bound(call, c, j); }) +
                       static_cast<double>(n) * u * call.results[3](0, c);
              }),
          fast_kernel(
              "favor_features_backward",
              [](Index rows, Index n) {
                return std::vector<Array>{
                    {rows, n, Role::read, Range::positive}, {rows, n, Role::changed}, {1, rows, Role::made}};
              },
              [](const auto& m) { kernels::favor_features_backward(added, m[0], m[1], m[2].data); },
              [=](const Call& call, std::size_t a, Index r, Index c) {
                if (a == 1) return 4 * u * magnitude(call, r, c);
                const Index n = call.given[0].columns;
                return static_cast<double>(n + 4) * u * sum_over(n, [&](Index j) { return magnitude(call, c, j); });
              }),
          fast_kernel(
              "hash_rows",
              [](Index rows, Index n) {
                return std::vector<Array>{{rows, n, Role::read, Range::finite}, {1, rows, Role::made}};
              },
              [](const auto& m) { kernels::hash_rows(m[0], m[1].data); },
              [](const Call&, std::size_t, Index, Index) { return 0.0; })};
}

}  // namespace

std::vector<FastKernel> fast_kernels_of_mechanisms() {
  std::vector<FastKernel> all = of_columns();
  for (const FastKernel& kernel : of_features()) all.push_back(kernel);
  return all;
}

}  // namespace heed::test
