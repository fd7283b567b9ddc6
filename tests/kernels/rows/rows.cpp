#include "heed/kernels/rows/rows.h"

#include "support/compare.h"

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
    const auto matrix = [=](auto& numbers, Index stride) { return Matrix(numbers.data(), rows, n, stride); };
    kernels::reference::row_dots(matrix(a, a_stride), matrix(b, b_stride), out.data());
    kernels::reference::row_dots(matrix(abs_a, a_stride), matrix(abs_b, b_stride), absolute.data());
    Guarded fa(a, 1), fb(b, 2), fout(rows, 3);
    kernels::row_dots(matrix(fa, a_stride), matrix(fb, b_stride), fout.data());
    require_close("row_dots", fout, out, [&](std::size_t r) { return static_cast<double>(n) * 6e-8 * absolute[r]; });
  }
}

BOOST_AUTO_TEST_CASE(dots_of_differences_of_rows_that_lie_anywhere) {
  for (const Index n : lengths) {
    const Index count = 5, stride = n + 3;
    const auto a = normal_floats(count * n, 1), b = normal_floats(count * stride, 2), c = normal_floats(count * n, 3);
    std::vector<double> out(count);
    Guarded fa(a, 1), fb(b, 2), fc(c, 0), fout(count, 3), same(count, 0, 1.0f);
    std::vector<kernels::RowTriple<double>> rows;
    std::vector<kernels::RowTriple<float>> frows, same_rows;
    for (const Index r : {3, 0, 4, 1, 2}) {
      rows.push_back({a.data() + r * n, b.data() + r * stride, c.data() + r * n});
      frows.push_back({fa.data() + r * n, fb.data() + r * stride, fc.data() + r * n});
      same_rows.push_back({fa.data() + r * n, fb.data() + r * stride, fb.data() + r * stride});
    }
    kernels::reference::row_dots_of_differences(count, n, rows.data(), out.data());
    kernels::row_dots_of_differences(count, n, frows.data(), fout.data());
    // Terms are about 1.4; sums of n of them have n rounding errors.
    require_close("dots", fout, out, [&](std::size_t) { return static_cast<double>(n + 1) * 6e-8 * 1.4 * 4; });
    kernels::row_dots_of_differences(count, n, same_rows.data(), same.data());
    for (Index r = 0; r < count; ++r) BOOST_TEST(same[r] == 0);
  }
}

BOOST_AUTO_TEST_CASE(weighted_sums_of_rows_that_lie_anywhere) {
  for (const Index n : lengths)
    for (const Index count : {1, 2, 9})
      for (const Update update : {Update::assign, Update::accumulate}) {
        const auto weights = normal_floats(count, 1), values = normal_floats(count * n, 2);
        std::vector<double> sums = normal_floats(n, 3);
        Guarded fweights(weights, 1), fvalues(values, 2), fsums(sums, 3);
        std::vector<const double*> rows;
        std::vector<const float*> frows;
        for (Index r = 0; r < count; ++r) {
          const Index place = r * 5 % count * n;
          rows.push_back(values.data() + place), frows.push_back(fvalues.data() + place);
        }
        kernels::reference::weighted_rows(count, n, weights.data(), rows.data(), update, sums.data());
        kernels::weighted_rows(count, n, fweights.data(), frows.data(), update, fsums.data());
        require_close("weighted rows", fsums, sums,
                      [&](std::size_t) { return static_cast<double>(count + 1) * 6e-8 * 10; });
      }
}

// Rows are added in order with and without vectors, so the bits equal the reference's in float.
BOOST_AUTO_TEST_CASE(column_sums_have_the_bits_of_the_reference) {
  for (const Index n : lengths)
    for (const Index rows : {1, 2, 9, 50}) {
      const Index stride = n + rows % 3;
      const auto a = normal_floats(rows * stride, 1);
      const auto matrix = [=](auto& numbers) { return Matrix(numbers.data(), rows, n, stride); };
      Guarded fa(a, 1), expected(n, 0), fast(n, 3);
      kernels::reference::column_sums(matrix(fa), Update::assign, expected.data());
      kernels::column_sums(matrix(fa), Update::assign, fast.data());
      for (Index i = 0; i < n; ++i) BOOST_REQUIRE_EQUAL(fast[i], expected[i]);
      BOOST_REQUIRE(fast.guards_unchanged());

      const auto before = normal_floats(n, 2);
      std::vector<double> sums(before);
      Guarded accumulated(before, 1);
      kernels::reference::column_sums(matrix(a), Update::accumulate, sums.data());
      kernels::column_sums(matrix(fa), Update::accumulate, accumulated.data());
      require_close("column_sums", accumulated, sums,
                    [&](std::size_t) { return 1e-6 * static_cast<double>(rows + 4); });
    }
}

BOOST_AUTO_TEST_SUITE_END()
