#include "heed/kernels/sums/softmax_columns.h"

#ifndef HEED_NO_SIMD

#include "src/kernels/shared/channel_blocks.h"

namespace heed::kernels {

using namespace simd;

namespace {

/// Computes the maxima or sums of `count` vectors of channels over rows, in two chains, one of even and one of odd
/// rows, to hide the latency of an operation. add(result, r, i) adds vector i of row r to a chain; join(a, b) combines
/// the two chains.
template <int count, class Add, class Join>
HWY_INLINE void reduce_rows(Index rows, Vector start, const Add& add, const Join& join, Vector (&results)[count]) {
  Vector odd[count];
  for (int i = 0; i < count; ++i) results[i] = odd[i] = start;
  Index r = 0;
  for (; r + 2 <= rows; r += 2) {
    for (int i = 0; i < count; ++i) results[i] = add(results[i], r, i);
    for (int i = 0; i < count; ++i) odd[i] = add(odd[i], r + 1, i);
  }
  for (int i = 0; i < count && r < rows; ++i) results[i] = add(results[i], r, i);
  for (int i = 0; i < count; ++i) results[i] = join(results[i], odd[i]);
}

}  // namespace

void softmax_columns(Matrix<const float> x, Matrix<float> y) {
  const Exp exp;
  for_each_block(x.columns, [=](Index first, auto count, auto use) {
    Vector largest[count], sums[count];
    reduce_rows<count>(
        x.rows, set(-HUGE_VALF),
        [&](Vector most, Index r, int i) { return hn::Max(most, use.load(x[r] + first + i * lanes)); },
        [](Vector a, Vector b) { return hn::Max(a, b); }, largest);
    // One chain suffices: exp takes longer than an addition.
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
    Vector sums[count];
    reduce_rows<count>(
        y.rows, hn::Zero(tag),
        [&](Vector sum, Index r, int i) {
          const Index c = first + i * lanes;
          return hn::MulAdd(use.load(y[r] + c), use.load(dy[r] + c), sum);
        },
        [](Vector a, Vector b) { return hn::Add(a, b); }, sums);
    for (Index r = 0; r < y.rows; ++r)
      for (int i = 0; i < count; ++i) {
        const Index c = first + i * lanes;
        write(update, use, hn::Mul(use.load(y[r] + c), hn::Sub(use.load(dy[r] + c), sums[i])), dx[r] + c);
      }
  });
}

}  // namespace heed::kernels

#endif
