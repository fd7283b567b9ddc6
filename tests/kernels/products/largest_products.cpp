// The largest products of rows, compared with a sorted full table.
#include "heed/kernels/products/largest_products.h"
#include "heed/base/random.h"
#include "heed/base/with_threads.h"

#include <boost/test/unit_test.hpp>

#include <numeric>
#include <vector>

using namespace heed;

namespace {

/// Returns rows of small integers: products are exact in float, and many are equal.
std::vector<float> whole_numbers(Index count, std::uint64_t seed) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i) numbers[static_cast<std::size_t>(i)] = RandomStream(seed).below(i, 7) - 3;
  return numbers;
}

template <class T>
void check_products(Index m, Index n, Index d, Index k) {
  const std::vector<float> wx = whole_numbers(m * d, 1), wy = whole_numbers(n * d, 2);
  const std::vector<T> x(wx.begin(), wx.end()), y(wy.begin(), wy.end());
  std::vector<T> products(static_cast<std::size_t>(m * k));
  std::vector<Index> rows(products.size());
  kernels::largest_products<T>(Matrix(x.data(), m, d), Matrix(y.data(), n, d), Matrix(products.data(), m, k),
                               Matrix(rows.data(), m, k));
  bool same = true;
  for (Index i = 0; i < m; ++i) {
    std::vector<T> all;
    for (Index j = 0; j < n; ++j) all.push_back(std::inner_product(&x[i * d], &x[i * d] + d, &y[j * d], T(0)));
    std::vector<Index> order(all.size());
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return all[a] > all[b]; });
    for (Index j = 0; j < k; ++j) same &= rows[i * k + j] == order[j] && products[i * k + j] == all[order[j]];
  }
  BOOST_TEST(same, "m " << m << ", n " << n << ", d " << d << ", k " << k);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(largest_products)

// Sizes around those of blocks, 96 and 1024 rows, and around the 16 rows that are compared at a time.
BOOST_AUTO_TEST_CASE(as_sorted) {
  for (const int count : {1, 3}) {
    const WithThreads with(count);
    for (const Index n : {1, 15, 16, 17, 40, 1023, 1024, 1025, 2100})
      for (const Index k : {Index{1}, std::min<Index>(n, 20), std::min<Index>(n, 200)}) {
        check_products<float>(5, n, 3, k);
        check_products<double>(5, n, 3, k);
      }
    for (const Index m : {1, 95, 96, 97, 200}) check_products<float>(m, 50, 4, 7);
  }
}

/// Checks equal rows of random numbers, whose products are rounded equally: the first k are selected.
template <class T>
void check_equal_rows(Index n, Index d) {
  constexpr Index m = 5;
  const Index k = std::min<Index>(n, 3);
  std::vector<T> x, y;
  for (Index i = 0; i < m * d; ++i) x.push_back(static_cast<T>(RandomStream(3).normal(i)));
  for (Index i = 0; i < n * d; ++i) y.push_back(static_cast<T>(RandomStream(4).normal(i % d)));
  std::vector<T> products(static_cast<std::size_t>(m * k));
  std::vector<Index> rows(products.size());
  kernels::largest_products<T>(Matrix<const T>(x.data(), m, d), Matrix<const T>(y.data(), n, d),
                               Matrix(products.data(), m, k), Matrix(rows.data(), m, k));
  bool first = true;
  for (Index i = 0; i < m * k; ++i) first &= rows[static_cast<std::size_t>(i)] == i % k;
  BOOST_TEST(first, "n " << n << ", d " << d);
}

BOOST_AUTO_TEST_CASE(of_equal_rows_the_first) {
  for (const Index n : {1, 2, 7, 17, 50, 65, 300, 1023, 1025, 1033})
    for (const Index d : {3, 37, 192}) {
      check_equal_rows<float>(n, d);
      check_equal_rows<double>(n, d);
    }
}

BOOST_AUTO_TEST_SUITE_END()
