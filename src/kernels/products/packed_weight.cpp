#include "heed/kernels/products/packed_weight.h"

#ifndef HEED_NO_SIMD

#ifdef __AVX512BF16__
#include "bf16_words.h"
#else
#include "pair_sums.h"
#endif

namespace heed::kernels {

using namespace simd;

void PackedWeight::pack(Products products, const Operand<float>& b) {
  products_ = products, n_ = b.columns, k_ = b.rows;
  const bool exact = products == Products::exact;
  const Index size = packed_size(n_, exact ? k_ : (k_ + 1) / 2);
  if (data_.size() < size) data_ = Buffer<float>(size);
  if (exact) return pack_all(b, data_.data());
#ifdef __AVX512BF16__
  thread_local Buffer<float> memory;
  pack_all(words_along_rows(b, memory), data_.data());
#else
  HEED_ASSERT(exact);
#endif
}

namespace {

template <bool starts>
void product(const Matrix<const float>& a, const PackedWeight& b, Index begin, Update update, Matrix<float> c,
             const Start& start = {}) {
  HEED_ASSERT(begin % 16 == 0 && begin + c.columns <= b.columns());
  if (b.products() == Products::exact)
    return sum_packed<AddProduct, starts>(a, b.data(), b.columns(), begin, update, c, start);
#ifdef __AVX512BF16__
  thread_local Buffer<float> memory;
  sum_packed<AddProductsOfPairs, starts>(words_along_columns(a, memory), b.data(), b.columns(), begin, update, c,
                                         start);
#endif
}

}  // namespace

void gemm(const Matrix<const float>& a, const PackedWeight& b, Index begin, Update update, const Matrix<float>& c) {
  product<false>(a, b, begin, update, c);
}

void addmm(const Matrix<const float>& a, const PackedWeight& b, Index begin, const float* bias,
           const Matrix<const float>& addend, const Matrix<float>& c) {
  product<true>(a, b, begin, Update::assign, c, {bias, nullptr, addend});
}

}  // namespace heed::kernels

#endif
