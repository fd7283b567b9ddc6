// l1 distances of adder layers and adder attention, and their gradients.
#include "heed/bench/kernels.h"

#include "heed/kernels/distances/l1_distance.h"

namespace heed::bench {

namespace {

KernelCase distances(const std::string& where, Index rows, Index out, Index in) {
  return kernel_case("l1 distance", where, fmt::format("{} x {} x {}", rows, out, in),
                     {{Resource::l1, rows * out * in}}, [=](Operands& operands) {
                       const Matrix x(operands.in(rows * in), rows, in), w(operands.in(out * in), out, in);
                       const Matrix y(operands.out(rows * out), rows, out);
                       const float* const bias = operands.in(out);
                       return [=] { kernels::negative_l1_by_maxima(x, w, bias, y); };
                     });
}

KernelCase scores(const std::string& where, Index rows, Index keys, Index width) {
  return kernel_case("l1 scores", where, fmt::format("{} x {} x {}", rows, keys, width),
                     {{Resource::l1, rows * keys * width}}, [=](Operands& operands) {
                       const Matrix q(operands.in(rows * width), rows, width),
                           k(operands.in(keys * width), keys, width);
                       const Matrix s(operands.out(rows * keys), rows, keys);
                       return [=] { kernels::negative_l1(q, k, s); };
                     });
}

/// By the input, of `out` terms each, and by the weight, of `rows` terms each, to which the gradient comes transposed.
KernelCase input_gradient(const std::string& where, Index rows, Index out, Index in) {
  return kernel_case("clamped gradient", where, fmt::format("{} x {} x {}", rows, in, out),
                     {{Resource::clamp, rows * in * out}}, [=](Operands& operands) {
                       const Matrix x(operands.in(rows * in), rows, in), w(operands.in(out * in), out, in);
                       const Matrix dy(operands.in(rows * out), rows, out);
                       const Matrix dx(operands.out(rows * in), rows, in);
                       return [=] {
                         kernels::negative_l1_gradient(DistanceGradient::hardtanh, x, w, dy, Update::assign, dx);
                       };
                     });
}
KernelCase weight_gradient(const std::string& where, Index rows, Index out, Index in) {
  return kernel_case(
      "adder weight gradient", where, fmt::format("{} x {} x {}", out, in, rows),
      {{Resource::gemm, 2 * rows * in * out}}, [=](Operands& operands) {
        const Matrix w(operands.in(out * in), out, in), x(operands.in(rows * in), rows, in);
        const Matrix dy(operands.in(rows * out), rows, out);
        const Matrix dw(operands.out(out * in), out, in);
        return [=] { kernels::negative_l1_gradient(DistanceGradient::full, w, x, transposed(dy), Update::assign, dw); };
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
