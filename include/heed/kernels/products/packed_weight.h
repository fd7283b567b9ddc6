// A weight arranged once for all its products.
#pragma once

#include "heed/kernels/products/gemm_bf16.h"

namespace heed::kernels {

/// The second operand of products A B, arranged as they read it, and rounded to bfloat16 where they do: to arrange
/// a weight takes as long as a product with some ten rows, and the same weight meets all pieces of a batch. Fast float
/// only.
class PackedWeight {
 public:
  /// Arranges B [k, n] as it is now. Keeps its memory from one call to the next.
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

/// Does this build have them?
inline constexpr bool packs_weights =
#ifdef HEED_NO_SIMD
    false;
#else
    true;
#endif

/// C = A B or C += A B, bit by bit as gemm() without the packing. C [m, n] is the columns [begin, begin + n) of the
/// product, where `begin` is a multiple of 16, and begin + n is one too or is the end of the product.
void gemm(const Matrix<const float>& a, const PackedWeight& b, Index begin, Update update, const Matrix<float>& c);

/// C = bias + addend + A B, bit by bit as addmm() without the packing: bias [n]; addend [m, n] may be left out; all
/// else as in gemm().
void addmm(const Matrix<const float>& a, const PackedWeight& b, Index begin, const float* bias,
           const Matrix<const float>& addend, const Matrix<float>& c);

}  // namespace heed::kernels
