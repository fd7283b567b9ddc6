// Kernels that evaluate exp once per element or, for gelu, piecewise polynomials instead.
#include "heed/bench/kernels.h"

#include "heed/kernels/elements/activation.h"
#include "heed/kernels/sums/exp_sums.h"
#include "heed/kernels/elements/gate.h"
#include "heed/kernels/rows/softmax.h"
#include "heed/ops/rows.h"

namespace heed::bench {

std::vector<KernelCase> exponential_cases(const ModelSizes& model) {
  const std::string name = model.name, head = name + " head", image = name + " image";
  const Index rows = model.map_rows(), N = model.tokens, D = model.dim, stride = model.map_stride();
  // The number of rows that fused operations process at a time.
  const Index hidden_rows = std::min(model.rows(), rows_in_cache(model.hidden)), hidden = hidden_rows * model.hidden;
  const kernels::ScoreRows plain{1.0};
  KernelCases cases;
  // Adds a kernel with one exp per element of [m, n].
  const auto add = [&](const char* kernel, const std::string& where, Index m, Index n, const auto& prepare) {
    cases.add(kernel, where, fmt::format("{} x {}", m, n), {{Resource::exp, m * n}}, prepare);
  };
  add("softmax forward", head, rows, N, [=](Operands& o) {
    return [=, s = o.in_out(rows, N, stride), kept = o.out(rows, 2)] { kernels::attention_softmax(plain, s, kept); };
  });
  add("softmax again", head, rows, N, [=](Operands& o) {
    return
        [=, s = o.in_out(rows, N, stride), kept = o.in(rows, 2)] { kernels::attention_softmax_again(plain, s, kept); };
  });
  add("gelu forward", name + " fc1", hidden_rows, model.hidden,
      [=](Operands& o) { return [=, x = o.in(hidden), y = o.out(hidden)] { kernels::gelu_forward(hidden, x, y); }; });
  add("gelu backward", name + " fc1", hidden_rows, model.hidden, [=](Operands& o) {
    return [=, x = o.in(hidden), dy = o.in(hidden), dx = o.out(hidden)] {
      kernels::gelu_backward(hidden, x, dy, Update::assign, dx);
    };
  });
  add("sigmoid gate forward", image, N, D, [=](Operands& o) {
    return [=, q = o.in(N, D), y = o.in(N, D), out = o.out(N, D)] { kernels::gate_forward(q, y, out); };
  });
  add("sigmoid gate backward", image, N, D, [=](Operands& o) {
    return [=, q = o.in(N, D), y = o.in(N, D), dout = o.in(N, D), dq = o.out(N, D), dy = o.out(N, D)] {
      kernels::gate_backward(q, y, dout, Update::assign, dq, dy);
    };
  });
  add("exp sums", image, N, D, [=](Operands& o) {
    const kernels::ExpSums<float> sums{o.out(1, D), o.out(1, D), o.out(1, D)};
    const kernels::KeysAndValues<const float> keys{o.in(N, D), o.in(N, D)};
    return [=] { kernels::exp_sums_of(keys, nullptr, sums); };
  });
  add("exp of columns", image, N, D, [=](Operands& o) {
    const kernels::KeysAndValues<const float> keys{o.in(N, D), o.in(N, D)};
    return [=, maximum = o.out(D), F = o.out(N, 2 * D)] { kernels::exp_of_columns(keys, maximum, F); };
  });
  return cases;
}

}  // namespace heed::bench
