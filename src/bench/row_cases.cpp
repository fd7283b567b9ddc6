// Kernels that do little to each number: memory limits them.
#include "heed/bench/kernels.h"

#include "heed/kernels/adamw.h"
#include "heed/kernels/layer_norm.h"
#include "heed/kernels/rows.h"
#include "heed/kernels/softmax.h"
#include "heed/ops/cross_entropy.h"

#include <memory>

namespace heed::bench {

std::vector<KernelCase> row_cases(const ModelSizes& model) {
  constexpr Index classes = 10;
  const std::string name = model.name;
  const Index rows = model.rows(), D = model.dim, n = rows * D, all = model.parameters;
  const Index map_rows = model.map_rows(), N = model.tokens, stride = model.map_stride();
  const std::string size = fmt::format("{} x {}", rows, D);
  return {
      {"softmax backward",
       name + " head",
       fmt::format("{} x {}", map_rows, N),
       {},
       [=](Operands& o) {
         // dp stays what it is, but for its mean, where all p are 1 / N and the scale is N.
         float* const p = o.in_out(map_rows * stride);
         std::fill_n(p, map_rows * stride, 1.0F / static_cast<float>(N));
         const kernels::AttentionRows map{map_rows, N, stride, static_cast<double>(N)};
         return [=, dp = o.in_out(map_rows * stride)] { kernels::attention_softmax_backward(map, p, dp); };
       }},
      {"layer norm forward",
       name,
       size,
       {},
       [=](Operands& o) {
         return
             [=, x = o.in(n), gamma = o.in(D), beta = o.in(D), y = o.out(n), mean = o.out(rows), scale = o.out(rows)] {
               kernels::layer_norm_forward(rows, D, D, x, gamma, beta, 1e-5, nullptr, y, mean, scale);
             };
       }},
      {"layer norm backward",
       name,
       size,
       {},
       [=](Operands& o) {
         return [=, x = o.in(n), gamma = o.in(D), mean = o.in(rows), scale = o.in(rows), dy = o.in(n), dx = o.out(n)] {
           kernels::layer_norm_backward(rows, D, D, x, gamma, mean, scale, dy, Update::assign, dx);
         };
       }},
      {"layer norm parameters",
       name,
       size,
       {},
       [=](Operands& o) {
         return [=, x = o.in(n), mean = o.in(rows), scale = o.in(rows), dy = o.in(n), dgamma = o.out(D),
                 dbeta = o.out(D)] {
           kernels::layer_norm_parameter_gradients(rows, D, D, x, mean, scale, dy, Update::assign, dgamma, dbeta);
         };
       }},
      {"bias gradient",
       name,
       size,
       {},
       [=](Operands& o) {
         return [=, dy = o.in(n), db = o.out(D)] { kernels::column_sums(rows, D, dy, Update::assign, db); };
       }},
      {"cross entropy",
       name,
       fmt::format("{} x {}", ModelSizes::images, classes),
       {{Resource::exp, ModelSizes::images * classes}},
       [](Operands& o) {
         const Shape shape{ModelSizes::images, classes};
         const View<const float> logits(o.in(shape.elements()), shape), targets(o.in(shape.elements()), shape);
         return [=, tape = std::make_shared<Tape<float>>()] {
           tape->clear();
           tape->backward(cross_entropy(tape->input(logits), targets, 0, ModelSizes::images));
         };
       }},
      {"adamw",
       name,
       fmt::format("{}", all),
       {},
       [=](Operands& o) {
         return [=, w = o.in_out(all), gradient = o.in(all), m = o.in_out(all), v = o.in_out(all)] {
           kernels::adamw({.lr = 1e-3}, all, w, gradient, m, v);
         };
       }},
  };
}

}  // namespace heed::bench
