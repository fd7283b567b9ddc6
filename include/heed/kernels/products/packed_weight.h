// A weight packed once for many products.
#pragma once

#include "heed/kernels/products/gemm_bf16.h"

namespace heed::kernels {

/// The second operand B of products A B, packed in the order in which tiles read it and rounded to bfloat16 if the
/// product is. Packing takes as long as a product with about ten rows of A, and all microbatches share the packed
/// weight. Fast float kernels only.
class PackedWeight {
 public:
  /// Packs the current values of B [k, n]. Reuses the memory of earlier calls.
  void pack(Products products, const Operand<float>& b);

  Products products() const { return products_; }
  Index rows() const { return k_; }
  Index columns() const { return n_; }
  const float* data() const { return data_.data(); }

 private:
  Products products_ = Products::exact;
  Index n_ = 0, k_ = 0;
  Buffer<float> data_;
};

/// True if this build has fast float kernels, and so packed weights.
inline constexpr bool packs_weights =
#ifdef HEED_NO_SIMD
    false;
#else
    true;
#endif

/// Computes C (+)= columns [begin, begin + n) of A B, with the same bits as gemm() of the unpacked weight. C [m, n].
/// `begin` must be a multiple of 16, and begin + n too unless it is the number of columns of B.
void gemm(const Matrix<const float>& a, const PackedWeight& b, Index begin, Update update, const Matrix<float>& c);

/// Computes C = bias + addend + these columns of A B, with the same bits as addmm() of the unpacked weight: bias [n];
/// addend [m, n] may be empty. Everything else as in gemm().
void addmm(const Matrix<const float>& a, const PackedWeight& b, Index begin, const float* bias,
           const Matrix<const float>& addend, const Matrix<float>& c);

}  // namespace heed::kernels
