// Memory-bound kernels, with little work per element.
#include "heed/bench/kernels.h"

#include "heed/kernels/elements/adamw.h"
#include "heed/kernels/rows/layer_norm.h"
#include "heed/kernels/rows/rows.h"
#include "heed/kernels/rows/softmax.h"
#include "heed/ops/cross_entropy.h"

#include <memory>

namespace heed::bench {

std::vector<KernelCase> row_cases(const ModelSizes& model) {
  constexpr Index classes = 10;
  const std::string name = model.name;
  const Index rows = model.rows(), D = model.dim, all = model.parameters;
  const Index map_rows = model.map_rows(), N = model.tokens, stride = model.map_stride();
  const std::string size = fmt::format("{} x {}", rows, D);
  KernelCases cases;
  cases.add("softmax backward", name + " head", fmt::format("{} x {}", map_rows, N), {}, [=](Operands& o) {
    // With p = 1 / N everywhere and the scale N, the kernel only subtracts each row's mean from dp, so every call can
    // reuse dp.
    const float* const equal = o.filled(map_rows * stride, 1.0F / static_cast<float>(N));
    const Matrix<const float> p(equal, map_rows, N, stride);
    const kernels::ScoreRows rule{static_cast<double>(N)};
    return [=, dp = o.in_out(map_rows, N, stride)] { kernels::attention_softmax_backward(rule, p, dp); };
  });
  cases.add("layer norm forward", name, size, {}, [=](Operands& o) {
    const Matrix<const float> x = o.in(rows, D);
    const kernels::RowNorm<float> norm{o.in(D), o.in(D), 1e-5};
    return [=, y = o.out(rows, D), statistics = o.out(rows, 2)] {
      kernels::layer_norm_forward(norm, x, {}, y, statistics);
    };
  });
  cases.add("layer norm backward", name, size, {}, [=](Operands& o) {
    return [=, x = o.in(rows, D), gamma = o.in(D), statistics = o.in(rows, 2), dy = o.in(rows, D),
            dx = o.out(rows, D)] { kernels::layer_norm_backward(gamma, x, statistics, dy, Update::assign, dx); };
  });
  cases.add("layer norm parameters", name, size, {}, [=](Operands& o) {
    return [=, x = o.in(rows, D), statistics = o.in(rows, 2), dy = o.in(rows, D), sums = o.out(2, D)] {
      kernels::layer_norm_parameter_gradients(x, statistics, dy, Update::assign, sums);
    };
  });
  cases.add("bias gradient", name, size, {}, [=](Operands& o) {
    return [=, dy = o.in(rows, D), db = o.out(D)] { kernels::column_sums(dy, Update::assign, db); };
  });
  cases.add("cross entropy", name, fmt::format("{} x {}", ModelSizes::images, classes),
            {{Resource::exp, ModelSizes::images * classes}}, [](Operands& o) {
              const Shape shape{ModelSizes::images, classes};
              const View<const float> logits(o.in(shape.elements()), shape), targets(o.in(shape.elements()), shape);
              return [=, tape = std::make_shared<Tape<float>>()] {
                tape->clear();
                tape->backward(cross_entropy(tape->input(logits), targets, 0, ModelSizes::images));
              };
            });
  cases.add("adamw", name, fmt::format("{}", all), {}, [=](Operands& o) {
    return [=, w = o.in_out(all), gradient = o.in(all), m = o.in_out(all), v = o.in_out(all)] {
      kernels::adamw({.lr = 1e-3}, all, w, gradient, m, v);
    };
  });
  return cases;
}

}  // namespace heed::bench
