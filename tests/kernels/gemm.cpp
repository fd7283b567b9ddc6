#include "heed/kernels/packed_weight.h"

#include "support/compare.h"

using namespace heed;
using namespace heed::test;

namespace {

constexpr Transpose both[] = {Transpose::no, Transpose::yes};

/// What this build can do.
std::vector<Products> kinds() {
  if (kernels::bf16_obstacle()) return {Products::exact};
  return {Products::exact, Products::bf16};
}

const char* name(Products products) { return products == Products::exact ? "exact" : "bf16"; }

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

void check(Problem p, Products products) {
  const std::vector<double> given_a = p.a, given_b = p.b;
  if (products == Products::bf16)
    for (auto* operand : {&p.a, &p.b})
      for (double& x : *operand) x = kernels::round_to_bf16(static_cast<float>(x));
  for (const Update update : {Update::assign, Update::accumulate}) {
    std::vector<double> c(p.c), abs_a(p.a), abs_b(p.b), absolute(p.c.size(), 0.0);
    for (double& x : abs_a) x = std::abs(x);
    for (double& x : abs_b) x = std::abs(x);
    kernels::gemm<double>(p.ta, p.tb, p.m, p.n, p.k, p.a.data(), p.lda, p.b.data(), p.ldb, update, c.data(), p.ldc);
    kernels::gemm<double>(p.ta, p.tb, p.m, p.n, p.k, abs_a.data(), p.lda, abs_b.data(), p.ldb, Update::assign,
                          absolute.data(), p.ldc);
    Guarded fa(given_a, 1), fb(given_b, 2), fc(p.c, 3);
    // What is not read must not matter, and what is overwritten must not be read.
    for (Index r = 0; update == Update::assign && r < p.m; ++r) std::fill_n(fc.data() + r * p.ldc, p.n, NAN);
    kernels::gemm(products, p.ta, p.tb, p.m, p.n, p.k, fa.data(), p.lda, fb.data(), p.ldb, update, fc.data(), p.ldc);
    require_close(fmt::format("{} {}", name(products), p.name()), fc, c, [&](std::size_t i) {
      if (static_cast<Index>(i) % p.ldc >= p.n) return 0.0;
      return 1.2e-7 * (static_cast<double>(p.k) * absolute[i] + std::abs(p.c[i]));
    });
  }
}

void check(const Problem& p) {
  for (const Products products : kinds()) check(p, products);
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
      for (const Products products : kinds()) {
        const Update update = ta == tb ? Update::assign : Update::accumulate;
        const Problem p{ta, tb, 103, 150, 301};
        Guarded a(p.a, 0), b(p.b, 0), whole(p.c, 0);
        kernels::gemm(products, ta, tb, p.m, p.n, p.k, a.data(), p.lda, b.data(), p.ldb, update, whole.data(), p.ldc);
        for (const Index piece : {1, 7, 32}) {
          Guarded by_rows(p.c, 1), by_columns(p.c, 1);
          for (Index r = 0; r < p.m; r += piece)
            kernels::gemm(products, ta, tb, std::min(piece, p.m - r), p.n, p.k,
                          a.data() + r * (ta == Transpose::no ? p.lda : 1), p.lda, b.data(), p.ldb, update,
                          by_rows.data() + r * p.ldc, p.ldc);
          for (Index j = 0; j < p.n; j += piece)
            kernels::gemm(products, ta, tb, p.m, std::min(piece, p.n - j), p.k, a.data(), p.lda,
                          b.data() + j * (tb == Transpose::no ? 1 : p.ldb), p.ldb, update, by_columns.data() + j,
                          p.ldc);
          for (Index i = 0; i < p.m * p.ldc; ++i) {
            BOOST_REQUIRE_EQUAL(by_rows[i], whole[i]);
            BOOST_REQUIRE_EQUAL(by_columns[i], whole[i]);
          }
        }
      }
}

// What is added is added first, and the product to it.
BOOST_AUTO_TEST_CASE(a_bias_and_a_matrix_are_added_as_if_they_had_been_there) {
  for (const Products products : kinds())
    for (const Index k : {0, 30, 700})
      for (const bool bias : {false, true})
        for (const bool addend : {false, true}) {
          const Problem p{Transpose::no, Transpose::yes, 23, 70, k};
          Guarded a(p.a, 0), b(p.b, 0), before(p.c, 0), got(p.m * p.ldc, 1, 77), expected(p.m * p.ldc, 0, 77);
          Guarded row(normal_floats(p.n, 4), 2);
          for (Index i = 0; i < p.m; ++i)
            for (Index j = 0; j < p.n; ++j)
              expected.data()[i * p.ldc + j] = (addend ? before[i * p.ldc + j] : 0.0f) + (bias ? row[j] : 0.0f);
          kernels::gemm(products, p.ta, p.tb, p.m, p.n, k, a.data(), p.lda, b.data(), p.ldb, Update::accumulate,
                        expected.data(), p.ldc);
          kernels::addmm(products, p.ta, p.tb, p.m, p.n, k, a.data(), p.lda, b.data(), p.ldb,
                         bias ? row.data() : nullptr, addend ? before.data() : nullptr, p.ldc, got.data(), p.ldc);
          for (Index i = 0; i < p.m * p.ldc; ++i) BOOST_REQUIRE_EQUAL(got[i], expected[i]);
          BOOST_REQUIRE(got.guards_unchanged());
        }
}

#ifndef HEED_REFERENCE
BOOST_AUTO_TEST_CASE(a_weight_that_was_arranged_before_gives_the_same_bits) {
  for (const Products products : kinds())
    for (const Index n : {1, 17, 64, 80, 200})
      for (const Index k : {1, 16, 33, 600})
        for (const bool addend : {false, true}) {
          const Index m = 13, ldx = k + 1, ldc = n + 2;
          Guarded x(normal_floats(m * ldx, 1), 0), w(normal_floats(n * k, 2), 1), bias(normal_floats(n, 3), 0);
          Guarded residual(normal_floats(m * ldc, 4), 3), expected(m * ldc, 0, 77), got(m * ldc, 1, 77);
          const float* const added = addend ? residual.data() : nullptr;
          kernels::addmm(products, Transpose::no, Transpose::yes, m, n, k, x.data(), ldx, w.data(), k, bias.data(),
                         added, ldc, expected.data(), ldc);
          kernels::PackedWeight packed;
          packed.pack(products, Transpose::yes, 2 * n, k, Guarded(normal_floats(2 * n * k, 5), 0).data(), k);
          packed.pack(products, Transpose::yes, n, k, w.data(), k);
          for (Index begin = 0; begin < n; begin += 48)
            kernels::addmm(m, begin, std::min(begin + 48, n), x.data(), ldx, packed, bias.data(), added, ldc,
                           got.data(), ldc);
          for (Index i = 0; i < m * ldc; ++i) BOOST_REQUIRE_EQUAL(got[i], expected[i]);

          // Not transposed, as gradients take it; w has k rows of n then.
          const Update update = addend ? Update::accumulate : Update::assign;
          kernels::gemm(products, Transpose::no, Transpose::no, m, n, k, x.data(), ldx, w.data(), n, update,
                        expected.data(), ldc);
          packed.pack(products, Transpose::no, n, k, w.data(), n);
          for (Index begin = 0; begin < n; begin += 48)
            kernels::gemm(m, begin, std::min(begin + 48, n), x.data(), ldx, packed, update, got.data(), ldc);
          for (Index i = 0; i < m * ldc; ++i) BOOST_REQUIRE_EQUAL(got[i], expected[i]);
          BOOST_REQUIRE(got.guards_unchanged());
        }
}
#endif

BOOST_AUTO_TEST_CASE(non_finite_numbers_are_seen) {
  for (const Transpose ta : both)
    for (const Transpose tb : both)
      for (const Products products : kinds()) {
        Problem p{ta, tb, 9, 20, 6};
        const Index row = 4, l = 5, column = 18;
        p.a[ta == Transpose::no ? row * p.lda + l : l * p.lda + row] = NAN;
        p.b[tb == Transpose::no ? l * p.ldb + column : column * p.ldb + l] = INFINITY;
        Guarded a(p.a, 0), b(p.b, 0), c(p.c, 0);
        kernels::gemm(products, ta, tb, p.m, p.n, p.k, a.data(), p.lda, b.data(), p.ldb, Update::assign, c.data(),
                      p.ldc);
        for (Index i = 0; i < p.m; ++i)
          for (Index j = 0; j < p.n; ++j) {
            const float x = c[i * p.ldc + j];
            BOOST_REQUIRE(i == row ? std::isnan(x) : j == column ? std::isinf(x) : std::isfinite(x));
          }
      }
}

BOOST_AUTO_TEST_CASE(bfloat16_is_the_nearest_and_of_two_the_even_one) {
  using kernels::round_to_bf16;
  BOOST_TEST(round_to_bf16(1.0f) == 1.0f);
  BOOST_TEST(round_to_bf16(1 + 0x1p-8f) == 1.0f);
  BOOST_TEST(round_to_bf16(1 + 0x1p-8f + 0x1p-20f) == 1 + 0x1p-7f);
  BOOST_TEST(round_to_bf16(-1 - 3 * 0x1p-8f) == -1 - 0x1p-6f);
  BOOST_TEST(round_to_bf16(3.4e38f) == INFINITY);
  BOOST_TEST(round_to_bf16(-INFINITY) == -INFINITY);
  BOOST_TEST(std::isnan(round_to_bf16(NAN)));
  BOOST_TEST(round_to_bf16(0x1p-126f) == 0x1p-126f);
  BOOST_TEST(round_to_bf16(0x1.fp-127f) == 0.0f);
}

// Times one, a number's product is what it is rounded to.
BOOST_AUTO_TEST_CASE(products_round_as_is_said) {
  if (kernels::bf16_obstacle()) {
    BOOST_TEST_MESSAGE("skipped: dtype bf16: " << kernels::bf16_obstacle());
    return;
  }
  const RandomStream random(3);
  const float one = 1;
  for (Index i = 0; i < 20'000; ++i) {
    const float x = std::ldexp(static_cast<float>(random.normal(i)), static_cast<int>(i % 240) - 120);
    float y = 0;
    kernels::gemm_bf16(Transpose::no, Transpose::no, 1, 1, 1, &x, 1, &one, 1, Update::assign, &y, 1);
    BOOST_REQUIRE_EQUAL(y, kernels::round_to_bf16(x));
  }
}

BOOST_AUTO_TEST_SUITE_END()
