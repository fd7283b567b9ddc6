// A weight arranged once for all its products.
#pragma once

#include "heed/kernels/gemm_bf16.h"

namespace heed::kernels {

/// A weight W [n, k] as products x W^T read it, rounded to bfloat16 where they do: to arrange it takes as long as a
/// product with some ten rows of x, and the same weight meets all pieces of a batch. Fast float only.
class PackedWeight {
 public:
  /// Arranges W, rows k apart, as it is now. Keeps its memory from one call to the next.
  void pack(Products products, Index n, Index k, const float* w);

  Products products() const { return products_; }
  Index rows() const { return n_; }
  Index columns() const { return k_; }
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

/// C = bias + addend + x W^T, bit by bit as addmm() without the packing: x [m, k], rows `ldx` apart; bias [n]; addend
/// [m, n], rows `ldd` apart, or nullptr; C [m, n], rows `ldc` apart. Only columns [begin, end) of it, where `begin` is
/// a multiple of 16, and `end` too or n.
void addmm(Index m, Index begin, Index end, const float* x, Index ldx, const PackedWeight& w, const float* bias,
           const float* addend, Index ldd, float* c, Index ldc);

}  // namespace heed::kernels
