#include "heed/kernels/gemm.h"

#include "compare.h"

using namespace heed;
using namespace heed::test;

namespace {

constexpr Transpose both[] = {Transpose::no, Transpose::yes};

/// A product with operands whose rows are longer than they need to be, and a place for C.
struct Problem {
  Transpose ta, tb;
  Index m, n, k;
  Index lda = (ta == Transpose::no ? k : m) + 3, ldb = (tb == Transpose::no ? n : k) + 5, ldc = n + 2;
  std::vector<double> a = normal_floats((ta == Transpose::no ? m : k) * lda, 1);
  std::vector<double> b = normal_floats((tb == Transpose::no ? k : n) * ldb, 2);
  std::vector<double> c = normal_floats(m * ldc, 3);

  std::string name() const {
    return fmt::format("{}{} {}x{}x{}", ta == Transpose::no ? 'N' : 'T', tb == Transpose::no ? 'N' : 'T', m, n, k);
  }
};

void check(const Problem& p) {
  for (const Update update : {Update::assign, Update::accumulate}) {
    std::vector<double> c(p.c), abs_a(p.a), abs_b(p.b), absolute(p.c.size(), 0.0);
    for (double& x : abs_a) x = std::abs(x);
    for (double& x : abs_b) x = std::abs(x);
    kernels::gemm<double>(p.ta, p.tb, p.m, p.n, p.k, p.a.data(), p.lda, p.b.data(), p.ldb, update, c.data(), p.ldc);
    kernels::gemm<double>(p.ta, p.tb, p.m, p.n, p.k, abs_a.data(), p.lda, abs_b.data(), p.ldb, Update::assign,
                          absolute.data(), p.ldc);
    Guarded fa(p.a, 1), fb(p.b, 2), fc(p.c, 3);
    // What is not read must not matter, and what is overwritten must not be read.
    for (Index r = 0; update == Update::assign && r < p.m; ++r) std::fill_n(fc.data() + r * p.ldc, p.n, NAN);
    kernels::gemm(p.ta, p.tb, p.m, p.n, p.k, fa.data(), p.lda, fb.data(), p.ldb, update, fc.data(), p.ldc);
    require_close(p.name(), fc, c, [&](std::size_t i) {
      if (static_cast<Index>(i) % p.ldc >= p.n) return 0.0;
      return 1.2e-7 * (static_cast<double>(p.k) * absolute[i] + std::abs(p.c[i]));
    });
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kernels_gemm)

BOOST_AUTO_TEST_CASE(small_sizes_in_every_orientation) {
  for (const Transpose ta : both)
    for (const Transpose tb : both)
      for (const Index m : {1, 2, 5, 6, 7, 8, 9, 13, 50})
        for (const Index n : {1, 3, 4, 7, 8, 15, 16, 17, 33, 50, 64, 65, 129})
          for (const Index k : {0, 1, 3, 4, 5, 16, 50}) check({ta, tb, m, n, k});
}

BOOST_AUTO_TEST_CASE(sizes_of_layers_and_of_more_than_a_block_of_k) {
  for (const Transpose ta : both)
    for (const Transpose tb : both) {
      check({ta, tb, 97, 192, 64});
      check({ta, tb, 100, 80, 257});
      check({ta, tb, 13, 65, 600});
    }
}

// The promise that lets rows be cut between threads and pieces of the batch.
BOOST_AUTO_TEST_CASE(cutting_rows_or_columns_changes_no_bit) {
  for (const Transpose ta : both)
    for (const Transpose tb : both)
      for (const Update update : {Update::assign, Update::accumulate}) {
        const Problem p{ta, tb, 103, 150, 300};
        Guarded a(p.a, 0), b(p.b, 0), whole(p.c, 0);
        kernels::gemm(ta, tb, p.m, p.n, p.k, a.data(), p.lda, b.data(), p.ldb, update, whole.data(), p.ldc);
        for (const Index piece : {1, 7, 32}) {
          Guarded by_rows(p.c, 1), by_columns(p.c, 1);
          for (Index r = 0; r < p.m; r += piece)
            kernels::gemm(ta, tb, std::min(piece, p.m - r), p.n, p.k, a.data() + r * (ta == Transpose::no ? p.lda : 1),
                          p.lda, b.data(), p.ldb, update, by_rows.data() + r * p.ldc, p.ldc);
          for (Index j = 0; j < p.n; j += piece)
            kernels::gemm(ta, tb, p.m, std::min(piece, p.n - j), p.k, a.data(), p.lda,
                          b.data() + j * (tb == Transpose::no ? 1 : p.ldb), p.ldb, update, by_columns.data() + j,
                          p.ldc);
          for (Index i = 0; i < p.m * p.ldc; ++i) {
            BOOST_REQUIRE_EQUAL(by_rows[i], whole[i]);
            BOOST_REQUIRE_EQUAL(by_columns[i], whole[i]);
          }
        }
      }
}

BOOST_AUTO_TEST_CASE(non_finite_numbers_are_seen) {
  for (const Transpose ta : both)
    for (const Transpose tb : both) {
      Problem p{ta, tb, 9, 20, 6};
      const Index row = 4, l = 5, column = 18;
      p.a[ta == Transpose::no ? row * p.lda + l : l * p.lda + row] = NAN;
      p.b[tb == Transpose::no ? l * p.ldb + column : column * p.ldb + l] = INFINITY;
      Guarded a(p.a, 0), b(p.b, 0), c(p.c, 0);
      kernels::gemm(ta, tb, p.m, p.n, p.k, a.data(), p.lda, b.data(), p.ldb, Update::assign, c.data(), p.ldc);
      for (Index i = 0; i < p.m; ++i)
        for (Index j = 0; j < p.n; ++j) {
          const float x = c[i * p.ldc + j];
          BOOST_REQUIRE(i == row ? std::isnan(x) : j == column ? std::isinf(x) : std::isfinite(x));
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
