#include "heed/kernels/rows.h"

#include "compare.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(kernels_rows)

BOOST_AUTO_TEST_CASE(dots_of_strided_rows) {
  for (const Index n : lengths) {
    const Index rows = 5, a_stride = n + 3, b_stride = n + 8;
    const auto a = normal_floats(rows * a_stride, 1), b = normal_floats(rows * b_stride, 2);
    std::vector<double> out(rows), absolute(rows), abs_a(a), abs_b(b);
    for (double& x : abs_a) x = std::abs(x);
    for (double& x : abs_b) x = std::abs(x);
    kernels::row_dots<double>(rows, n, a.data(), a_stride, b.data(), b_stride, out.data());
    kernels::row_dots<double>(rows, n, abs_a.data(), a_stride, abs_b.data(), b_stride, absolute.data());
    Guarded fa(a, 1), fb(b, 2), fout(rows, 3);
    kernels::row_dots(rows, n, fa.data(), a_stride, fb.data(), b_stride, fout.data());
    require_close("row_dots", fout, out, [&](std::size_t r) { return static_cast<double>(n) * 6e-8 * absolute[r]; });
  }
}

// Rows are added in order with or without vectors, so the bits are those of the plain loop in float.
BOOST_AUTO_TEST_CASE(column_sums_are_the_plain_loops_bit_for_bit) {
  for (const Index n : lengths)
    for (const Index rows : {1, 2, 9, 50}) {
      const auto a = normal_floats(rows * n, 1);
      Guarded fa(a, 1), plain(n, 0), fast(n, 3);
      kernels::column_sums<float>(rows, n, fa.data(), Update::assign, plain.data());
      kernels::column_sums(rows, n, fa.data(), Update::assign, fast.data());
      for (Index i = 0; i < n; ++i) BOOST_REQUIRE_EQUAL(fast[i], plain[i]);
      BOOST_REQUIRE(fast.guards_unchanged());

      const auto before = normal_floats(n, 2);
      std::vector<double> sums(before);
      Guarded accumulated(before, 1);
      kernels::column_sums<double>(rows, n, a.data(), Update::accumulate, sums.data());
      kernels::column_sums(rows, n, fa.data(), Update::accumulate, accumulated.data());
      require_close("column_sums", accumulated, sums,
                    [&](std::size_t) { return 1e-6 * static_cast<double>(rows + 4); });
    }
}

BOOST_AUTO_TEST_SUITE_END()
