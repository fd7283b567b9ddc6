#include "heed/kernels/gemm_bf16.h"

#include <bit>
#include <cmath>
#include <vector>

#if defined(__AVX512BF16__) && !defined(HEED_REFERENCE)
#include "bf16_words.h"
#endif

namespace heed::kernels {

float round_to_bf16(float x) {
  if (std::isnan(x)) return x;
  if (std::abs(x) < 0x1p-126f) return std::copysign(0.0f, x);
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
}

#if defined(HEED_REFERENCE)

namespace {

/// op(X) [rows, columns], rounded.
std::vector<float> rounded(Transpose transpose, Index rows, Index columns, const float* from, Index ld) {
  std::vector<float> to;
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j)
      to.push_back(round_to_bf16(transpose == Transpose::no ? from[i * ld + j] : from[j * ld + i]));
  return to;
}

}  // namespace

const char* bf16_obstacle() { return nullptr; }

void gemm_bf16(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const float* a, Index lda,
               const float* b, Index ldb, Update update, float* c, Index ldc) {
  gemm(Transpose::no, Transpose::no, m, n, k, rounded(transpose_a, m, k, a, lda).data(), k,
       rounded(transpose_b, k, n, b, ldb).data(), n, update, c, ldc);
}

void addmm_bf16(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const float* a, Index lda,
                const float* b, Index ldb, const float* bias, const float* addend, Index ldd, float* c, Index ldc) {
  addmm(Transpose::no, Transpose::no, m, n, k, rounded(transpose_a, m, k, a, lda).data(), k,
        rounded(transpose_b, k, n, b, ldb).data(), n, bias, addend, ldd, c, ldc);
}

#elif defined(__AVX512BF16__)

using namespace simd;

namespace {

template <bool starts>
void product(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const float* a, Index lda,
             const float* b, Index ldb, Update update, float* c, Index ldc, const Start& start = {}) {
  thread_local Buffer<float> memory_a, memory_b;
  const Words wa(transpose_a == Transpose::no, m, k, a, lda, memory_a);
  const Words wb(transpose_b == Transpose::yes, n, k, b, ldb, memory_b);
  sum_pairs<AddProductsOfPairs, starts>(transpose_a, transpose_b, m, n, (k + 1) / 2, wa.data(), wa.ld(), wb.data(),
                                        wb.ld(), update, c, ldc, start);
}

}  // namespace

const char* bf16_obstacle() { return nullptr; }

void gemm_bf16(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const float* a, Index lda,
               const float* b, Index ldb, Update update, float* c, Index ldc) {
  product<false>(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, update, c, ldc);
}

void addmm_bf16(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const float* a, Index lda,
                const float* b, Index ldb, const float* bias, const float* addend, Index ldd, float* c, Index ldc) {
  if (bias == nullptr || k == 0) {
    addmm<float>(transpose_a, transpose_b, m, n, 0, a, lda, b, ldb, bias, addend, ldd, c, ldc);
    return gemm_bf16(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, Update::accumulate, c, ldc);
  }
  product<true>(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, Update::assign, c, ldc,
                {bias, nullptr, addend, ldd});
}

#else

const char* bf16_obstacle() { return "it needs a CPU with AVX512-BF16 and a build for it (this one: ARCH=" HEED_ARCH ")"; }

void gemm_bf16(Transpose, Transpose, Index, Index, Index, const float*, Index, const float*, Index, Update, float*,
               Index) {
  HEED_ASSERT(false);
}

void addmm_bf16(Transpose, Transpose, Index, Index, Index, const float*, Index, const float*, Index, const float*,
                const float*, Index, float*, Index) {
  HEED_ASSERT(false);
}

#endif

}  // namespace heed::kernels
