#include "heed/kernels/distances/l1_distance.h"

#ifndef HEED_NO_SIMD

#include "src/kernels/products/pair_sums.h"
#include "sums_over_rows.h"

namespace heed::kernels {

using namespace simd;

namespace {

// CPUs have adder ports, which also compute maxima, and multiplier ports (Zen 4: two of each). Terms are written to use
// both: a difference or a sum may be a fused multiply-add with factor 1.

struct SubtractDistance {
  static constexpr int registers = 3;

  Vector one = constant(1.0f);

  Vector operator()(Vector sum, Broadcast x, Vector w) const {
    return hn::NegMulAdd(hn::Abs(subtract(w, x)), one, sum);
  }
};

struct SubtractTwiceMaximum {
  static constexpr int registers = 2;

  Vector two = constant(2.0f);

  Vector operator()(Vector sum, Broadcast x, Vector w) const { return hn::NegMulAdd(max(w, x), two, sum); }
};

struct Sign {
  /// Returns sum + g sign(w - x).
  Vector operator()(Vector sum, Broadcast weight, Vector w, Vector x, Index) const {
    const Vector g = weight.vector();
    sum = hn::Add(sum, hn::IfThenElseZero(hn::Gt(w, x), g));
    return hn::Sub(sum, hn::IfThenElseZero(hn::Lt(w, x), g));
  }
};

struct Hardtanh {
  Clamp clamp;

  /// Returns sum + g clamp(w - x, -1, 1). With AVX-512 a term takes three instructions: even rows use adder ports for
  /// two of them, odd rows multiplier ports. Otherwise it takes four instructions, and the difference always uses a
  /// multiplier port.
  Vector operator()(Vector sum, Broadcast g, Vector w, Vector x, Index row) const {
    const bool fused = row % 2 == 1 || !Clamp::one_instruction;
    return multiply_add(clamp(fused ? clamp.fused_difference(w, x) : hn::Sub(w, x)), g, sum);
  }
};

/// Computes the sum of each row.
void sum_of_rows(Matrix<const float> x, float* sums) {
  for (Index r = 0; r < x.rows; ++r) {
    RowSum sum;
    for_each_part(x.columns, [&](auto part, Index i, auto use) { sum[part] = hn::Add(sum[part], use.load(x[r] + i)); });
    sums[r] = sum.total();
  }
}

/// Returns true if the rows of w, judged by a few of them, are close to each other but far from the origin.
bool lies_far(Matrix<const float> w) {
  constexpr Index samples = 4;
  float lengths = 0, distances = 0;
  for (Index sample = 1; sample <= samples; ++sample) {
    const float *const first = w[0], *const row = w[(w.rows - 1) * sample / samples];
    RowSum length, distance;
    for_each_part(w.columns, [&](auto part, Index i, auto use) {
      const Vector x = use.load(row + i);
      length[part] = hn::Add(length[part], hn::Abs(x));
      distance[part] = hn::Add(distance[part], hn::Abs(hn::Sub(x, use.load(first + i))));
    });
    lengths += length.total(), distances += distance.total();
  }
  return lengths > far * distances;
}

}  // namespace

void negative_l1(Matrix<const float> x, Matrix<const float> w, Matrix<float> s) {
  sum_pairs<SubtractDistance>(x, transposed(w), Update::assign, s);
}

void negative_l1_by_maxima(Matrix<const float> x, Matrix<const float> w, const float* bias, Matrix<float> s) {
  HEED_ASSERT(x.columns >= 1);
  if (w.rows > 0 && lies_far(w)) {
    if (!bias) return negative_l1(x, w, s);
    return sum_pairs<SubtractDistance, true>(x, transposed(w), Update::assign, s, {bias});
  }
  constexpr Index most_rows = 1024, most_columns = 256;
  alignas(alignment) float of_x[most_rows], of_w[most_columns];
  for (Index r = 0; r < s.rows; r += most_rows) {
    const Index count = std::min(most_rows, s.rows - r);
    const Matrix<const float> some_x = x.middle_rows(r, count);
    sum_of_rows(some_x, of_x);
    for (Index c = 0; c < s.columns; c += most_columns) {
      const Index some = std::min(most_columns, s.columns - c);
      const Matrix<const float> some_w = w.middle_rows(c, some);
      sum_of_rows(some_w, of_w);
      for (Index j = 0; j < some && bias; ++j) of_w[j] += bias[c + j];
      sum_pairs<SubtractTwiceMaximum, true>(some_x, transposed(some_w), Update::assign,
                                            s.middle_rows(r, count).middle_columns(c, some), {of_w, of_x});
    }
  }
}

void negative_l1_gradient(DistanceGradient gradient, Matrix<const float> x, Matrix<const float> w, Operand<float> g,
                          Update update, Matrix<float> dx) {
  switch (gradient) {
    case DistanceGradient::sign:
      return sum_over_rows(x, w, g, update, dx, Sign{});
    case DistanceGradient::hardtanh:
      return sum_over_rows(x, w, g, update, dx, Hardtanh{});
    case DistanceGradient::full:  // a matrix product, and a correction that the compiler vectorises
      return detail::full_l1_gradient(x, w, g, update, dx);
  }
}

}  // namespace heed::kernels

#endif
