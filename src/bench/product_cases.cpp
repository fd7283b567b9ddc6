// Matrix products of the linear layers and of attention's heads.
#include "heed/bench/kernels.h"

#include "heed/kernels/products/gemm.h"

namespace heed::bench {

std::vector<KernelCase> product_cases(const ModelSizes& model) {
  const Index rows = model.rows(), n = model.tokens, d = model.head(), map_rows = model.map_rows();
  const Index stride = model.map_stride();
  KernelCases cases;
  // Adds C = A B for A [m, k]; factors(operands) allocates A and B.
  const auto add = [&](const char* kernel, const std::string& where, Index m, Index n, Index k, Index stride_of_c,
                       const auto& factors) {
    cases.add_product(kernel, where, Resource::gemm, m, n, k, [=](Operands& operands) {
      const std::pair<Operand<float>, Operand<float>> ab = factors(operands);
      return [=, c = operands.out(m, n, stride_of_c)] { kernels::gemm(ab.first, ab.second, c); };
    });
  };
  for (const ModelSizes::Layer& layer : model.layers()) {
    const std::string where = fmt::format("{} {}", model.name, layer.name);
    const Index in = layer.in, out = layer.out;
    add("gemm forward", where, rows, out, in, out,
        [=](Operands& o) { return std::pair(o.in(rows, in), transposed(o.in(out, in))); });
    add("gemm input gradient", where, rows, in, out, in,
        [=](Operands& o) { return std::pair(o.in(rows, out), o.in(out, in)); });
    add("gemm weight gradient", where, out, in, rows, in,
        [=](Operands& o) { return std::pair(transposed(o.in(rows, out)), o.in(rows, in)); });
  }
  const std::string head = fmt::format("{} head", model.name);
  add("gemm q k^T", head, map_rows, n, d, stride,
      [=](Operands& o) { return std::pair(o.in(map_rows, d), transposed(o.in(n, d))); });
  add("gemm A v", head, map_rows, d, n, d,
      [=](Operands& o) { return std::pair(o.in(map_rows, n, stride), o.in(n, d)); });
  return cases;
}

}  // namespace heed::bench
