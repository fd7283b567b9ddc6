#include "heed/kernels/l1_distance.h"

#ifndef HEED_REFERENCE

#include "row_tiles.h"

namespace heed::kernels {

using namespace simd;

namespace {

struct Sign {
  /// sum + g sign(w - x)
  Vector operator()(Vector sum, Vector g, Vector w, Vector x) const {
    sum = hn::Add(sum, hn::IfThenElseZero(hn::Gt(w, x), g));
    return hn::Sub(sum, hn::IfThenElseZero(hn::Lt(w, x), g));
  }
};

struct Hardtanh {
  Vector one = constant(1.0f), minus_one = constant(-1.0f);

  /// sum + g clamp(w - x, -1, 1)
  Vector operator()(Vector sum, Vector g, Vector w, Vector x) const {
    return hn::MulAdd(g, hn::Min(hn::Max(hn::Sub(w, x), minus_one), one), sum);
  }
};

}  // namespace

void negative_l1(Index rows, Index columns, Index width, const float* x, Index ldx, const float* w, Index ldw,
                 Update update, float* s, Index lds) {
  // Adding by a fused step with factor 1 leaves the adders to the difference (Zen 4 has separate units for the two).
  const Vector one = constant(1.0f);
  sum_over_elements(
      rows, columns, width, x, ldx, w, ldw,
      [&](Vector sum, Vector a, Vector b) { return hn::MulAdd(hn::AbsDiff(a, b), one, sum); },
      [&](Index r, Index c, float sum) { heed::write(update, s[r * lds + c], -sum); });
}

void negative_l1_gradient(DistanceGradient gradient, Transpose transpose_g, Index rows, Index terms, Index width,
                          const float* x, Index ldx, const float* w, Index ldw, const float* g, Index ldg,
                          Update update, float* dx, Index lddx) {
  const Index g_row = transpose_g == Transpose::no ? ldg : 1, g_term = transpose_g == Transpose::no ? 1 : ldg;
  const auto weight = [=](Index r, Index t) { return g[r * g_row + t * g_term]; };
  if (gradient == DistanceGradient::sign)
    sum_over_rows(rows, terms, width, x, ldx, w, ldw, weight, update, dx, lddx, Sign{});
  else if (gradient == DistanceGradient::hardtanh)
    sum_over_rows(rows, terms, width, x, ldx, w, ldw, weight, update, dx, lddx, Hardtanh{});
  else  // a matrix product, and a correction that the compiler vectorises
    negative_l1_gradient<float>(gradient, transpose_g, rows, terms, width, x, ldx, w, ldw, g, ldg, update, dx, lddx);
}

}  // namespace heed::kernels

#endif
