#include "heed/kernels/l1_distance.h"

#ifndef HEED_REFERENCE

#include "pair_sums.h"
#include "sums_over_rows.h"

namespace heed::kernels {

using namespace simd;

namespace {

// A processor has units for sums, which also take maxima, and others for products (Zen 4: two of each). Terms are
// written so that both are busy: a difference or a sum may be a fused step with factor 1.

struct SubtractDistance {
  Vector one = constant(1.0f);

  Vector operator()(Vector sum, Broadcast x, Vector w) const {
    return hn::NegMulAdd(hn::Abs(subtract(w, x)), one, sum);
  }
};

struct SubtractTwiceMaximum {
  Vector two = constant(2.0f);

  Vector operator()(Vector sum, Broadcast x, Vector w) const { return hn::NegMulAdd(max(w, x), two, sum); }
};

struct Sign {
  /// sum + g sign(w - x)
  Vector operator()(Vector sum, Broadcast weight, Vector w, Vector x, Index) const {
    const Vector g = weight.vector();
    sum = hn::Add(sum, hn::IfThenElseZero(hn::Gt(w, x), g));
    return hn::Sub(sum, hn::IfThenElseZero(hn::Lt(w, x), g));
  }
};

struct Hardtanh {
  Vector one = constant(1.0f), minus_one = constant(-1.0f);

  /// sum + g clamp(w - x, -1, 1)
  Vector operator()(Vector sum, Broadcast g, Vector w, Vector x, Index row) const {
    return multiply_add(clamp(row % 2 == 0 && one_clamp ? hn::Sub(w, x) : hn::MulSub(w, one, x)), g, sum);
  }

 private:
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  static constexpr bool one_clamp = true;

  /// The smaller of |u| and 1, with the sign of u.
  Vector clamp(Vector u) const { return Vector{_mm512_range_ps(u.raw, one.raw, 0b0010)}; }
#else
  static constexpr bool one_clamp = false;

  Vector clamp(Vector u) const { return hn::Min(hn::Max(u, minus_one), one); }
#endif
};

void sum_of_rows(Index rows, Index width, const float* x, Index ldx, float* sums) {
  for (Index r = 0; r < rows; ++r) {
    Vector total = hn::Zero(tag);
    for_each_vector(width, [&](Index i, auto use) { total = hn::Add(total, use.load(x + r * ldx + i)); });
    sums[r] = sum(total);
  }
}

}  // namespace

void negative_l1(Index rows, Index columns, Index width, const float* x, Index ldx, const float* w, Index ldw,
                 Update update, float* s, Index lds) {
  sum_pairs<SubtractDistance>(Transpose::no, Transpose::yes, rows, columns, width, x, ldx, w, ldw, update, s, lds);
}

void negative_l1_by_maxima(Index rows, Index columns, Index width, const float* x, Index ldx, const float* w, Index ldw,
                           Update update, float* s, Index lds) {
  sum_pairs<SubtractTwiceMaximum>(Transpose::no, Transpose::yes, rows, columns, width, x, ldx, w, ldw, update, s, lds);
  constexpr Index block = 256;
  alignas(alignment) float sums_of_w[block];
  for (Index first = 0; first < columns; first += block) {
    const Index count = std::min(block, columns - first);
    sum_of_rows(count, width, w + first * ldw, ldw, sums_of_w);
    for (Index r = 0; r < rows; ++r) {
      float sum_of_x, *const row = s + r * lds + first;
      sum_of_rows(1, width, x + r * ldx, ldx, &sum_of_x);
      const Vector of_x = set(sum_of_x);
      for_each_vector(count, [&](Index c, auto use) {
        use.store(hn::Add(use.load(row + c), hn::Add(of_x, use.load(sums_of_w + c))), row + c);
      });
    }
  }
}

void negative_l1_gradient(DistanceGradient gradient, Transpose transpose_g, Index rows, Index terms, Index width,
                          const float* x, Index ldx, const float* w, Index ldw, const float* g, Index ldg,
                          Update update, float* dx, Index lddx) {
  const Index g_row = transpose_g == Transpose::no ? ldg : 1, g_term = transpose_g == Transpose::no ? 1 : ldg;
  const auto weight = [=](Index r, Index t) { return Broadcast(g + r * g_row + t * g_term); };
  if (gradient == DistanceGradient::sign)
    sum_over_rows(rows, terms, width, x, ldx, w, ldw, weight, update, dx, lddx, Sign{});
  else if (gradient == DistanceGradient::hardtanh)
    sum_over_rows(rows, terms, width, x, ldx, w, ldw, weight, update, dx, lddx, Hardtanh{});
  else  // a matrix product, and a correction that the compiler vectorises
    negative_l1_gradient<float>(gradient, transpose_g, rows, terms, width, x, ldx, w, ldw, g, ldg, update, dx, lddx);
}

}  // namespace heed::kernels

#endif
