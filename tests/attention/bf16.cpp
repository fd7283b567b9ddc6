// Products in bfloat16: rounding the operands to bfloat16 first changes neither results nor gradients, since every
// product rounds them. A product in float would differ.
#include "support/mechanism.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>

using namespace heed;

namespace {

constexpr Index N = 100, d = 8, e = 6;  // several blocks of queries

struct RoundedOperands {
  const char* name;
  OptionValues options;
  std::vector<const char*> operands;  ///< used in products only
};

/// Returns operands of two images with two heads, and the mechanism's parameters.
Tensors drawn(const Mechanism& mechanism, const AttentionShape& grid) {
  const AttentionLayout layout = mechanism.layout(2 * d, 2);
  Tensors x{{"v", random_tensor({2, 2, N, e}, 3)}, {"dout", random_tensor({2, 2, N, e}, 4)}};
  if (layout.query_width > 0) x["q"] = random_tensor({2, 2, N, d}, 1, 2);
  if (layout.key_width > 0) x["k"] = random_tensor({2, 2, N, d}, 2, 2);
  for (const ParameterSpec& spec : mechanism.parameters(layout.among(N, grid)))
    x[spec.name] = random_tensor(spec.shape, 5 + x.size());
  return x;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_bf16)

BOOST_AUTO_TEST_CASE(operands_of_products_are_rounded) {
  const AttentionShape grid{.grid_height = 10, .grid_width = 10};
  const std::vector<const char*> all{"q", "k", "v", "dout"}, values{"v", "dout"};
  for (const auto& [name, options, operands] :
       std::vector<RoundedOperands>{{"softmax", {}, all},
                                    {"softmax", {{"causal", "true"}}, all},
                                    {"pointwise", {{"phi", "softplus"}}, all},
                                    {"pointwise", {{"causal", "true"}}, all},
                                    {"window", {{"window", "5"}}, all},
                                    {"window", {{"window", "5"}, {"dims", "2"}, {"shift", "2"}}, all},
                                    {"sima", {{"norm", "none"}, {"order", "qk_first"}}, all},
                                    {"sima", {{"norm", "none"}, {"order", "kv_first"}}, all},
                                    {"sima", {}, values},
                                    {"linformer", {{"length", "7"}}, {"q", "k", "v", "e", "f", "dout"}},
                                    {"synthesizer", {}, {"q", "v", "w1", "w2", "dout"}},
                                    {"synthesizer", {{"causal", "true"}}, {"q", "v", "w1", "w2", "dout"}},
                                    {"synthesizer", {{"kind", "random"}}, values},
                                    {"nystrom", {{"landmarks", "5"}}, values},
                                    {"efficient", {}, values},
                                    {"linear", {}, {"v"}},
                                    {"linear", {{"causal", "true"}}, {"v"}},
                                    {"cosformer", {{"reweight", "1d"}}, {"v"}}}) {
    const Tensors x = drawn(*make_mechanism(name, options), grid);
    Tensors rounded = x;
    for (const char* operand : operands)
      for (double& value : rounded.at(operand)) value = kernels::round_to_bf16(static_cast<float>(value));
    const auto run = [&, &name = name, &options = options](const Tensors& given, Products products) {
      Tensors results = run_mechanism<float>(name, options, given, grid, products);
      std::erase_if(results, [](const auto& result) { return result.first.starts_with("picture."); });  // no products
      return results;
    };
    const std::string what = std::string(name) + ", " + std::to_string(options.size()) + " options";
    const Tensors of_rounded = run(rounded, Products::bf16);
    check_same(run(x, Products::bf16), of_rounded, 0, what);
    const Tensor<double> exact = run(rounded, Products::exact).at("out");
    BOOST_TEST(!std::equal(exact.begin(), exact.end(), of_rounded.at("out").begin()), what << ": products are exact");
  }
}

BOOST_AUTO_TEST_SUITE_END()
