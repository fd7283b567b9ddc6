#include "heed/kernels/products/packed_weight.h"

#ifndef HEED_NO_SIMD

#include "bf16_operands.h"
#include "pair_sums.h"

namespace heed::kernels {

using namespace simd;

void PackedWeight::pack(Products products, const Operand<float>& b) {
  products_ = products, n_ = b.columns, k_ = b.rows;
  const bool as_words = products == Products::bf16 && has_bf16_instruction();
  const Index size = packed_size(n_, as_words ? (k_ + 1) / 2 : k_);
  if (data_.size() < size) data_ = Buffer<float>(size);
  if (products == Products::exact) return pack_all(b, data_.data());
#ifdef HEED_BF16_WORDS
  thread_local Buffer<float> memory;
  if (as_words) return pack_all(words_along_rows(b, memory), data_.data());
#endif
  pack_all(Rounded(b).matrix(), data_.data());
}

namespace {

template <bool starts>
void product(const Matrix<const float>& a, const PackedWeight& b, Index begin, Update update, Matrix<float> c,
             const Start& start = {}) {
  HEED_ASSERT(begin % 16 == 0 && begin + c.columns <= b.columns());
  if (b.products() == Products::exact)
    return sum_packed<AddProduct, starts>(a, b.data(), b.columns(), begin, update, c, start);
#ifdef HEED_BF16_WORDS
  thread_local Buffer<float> memory;
  if (has_bf16_instruction())
    return sum_packed<AddProductsOfPairs, starts>(words_along_columns(a, memory), b.data(), b.columns(), begin, update,
                                                  c, start);
#endif
  sum_packed<AddProduct, starts>(Rounded(a).matrix(), b.data(), b.columns(), begin, update, c, start);
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
