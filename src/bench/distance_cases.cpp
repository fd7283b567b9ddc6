// l1 distances of adder layers and adder attention, and their gradients.
#include "heed/bench/kernels.h"

#include "heed/kernels/distances/l1_distance.h"

namespace heed::bench {

std::vector<KernelCase> distance_cases(const ModelSizes& model) {
  const Index rows = model.rows();
  KernelCases cases;
  for (const ModelSizes::Layer& layer : model.layers()) {
    const std::string where = fmt::format("{} {}", model.name, layer.name);
    const Index in = layer.in, out = layer.out;
    cases.add_product("l1 distance", where, Resource::l1, rows, out, in, [=](Operands& o) {
      return [=, x = o.in(rows, in), w = o.in(out, in), y = o.out(rows, out), bias = o.in(out)] {
        kernels::negative_l1_by_maxima(x, w, bias, y);
      };
    });
    // Each element of the input's gradient is a sum of `out` terms. Each element of the weight's gradient is a sum of
    // `rows` terms, and dy is transposed.
    cases.add_product("clamped gradient", where, Resource::clamp, rows, in, out, [=](Operands& o) {
      return [=, x = o.in(rows, in), w = o.in(out, in), dy = o.in(rows, out), dx = o.out(rows, in)] {
        kernels::negative_l1_gradient(DistanceGradient::hardtanh, x, w, dy, Update::assign, dx);
      };
    });
    cases.add_product("adder weight gradient", where, Resource::gemm, out, in, rows, [=](Operands& o) {
      return [=, w = o.in(out, in), x = o.in(rows, in), dy = o.in(rows, out), dw = o.out(out, in)] {
        kernels::negative_l1_gradient(DistanceGradient::full, w, x, transposed(dy), Update::assign, dw);
      };
    });
  }
  const Index queries = model.map_rows(), keys = model.tokens, width = model.head();
  const std::string head = fmt::format("{} head", model.name);
  cases.add_product("l1 scores", head, Resource::l1, queries, keys, width, [=](Operands& o) {
    return [=, q = o.in(queries, width), k = o.in(keys, width), s = o.out(queries, keys)] {
      kernels::negative_l1(q, k, s);
    };
  });
  return cases;
}

}  // namespace heed::bench
