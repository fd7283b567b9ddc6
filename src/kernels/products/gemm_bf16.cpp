#include "heed/kernels/products/gemm_bf16.h"

#include "bf16_operands.h"

#include <bit>
#include <cmath>

namespace heed::kernels {

float round_to_bf16(float x) {
  if (std::isnan(x)) return x;
  if (std::abs(x) < 0x1p-126f) return std::copysign(0.0f, x);
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
}

const char* bf16_obstacle() {
#ifndef HEED_NO_SIMD
  if (!has_bf16_instruction())
    return "requires a CPU with AVX512-BF16 and a build for it (this one: ARCH=" HEED_ARCH ")";
#endif
  return nullptr;
}

#ifdef HEED_BF16_WORDS

namespace {

template <bool starts>
void product_of_words(const Operand<float>& a, const Operand<float>& b, Update update, Matrix<float> c,
                      const simd::Start& start = {}) {
  thread_local Buffer<float> memory_a, memory_b;
  simd::sum_pairs<simd::AddProductsOfPairs, starts>(simd::words_along_columns(a, memory_a),
                                                    simd::words_along_rows(b, memory_b), update, c, start);
}

}  // namespace

#endif

void gemm_bf16(const Operand<float>& a, const Operand<float>& b, Update update, const Matrix<float>& c) {
#ifdef HEED_BF16_WORDS
  if (has_bf16_instruction()) return product_of_words<false>(a, b, update, c);
#endif
  gemm(Rounded(a).matrix(), Rounded(b).matrix(), update, c);
}

void addmm_bf16(const Operand<float>& a, const Operand<float>& b, const float* bias, const Matrix<const float>& addend,
                const Matrix<float>& c) {
#ifdef HEED_BF16_WORDS
  if (has_bf16_instruction()) {
    if (bias == nullptr || a.columns == 0)
      return product_of_words<false>(a, b, detail::assign_addends(bias, addend, c), c);
    return product_of_words<true>(a, b, Update::assign, c, {bias, nullptr, addend});
  }
#endif
  addmm(Rounded(a).matrix(), Rounded(b).matrix(), bias, addend, c);
}

}  // namespace heed::kernels
