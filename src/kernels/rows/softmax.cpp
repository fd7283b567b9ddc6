// Rows of attention maps are often short (50 to 200 keys). If four rows fit the registers, their maxima and sums of
// exps are computed together; longer and causal rows are processed individually. The last partial vector of a row stays
// in a register: reloading it soon after a masked store would stall (122 ns on Zen 4). A score is multiplied by its
// scale and rounded before the maximum is subtracted, not in one fused step, so the largest score gives exactly exp(0)
// at any magnitude.
#include "heed/kernels/rows/softmax.h"

#ifndef HEED_NO_SIMD

#include "heed/kernels/shared/simd.h"

namespace heed::kernels {

using namespace simd;

namespace {

/// Sets the elements of a row from n to `columns` to zero.
void zero_beyond(Index n, Index columns, float* row) {
  for_each_vector(columns - n, [&](Index j, auto use) { use.store(hn::Zero(tag), row + n + j); });
}

/// Returns the maximum of `rest` and scale x over n elements, a multiple of `lanes`. Four independent maxima avoid a
/// chain that would be limited by latency.
HWY_INLINE float scaled_maximum(Vector scale, const float* x, Index n, Vector rest) {
  constexpr int chains = 4;
  Vector largest[chains] = {rest, rest, rest, rest};
  Index j = 0;
  for (; j + chains * lanes <= n; j += chains * lanes)
    unrolled<chains>(
        [&](auto i) { largest[i] = hn::Max(largest[i], hn::Mul(scale, hn::LoadU(tag, x + j + i * lanes))); });
  for (; j < n; j += lanes) largest[0] = hn::Max(largest[0], hn::Mul(scale, hn::LoadU(tag, x + j)));
  return maximum(hn::Max(hn::Max(largest[0], largest[1]), hn::Max(largest[2], largest[3])));
}

/// Replaces n elements x, a multiple of `lanes`, by exp(scale x - subtracted). Returns their sum plus that of `rest`,
/// the exps of the last partial vector.
HWY_INLINE float exponentials(const Exp& exp, Vector scale, Vector subtracted, float* x, Index n, Vector rest) {
  RowSum total;
  for_each_part(n, [&](auto part, Index j, auto) {
    const Vector e = exp.below_88(hn::Sub(hn::Mul(scale, hn::LoadU(tag, x + j)), subtracted));
    total[part] = hn::Add(total[part], e);
    hn::StoreU(e, tag, x + j);
  });
  total.add(n / lanes % RowSum::vectors, rest);
  return total.total();
}

constexpr int side_by_side = 4;
constexpr auto max = [](auto a, auto b) { return hn::Max(a, b); };
constexpr auto add = [](auto a, auto b) { return hn::Add(a, b); };

/// Reduces the lanes of each of four vectors with f.
template <class F>
HWY_INLINE Four reduce(const Vector (&v)[side_by_side], const F& f) {
  const hn::Repartition<double, decltype(four)> pairs;
  const auto two = [&](Vector a, Vector b) {
    const Four first = fold(tag, a, f), second = fold(tag, b, f);
    return hn::BitCast(pairs, f(hn::InterleaveLower(four, first, second), hn::InterleaveUpper(four, first, second)));
  };
  const auto low = two(v[0], v[1]), high = two(v[2], v[3]);
  return f(hn::BitCast(four, hn::InterleaveLower(pairs, low, high)),
           hn::BitCast(four, hn::InterleaveUpper(pairs, low, high)));
}

/// Computes attention_softmax() for rows of `vectors` vectors; the last may be partial.
template <int vectors>
void short_rows(double score_scale, Matrix<float> s, Matrix<float> saved) {
  constexpr Index last = (vectors - 1) * lanes;
  const Exp exp;
  const Vector scale = constant(static_cast<float>(score_scale)), lowest = constant(-HUGE_VALF);
  const FirstLanes tail(s.columns - last);
  // Lanes beyond the row hold -infinity. exp takes over 100 cycles if it underflows, so these lanes compute exp(0)
  // instead.
  const Vector zero = hn::Zero(tag);
  const auto exp_of_tail = [&](Vector x) { return tail.otherwise(exp.below_88(tail.otherwise(x, zero)), zero); };
  for (Index r = 0; r < s.rows; r += side_by_side) {
    // The last group repeats its last row if it has fewer than four.
    const Index count = std::min<Index>(side_by_side, s.rows - r);
    const auto row = [&](int i) { return s[r + std::min<Index>(i, count - 1)]; };
    Vector e[side_by_side][vectors], largest[side_by_side], total[side_by_side];
    unrolled<side_by_side>([&](auto i) {
      unrolled<vectors - 1>([&](auto j) { e[i][j] = hn::Mul(scale, hn::LoadU(tag, row(i) + j * lanes)); });
      e[i][vectors - 1] = tail.otherwise(hn::Mul(scale, tail.load(row(i) + last)), lowest);
      largest[i] = e[i][0];
      unrolled<vectors - 1>([&](auto j) { largest[i] = hn::Max(largest[i], e[i][j + 1]); });
    });
    const Four maxima = reduce(largest, max);
    unrolled<side_by_side>([&](auto i) {
      const Vector maximum = set(hn::GetLane(hn::Broadcast<i>(maxima)));
      unrolled<vectors>([&](auto j) {
        const Vector x = hn::Sub(e[i][j], maximum);
        e[i][j] = j + 1 < vectors ? exp.below_88(x) : exp_of_tail(x);
        total[i] = j ? hn::Add(total[i], e[i][j]) : e[i][j];
      });
    });
    const Four sums = reduce(total, add), factors = hn::Div(hn::Set(four, 1.0f), sums);
    unrolled<side_by_side>([&](auto i) {
      const Vector factor = set(hn::GetLane(hn::Broadcast<i>(factors)));
      unrolled<vectors - 1>([&](auto j) { hn::StoreU(hn::Mul(factor, e[i][j]), tag, row(i) + j * lanes); });
      tail.store(hn::Mul(factor, e[i][vectors - 1]), row(i) + last);
    });
    if (saved) {
      float pairs[2 * side_by_side];
      hn::StoreU(hn::InterleaveLower(four, maxima, sums), four, pairs);
      hn::StoreU(hn::InterleaveUpper(four, maxima, sums), four, pairs + 4);
      std::copy_n(pairs, 2 * count, saved[r]);
    }
  }
}

/// Maximum vectors per row: four rows of 6 vectors and exp's constants fit in 32 registers; longer rows spill too much.
constexpr int most_vectors = lanes == 16 ? 6 : 0;

}  // namespace

void softmax_rows(Matrix<float> s, Matrix<float> saved) { attention_softmax({1.0}, s, saved); }

void attention_softmax(const ScoreRows& rule, Matrix<float> s, Matrix<float> saved) {
  if (!rule.causal && s.columns <= most_vectors * lanes) {
    unrolled<most_vectors>([&](auto v) {
      if (s.columns > v * lanes && s.columns <= (v + 1) * lanes) short_rows<v + 1>(rule.scale, s, saved);
    });
    return;
  }
  const Exp exp;
  const Vector scale = constant(static_cast<float>(rule.scale)), lowest = constant(-HUGE_VALF), zero = hn::Zero(tag);
  for (Index r = 0; r < s.rows; ++r) {
    float* const row = s[r];
    const Index n = rule.length(r, s.columns), whole = n / lanes * lanes;
    const FirstLanes tail(n - whole);
    const Vector last = hn::Mul(scale, tail.load(row + whole));
    const float row_maximum = scaled_maximum(scale, row, whole, tail.otherwise(last, lowest));
    const Vector subtracted = set(row_maximum), last_e = exp.below_88(hn::Sub(last, subtracted));
    const float row_sum = exponentials(exp, scale, subtracted, row, whole, tail.otherwise(last_e, zero));
    const Vector factor = set(1.0f / row_sum);
    for (Index j = 0; j < whole; j += lanes) hn::StoreU(hn::Mul(factor, hn::LoadU(tag, row + j)), tag, row + j);
    tail.store(hn::Mul(factor, last_e), row + whole);
    zero_beyond(n, s.columns, row);
    if (saved) saved(r, 0) = row_maximum, saved(r, 1) = row_sum;
  }
}

void attention_softmax_part(const ScoreRows& rule, Matrix<float> s, Update update, Matrix<float> sums,
                            Matrix<float> out) {
  const Exp exp;
  const Vector scale = constant(static_cast<float>(rule.scale)), lowest = constant(-HUGE_VALF), zero = hn::Zero(tag);
  for (Index r = 0; r < s.rows; ++r) {
    float* const row = s[r];
    const Index n = rule.length(r, s.columns), whole = n / lanes * lanes;
    zero_beyond(n, s.columns, row);
    if (n == 0) continue;
    const FirstLanes tail(n - whole);
    const Vector last = hn::Mul(scale, tail.load(row + whole));
    const float before = update == Update::assign ? -HUGE_VALF : sums(r, 0);
    const float row_maximum = std::max(before, scaled_maximum(scale, row, whole, tail.otherwise(last, lowest)));
    const Vector subtracted = set(row_maximum), last_e = exp.below_88(hn::Sub(last, subtracted));
    float row_sum = exponentials(exp, scale, subtracted, row, whole, tail.otherwise(last_e, zero));
    tail.store(last_e, row + whole);
    if (update == Update::accumulate) {
      const Vector factor = exp.below_88(hn::Sub(set(before), subtracted));
      row_sum += hn::GetLane(factor) * sums(r, 1);
      if (row_maximum != before)
        for_each_vector(out.columns,
                        [&](Index i, auto use) { use.store(hn::Mul(factor, use.load(out[r] + i)), out[r] + i); });
    }
    sums(r, 0) = row_maximum, sums(r, 1) = row_sum;
  }
}

void attention_softmax_again(const ScoreRows& rule, Matrix<float> s, Matrix<const float> saved) {
  const Exp exp;
  const Vector scale = constant(static_cast<float>(rule.scale));
  for (Index r = 0; r < s.rows; ++r) {
    float* const row = s[r];
    const Index n = rule.length(r, s.columns);
    const Vector minus_maximum = set(-saved(r, 0)), factor = set(1.0f / saved(r, 1));
    for_each_vector(n, [&](Index j, auto use) {
      const Vector e = exp.below_88(hn::Add(hn::Mul(scale, use.load(row + j)), minus_maximum));
      use.store(hn::Mul(factor, e), row + j);
    });
    zero_beyond(n, s.columns, row);
  }
}

void attention_softmax_backward_from_sums(const ScoreRows& rule, Matrix<const float> p, const float* sums,
                                          Matrix<float> dp) {
  const Vector scale = set(static_cast<float>(rule.scale));
  for (Index r = 0; r < dp.rows; ++r) {
    const float* const pr = p[r];
    float* const row = dp[r];
    const Index n = rule.length(r, dp.columns);
    const Vector row_sum = set(sums[r]);
    for_each_vector(n, [&](Index j, auto use) {
      const Vector difference = hn::Sub(use.load(row + j), row_sum);
      use.store(hn::Mul(scale, hn::Mul(use.load(pr + j), difference)), row + j);
    });
    zero_beyond(n, dp.columns, row);
  }
}

void attention_softmax_backward(const ScoreRows& rule, Matrix<const float> p, Matrix<float> dp) {
  for (Index r = 0; r < dp.rows; ++r) {
    RowSum products;
    for_each_part(rule.length(r, dp.columns), [&](auto part, Index j, auto use) {
      products[part] = hn::Add(products[part], hn::Mul(use.load(p[r] + j), use.load(dp[r] + j)));
    });
    const float row_sum = products.total();
    attention_softmax_backward_from_sums(rule.from(r), p.middle_rows(r, 1), &row_sum, dp.middle_rows(r, 1));
  }
}

}  // namespace heed::kernels

#endif
