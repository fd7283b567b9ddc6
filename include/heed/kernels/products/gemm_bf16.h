// Matrix product of numbers rounded to bfloat16: a float without its lower 16 bits of 23 behind the point. Products of
// two normal ones are exact in float, and processors with AVX512-BF16 add up twice as many of them as of floats in the
// same time.
#pragma once

#include "heed/kernels/products/gemm.h"

#include <type_traits>

namespace heed {

/// What a product makes of its operands first.
enum class Products {
  exact,  ///< nothing
  bf16,   ///< rounds them to bfloat16
};

namespace kernels {

/// The bfloat16 nearest to x, of two the one whose last bit is 0; numbers below 2^-126 become 0, as the instructions
/// make them.
float round_to_bf16(float x);

/// Why this build cannot multiply in bfloat16, as a clause; null if it can.
const char* bf16_obstacle();

/// gemm() and addmm() with the numbers of A and B rounded to bfloat16; sums are floats. Each product of normal numbers
/// is within 2^-7 |a||b| of the exact one.
void gemm_bf16(const Operand<float>& a, const Operand<float>& b, Update update, const Matrix<float>& c);
void addmm_bf16(const Operand<float>& a, const Operand<float>& b, const float* bias, const Matrix<const float>& addend,
                const Matrix<float>& c);

/// gemm() of operands as they are, or rounded; only floats can be. `const Gemm gemm{in.products};`
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

  /// addmm() likewise.
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
