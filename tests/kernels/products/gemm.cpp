#include "heed/kernels/products/packed_weight.h"

#include "support/compare.h"

using namespace heed;
using namespace heed::test;

namespace {

constexpr std::array kinds{Products::exact, Products::bf16};

const char* name(Products products) { return products == Products::exact ? "exact" : "bf16"; }

/// Returns an operand [rows, columns]: its rows are `stride` apart or, with `turned`, its columns.
template <class T>
Operand<T> operand(bool turned, Index rows, Index columns, const T* numbers, Index stride) {
  if (turned) return transposed(Matrix(numbers, columns, rows, stride));
  return Matrix(numbers, rows, columns, stride);
}

/// Returns normal numbers for `rows` rows of `used` elements, `stride` apart. The padding of the rows is NaN, since it
/// must not change the product.
std::vector<double> padded(Index rows, Index used, Index stride, std::uint64_t seed) {
  std::vector<double> numbers = normal_floats(rows * stride, seed);
  for (Index i = 0; i < rows * stride; ++i)
    if (i % stride >= used) numbers[static_cast<std::size_t>(i)] = NAN;
  return numbers;
}

/// A product whose operands have padded rows, with memory for C. Either operand may be stored transposed.
struct Problem {
  bool a_turned, b_turned;
  Index m, n, k;
  Index a_stride = (a_turned ? m : k) + 3, b_stride = (b_turned ? k : n) + 5, c_stride = n + 2;
  std::vector<double> a = padded(a_turned ? k : m, a_turned ? m : k, a_stride, 1);
  std::vector<double> b = padded(b_turned ? n : k, b_turned ? k : n, b_stride, 2);
  std::vector<double> c = normal_floats(m * c_stride, 3);

  /// Return the operand a, b or c with these elements.
  template <class T>
  Operand<T> A(const T* numbers) const {
    return operand(a_turned, m, k, numbers, a_stride);
  }
  template <class T>
  Operand<T> B(const T* numbers) const {
    return operand(b_turned, k, n, numbers, b_stride);
  }
  template <class T>
  Matrix<T> C(T* numbers) const {
    return {numbers, m, n, c_stride};
  }

  std::string name() const { return fmt::format("{}{} {}x{}x{}", a_turned ? 'T' : 'N', b_turned ? 'T' : 'N', m, n, k); }
};

void check(Problem p, Products products) {
  const std::vector<double> given_a = p.a, given_b = p.b;
  if (products == Products::bf16)
    for (auto* numbers : {&p.a, &p.b})
      for (double& x : *numbers) x = kernels::round_to_bf16(static_cast<float>(x));
  for (const Update update : {Update::assign, Update::accumulate}) {
    std::vector<double> c(p.c), abs_a(p.a), abs_b(p.b), absolute(p.c.size(), 0.0);
    for (double& x : abs_a) x = std::abs(x);
    for (double& x : abs_b) x = std::abs(x);
    kernels::reference::gemm(p.A(p.a.data()), p.B(p.b.data()), update, p.C(c.data()));
    kernels::reference::gemm(p.A(abs_a.data()), p.B(abs_b.data()), Update::assign, p.C(absolute.data()));
    Guarded fa(given_a, 1), fb(given_b, 2), fc(p.c, 3);
    // Elements of C that are overwritten must not be read.
    if (update == Update::assign) fill(p.C(fc.data()), NAN);
    kernels::Gemm{products}(p.A(fa.data()), p.B(fb.data()), update, p.C(fc.data()));
    require_close(fmt::format("{} {}", name(products), p.name()), fc, c, [&](std::size_t i) {
      if (static_cast<Index>(i) % p.c_stride >= p.n) return 0.0;
      return 1.2e-7 * (static_cast<double>(p.k) * absolute[i] + std::abs(p.c[i]));
    });
  }
}

void check(const Problem& p) {
  for (const Products products : kinds) check(p, products);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kernels_gemm)

BOOST_AUTO_TEST_CASE(small_sizes_in_every_orientation) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const Index m : {1, 2, 5, 6, 7, 8, 9, 13, 50})
        for (const Index n : {1, 3, 4, 7, 8, 15, 16, 17, 33, 50, 64, 65, 129})
          for (const Index k : {0, 1, 3, 4, 5, 16, 50}) check({ta, tb, m, n, k});
}

BOOST_AUTO_TEST_CASE(sizes_of_layers_and_of_more_than_a_block_of_k) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      check({ta, tb, 97, 192, 64});
      check({ta, tb, 100, 80, 257});
      check({ta, tb, 13, 65, 600});
    }
}

// A slice of the rows or columns of a product has the same bits as in the whole product, so the rows may be split
// between threads and microbatches. Fast kernels copy the operands of the whole product in parts (in bfloat16, in pairs
// of elements), but not the operands of its slices. Plain loops copy nothing.
BOOST_AUTO_TEST_CASE(cutting_rows_or_columns_changes_no_bit) {
#ifdef HEED_NO_SIMD
  constexpr Index deep = 301;
#else
  constexpr Index deep = 4100;
#endif
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const Products products : kinds)
        for (const Problem& p : {Problem{ta, tb, 103, 150, 301}, Problem{ta, tb, 521, 600, deep}}) {
          const kernels::Gemm gemm{products};
          const Update update = ta == tb ? Update::assign : Update::accumulate;
          Guarded a(p.a, 0), b(p.b, 0), whole(p.c, 0);
          const Operand<float> A = p.A(a.data()), B = p.B(b.data());
          gemm(A, B, update, p.C(whole.data()));
          BOOST_REQUIRE(whole.guards_unchanged());
          for (const Index piece : p.m < 200 ? std::vector<Index>{1, 7, 32} : std::vector<Index>{31}) {
            Guarded by_rows(p.c, 1), by_columns(p.c, 1);
            for (Index r = 0; r < p.m; r += piece) {
              const Index rows = std::min(piece, p.m - r);
              gemm(A.middle_rows(r, rows), B, update, p.C(by_rows.data()).middle_rows(r, rows));
            }
            for (Index j = 0; j < p.n; j += piece) {
              const Index columns = std::min(piece, p.n - j);
              gemm(A, B.middle_columns(j, columns), update, p.C(by_columns.data()).middle_columns(j, columns));
            }
            for (Index i = 0; i < p.m * p.c_stride; ++i) {
              BOOST_REQUIRE_EQUAL(by_rows[i], whole[i]);
              BOOST_REQUIRE_EQUAL(by_columns[i], whole[i]);
            }
          }
        }
}

// Addend and bias are added first, then the product.
BOOST_AUTO_TEST_CASE(a_bias_and_a_matrix_are_added_as_if_they_had_been_there) {
  for (const Products products : kinds)
    for (const Index k : {0, 30, 700})
      for (const bool bias : {false, true})
        for (const bool addend : {false, true}) {
          const kernels::Gemm gemm{products};
          const Problem p{false, true, 23, 70, k};
          Guarded a(p.a, 0), b(p.b, 0), before(p.c, 0), got(p.m * p.c_stride, 1, 77);
          Guarded expected(p.m * p.c_stride, 0, 77), row(normal_floats(p.n, 4), 2);
          const Operand<float> A = p.A(a.data()), B = p.B(b.data());
          const Matrix<float> sums = p.C(expected.data()), added = p.C(before.data());
          for (Index i = 0; i < p.m; ++i)
            for (Index j = 0; j < p.n; ++j) sums(i, j) = (addend ? added(i, j) : 0.0f) + (bias ? row[j] : 0.0f);
          gemm(A, B, Update::accumulate, sums);
          gemm.add(A, B, bias ? row.data() : nullptr, addend ? added : Matrix<float>{}, p.C(got.data()));
          for (Index i = 0; i < p.m * p.c_stride; ++i) BOOST_REQUIRE_EQUAL(got[i], expected[i]);
          BOOST_REQUIRE(got.guards_unchanged());
        }
}

#ifndef HEED_NO_SIMD
BOOST_AUTO_TEST_CASE(a_weight_that_was_arranged_before_gives_the_same_bits) {
  for (const Products products : kinds)
    for (const Index n : {1, 17, 64, 80, 200})
      for (const Index k : {1, 16, 33, 600})
        for (const bool addend : {false, true}) {
          const kernels::Gemm gemm{products};
          const Index m = k == 600 ? 101 : 13, stride = n + 2;  // 101 rows of 600 exceed one block
          Guarded x(normal_floats(m * (k + 1), 1), 0), w(normal_floats(n * k, 2), 1), bias(normal_floats(n, 3), 0);
          Guarded residual(normal_floats(m * stride, 4), 3), expected(m * stride, 0, 77), got(m * stride, 1, 77);
          Guarded another(normal_floats(2 * n * k, 5), 0);
          const Matrix<const float> X(x.data(), m, k, k + 1), W(w.data(), n, k);
          const Matrix<float> sums(expected.data(), m, n, stride), result(got.data(), m, n, stride);
          const Matrix<float> added = addend ? Matrix(residual.data(), m, n, stride) : Matrix<float>{};
          gemm.add(X, transposed(W), bias.data(), added, sums);
          kernels::PackedWeight packed;
          packed.pack(products, transposed(Matrix(another.data(), 2 * n, k)));
          packed.pack(products, transposed(W));
          const auto for_strips = [n](const auto& f) {
            for (Index begin = 0; begin < n; begin += 48)
              f(begin, [begin, columns = std::min<Index>(48, n - begin)](auto matrix) {
                return matrix ? matrix.middle_columns(begin, columns) : matrix;
              });
          };
          for_strips([&](Index begin, const auto& strip) {
            kernels::addmm(X, packed, begin, bias.data() + begin, strip(added), strip(result));
          });
          for (Index i = 0; i < m * stride; ++i) BOOST_REQUIRE_EQUAL(got[i], expected[i]);

          // As in the product for gradients, w [k, n] is not transposed.
          const Update update = addend ? Update::accumulate : Update::assign;
          const Matrix<const float> turned(w.data(), k, n);
          gemm(X, turned, update, sums);
          packed.pack(products, turned);
          for_strips([&](Index begin, const auto& strip) { kernels::gemm(X, packed, begin, update, strip(result)); });
          for (Index i = 0; i < m * stride; ++i) BOOST_REQUIRE_EQUAL(got[i], expected[i]);
          BOOST_REQUIRE(got.guards_unchanged());
        }
}

// Several products share an operand; each may use any number of its first columns.
BOOST_AUTO_TEST_CASE(shared_operands_give_the_same_bits) {
  for (const Products products : kinds)
    for (const bool repeated : {false, true}) {
      const Index m = 13, k = 33, n = 80;
      const auto a = normal_floats(m * k, 1), b = normal_floats(n * k, 2);
      const std::vector<float> x(a.begin(), a.end()), y(b.begin(), b.end());
      const Matrix<const float> A(x.data(), m, k), B(y.data(), n, k);
      kernels::SharedOperand<float> shared;
      shared.set(products, transposed(B), repeated);
      for (const Index columns : {1, 16, 17, 63, 65, 80}) {
        std::vector<float> expected(m * columns), got(m * columns);
        kernels::Gemm{products}(A, transposed(B.top_rows(columns)), Matrix(expected.data(), m, columns));
        shared.product(A, Matrix(got.data(), m, columns));
        BOOST_REQUIRE(got == expected);
      }
    }
}
#endif

BOOST_AUTO_TEST_CASE(non_finite_numbers_are_seen) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const Products products : kinds) {
        const Problem p{ta, tb, 9, 20, 6};
        const Index row = 4, l = 5, column = 18;
        Guarded a(p.a, 0), b(p.b, 0), c(p.c, 0);
        const Operand<float> A = p.A(a.data()), B = p.B(b.data());
        a.data()[&A(row, l) - A.data] = NAN;
        b.data()[&B(l, column) - B.data] = INFINITY;
        const Matrix<float> C = p.C(c.data());
        kernels::Gemm{products}(A, B, C);
        for (Index i = 0; i < p.m; ++i)
          for (Index j = 0; j < p.n; ++j) {
            const float x = C(i, j);
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

// A product with 1 is the rounded operand.
BOOST_AUTO_TEST_CASE(products_round_as_is_said) {
  const RandomStream random(3);
  const float one = 1;
  for (Index i = 0; i < 20'000; ++i) {
    const float x = std::ldexp(static_cast<float>(random.normal(i)), static_cast<int>(i % 240) - 120);
    float y = 0;
    kernels::gemm_bf16(Matrix(&x, 1, 1), Matrix(&one, 1, 1), Update::assign, Matrix(&y, 1, 1));
    BOOST_REQUIRE_EQUAL(y, kernels::round_to_bf16(x));
  }
}

BOOST_AUTO_TEST_SUITE_END()
