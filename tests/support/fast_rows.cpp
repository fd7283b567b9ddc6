// Element-wise and row-wise kernels.
#include "support/fast_kernel.h"

#include "heed/kernels/elements/activation.h"
#include "heed/kernels/elements/adamw.h"
#include "heed/kernels/elements/gate.h"
#include "heed/kernels/rows/layer_norm.h"
#include "heed/kernels/rows/rows.h"
#include "heed/kernels/rows/softmax.h"

namespace heed::test {

namespace {

/// Returns an element-wise kernel on n numbers.
template <class F, class Bound>
FastKernel elementwise(const std::string& name, const std::vector<std::pair<Role, Range>>& kinds, const F& call,
                       const Bound& bound) {
  const auto arrays = [kinds](Index, Index n) {
    std::vector<Array> all;
    for (const auto& [role, range] : kinds) all.push_back({1, n, role, range, false});
    return all;
  };
  FastKernel kernel = fast_kernel(name, arrays, call, bound);
  kernel.of_rows = false;
  return kernel;
}

// ---- Elements ----

std::vector<FastKernel> of_numbers() {
  const auto gelu = [](double x) { return 4e-7 * std::max(1.0, std::abs(x)); };
  return {elementwise(
              "gelu_forward", {{Role::read, Range::limits}, {Role::made, Range::all}},
              [](const auto& m) { kernels::gelu_forward(m[0].columns, m[0].data, m[1].data); },
              [=](const Call& call, std::size_t, Index, Index i) { return gelu(call.given[0](0, i)); }),
          elementwise(
              "gelu_backward",
              {{Role::read, Range::limits},
               {Role::read, Range::all},
               {Role::changed, Range::all},
               {Role::made, Range::all}},
              [](const auto& m) {
                kernels::gelu_backward(m[0].columns, m[0].data, m[1].data, Update::accumulate, m[2].data, m[3].data);
              },
              [=](const Call& call, std::size_t a, Index, Index i) {
                const double x = call.given[0](0, i);
                return a == 3 ? gelu(x) : 1e-6 * std::abs(call.given[1](0, i)) + 2 * u * std::abs(call.given[2](0, i));
              }),
          elementwise(
              "adamw",
              {{Role::changed, Range::all},
               {Role::read, Range::positive},
               {Role::changed, Range::positive},
               {Role::changed, Range::positive}},
              [](const auto& m) {
                const kernels::AdamWStep step{1e-3, 0.9, 0.999, 1e-8, 0.05, 0.271, 0.002997, 0.5};
                kernels::adamw(step, m[0].columns, m[0].data, m[1].data, m[2].data, m[3].data);
              },
              [](const Call& call, std::size_t a, Index, Index i) {
                const double m = call.results[2](0, i), v = call.results[3](0, i);
                if (a > 0) return 8 * u * std::abs(call.results[a](0, i));
                const double denominator = std::sqrt(v / 0.002997) + 1e-8, update = 1e-3 / 0.271 * m / denominator;
                return 8 * u * std::abs(update) + 2 * u * std::abs(call.given[0](0, i)) + 0x1p-148 / denominator;
              })};
}

// ---- Rows ----

/// Returns rows for kernels that take pointers to rows.
template <class T>
std::vector<kernels::RowTriple<T>> triples(const std::vector<Matrix<T>>& m) {
  std::vector<kernels::RowTriple<T>> rows;
  for (Index r = 0; r < m[0].rows; ++r) rows.push_back({m[0][r], m[1][r], m[2][r]});
  return rows;
}

std::vector<FastKernel> of_rows() {
  return {
      fast_kernel(
          "row_dots",
          [](Index rows, Index n) {
            return std::vector<Array>{{rows, n}, {rows, n}, {1, rows, Role::made}};
          },
          [](const auto& m) { kernels::row_dots(m[0], m[1], m[2].data); },
          [](const Call& call, std::size_t, Index, Index r) {
            const auto &a = call.given[0], &b = call.given[1];
            return static_cast<double>(a.columns) * 2 * u *
                   sum_over(a.columns, [&](Index i) { return std::abs(a(r, i) * b(r, i)); });
          }),
      fast_kernel(
          "row_dots_of_differences",
          [](Index rows, Index n) {
            return std::vector<Array>{{rows, n}, {rows, n}, {rows, n}, {1, rows, Role::made}};
          },
          [](const auto& m) {
            kernels::row_dots_of_differences(m[0].rows, m[0].columns, triples(m).data(), m[3].data);
          },
          [](const Call& call, std::size_t, Index, Index r) {
            const auto &a = call.given[0], &b = call.given[1], &c = call.given[2];
            return static_cast<double>(a.columns + 1) * 2 * u *
                   sum_over(a.columns, [&](Index i) { return std::abs(a(r, i) * (b(r, i) - c(r, i))); });
          }),
      fast_kernel(
          "weighted_rows",
          [](Index rows, Index n) {
            return std::vector<Array>{{1, rows + 1}, {rows + 1, n}, {1, n, Role::changed}};
          },
          []<class T>(const std::vector<Matrix<T>>& m) {
            std::vector<const T*> rows;
            for (Index r = 0; r < m[1].rows; ++r) rows.push_back(m[1][r]);
            kernels::weighted_rows(m[1].rows, m[1].columns, m[0].data, rows.data(), Update::accumulate, m[2].data);
          },
          [](const Call& call, std::size_t, Index, Index i) {
            const auto &weights = call.given[0], &rows = call.given[1];
            return static_cast<double>(rows.rows + 1) * 2 * u *
                   (std::abs(call.given[2](0, i)) +
                    sum_over(rows.rows, [&](Index r) { return std::abs(weights(0, r) * rows(r, i)); }));
          }),
      fast_kernel(
          "column_sums",
          [](Index rows, Index n) {
            return std::vector<Array>{{rows, n}, {1, n, Role::changed}};
          },
          [](const auto& m) { kernels::column_sums(m[0], Update::accumulate, m[1].data); },
          [](const Call& call, std::size_t, Index, Index i) {
            const auto& a = call.given[0];
            return static_cast<double>(a.rows + 1) * 2 * u *
                   (std::abs(call.given[1](0, i)) + sum_over(a.rows, [&](Index r) { return std::abs(a(r, i)); }));
          }),
      fast_kernel(
          "gate_forward",
          [](Index rows, Index n) {
            return std::vector<Array>{{rows, n}, {rows, n}, {rows, n, Role::made}};
          },
          [](const auto& m) { kernels::gate_forward(m[0], m[1], m[2]); },
          [](const Call& call, std::size_t a, Index r, Index c) {
            return (4e-7 + 4e-9 * std::abs(call.given[0](r, c))) * std::abs(call.results[a](r, c));
          }),
      fast_kernel(
          "gate_backward",
          [](Index rows, Index n) {
            return std::vector<Array>{{rows, n}, {rows, n}, {rows, n}, {rows, n, Role::changed}, {rows, n, Role::made}};
          },
          [](const auto& m) { kernels::gate_backward(m[0], m[1], m[2], Update::accumulate, m[3], m[4]); },
          [](const Call& call, std::size_t a, Index r, Index c) {
            const double relative = 4e-7 + 4e-9 * std::abs(call.given[0](r, c)), dy = std::abs(call.results[4](r, c));
            return a == 4 ? relative * dy
                          : 3 * relative * dy * std::abs(call.given[1](r, c)) + 2 * u * std::abs(call.given[3](r, c));
          })};
}

// ---- Softmax and layer normalisation ----

/// Returns a bound on the relative error of the softmax of score c in row r.
double softmax_error(const Call& call, double scale, Index r, Index c) {
  const auto& s = call.given[0];
  const double most = largest_over(s.columns, [&](Index j) { return scale * s(r, j); });
  return 3e-7 + u * (static_cast<double>(s.columns) / 4 + std::abs(scale * s(r, c) - most) + std::abs(scale * s(r, c)));
}

std::vector<FastKernel> of_attention() {
  constexpr double scale = 0.35355339;
  const auto scores = [](Index rows, Index n) {
    return std::vector<Array>{{rows, n, Role::changed}, {rows, 2, Role::made, Range::all, false}};
  };
  const auto softmax_bound = [](double scale) {
    return [scale](const Call& call, std::size_t a, Index r, Index c) {
      const Index n = call.given[0].columns;
      if (a == 0) return call.results[0](r, c) * softmax_error(call, scale, r, c);
      if (c == 0 && std::isnan(call.results[1](r, 1))) return unspecified;
      const double most = std::abs(call.results[1](r, 0));
      return c == 0 ? 2 * u * most
                    : call.results[1](r, 1) * (3e-7 + u * (static_cast<double>(n) / 4 + 2 * most + 1)) +
                          u * sum_over(n, [&](Index j) { return std::abs(scale * call.given[0](r, j)); });
    };
  };
  return {fast_kernel(
              "softmax_rows", scores, [](const auto& m) { kernels::softmax_rows(m[0], m[1]); }, softmax_bound(1)),
          fast_kernel(
              "attention_softmax", scores,
              [](const auto& m) {
                kernels::attention_softmax({scale, true, 1}, m[0], m[1]);
              },
              softmax_bound(scale)),
          fast_kernel(
              "attention_softmax_part",
              [](Index rows, Index n) {
                return std::vector<Array>{{rows, n, Role::changed},
                                          {rows, 2, Role::changed, Range::positive, false},
                                          {rows, 5, Role::changed}};
              },
              [](const auto& m) {
                kernels::attention_softmax_part({scale, true, 1}, m[0], Update::accumulate, m[1], m[2]);
              },
              [](const Call& call, std::size_t a, Index r, Index c) {
                const double sum = call.results[1](r, 1), most = call.results[1](r, 0), before = call.given[1](r, 0);
                if (std::isnan(sum)) return unspecified;
                const auto error = [&](double x) { return 3e-7 + u * (std::abs(x) + std::abs(x - most) + 1); };
                if (a == 0) return call.results[0](r, c) * error(scale * call.given[0](r, c));
                if (a == 2) return std::abs(call.results[2](r, c)) * error(before);
                if (c == 0) return 2 * u * std::abs(most);
                const Index n = call.given[0].columns;
                return sum * (u * static_cast<double>(n + 4) + error(before)) +
                       sum_over(n, [&](Index j) { return call.results[0](r, j) * error(scale * call.given[0](r, j)); });
              }),
          fast_kernel(
              "attention_softmax_again",
              [](Index rows, Index n) {
                return std::vector<Array>{{rows, n, Role::changed}, {rows, 2, Role::read, Range::positive, false}};
              },
              [](const auto& m) { kernels::attention_softmax_again({scale}, m[0], m[1]); },
              [](const Call& call, std::size_t, Index r, Index c) {
                const double x = scale * call.given[0](r, c), most = call.given[1](r, 0);
                return call.results[0](r, c) * (4e-7 + u * (std::abs(x) + std::abs(x - most)));
              }),
          fast_kernel(
              "attention_softmax_backward_from_sums",
              [](Index rows, Index n) {
                return std::vector<Array>{{rows, n, Role::read, Range::positive},
                                          {rows, 1, Role::read, Range::all, false},
                                          {rows, n, Role::changed}};
              },
              [](const auto& m) { kernels::attention_softmax_backward_from_sums({scale}, m[0], m[1].data, m[2]); },
              [](const Call& call, std::size_t, Index r, Index c) {
                return scale * call.given[0](r, c) * 4 * 2 * u *
                       (std::abs(call.given[2](r, c)) + std::abs(call.given[1](r, 0)));
              }),
          fast_kernel(
              "attention_softmax_backward",
              [](Index rows, Index n) {
                return std::vector<Array>{{rows, n, Role::read, Range::positive}, {rows, n, Role::changed}};
              },
              [](const auto& m) { kernels::attention_softmax_backward({scale}, m[0], m[1]); },
              [](const Call& call, std::size_t, Index r, Index c) {
                const auto &p = call.given[0], &dp = call.given[1];
                const double sum = sum_over(p.columns, [&](Index j) { return std::abs(p(r, j) * dp(r, j)); });
                return scale * p(r, c) * static_cast<double>(p.columns + 4) * 2 * u * (std::abs(dp(r, c)) + sum);
              })};
}

std::vector<FastKernel> of_norms() {
  const auto xn = [](const Call& call, std::size_t x, std::size_t statistics, Index r, Index i) {
    return (call.given[x](r, i) - call.results[statistics](r, 0)) * call.results[statistics](r, 1);
  };
  // Error bound of a kernel whose arrays are gamma, beta, x, residual, y and statistics.
  const auto forward_bound = [=](const Call& call, std::size_t a, Index r, Index c) {
    const auto& x = call.given[2];
    const double mean = call.results[5](r, 0), scale = call.results[5](r, 1);
    const double most = largest_over(x.columns, [&](Index i) { return std::abs(x(r, i)); });
    const double roundings = static_cast<double>(x.columns + 8) * u;
    if (a == 5) return c == 0 ? roundings * most : roundings * scale * (1 + most * scale);
    const double normed = std::abs((x(r, c) - mean) * scale);
    return roundings * (1 + normed) * (1 + most * scale) * std::abs(call.given[0](0, c)) +
           4 * u * (std::abs(call.given[1](0, c)) + std::abs(call.given[3](r, c)));
  };
  return {
      fast_kernel(
          "layer_norm_forward",
          [](Index rows, Index n) {
            return std::vector<Array>{
                {1, n}, {1, n}, {rows, n}, {rows, n}, {rows, n, Role::made}, {rows, 2, Role::made, Range::all, false}};
          },
          []<class T>(const std::vector<Matrix<T>>& m) {
            kernels::layer_norm_forward(kernels::RowNorm<T>{m[0].data, m[1].data, 1e-6}, m[2], m[3], m[4], m[5]);
          },
          forward_bound),
      fast_kernel(
          "layer_norm_again",
          [](Index rows, Index n) {
            return std::vector<Array>{
                {1, n}, {1, n}, {rows, n}, {rows, 2, Role::read, Range::positive, false}, {rows, n, Role::made}};
          },
          []<class T>(const std::vector<Matrix<T>>& m) {
            kernels::layer_norm_again(kernels::RowNorm<T>{m[0].data, m[1].data, 1e-6}, m[2], m[3], m[4]);
          },
          [=](const Call& call, std::size_t, Index r, Index c) {
            return 8 * u * (std::abs(xn(call, 2, 3, r, c) * call.given[0](0, c)) + std::abs(call.given[1](0, c)));
          }),
      fast_kernel(
          "layer_norm_backward",
          [](Index rows, Index n) {
            return std::vector<Array>{
                {1, n}, {rows, n}, {rows, 2, Role::read, Range::positive, false}, {rows, n}, {rows, n, Role::changed}};
          },
          [](const auto& m) { kernels::layer_norm_backward(m[0].data, m[1], m[2], m[3], Update::accumulate, m[4]); },
          [=](const Call& call, std::size_t, Index r, Index c) {
            const Index n = call.given[1].columns;
            const auto g = [&](Index i) { return std::abs(call.given[0](0, i) * call.given[3](r, i)); };
            const double mean = sum_over(n, g) / static_cast<double>(n);
            const double along =
                sum_over(n, [&](Index i) { return g(i) * std::abs(xn(call, 1, 2, r, i)); }) / static_cast<double>(n);
            return static_cast<double>(n + 8) * 2 * u * call.given[2](r, 1) *
                       (g(c) + mean + std::abs(xn(call, 1, 2, r, c)) * along) +
                   2 * u * std::abs(call.given[4](r, c));
          }),
      fast_kernel(
          "layer_norm_parameter_gradients",
          [](Index rows, Index n) {
            return std::vector<Array>{
                {rows, n}, {rows, 2, Role::read, Range::positive, false}, {rows, n}, {2, n, Role::changed}};
          },
          [](const auto& m) { kernels::layer_norm_parameter_gradients(m[0], m[1], m[2], Update::accumulate, m[3]); },
          [=](const Call& call, std::size_t, Index which, Index c) {
            const auto& dy = call.given[2];
            const double sum = sum_over(dy.rows, [&](Index r) {
              return std::abs(dy(r, c)) * (which == 0 ? std::abs(xn(call, 0, 1, r, c)) : 1);
            });
            return static_cast<double>(dy.rows + 4) * 2 * u * (sum + std::abs(call.given[3](which, c)));
          })};
}

}  // namespace

std::vector<FastKernel> fast_kernels_of_rows() {
  std::vector<FastKernel> all;
  for (const auto& group : {of_numbers(), of_rows(), of_attention(), of_norms()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace heed::test
