// A weight matrix packed once for many products.
#pragma once

#include "heed/kernels/products/gemm_bf16.h"

namespace heed::kernels {

/// The second operand B of products A B, packed in the order in which tiles read it, and rounded for products in
/// bfloat16. Packing takes as long as a product with about ten rows of A, and all microbatches share the packed weight.
/// Used by the fast float kernels only.
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

/// True if this build has fast float kernels and thus packs weights.
inline constexpr bool packs_weights =
#ifdef HEED_NO_SIMD
    false;
#else
    true;
#endif

/// Computes C (+)= columns [begin, begin + n) of A B, with the same bits as gemm() of the unpacked weight. C [m, n].
/// `begin` must be a multiple of 16.
void gemm(const Matrix<const float>& a, const PackedWeight& b, Index begin, Update update, const Matrix<float>& c);

/// Computes C = bias + addend + columns [begin, begin + n) of A B, with the same bits as addmm() of the unpacked
/// weight: bias [n]; addend [m, n] may be empty. Otherwise as gemm().
void addmm(const Matrix<const float>& a, const PackedWeight& b, Index begin, const float* bias,
           const Matrix<const float>& addend, const Matrix<float>& c);

/// The second operand B of several products A B, packed once if T is float and packs_weights is true.
template <class T>
class SharedOperand {
 public:
  /// Sets B [k, n], whose values must not change before the last product. `repeated` states that several products
  /// follow; a single product packs as it runs.
  void set(Products products, const OperandFor<T>& b, bool repeated) {
    gemm_ = {products}, b_ = b;
    if constexpr (packs)
      if ((is_packed_ = repeated)) packed_.pack(products, b);
  }

  /// Computes C = the first C.columns columns of A B, with the same bits as gemm().
  void product(const MatrixFor<T>& a, const Matrix<T>& c) const {
    if constexpr (packs)
      if (is_packed_) return gemm(a, packed_, 0, Update::assign, c);
    gemm_(a, b_.middle_columns(0, c.columns), c);
  }

 private:
  static constexpr bool packs = std::is_same_v<T, float> && packs_weights;

  Gemm gemm_;
  Operand<T> b_ = Matrix<const T>();
  bool is_packed_ = false;
  PackedWeight packed_;
};

}  // namespace heed::kernels
