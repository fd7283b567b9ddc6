// Kernels with an exp per element, or with a replacement for it, such as gelu's polynomial with AVX-512.
#include "heed/bench/kernels.h"

#include "heed/kernels/elements/activation.h"
#include "heed/kernels/sums/exp_sums.h"
#include "heed/kernels/elements/gate.h"
#include "heed/kernels/rows/softmax.h"
#include "heed/ops/rows.h"

namespace heed::bench {

namespace {

/// Returns the case of a kernel with one exp per element of [rows, columns]; prepare(operands) returns the call.
template <class Prepare>
KernelCase exponentials(const char* kernel, std::string where, Index rows, Index columns, const Prepare& prepare) {
  return {kernel, std::move(where), fmt::format("{} x {}", rows, columns), {{Resource::exp, rows * columns}}, prepare};
}

}  // namespace

std::vector<KernelCase> exponential_cases(const ModelSizes& model) {
  const std::string name = model.name, head = name + " head", image = name + " image";
  const Index rows = model.map_rows(), N = model.tokens, D = model.dim, stride = model.map_stride();
  // The number of rows that fused operations process at a time.
  const Index hidden_rows = std::min(model.rows(), rows_in_cache(model.hidden)), hidden = hidden_rows * model.hidden;
  const kernels::ScoreRows plain{1.0};
  return {
      exponentials("softmax forward", head, rows, N,
                   [=](Operands& o) {
                     return [=, s = o.in_out(rows, N, stride), kept = o.out(rows, 2)] {
                       kernels::attention_softmax(plain, s, kept);
                     };
                   }),
      exponentials("softmax again", head, rows, N,
                   [=](Operands& o) {
                     return [=, s = o.in_out(rows, N, stride), kept = o.in(rows, 2)] {
                       kernels::attention_softmax_again(plain, s, kept);
                     };
                   }),
      exponentials("gelu forward", name + " fc1", hidden_rows, model.hidden,
                   [=](Operands& o) {
                     return [=, x = o.in(hidden), y = o.out(hidden)] { kernels::gelu_forward(hidden, x, y); };
                   }),
      exponentials("gelu backward", name + " fc1", hidden_rows, model.hidden,
                   [=](Operands& o) {
                     return [=, x = o.in(hidden), dy = o.in(hidden), dx = o.out(hidden)] {
                       kernels::gelu_backward(hidden, x, dy, Update::assign, dx);
                     };
                   }),
      exponentials("sigmoid gate forward", image, N, D,
                   [=](Operands& o) {
                     return
                         [=, q = o.in(N, D), y = o.in(N, D), out = o.out(N, D)] { kernels::gate_forward(q, y, out); };
                   }),
      exponentials("sigmoid gate backward", image, N, D,
                   [=](Operands& o) {
                     return [=, q = o.in(N, D), y = o.in(N, D), dout = o.in(N, D), dq = o.out(N, D), dy = o.out(N, D)] {
                       kernels::gate_backward(q, y, dout, Update::assign, dq, dy);
                     };
                   }),
      exponentials("exp sums", image, N, D,
                   [=](Operands& o) {
                     const kernels::ExpSums<float> sums{o.out(1, D), o.out(1, D), o.out(1, D)};
                     const kernels::KeysAndValues<const float> keys{o.in(N, D), o.in(N, D)};
                     return [=] { kernels::exp_sums_of(keys, nullptr, sums); };
                   }),
      exponentials("exp of columns", image, N, D,
                   [=](Operands& o) {
                     const kernels::KeysAndValues<const float> keys{o.in(N, D), o.in(N, D)};
                     return [=, maximum = o.out(D), F = o.out(N, 2 * D)] { kernels::exp_of_columns(keys, maximum, F); };
                   }),
  };
}

}  // namespace heed::bench
