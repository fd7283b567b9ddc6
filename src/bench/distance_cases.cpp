// l1 distances of adder layers and adder attention, and their gradients.
#include "heed/bench/kernels.h"

#include "heed/kernels/l1_distance.h"

namespace heed::bench {

namespace {

KernelCase distances(const std::string& where, Index rows, Index out, Index in) {
  return {"l1 distance",
          where,
          fmt::format("{} x {} x {}", rows, out, in),
          {{Resource::l1, rows * out * in}},
          [=](Operands& operands) {
            const float *x = operands.in(rows * in), *w = operands.in(out * in);
            float* const y = operands.out(rows * out);
            const float* const bias = operands.in(out);
            return [=] { kernels::negative_l1_by_maxima(rows, out, in, x, in, w, in, bias, y, out); };
          }};
}

KernelCase scores(const std::string& where, Index rows, Index keys, Index width) {
  return {"l1 scores",
          where,
          fmt::format("{} x {} x {}", rows, keys, width),
          {{Resource::l1, rows * keys * width}},
          [=](Operands& operands) {
            const float *q = operands.in(rows * width), *k = operands.in(keys * width);
            float* const s = operands.out(rows * keys);
            return [=] { kernels::negative_l1(rows, keys, width, q, width, k, width, Update::assign, s, keys); };
          }};
}

KernelCase gradient(const char* kernel, DistanceGradient form, Work work, Transpose transpose, const std::string& where,
                    Index rows, Index terms, Index width) {
  return {kernel, where, fmt::format("{} x {} x {}", rows, width, terms), {work}, [=](Operands& operands) {
            const float *x = operands.in(rows * width), *w = operands.in(terms * width), *g = operands.in(rows * terms);
            float* const dx = operands.out(rows * width);
            const Index ldg = transpose == Transpose::no ? terms : rows;
            return [=] {
              kernels::negative_l1_gradient(form, transpose, rows, terms, width, x, width, w, width, g, ldg,
                                            Update::assign, dx, width);
            };
          }};
}

}  // namespace

std::vector<KernelCase> distance_cases(const ModelSizes& model) {
  const Index rows = model.rows();
  std::vector<KernelCase> cases;
  for (const auto& [layer, in, out] : model.layers()) {
    const std::string where = fmt::format("{} {}", model.name, layer);
    const Index terms = rows * in * out;
    cases.push_back(distances(where, rows, out, in));
    cases.push_back(gradient("clamped gradient", DistanceGradient::hardtanh, {Resource::clamp, terms}, Transpose::no,
                             where, rows, out, in));
    cases.push_back(gradient("adder weight gradient", DistanceGradient::full, {Resource::gemm, 2 * terms},
                             Transpose::yes, where, out, rows, in));
  }
  cases.push_back(scores(fmt::format("{} head", model.name), model.map_rows(), model.tokens, model.head()));
  return cases;
}

}  // namespace heed::bench
