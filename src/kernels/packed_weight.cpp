#include "heed/kernels/packed_weight.h"

#ifndef HEED_REFERENCE

#ifdef __AVX512BF16__
#include "bf16_words.h"
#else
#include "pair_sums.h"
#endif

namespace heed::kernels {

using namespace simd;

void PackedWeight::pack(Products products, Index n, Index k, const float* w) {
  products_ = products, n_ = n, k_ = k;
  const bool exact = products == Products::exact;
  const Index steps = exact ? k : (k + 1) / 2, size = packed_size(n, steps);
  if (data_.size() < size) data_ = Buffer<float>(size);
  if (exact) {
    pack_all(n, k, Operand(Transpose::yes, w, k), data_.data());
    return;
  }
#ifdef __AVX512BF16__
  thread_local Buffer<float> memory;
  const Words words(true, n, k, w, k, memory);
  pack_all(n, steps, Operand(Transpose::yes, words.data(), words.ld()), data_.data());
#else
  HEED_ASSERT(exact);
#endif
}

void addmm(Index m, Index begin, Index end, const float* x, Index ldx, const PackedWeight& w, const float* bias,
           const float* addend, Index ldd, float* c, Index ldc) {
  const Index n = w.rows(), k = w.columns();
  const Start start{bias, nullptr, addend, ldd};
  HEED_ASSERT(begin % 16 == 0 && (end % 16 == 0 || end == n));
  if (w.products() == Products::exact)
    return sum_packed<AddProduct>(m, n, k, begin, end, x, ldx, w.data(), c, ldc, start);
#ifdef __AVX512BF16__
  thread_local Buffer<float> memory;
  const Words words(true, m, k, x, ldx, memory);
  sum_packed<AddProductsOfPairs>(m, n, (k + 1) / 2, begin, end, words.data(), words.ld(), w.data(), c, ldc, start);
#endif
}

}  // namespace heed::kernels

#endif
