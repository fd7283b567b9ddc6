// Rows of attention maps are short (50 to 200 keys), so what counts is that a row's last partial vector costs no
// more than a whole one, and that the maximum and the sum of one row overlap with the next row's work.
#include "heed/kernels/softmax.h"

#ifndef HEED_REFERENCE

#include "simd.h"

#include <hwy/contrib/math/math-inl.h>

namespace heed::kernels {

using namespace simd;

namespace {

/// log_sum = maximum + log(sum), a vector of rows at a time: one call of the library's log for each row would
/// also make the row loop fetch its constants again.
class LogSums {
 public:
  explicit LogSums(float* log_sum) : log_sum_(log_sum) {}
  ~LogSums() { flush(); }
  LogSums(const LogSums&) = delete;
  LogSums& operator=(const LogSums&) = delete;

  void add(float maximum, float sum) {
    if (!log_sum_) return;
    maxima_[count_] = maximum, sums_[count_] = sum;
    if (++count_ == lanes) flush();
  }

 private:
  void flush() {
    for_each_vector(count_, [&](Index i, auto use) {
      use.store(hn::Add(use.load(maxima_ + i), hn::Log(tag, use.load(sums_ + i))), log_sum_);
    });
    log_sum_ += count_;
    count_ = 0;
  }

  float* log_sum_;
  Index count_ = 0;
  float maxima_[lanes], sums_[lanes];
};

void zero_beyond(const AttentionRows& a, Index n, float* s) {
  for_each_vector(a.columns - n, [&](Index j, auto use) { use.store(hn::Zero(tag), s + n + j); });
}

}  // namespace

void softmax_rows(Index rows, Index n, Index stride, float* s, float* log_sum) {
  AttentionRows a{rows, n, stride, 1.0};
  attention_softmax(a, s, log_sum);
}

void attention_softmax(const AttentionRows& a, float* s, float* log_sum) {
  const Exp exp;
  const Vector scale = constant(static_cast<float>(a.scale)), lowest = constant(-HUGE_VALF);
  LogSums log_sums(log_sum);
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
      const Vector e = exp.below_88(hn::MulAdd(scale, use.load(s + j), minus_maximum));
      total = hn::Add(total, use.otherwise(e, hn::Zero(tag)));
      use.store(e, s + j);
    });
    const float row_sum = sum(total);
    const Vector factor = set(1.0f / row_sum);
    for_each_vector(n, [&](Index j, auto use) { use.store(hn::Mul(factor, use.load(s + j)), s + j); });
    zero_beyond(a, n, s);
    log_sums.add(row_maximum, row_sum);
  }
}

void attention_softmax_again(const AttentionRows& a, float* s, const float* log_sum) {
  const Exp exp;
  const Vector scale = constant(static_cast<float>(a.scale));
  for (Index r = 0; r < a.rows; ++r, s += a.stride) {
    const Index n = a.length(r);
    const Vector minus_log_sum = set(-log_sum[r]);
    for_each_vector(
        n, [&](Index j, auto use) { use.store(exp(hn::MulAdd(scale, use.load(s + j), minus_log_sum)), s + j); });
    zero_beyond(a, n, s);
  }
}

void attention_softmax_backward(const AttentionRows& a, const float* p, const float* delta, float* dp) {
  const Vector scale = set(static_cast<float>(a.scale));
  for (Index r = 0; r < a.rows; ++r, p += a.stride, dp += a.stride) {
    const Index n = a.length(r);
    const Vector row_delta = set(delta[r]);
    for_each_vector(n, [&](Index j, auto use) {
      const Vector difference = hn::Sub(use.load(dp + j), row_delta);
      use.store(hn::Mul(scale, hn::Mul(use.load(p + j), difference)), dp + j);
    });
    zero_beyond(a, n, dp);
  }
}

}  // namespace heed::kernels

#endif
