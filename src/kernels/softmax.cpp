// Rows of attention maps are short (50 to 200 keys), so what counts is that a row's last partial vector costs no
// more than a whole one, and that the maximum and the sum of one row overlap with the next row's work.
// A score is multiplied by its scale and rounded before the maximum is subtracted, not in one fused step: the largest
// then gives exactly exp(0), however large the scores are.
#include "heed/kernels/softmax.h"

#ifndef HEED_REFERENCE

#include "simd.h"

namespace heed::kernels {

using namespace simd;

namespace {

void zero_beyond(const AttentionRows& a, Index n, float* s) {
  for_each_vector(a.columns - n, [&](Index j, auto use) { use.store(hn::Zero(tag), s + n + j); });
}

}  // namespace

void softmax_rows(Index rows, Index n, Index stride, float* s, float* kept) {
  AttentionRows a{rows, n, stride, 1.0};
  attention_softmax(a, s, kept);
}

void attention_softmax(const AttentionRows& a, float* s, float* kept) {
  const Exp exp;
  const Vector scale = constant(static_cast<float>(a.scale)), lowest = constant(-HUGE_VALF);
  for (Index r = 0; r < a.rows; ++r, s += a.stride) {
    const Index n = a.length(r);
    Vector largest = lowest;
    for_each_vector(n, [&](Index j, auto use) {
      largest = hn::Max(largest, use.otherwise(hn::Mul(scale, use.load(s + j)), lowest));
    });
    const float row_maximum = maximum(largest);
    const Vector minus_maximum = set(-row_maximum);
    Vector total = hn::Zero(tag);
    for_each_vector(n, [&](Index j, auto use) {
      const Vector e = exp.below_88(hn::Add(hn::Mul(scale, use.load(s + j)), minus_maximum));
      total = hn::Add(total, use.otherwise(e, hn::Zero(tag)));
      use.store(e, s + j);
    });
    const float row_sum = sum(total);
    const Vector factor = set(1.0f / row_sum);
    for_each_vector(n, [&](Index j, auto use) { use.store(hn::Mul(factor, use.load(s + j)), s + j); });
    zero_beyond(a, n, s);
    if (kept) kept[2 * r] = row_maximum, kept[2 * r + 1] = row_sum;
  }
}

void attention_softmax_again(const AttentionRows& a, float* s, const float* kept) {
  const Exp exp;
  const Vector scale = constant(static_cast<float>(a.scale));
  for (Index r = 0; r < a.rows; ++r, s += a.stride) {
    const Index n = a.length(r);
    const Vector minus_maximum = set(-kept[2 * r]), factor = set(1.0f / kept[2 * r + 1]);
    for_each_vector(n, [&](Index j, auto use) {
      const Vector e = exp.below_88(hn::Add(hn::Mul(scale, use.load(s + j)), minus_maximum));
      use.store(hn::Mul(factor, e), s + j);
    });
    zero_beyond(a, n, s);
  }
}

void attention_softmax_backward(const AttentionRows& a, const float* p, float* dp) {
  const Vector scale = set(static_cast<float>(a.scale));
  for (Index r = 0; r < a.rows; ++r, p += a.stride, dp += a.stride) {
    const Index n = a.length(r);
    Vector products = hn::Zero(tag);
    for_each_vector(n, [&](Index j, auto use) {
      products = hn::Add(products, use.otherwise(hn::Mul(use.load(p + j), use.load(dp + j)), hn::Zero(tag)));
    });
    const Vector row_sum = set(sum(products));
    for_each_vector(n, [&](Index j, auto use) {
      const Vector difference = hn::Sub(use.load(dp + j), row_sum);
      use.store(hn::Mul(scale, hn::Mul(use.load(p + j), difference)), dp + j);
    });
    zero_beyond(a, n, dp);
  }
}

}  // namespace heed::kernels

#endif
