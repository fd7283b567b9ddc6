#include "heed/kernels/products/gemm_bf16.h"

#include <bit>
#include <cmath>
#include <vector>

#if defined(__AVX512BF16__) && !defined(HEED_NO_SIMD)
#include "bf16_words.h"
#endif

namespace heed::kernels {

float round_to_bf16(float x) {
  if (std::isnan(x)) return x;
  if (std::abs(x) < 0x1p-126f) return std::copysign(0.0f, x);
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
}

#ifndef HEED_NO_SIMD
static constexpr char no_instructions[] =
    "requires a CPU with AVX512-BF16 and a build for it (this one: ARCH=" HEED_ARCH ")";
#endif

#if defined(HEED_NO_SIMD)

namespace {

/// A copy of x with rounded elements.
class Rounded {
 public:
  explicit Rounded(const Operand<float>& x) : rows_(x.rows), columns_(x.columns) {
    for (Index i = 0; i < rows_; ++i)
      for (Index j = 0; j < columns_; ++j) values_.push_back(round_to_bf16(x(i, j)));
  }
  Matrix<const float> matrix() const { return {values_.data(), rows_, columns_}; }

 private:
  Index rows_, columns_;
  std::vector<float> values_;
};

}  // namespace

const char* bf16_obstacle() { return nullptr; }

void gemm_bf16(const Operand<float>& a, const Operand<float>& b, Update update, const Matrix<float>& c) {
  gemm(Rounded(a).matrix(), Rounded(b).matrix(), update, c);
}

void addmm_bf16(const Operand<float>& a, const Operand<float>& b, const float* bias, const Matrix<const float>& addend,
                const Matrix<float>& c) {
  addmm(Rounded(a).matrix(), Rounded(b).matrix(), bias, addend, c);
}

#elif defined(__AVX512BF16__)

using namespace simd;

namespace {

template <bool starts>
void product(const Operand<float>& a, const Operand<float>& b, Update update, Matrix<float> c,
             const Start& start = {}) {
  thread_local Buffer<float> memory_a, memory_b;
  sum_pairs<AddProductsOfPairs, starts>(words_along_columns(a, memory_a), words_along_rows(b, memory_b), update, c,
                                        start);
}

}  // namespace

const char* bf16_obstacle() { return __builtin_cpu_supports("avx512bf16") ? nullptr : no_instructions; }

void gemm_bf16(const Operand<float>& a, const Operand<float>& b, Update update, const Matrix<float>& c) {
  product<false>(a, b, update, c);
}

void addmm_bf16(const Operand<float>& a, const Operand<float>& b, const float* bias, const Matrix<const float>& addend,
                const Matrix<float>& c) {
  if (bias == nullptr || a.columns == 0) return gemm_bf16(a, b, detail::assign_addends(bias, addend, c), c);
  product<true>(a, b, Update::assign, c, {bias, nullptr, addend});
}

#else

const char* bf16_obstacle() { return no_instructions; }

void gemm_bf16(const Operand<float>&, const Operand<float>&, Update, const Matrix<float>&) { HEED_ASSERT(false); }

void addmm_bf16(const Operand<float>&, const Operand<float>&, const float*, const Matrix<const float>&,
                const Matrix<float>&) {
  HEED_ASSERT(false);
}

#endif

}  // namespace heed::kernels
