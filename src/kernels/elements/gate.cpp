#include "heed/kernels/elements/gate.h"

#ifndef HEED_NO_SIMD

#include "heed/kernels/shared/simd.h"

namespace heed::kernels {

using namespace simd;

namespace {

/// x / (1 + e^-q); 0 if e^-q is infinite. The division overlaps with the multiplications of exp, so it is cheaper than
/// an approximate reciprocal with a refinement step.
class Logistic {
 public:
  Vector times(Vector q, Vector x) const { return hn::Div(x, hn::Add(one_, exp_(hn::Neg(q)))); }
  Vector operator()(Vector q) const { return times(q, one_); }

 private:
  Exp exp_;
  Vector one_ = constant(1.0f);
};

}  // namespace

void gate_forward(Matrix<const float> q, Matrix<const float> y, Matrix<float> out) {
  const Logistic gate;
  for (Index r = 0; r < out.rows; ++r)
    for_each_vector(out.columns, [&gate, q = q[r], y = y[r], out = out[r]](Index i, auto use) {
      use.store(gate.times(use.load(q + i), use.load(y + i)), out + i);
    });
}

void gate_backward(Matrix<const float> q, Matrix<const float> y, Matrix<const float> dout, Update update,
                   Matrix<float> dq, Matrix<float> dy) {
  const Logistic logistic;
  for (Index r = 0; r < dq.rows; ++r) {
    const Update dy_update = sum_update(r, dy);
    for_each_vector(dq.columns, [&logistic, update, dy_update, q = q[r], y = y[r], dout = dout[r], dq = dq[r],
                                 dy = dy[r]](Index i, auto use) {
      const Vector gate = logistic(use.load(q + i)), gated = hn::Mul(gate, use.load(dout + i));
      const Vector product = hn::Mul(gated, use.load(y + i));
      write(update, use, hn::NegMulAdd(product, gate, product), dq + i);
      write(dy_update, use, gated, dy + i);
    });
  }
}

}  // namespace heed::kernels

#endif
