// Kernels on all pairs of rows of two matrices.
#include "support/fast_kernel.h"

#include "heed/kernels/sums/exp_sums.h"
#include "heed/kernels/distances/gaussian.h"
#include "heed/kernels/distances/l1_distance.h"
#include "heed/kernels/solvers/newton_inverse.h"

namespace heed::test {

namespace {

// ---- Sums of exponentials ----

std::vector<FastKernel> of_exponentials() {
  return {fast_kernel(
              "exp_sums_of",
              [](Index rows, Index n) {
                return std::vector<Array>{{rows + 1, n},      {rows + 1, n},      {1, rows + 1},
                                          {1, n, Role::made}, {1, n, Role::made}, {1, n, Role::made}};
              },
              []<class T>(const std::vector<Matrix<T>>& m) {
                kernels::exp_sums_of(kernels::KeysAndValues<const T>{m[0], m[1]}, m[2].data,
                                     kernels::ExpSums<T>{m[3], m[4], m[5]});
              },
              [](const Call& call, std::size_t a, Index, Index c) {
                const auto &k = call.given[0], &v = call.given[1], &bias = call.given[2];
                const double scale = std::abs(call.results[3](0, c));
                if (a == 3) return std::isnan(call.results[4](0, c)) ? unspecified : u * scale;
                const double biases = largest_over(k.rows, [&](Index s) { return std::abs(bias(0, s)); });
                // The sums are relative to the scale, which is rounded to float in one version and to double in the
                // other.
                const double relative = 4e-7 + 2 * u * (static_cast<double>(k.rows) + biases + scale);
                return relative * sum_over(k.rows, [&](Index s) {
                         return std::exp(k(s, c) + bias(0, s) - call.results[3](0, c)) *
                                (a == 4 ? 1 : std::abs(v(s, c)));
                       });
              }),
          fast_kernel(
              "exp_sums_at_key",
              [](Index rows, Index n) {
                return std::vector<Array>{{rows, n},
                                          {rows, n},
                                          {1, n},
                                          {1, n},
                                          {1, n},
                                          {1, n},
                                          {rows, n, Role::changed},
                                          {rows, n, Role::changed}};
              },
              []<class T>(const std::vector<Matrix<T>>& m) {
                for (Index r = 0; r < m[0].rows; ++r) {
                  const auto row = [r](const Matrix<T>& of) { return of.middle_rows(r, 1); };
                  kernels::exp_sums_at_key(kernels::KeysAndValues<const T>{row(m[0]), row(m[1])},
                                           kernels::ExpSums<const T>{m[2], m[3], m[4]}, Update::accumulate,
                                           kernels::KeysAndValues<T>{row(m[6]), row(m[7])}, m[5].data);
                }
              },
              [](const Call& call, std::size_t a, Index r, Index c) {
                const auto& g = call.given;
                const double x = g[0](r, c) + g[2](0, c), mass = std::abs(g[3](0, c));
                const double of_e = a == 7 ? mass : std::abs(g[1](r, c) - g[5](0, c)) * mass + std::abs(g[4](0, c));
                return std::exp(x) * of_e * (5e-7 + 6.5e-8 * std::abs(x)) + 6e-38 * of_e +
                       2 * u * std::abs(call.results[a](r, c));
              }),
          fast_kernel(
              "exp_of_row",
              [](Index rows, Index n) {
                return std::vector<Array>{{1, rows + n}, {1, 1, Role::made}, {1, rows + n, Role::made}};
              },
              []<class T>(const std::vector<Matrix<T>>& m) {
                // Excludes part of the row on each side.
                const Index n = m[0].columns, first = n / 5, last = n - n / 7;
                m[1](0, 0) = kernels::exp_of_row(Matrix<const T>(m[0]), first, last, m[2]);
              },
              [](const Call& call, std::size_t a, Index, Index c) {
                const Matrix<const double> x = call.given[0];
                const Index first = x.columns / 5, last = x.columns - x.columns / 7;
                const bool spoilt = std::isnan(sum_over(last - first, [&](Index s) { return x(0, first + s); }));
                if (a == 1) return spoilt ? unspecified : 0.0;
                if (c < first || c >= last) return 0.0;
                if (spoilt && !std::isnan(x(0, c))) return unspecified;
                return call.results[2](0, c) * (3e-7 + 6.5e-8 * std::abs(x(0, c) - call.results[1](0, 0)));
              }),
          fast_kernel(
              "exp_of_columns",
              [](Index rows, Index n) {
                return std::vector<Array>{
                    {rows + 1, n}, {rows + 1, n}, {1, n}, {1, n, Role::made}, {rows + 1, 2 * n, Role::made}};
              },
              []<class T>(const std::vector<Matrix<T>>& m) {
                kernels::exp_of_columns(kernels::KeysAndValues<const T>{m[0], m[1]}, m[3].data, m[4], m[2].data);
              },
              [](const Call& call, std::size_t a, Index s, Index c) {
                const Matrix<const double> k = call.given[0];
                const Index channel = c % k.columns;
                const bool spoilt = std::isnan(sum_over(k.rows, [&](Index key) { return k(key, channel); }));
                if (a == 3) return spoilt ? unspecified : 0.0;
                if (spoilt && !std::isnan(k(s, channel))) return unspecified;
                const double distance = std::abs(k(s, channel) - call.results[3](0, channel));
                return std::abs(call.results[4](s, c)) * (3e-7 + 6.5e-8 * distance);
              })};
}

// ---- Pairs of rows ----

constexpr Index others = 7;  // rows of the second matrix

/// Returns arrays [rows, n] and [others, n], and the result [rows, others].
std::vector<Array> pairs(Index rows, Index n) { return {{rows, n}, {others, n}, {rows, others, Role::made}}; }

/// Returns the sum over the columns of f(x, w) for row r of array 0 and row t of array 1.
double over_pair(const Call& call, Index r, Index t, const auto& f) {
  const auto &x = call.given[0], &w = call.given[1];
  return sum_over(x.columns, [&](Index i) { return f(x(r, i), w(t, i)); });
}

template <class T>
void plain_gemm(const Matrix<T>& a, const Operand<T>& b, const Matrix<T>& c) {
  if constexpr (std::is_same_v<T, double>)
    kernels::reference::gemm(a, b, Update::assign, c);  // not BLAS
  else
    kernels::gemm(a, b, Update::assign, c);
}

std::vector<FastKernel> of_pairs() {
  const auto distance = [](double x, double w) { return std::abs(x - w); };
  const auto length = [](double x, double w) { return std::abs(x) + std::abs(w); };
  const auto product = [](double x, double w) { return std::abs(x * w); };
  std::vector<FastKernel> all{
      fast_kernel(
          "gemm", pairs, []<class T>(const std::vector<Matrix<T>>& m) { plain_gemm<T>(m[0], transposed(m[1]), m[2]); },
          [=](const Call& call, std::size_t, Index r, Index t) {
            return static_cast<double>(call.given[0].columns) * 2 * u * over_pair(call, r, t, product);
          }),
      // One step, from X = A / 8. Compares D + D^T and dA + dA^T, since only the symmetric parts of D and dA are
      // specified.
      fast_kernel(
          "undo_newton_steps",
          [](Index, Index n) {
            const Index m = std::min<Index>(n, 9);  // each bound costs m^2; newton_inverse tests larger sizes
            return std::vector<Array>{{m, m, Role::read, Range::finite},
                                      {m, m, Role::changed, Range::finite, false},
                                      {m, m, Role::made, Range::all, false}};
          },
          []<class T>(const std::vector<Matrix<T>>& m) {
            const Index n = m[0].rows;
            const kernels::NewtonInverse newton{.m = n, .iterations = 1};
            const LaidOut<kernels::NewtonBackwardScratch, T> laid_out(newton);
            const kernels::NewtonBackwardScratch<T>& scratch = *laid_out;
            Buffer<T> numbers(n * n);
            const Matrix<T> A(numbers.data(), n, n), X = scratch.iterate(0);
            for (Index i = 0; i < n; ++i)
              for (Index j = 0; j < n; ++j) A(i, j) = m[0](std::min(i, j), std::max(i, j)), X(i, j) = A(i, j) / 8;
            kernels::gemm(X, A, scratch.product(0));
            kernels::undo_newton_steps(newton, Matrix<const T>(A), m[1], scratch, m[2]);
            for (const Matrix<T>& result : {m[1], m[2]})
              for (Index i = 0; i < n; ++i)
                for (Index j = 0; j <= i; ++j) result(i, j) = result(j, i) = result(i, j) + result(j, i);
          },
          [](const Call& call, std::size_t a, Index i, Index j) {
            const auto& D = call.given[1];
            const auto A = [&](Index r, Index c) { return std::abs(call.given[0](std::min(r, c), std::max(r, c))); };
            const auto both = [&](Index r, Index c) { return std::abs(D(r, c)) + std::abs(D(c, r)); };
            const Index n = D.rows;
            const double sum = sum_over(n, [&](Index k) {
              return sum_over(n, [&](Index l) {
                return a == 2 ? A(i, k) * both(k, l) * A(l, j) / 64
                              : (A(i, k) * A(k, l) * both(l, j) + both(i, k) * A(k, l) * A(l, j)) / 8;
              });
            });
            return 2 * u * (static_cast<double>(2 * n + 4) * sum + (a == 2 ? 0 : 4 * both(i, j)));
          }),
      fast_kernel(
          "addmm",
          [](Index rows, Index n) {
            return std::vector<Array>{{rows, n}, {others, n}, {rows, others, Role::made}, {1, others}, {rows, others}};
          },
          []<class T>(const std::vector<Matrix<T>>& m) {
            kernels::addmm<T>(m[0], transposed(m[1]), m[3].data, m[4], m[2]);
          },
          [=](const Call& call, std::size_t, Index r, Index t) {
            return static_cast<double>(call.given[0].columns + 2) * 2 * u *
                   (over_pair(call, r, t, product) + std::abs(call.given[3](0, t)) + std::abs(call.given[4](r, t)));
          }),
      fast_kernel(
          "squared_distances", pairs, [](const auto& m) { kernels::squared_distances(m[0], m[1], m[2]); },
          [](const Call& call, std::size_t a, Index r, Index t) {
            return static_cast<double>(call.given[0].columns + 2) * 2 * u * call.results[a](r, t);
          }),
      fast_kernel(
          "gaussian_backward",
          [](Index rows, Index n) {
            return std::vector<Array>{
                {rows, n},      {others, n, Role::read},  {rows, others, Role::read, Range::positive},
                {rows, others}, {rows, n, Role::changed}, {others, n, Role::changed}};
          },
          []<class T>(const std::vector<Matrix<T>>& m) {
            kernels::gaussian_backward(kernels::GaussianMatrix<T>{m[0], m[1], 0.2, m[2]}, m[3], Update::accumulate,
                                       m[4], Update::accumulate, m[5]);
          },
          [](const Call& call, std::size_t a, Index r, Index c) {
            const auto &x = call.given[0], &y = call.given[1];
            const bool of_x = a == 4;
            const double sum = sum_over(of_x ? y.rows : x.rows, [&](Index other) {
              const Index i = of_x ? r : other, j = of_x ? other : r;
              return std::abs(0.4 * call.given[2](i, j) * call.given[3](i, j) * (x(i, c) - y(j, c)));
            });
            return static_cast<double>((of_x ? y.rows : x.rows) + 5) * 2 * u * (sum + std::abs(call.given[a](r, c)));
          }),
      fast_kernel(
          "negative_l1", pairs, [](const auto& m) { kernels::negative_l1(m[0], m[1], m[2]); },
          [=](const Call& call, std::size_t, Index r, Index t) {
            return static_cast<double>(call.given[0].columns) * 2 * u * over_pair(call, r, t, distance);
          }),
      fast_kernel(
          "negative_l1_by_maxima",
          [](Index rows, Index n) {
            return std::vector<Array>{{rows, n}, {others, n}, {rows, others, Role::made}, {1, others}};
          },
          [](const auto& m) { kernels::negative_l1_by_maxima(m[0], m[1], m[3].data, m[2]); },
          [=](const Call& call, std::size_t, Index r, Index t) {
            return static_cast<double>(call.given[0].columns) * 4 * u * over_pair(call, r, t, length) +
                   6 * u * std::abs(call.given[3](0, t));
          })};
  for (const auto& [gradient, what] : {std::pair{DistanceGradient::sign, "sign"},
                                       {DistanceGradient::hardtanh, "hardtanh"},
                                       {DistanceGradient::full, "full"}})
    all.push_back(fast_kernel(
        std::string("negative_l1_gradient ") + what,
        [](Index rows, Index n) {
          return std::vector<Array>{{rows, n, Role::read, Range::finite},
                                    {others, n, Role::read, Range::finite},
                                    {rows, others},
                                    {rows, n, Role::changed}};
        },
        [gradient = gradient]<class T>(const std::vector<Matrix<T>>& m) {
          kernels::negative_l1_gradient(gradient, m[0], m[1], Operand<T>(m[2]), Update::accumulate, m[3]);
        },
        [gradient = gradient](const Call& call, std::size_t, Index r, Index c) {
          const auto &x = call.given[0], &w = call.given[1], &g = call.given[2];
          const double sum = sum_over(w.rows, [&](Index t) {
            const bool full = gradient == DistanceGradient::full;
            return std::abs(g(r, t)) * (full ? std::abs(w(t, c)) + std::abs(x(r, c)) : 1);
          });
          return static_cast<double>(w.rows + 3) * 2 * u * (sum + std::abs(call.given[3](r, c)));
        }));
  return all;
}

}  // namespace

std::vector<FastKernel> fast_kernels_of_pairs() {
  std::vector<FastKernel> all;
  for (const auto& group : {of_exponentials(), of_pairs()}) all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace heed::test
