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
  Clamp clamp;

  /// sum + g clamp(w - x, -1, 1). Of three instructions, every other row has two for the ports of sums, every other two
  /// for those of products; of four, the difference of each row is one for products.
  Vector operator()(Vector sum, Broadcast g, Vector w, Vector x, Index row) const {
    const bool fused = row % 2 == 1 || !Clamp::one_instruction;
    return multiply_add(clamp(fused ? clamp.fused_difference(w, x) : hn::Sub(w, x)), g, sum);
  }
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
  sum_pairs<SubtractDistance>(operand(Transpose::no, rows, width, x, ldx), operand(Transpose::yes, width, columns, w, ldw), update, Matrix<float>(s, rows, columns, lds));
}

void negative_l1_by_maxima(Index rows, Index columns, Index width, const float* x, Index ldx, const float* w, Index ldw,
                           const float* bias, float* s, Index lds) {
  HEED_ASSERT(width >= 1);
  constexpr Index most_rows = 1024, most_columns = 256;
  alignas(alignment) float of_x[most_rows], of_w[most_columns];
  for (Index r = 0; r < rows; r += most_rows) {
    const Index count = std::min(most_rows, rows - r);
    sum_of_rows(count, width, x + r * ldx, ldx, of_x);
    for (Index c = 0; c < columns; c += most_columns) {
      const Index some = std::min(most_columns, columns - c);
      sum_of_rows(some, width, w + c * ldw, ldw, of_w);
      for (Index j = 0; j < some && bias; ++j) of_w[j] += bias[c + j];
      sum_pairs<SubtractTwiceMaximum, true>(operand(Transpose::no, count, width, x + r * ldx, ldx),
                                            operand(Transpose::yes, width, some, w + c * ldw, ldw), Update::assign,
                                            Matrix<float>(s + r * lds + c, count, some, lds), {of_w, of_x});
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
