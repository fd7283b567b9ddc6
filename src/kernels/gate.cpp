#include "heed/kernels/gate.h"

#ifndef HEED_REFERENCE

#include "heed/kernels/simd.h"

namespace heed::kernels {

using namespace simd;

namespace {

/// x / (1 + e^-q): 0 where e^-q is infinite. A division takes as long as six products but keeps the unit busy for two,
/// so that between those of exp it is cheaper than an approximate reciprocal and a step that refines it.
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
    for_each_vector(out.columns, [&](Index i, auto use) {
      use.store(gate.times(use.load(q[r] + i), use.load(y[r] + i)), out[r] + i);
    });
}

void gate_backward(Matrix<const float> q, Matrix<const float> y, Matrix<const float> dout, Update update,
                   Matrix<float> dq, Matrix<float> dy) {
  const Logistic logistic;
  for (Index r = 0; r < dy.rows; ++r)
    for_each_vector(dy.columns, [&](Index i, auto use) {
      const Vector gate = logistic(use.load(q[r] + i)), gated = hn::Mul(gate, use.load(dout[r] + i));
      const Vector product = hn::Mul(gated, use.load(y[r] + i));
      write(update, use, hn::NegMulAdd(product, gate, product), dq[r] + i);
      use.store(gated, dy[r] + i);
    });
}

}  // namespace heed::kernels

#endif
