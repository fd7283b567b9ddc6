#include "heed/kernels/packed_weight.h"

#ifndef HEED_REFERENCE

#ifdef __AVX512BF16__
#include "bf16_words.h"
#else
#include "pair_sums.h"
#endif

namespace heed::kernels {

using namespace simd;

void PackedWeight::pack(Products products, Transpose transpose, Index n, Index k, const float* b, Index ldb) {
  products_ = products, n_ = n, k_ = k;
  const bool exact = products == Products::exact;
  const Index steps = exact ? k : (k + 1) / 2, size = packed_size(n, steps);
  if (data_.size() < size) data_ = Buffer<float>(size);
  if (exact) return pack_all(n, k, Operand(transpose, b, ldb), data_.data());
#ifdef __AVX512BF16__
  thread_local Buffer<float> memory;
  const Words words(transpose == Transpose::yes, n, k, b, ldb, memory);
  pack_all(n, steps, Operand(transpose, words.data(), words.ld()), data_.data());
#else
  HEED_ASSERT(exact);
#endif
}

namespace {

template <bool starts>
void product(Index m, Index begin, Index end, const float* a, Index lda, const PackedWeight& b, Update update, float* c,
             Index ldc, const Start& start = {}) {
  const Index n = b.columns(), k = b.rows();
  HEED_ASSERT(begin % 16 == 0 && (end % 16 == 0 || end == n));
  if (b.products() == Products::exact)
    return sum_packed<AddProduct, starts>(m, n, k, begin, end, a, lda, b.data(), update, c, ldc, start);
#ifdef __AVX512BF16__
  thread_local Buffer<float> memory;
  const Words words(true, m, k, a, lda, memory);
  sum_packed<AddProductsOfPairs, starts>(m, n, (k + 1) / 2, begin, end, words.data(), words.ld(), b.data(), update, c,
                                         ldc, start);
#endif
}

}  // namespace

void gemm(Index m, Index begin, Index end, const float* a, Index lda, const PackedWeight& b, Update update, float* c,
          Index ldc) {
  product<false>(m, begin, end, a, lda, b, update, c, ldc);
}

void addmm(Index m, Index begin, Index end, const float* a, Index lda, const PackedWeight& b, const float* bias,
           const float* addend, Index ldd, float* c, Index ldc) {
  product<true>(m, begin, end, a, lda, b, Update::assign, c, ldc, {bias, nullptr, addend, ldd});
}

}  // namespace heed::kernels

#endif
