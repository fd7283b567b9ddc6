// l1 distances of adder layers and adder attention, and their gradients.
#include "heed/bench/kernels.h"

#include "heed/kernels/distances/l1_distance.h"

namespace heed::bench {

namespace {

KernelCase distances(const std::string& where, Index rows, Index out, Index in) {
  return product_case("l1 distance", where, Resource::l1, rows, out, in, [=](Operands& o) {
    return [=, x = o.in(rows, in), w = o.in(out, in), y = o.out(rows, out), bias = o.in(out)] {
      kernels::negative_l1_by_maxima(x, w, bias, y);
    };
  });
}

KernelCase scores(const std::string& where, Index rows, Index keys, Index width) {
  return product_case("l1 scores", where, Resource::l1, rows, keys, width, [=](Operands& o) {
    return [=, q = o.in(rows, width), k = o.in(keys, width), s = o.out(rows, keys)] { kernels::negative_l1(q, k, s); };
  });
}

/// Return the cases of the gradient of the input, with `out` terms per element, and of the weight, with `rows` terms
/// per element and dy transposed.
KernelCase input_gradient(const std::string& where, Index rows, Index out, Index in) {
  return product_case("clamped gradient", where, Resource::clamp, rows, in, out, [=](Operands& o) {
    return [=, x = o.in(rows, in), w = o.in(out, in), dy = o.in(rows, out), dx = o.out(rows, in)] {
      kernels::negative_l1_gradient(DistanceGradient::hardtanh, x, w, dy, Update::assign, dx);
    };
  });
}

KernelCase weight_gradient(const std::string& where, Index rows, Index out, Index in) {
  return product_case("adder weight gradient", where, Resource::gemm, out, in, rows, [=](Operands& o) {
    return [=, w = o.in(out, in), x = o.in(rows, in), dy = o.in(rows, out), dw = o.out(out, in)] {
      kernels::negative_l1_gradient(DistanceGradient::full, w, x, transposed(dy), Update::assign, dw);
    };
  });
}

}  // namespace

std::vector<KernelCase> distance_cases(const ModelSizes& model) {
  const Index rows = model.rows();
  std::vector<KernelCase> cases;
  for (const auto& [layer, in, out] : model.layers()) {
    const std::string where = fmt::format("{} {}", model.name, layer);
    cases.push_back(distances(where, rows, out, in));
    cases.push_back(input_gradient(where, rows, out, in));
    cases.push_back(weight_gradient(where, rows, out, in));
  }
  cases.push_back(scores(fmt::format("{} head", model.name), model.map_rows(), model.tokens, model.head()));
  return cases;
}

}  // namespace heed::bench
