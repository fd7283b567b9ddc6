// A weight arranged once for all its products.
#pragma once

#include "heed/kernels/gemm_bf16.h"

namespace heed::kernels {

/// The second operand of products A op(B), arranged as they read it, and rounded to bfloat16 where they do: to arrange
/// a weight takes as long as a product with some ten rows, and the same weight meets all pieces of a batch. Fast float
/// only.
class PackedWeight {
 public:
  /// Arranges op(B) [k, n] as it is now; B, or with Transpose::yes its transpose, has rows `ldb` apart. Keeps its
  /// memory from one call to the next.
  void pack(Products products, Transpose transpose, Index n, Index k, const float* b, Index ldb);

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
#ifdef HEED_REFERENCE
    false;
#else
    true;
#endif

/// C = A op(B) or C += A op(B), bit by bit as gemm() without the packing: A [m, k], rows `lda` apart; C [m, n], rows
/// `ldc` apart. Only columns [begin, end) of it, where `begin` is a multiple of 16, and `end` too or n.
void gemm(Index m, Index begin, Index end, const float* a, Index lda, const PackedWeight& b, Update update, float* c,
          Index ldc);

/// C = bias + addend + A op(B), bit by bit as addmm() without the packing: bias [n]; addend [m, n], rows `ldd` apart,
/// or nullptr; all else as in gemm().
void addmm(Index m, Index begin, Index end, const float* a, Index lda, const PackedWeight& b, const float* bias,
           const float* addend, Index ldd, float* c, Index ldc);

}  // namespace heed::kernels
