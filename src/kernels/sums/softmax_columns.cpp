#include "heed/kernels/sums/softmax_columns.h"

#ifndef HEED_NO_SIMD

#include "src/kernels/shared/channel_blocks.h"

namespace heed::kernels {

using namespace simd;

namespace {

/// Calls f(row, chain) for all rows. A single vector of channels has four independent chains of additions or maxima, to
/// hide their latency.
template <int vectors, class F>
void over_rows(Index rows, const F& f) {
  Index r = 0;
  if constexpr (vectors == 1)
    for (; r + 4 <= rows; r += 4) f(r, 0), f(r + 1, 1), f(r + 2, 2), f(r + 3, 3);
  for (; r < rows; ++r) f(r, 0);
}

/// Sums or maxima of `vectors` vectors, in chains.
template <int vectors>
struct Chains {
  static constexpr int count = vectors == 1 ? 4 : 1;
  Vector v[count][vectors];

  explicit Chains(Vector start) {
    for (auto& chain : v)
      for (Vector& x : chain) x = start;
  }
  template <class F>
  void join(const F& f) {
    for (int i = 0; i < vectors; ++i)
      for (int chain = 1; chain < count; ++chain) v[0][i] = f(v[0][i], v[chain][i]);
  }
};

}  // namespace

void softmax_columns(Matrix<const float> x, Matrix<float> y) {
  const Exp exp;
  for_each_block(x.columns, [&](Index first, auto count, auto use) {
    Chains<count> largest(set(-HUGE_VALF)), sums(hn::Zero(tag));
    over_rows<count>(x.rows, [&](Index r, int chain) {
      for (int i = 0; i < count; ++i)
        largest.v[chain][i] = hn::Max(largest.v[chain][i], use.load(x[r] + first + i * lanes));
    });
    largest.join([](Vector a, Vector b) { return hn::Max(a, b); });
    over_rows<count>(x.rows, [&](Index r, int chain) {
      for (int i = 0; i < count; ++i) {
        const Vector e = exp.below_88(hn::Sub(use.load(x[r] + first + i * lanes), largest.v[0][i]));
        sums.v[chain][i] = hn::Add(sums.v[chain][i], e);
        use.store(e, y[r] + first + i * lanes);
      }
    });
    sums.join([](Vector a, Vector b) { return hn::Add(a, b); });
    for (int i = 0; i < count; ++i) {
      const Vector factor = hn::Div(set(1.0f), sums.v[0][i]);
      float* to = y.data + first + i * lanes;
      for (Index r = 0; r < y.rows; ++r, to += y.stride) use.store(hn::Mul(factor, use.load(to)), to);
    }
  });
}

void softmax_columns_backward(Matrix<const float> y, Matrix<const float> dy, Update update, Matrix<float> dx) {
  for_each_block(y.columns, [&](Index first, auto count, auto use) {
    Chains<count> sums(hn::Zero(tag));
    over_rows<count>(y.rows, [&](Index r, int chain) {
      for (int i = 0; i < count; ++i) {
        const Index c = first + i * lanes;
        sums.v[chain][i] = hn::MulAdd(use.load(y[r] + c), use.load(dy[r] + c), sums.v[chain][i]);
      }
    });
    sums.join([](Vector a, Vector b) { return hn::Add(a, b); });
    for (Index r = 0; r < y.rows; ++r)
      for (int i = 0; i < count; ++i) {
        const Index c = first + i * lanes;
        write(update, use, hn::Mul(use.load(y[r] + c), hn::Sub(use.load(dy[r] + c), sums.v[0][i])), dx[r] + c);
      }
  });
}

}  // namespace heed::kernels

#endif
