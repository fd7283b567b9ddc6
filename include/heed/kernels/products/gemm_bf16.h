// Matrix product of operands rounded to bfloat16, a float without the low 16 of its 23 fraction bits. Products of two
// normal values are exact in float. AVX512-BF16 has twice the multiply-adds of float per cycle.
#pragma once

#include "heed/kernels/products/gemm.h"

#include <type_traits>

namespace heed {

/// Rounding of the operands of products.
enum class Products {
  exact,  ///< none
  bf16,   ///< to bfloat16
};

namespace kernels {

/// Returns x rounded to the nearest bfloat16, ties to even. Magnitudes below 2^-126 become 0, as in the AVX512-BF16
/// instructions.
float round_to_bf16(float x);

/// Returns the reason why training in bfloat16 is refused, as a clause; nullptr if it is allowed. Products in bfloat16
/// are computed by every build on every CPU, but without the instructions for it they are slower than products of
/// floats.
const char* bf16_obstacle();

/// Compute gemm() and addmm() with A and B rounded to bfloat16 and sums in float. Each product of normal values is
/// within 2^-7 |a||b| of the exact one.
void gemm_bf16(const Operand<float>& a, const Operand<float>& b, Update update, const Matrix<float>& c);
void addmm_bf16(const Operand<float>& a, const Operand<float>& b, const float* bias, const Matrix<const float>& addend,
                const Matrix<float>& c);

/// gemm() and addmm() with a choice of rounding, which must be exact for types other than float. Usage: `const Gemm
/// gemm{in.products};`
struct Gemm {
  Products products = Products::exact;

  template <class T>
  void operator()(const OperandFor<T>& a, const OperandFor<T>& b, Update update, const Matrix<T>& c) const {
    if constexpr (std::is_same_v<T, float>)
      if (products == Products::bf16) return gemm_bf16(a, b, update, c);
    HEED_ASSERT(products == Products::exact);
    gemm(a, b, update, c);
  }
  template <class T>
  void operator()(const OperandFor<T>& a, const OperandFor<T>& b, const Matrix<T>& c) const {
    (*this)(a, b, Update::assign, c);
  }

  /// Computes C = bias + addend + A B.
  template <class T>
  void add(const OperandFor<T>& a, const OperandFor<T>& b, const std::type_identity_t<T>* bias,
           const MatrixFor<T>& addend, const Matrix<T>& c) const {
    if constexpr (std::is_same_v<T, float>)
      if (products == Products::bf16) return addmm_bf16(a, b, bias, addend, c);
    HEED_ASSERT(products == Products::exact);
    addmm(a, b, bias, addend, c);
  }
};

}  // namespace kernels
}  // namespace heed
