// Building blocks of the fast float kernels: whole and partial vectors, sums in a fixed order and exp. Highway selects
// the instructions at compile time (ARCH in the Makefile).
//
// A short loop over an array of sums inside a long loop is unrolled by a pragma, which keeps the array in registers.
// Without the pragma GCC unrolls the short loop too late: the sums are in registers, but every step of the long loop
// also stores them to memory, which takes as long as the sums themselves.
#pragma once

#ifndef HEED_NO_SIMD

#include "heed/kernels/shared/exp.h"
#include "heed/kernels/shared/update.h"
#include "heed/base/tensor.h"

#include <hwy/highway.h>

#include <cstring>
#include <utility>

namespace heed::kernels::simd {

namespace hn = hwy::HWY_NAMESPACE;

/// Highway's tags and types for full vectors of floats and 32-bit integers.
using Tag = hn::ScalableTag<float>;
using IntTag = hn::RebindToSigned<Tag>;
using Vector = hn::Vec<Tag>;
inline constexpr Tag tag;
inline constexpr IntTag int_tag;
inline constexpr Index lanes = HWY_LANES(float);
inline constexpr int registers = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 32 : 16;  ///< number of vector registers

/// Returns a vector with x in all lanes.
inline Vector set(float x) { return hn::Set(tag, x); }

/// A float in memory, broadcast to all lanes. With AVX-512 it is a memory operand of the arithmetic instruction. In
/// tiles that fill all ports with additions and multiplications, this is faster than a separate broadcast, which needs
/// a port too (Zen 4: 57 instead of 47 Gelem/s for a tile of maxima and products).
class Broadcast {
 public:
  explicit Broadcast(const float* number) : number_(number) {}
  Vector vector() const { return set(*number_); }

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  /// Return max(v, x), v - x and sum + v x.
  friend Vector max(Vector v, Broadcast x) {
    Vector result;
    asm("vmaxps %2%{1to16%}, %1, %0" : "=v"(result.raw) : "v"(v.raw), "m"(*x.number_));
    return result;
  }
  friend Vector subtract(Vector v, Broadcast x) {
    Vector result;
    asm("vsubps %2%{1to16%}, %1, %0" : "=v"(result.raw) : "v"(v.raw), "m"(*x.number_));
    return result;
  }
  friend Vector multiply_add(Vector v, Broadcast x, Vector sum) {
    asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sum.raw) : "v"(v.raw), "m"(*x.number_));
    return sum;
  }
#else
  friend Vector max(Vector v, Broadcast x) { return hn::Max(v, x.vector()); }
  friend Vector subtract(Vector v, Broadcast x) { return hn::Sub(v, x.vector()); }
  friend Vector multiply_add(Vector v, Broadcast x, Vector sum) { return hn::MulAdd(v, x.vector(), sum); }
#endif

 private:
  const float* number_;
};

/// Loads and stores of whole vectors.
struct AllLanes {
  Vector load(const float* from) const { return hn::LoadU(tag, from); }
  void store(Vector v, float* to) const { hn::StoreU(v, tag, to); }
  Vector otherwise(Vector v, Vector) const { return v; }
};

/// Loads and stores of the first `count` < lanes elements of a vector. Memory beyond them is neither read nor written;
/// the other lanes are loaded as zero. Targets without masked memory access, such as SSE, use a small buffer.
class FirstLanes {
 public:
  explicit FirstLanes(Index count) : count_(static_cast<std::size_t>(count)), mask_(hn::FirstN(tag, count_)) {}

  Vector load(const float* from) const {
    if constexpr (memory_masks) return hn::MaskedLoad(mask_, tag, from);
    HWY_ALIGN float buffer[lanes] = {};
    std::memcpy(buffer, from, count_ * sizeof(float));
    return hn::Load(tag, buffer);
  }
#if HWY_TARGET == HWY_AVX2
  // Stores 4, 2 and 1 lanes separately: a masked store takes a dozen cycles on AMD processors.
  void store(Vector v, float* to) const {
    __m128 part = _mm256_castps256_ps128(v.raw);
    if (count_ & 4) {
      _mm_storeu_ps(to, part);
      part = _mm256_extractf128_ps(v.raw, 1), to += 4;
    }
    if (count_ & 2) {
      _mm_storel_pi(reinterpret_cast<__m64*>(to), part);
      part = _mm_movehl_ps(part, part), to += 2;
    }
    if (count_ & 1) _mm_store_ss(to, part);
  }
#else
  void store(Vector v, float* to) const {
    if constexpr (memory_masks) return hn::BlendedStore(v, mask_, tag, to);
    HWY_ALIGN float buffer[lanes];
    hn::Store(v, tag, buffer);
    std::memcpy(to, buffer, count_ * sizeof(float));
  }
#endif

  /// Returns v in the first `count` lanes and `rest` in the others.
  Vector otherwise(Vector v, Vector rest) const { return hn::IfThenElse(mask_, v, rest); }

 private:
  static constexpr bool memory_masks = !HWY_MEM_OPS_MIGHT_FAULT || HWY_TARGET == HWY_AVX2;
  std::size_t count_;
  hn::Mask<Tag> mask_;
};

/// Calls f(position, AllLanes or FirstLanes) for n elements, one vector at a time; the last may be partial.
template <class F>
inline void for_each_vector(Index n, const F& f) {
  Index i = 0;
  for (; i + lanes <= n; i += lanes) f(i, AllLanes{});
  if (i < n) f(i, FirstLanes(n - i));
}

/// Assigns v to `to`, or adds it.
template <class Lanes>
inline void write(Update update, Lanes use, Vector v, float* to) {
  use.store(update == Update::assign ? v : hn::Add(use.load(to), v), to);
}

/// Returns the maximum of the lanes.
inline float maximum(Vector v) { return hn::GetLane(hn::MaxOfLanes(tag, v)); }

/// Calls f(i) for i = 0 to count - 1, each a compile-time constant.
template <int count, class F>
[[gnu::always_inline]] inline void unrolled(const F& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) [[gnu::always_inline]] { (f(std::integral_constant<int, i>{}), ...); }
  (std::make_integer_sequence<int, count>{});
}

/// Tag and type of vectors of four floats.
inline constexpr hn::FixedTag<float, 4> four;
using Four = hn::Vec<decltype(four)>;

/// Reduces the lanes of v to four by combining halves with f recursively.
template <class D, class F>
HWY_INLINE Four fold([[maybe_unused]] D d, hn::Vec<D> v, const F& f) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return fold(half, f(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), f);
  }
}

/// The sum of a row, in sixteen partial sums: element i is added to partial sum i mod 16. Then partial sums i and i + 8
/// are added, then i and i + 4, and so on. The bits of the result therefore do not depend on the number of lanes.
class RowSum {
 public:
  static constexpr int vectors = static_cast<int>(16 / lanes);  ///< vectors that hold the partial sums

  RowSum() {
    for (Vector& v : parts_) v = hn::Zero(tag);
  }

  Vector& operator[](int vector) { return parts_[vector]; }

  /// Adds v to the vector of partial sums with index `vector`, which need not be a constant.
  void add(Index vector, Vector v) {
    unrolled<vectors>([&](auto i) {
      if (vectors == 1 || i == vector) parts_[i] = hn::Add(parts_[i], v);
    });
  }

  float total() const {
    const auto add = [](auto a, auto b) { return hn::Add(a, b); };
    Vector sum = parts_[0];
    if constexpr (vectors == 2) sum = hn::Add(parts_[0], parts_[1]);
    if constexpr (vectors == 4) sum = hn::Add(hn::Add(parts_[0], parts_[2]), hn::Add(parts_[1], parts_[3]));
    const Four sums = fold(tag, sum, add), pairs = hn::Add(sums, hn::Shuffle1032(sums));
    return hn::GetLane(hn::Add(pairs, hn::Shuffle0321(pairs)));
  }

 private:
  static_assert(lanes == 16 || lanes == 8 || lanes == 4);
  Vector parts_[vectors];
};

/// Calls f(part, position, AllLanes or FirstLanes) for n elements, one vector at a time. `part` is a compile-time
/// constant: the vector of a RowSum to which these elements are added.
template <class F>
inline void for_each_part(Index n, const F& f) {
  Index i = 0;
  for (; i + 16 <= n; i += 16) unrolled<RowSum::vectors>([&](auto part) { f(part, i + part * lanes, AllLanes{}); });
  unrolled<RowSum::vectors>([&](auto part) {
    const Index at = i + part * lanes;
    if (RowSum::vectors > 1 && at + lanes <= n)
      f(part, at, AllLanes{});
    else if (at < n)
      f(part, at, FirstLanes(n - at));
  });
}

/// Returns a constant that stays in a register. Otherwise GCC loads it from memory at each use, and exp is then limited
/// by loads (Zen 4: 3.7 instead of 5.9 Gelem/s).
inline Vector constant(float x) {
  Vector v = set(x);
#if HWY_ARCH_X86
  asm("" : "+v"(v.raw));
#endif
  return v;
}

/// The function clamp(u, -1, 1). One instruction with AVX-512: the smaller of |u| and 1, with the sign of u. NaN
/// becomes 1 or -1; the distance to which this gradient belongs is then already NaN.
class Clamp {
 public:
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  static constexpr bool one_instruction = true;
  Vector operator()(Vector u) const { return Vector{_mm512_range_ps(u.raw, one_.raw, 0b0010)}; }
#else
  static constexpr bool one_instruction = false;
  Vector operator()(Vector u) const { return hn::Min(hn::Max(u, minus_one_), one_); }
#endif

  /// Returns a - b as a fused multiply-add, which uses a multiplier port.
  Vector fused_difference(Vector a, Vector b) const { return hn::MulSub(a, one_, b); }

 private:
  Vector one_ = constant(1.0f);
  [[maybe_unused]] Vector minus_one_ = constant(-1.0f);
};

/// The function exp x with a relative error of at most 1.5e-7 + 3e-9 |x|: infinity for x > 88.37 (2^n overflows above
/// 88.376, exp x above 88.72); NaN for NaN; 0 where the result is subnormal and subnormals are flushed to zero
/// (base/subnormals.h). All instruction sets with fused multiply-add give the same bits, except that unflushed
/// subnormal results are 0 for x < -87.68 without AVX-512.
///
/// x = n ln 2 + r with n the nearest integer and |r| <= (ln 2) / 2. Adding 1.5 2^23 rounds to an integer and leaves it
/// in the low bits; with the exponent bias 127 added too, these bits shifted into the exponent field are 2^n. AVX-512
/// multiplies by 2^n in one instruction, which handles underflow and leaves the ports for products and comparisons
/// free: 8 instead of 10 cycles per vector (Zen 4). ln 2 as a float is 1.9e-9 too large, which gives the second term of
/// the error. Without fused multiply-add, n ln 2 would be rounded, so ln 2 is split into two parts; the first has 9
/// bits, so its product with n is exact. exp r is the polynomial of kernels/shared/exp.h, whose scalar form serves
/// loops that the compiler vectorises.
class Exp {
 public:
  Vector operator()(Vector x) const { return hn::IfThenElse(hn::Gt(x, set(88.37f)), set(HUGE_VALF), below_88(x)); }

  /// Returns exp x for x <= 88 or NaN.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  Vector below_88(Vector x) const {
    x = hn::Max(lowest, x);
    const Vector n = hn::Sub(hn::MulAdd(x, log2_e, rounder), rounder);
    return Vector{_mm512_scalef_ps(polynomial(reduced(x, n)).raw, n.raw)};
  }
#else
  Vector below_88(Vector x) const {
    const Vector shifted = hn::MulAdd(x, log2_e, rounder);
    const Vector p = polynomial(reduced(x, hn::Sub(shifted, rounder)));
    const Vector power = hn::BitCast(tag, hn::ShiftLeft<23>(hn::BitCast(int_tag, shifted)));
    return hn::IfThenZeroElse(hn::Lt(x, lowest), hn::Mul(p, power));
  }
#endif

 private:
  Vector reduced(Vector x, Vector n) const {
    if constexpr (HWY_NATIVE_FMA) return hn::NegMulAdd(n, ln_2, x);
    return hn::Sub(hn::Sub(x, hn::Mul(n, set(0.693359375f))), hn::Mul(n, set(-2.12194440e-4f)));
  }
  Vector polynomial(Vector r) const {
    Vector p = hn::MulAdd(c6, r, c5);
    for (const Vector c : {c4, c3, c2, one, one}) p = hn::MulAdd(p, r, c);
    return p;
  }

  Vector rounder = constant(0x1.8p23f + 127.0f), log2_e = constant(1.44269504f), ln_2 = constant(0.693147180f);
  Vector one = constant(1.0f), c2 = constant(exp_polynomial::c2), c3 = constant(exp_polynomial::c3);
  Vector c4 = constant(exp_polynomial::c4), c5 = constant(exp_polynomial::c5), c6 = constant(exp_polynomial::c6);
  // For x < lowest, the result is less than half the smallest subnormal (AVX-512), or 2^n can be subnormal (other
  // targets).
  Vector lowest = constant(HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3 ? -104.0f : -87.68f);
};

}  // namespace heed::kernels::simd

#endif
