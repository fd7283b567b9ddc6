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

void gate_forward(Index n, const float* q, const float* y, float* out) {
  const Logistic gate;
  for_each_vector(n, [&](Index i, auto use) { use.store(gate.times(use.load(q + i), use.load(y + i)), out + i); });
}

void gate_backward(Index n, const float* q, const float* y, const float* dout, Update update, float* dq, float* dy) {
  const Logistic logistic;
  for_each_vector(n, [&](Index i, auto use) {
    const Vector gate = logistic(use.load(q + i)), gated = hn::Mul(gate, use.load(dout + i));
    const Vector product = hn::Mul(gated, use.load(y + i));
    write(update, use, hn::NegMulAdd(product, gate, product), dq + i);
    use.store(gated, dy + i);
  });
}

}  // namespace heed::kernels

#endif
