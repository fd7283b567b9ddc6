// Products in Nystroem's form, compared with the explicit matrix and with finite differences.
#include "heed/base/random.h"
#include "heed/cost/counted.h"
#include "heed/kernels/products/nystrom.h"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace heed;

namespace {

constexpr Index m = 2, n = 5, e = 3;

template <class T>
std::vector<T> numbers(Index count, const std::string& stream) {
  std::vector<T> x(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i) x[i] = T(RandomStream(23).derive(stream).normal(i));
  return x;
}

template <class T>
struct Product {
  std::vector<T> P = numbers<T>(m * n, "P"), X = numbers<T>(m * m, "X"), v = numbers<T>(n * e, "v");
  std::vector<T> dout = numbers<T>(n * e, "dout"), Z = std::vector<T>(m * e), Y = Z, out = std::vector<T>(n * e);
  std::vector<T> dP = std::vector<T>(m * n, T(1)), dX = std::vector<T>(m * m, T(1)), dv = std::vector<T>(n * e, T(1));
  std::vector<T> dZ = std::vector<T>(m * e), dY = dZ;

  static Matrix<T> matrix(std::vector<T>& x, Index rows) {
    return {x.data(), rows, static_cast<Index>(x.size()) / rows};
  }
  kernels::NystromProduct<T> product() {
    return {matrix(P, m), matrix(X, m), matrix(v, n), matrix(Z, m), matrix(Y, m)};
  }
  void forward() { kernels::nystrom_product(product(), matrix(out, n)); }
  void backward(Update update, bool gradient_of_v) {
    kernels::nystrom_product_backward<T>(product(), matrix(dout, n),
                                         {update, matrix(dP, m), matrix(dX, m), update,
                                          gradient_of_v ? matrix(dv, n) : Matrix<T>{}, matrix(dZ, m), matrix(dY, m)});
  }
};

/// Returns <dout, out>.
double loss(Product<double>& product) {
  product.forward();
  double sum = 0;
  for (Index i = 0; i < n * e; ++i) sum += product.dout[i] * product.out[i];
  return sum;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nystrom)

BOOST_AUTO_TEST_CASE(it_is_the_product_with_the_whole_matrix) {
  Product<double> product;
  product.forward();
  for (Index i = 0; i < n; ++i)
    for (Index c = 0; c < e; ++c) {
      double sum = 0;
      for (Index j = 0; j < n; ++j)
        for (Index a = 0; a < m; ++a)
          for (Index b = 0; b < m; ++b)
            sum += product.P[a * n + i] * product.X[a * m + b] * product.P[b * n + j] * product.v[j * e + c];
      BOOST_TEST(std::abs(product.out[i * e + c] - sum) < 1e-13);
    }
}

// The loss is quadratic in P and linear in X and v: central differences of any width are exact up to rounding.
BOOST_AUTO_TEST_CASE(gradients_are_differences_and_are_added_when_asked) {
  for (const Update update : {Update::assign, Update::accumulate}) {
    Product<double> product;
    product.forward();
    product.backward(update, true);
    const auto check = [&](std::vector<double>& x, const std::vector<double>& dx) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double before = x[i];
        x[i] = before + 1;
        const double up = loss(product);
        x[i] = before - 1;
        const double down = loss(product);
        x[i] = before;
        BOOST_TEST(std::abs(dx[i] - (up - down) / 2 - (update == Update::accumulate)) < 1e-12);
      }
    };
    check(product.P, product.dP);
    check(product.X, product.dX);
    check(product.v, product.dv);
  }
}

BOOST_AUTO_TEST_CASE(counts) {
  Product<Counted> product;
  const auto counted = [](const auto& run) {
    Counted::tally() = {};
    run();
    return Counted::tally();
  };
  const Cost cost = kernels::nystrom_product_cost(m, n, e, false);
  BOOST_TEST((counted([&] { product.forward(); }) == cost.forward));
  BOOST_TEST((counted([&] { product.backward(Update::assign, true); }) == cost.backward));
  BOOST_TEST((counted([&] { product.backward(Update::accumulate, false); }) ==
              kernels::nystrom_product_cost(m, n, e, true).backward));
}

BOOST_AUTO_TEST_SUITE_END()
