#include "heed/kernels/sums/softmax_columns.h"

#ifndef HEED_NO_SIMD

#include "src/kernels/shared/channel_blocks.h"

namespace heed::kernels {

using namespace simd;

namespace {

/// Calls even(r) and odd(r) in turn for all rows. Two independent maxima or sums hide the latency of an operation.
template <class Even, class Odd>
void in_turn(Index rows, const Even& even, const Odd& odd) {
  Index r = 0;
  for (; r + 2 <= rows; r += 2) even(r), odd(r + 1);
  if (r < rows) even(r);
}

}  // namespace

void softmax_columns(Matrix<const float> x, Matrix<float> y) {
  const Exp exp;
  for_each_block(x.columns, [=](Index first, auto count, auto use) {
    Vector largest[count], of_odd[count];
    for (int i = 0; i < count; ++i) largest[i] = of_odd[i] = set(-HUGE_VALF);
    const auto maximum = [&](Index r, Vector largest, int i) {
      return hn::Max(largest, use.load(x[r] + first + i * lanes));
    };
    in_turn(
        x.rows,
        [&](Index r) {
          for (int i = 0; i < count; ++i) largest[i] = maximum(r, largest[i], i);
        },
        [&](Index r) {
          for (int i = 0; i < count; ++i) of_odd[i] = maximum(r, of_odd[i], i);
        });
    for (int i = 0; i < count; ++i) largest[i] = hn::Max(largest[i], of_odd[i]);
    // One sum: the next exp takes longer than an addition.
    Vector sums[count];
    for (Vector& sum : sums) sum = hn::Zero(tag);
    for (Index r = 0; r < x.rows; ++r)
      for (int i = 0; i < count; ++i) {
        const Vector e = exp.below_88(hn::Sub(use.load(x[r] + first + i * lanes), largest[i]));
        sums[i] = hn::Add(sums[i], e);
        use.store(e, y[r] + first + i * lanes);
      }
    for (int i = 0; i < count; ++i) {
      const Vector factor = hn::Div(set(1.0f), sums[i]);
      float* to = y.data + first + i * lanes;
      for (Index r = 0; r < y.rows; ++r, to += y.stride) use.store(hn::Mul(factor, use.load(to)), to);
    }
  });
}

void softmax_columns_backward(Matrix<const float> y, Matrix<const float> dy, Update update, Matrix<float> dx) {
  for_each_block(y.columns, [=](Index first, auto count, auto use) {
    Vector sums[count], of_odd[count];
    for (int i = 0; i < count; ++i) sums[i] = of_odd[i] = hn::Zero(tag);
    const auto add = [&](Index r, Vector sum, int i) {
      const Index c = first + i * lanes;
      return hn::MulAdd(use.load(y[r] + c), use.load(dy[r] + c), sum);
    };
    in_turn(
        y.rows,
        [&](Index r) {
          for (int i = 0; i < count; ++i) sums[i] = add(r, sums[i], i);
        },
        [&](Index r) {
          for (int i = 0; i < count; ++i) of_odd[i] = add(r, of_odd[i], i);
        });
    for (int i = 0; i < count; ++i) sums[i] = hn::Add(sums[i], of_odd[i]);
    for (Index r = 0; r < y.rows; ++r)
      for (int i = 0; i < count; ++i) {
        const Index c = first + i * lanes;
        write(update, use, hn::Mul(use.load(y[r] + c), hn::Sub(use.load(dy[r] + c), sums[i])), dx[r] + c);
      }
  });
}

}  // namespace heed::kernels

#endif
