// Matrix products of the linear layers and of attention's heads.
#include "heed/bench/kernels.h"

#include "heed/kernels/gemm_by_stride.h"

namespace heed::bench {

namespace {

struct Product {
  Transpose a, b;
  Index m, n, k, lda, ldb, ldc;
};

KernelCase product(std::string kernel, std::string where, const Product& p) {
  return {std::move(kernel),
          std::move(where),
          fmt::format("{} x {} x {}", p.m, p.n, p.k),
          {{Resource::gemm, 2 * p.m * p.n * p.k}},
          [p](Operands& operands) {
            const float *a = operands.in(p.a == Transpose::no ? p.m * p.lda : p.k * p.lda),
                        *b = operands.in(p.b == Transpose::no ? p.k * p.ldb : p.n * p.ldb);
            float* const c = operands.out(p.m * p.ldc);
            return [=] { kernels::gemm(p.a, p.b, p.m, p.n, p.k, a, p.lda, b, p.ldb, Update::assign, c, p.ldc); };
          }};
}

}  // namespace

std::vector<KernelCase> product_cases(const ModelSizes& model) {
  constexpr Transpose no = Transpose::no, yes = Transpose::yes;
  const Index rows = model.rows(), n = model.tokens, d = model.head(), map_rows = model.map_rows();
  std::vector<KernelCase> cases;
  for (const auto& [layer, in, out] : model.layers()) {
    const std::string where = fmt::format("{} {}", model.name, layer);
    cases.push_back(product("gemm forward", where, {no, yes, rows, out, in, in, in, out}));
    cases.push_back(product("gemm input gradient", where, {no, no, rows, in, out, out, in, in}));
    cases.push_back(product("gemm weight gradient", where, {yes, no, out, in, rows, out, in, in}));
  }
  const std::string head = fmt::format("{} head", model.name);
  cases.push_back(product("gemm q k^T", head, {no, yes, map_rows, n, d, d, d, model.map_stride()}));
  cases.push_back(product("gemm A v", head, {no, no, map_rows, d, n, model.map_stride(), d, d}));
  return cases;
}

}  // namespace heed::bench
