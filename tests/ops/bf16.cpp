// Products in bfloat16: results and both gradients are products of rounded operands, whether weights are packed or not.
#include "heed/ops/conv2d.h"
#include "heed/ops/linear.h"
#include "heed/ops/patch_embedding.h"

#include "heed/base/random.h"
#include "heed/tape/packed_weights.h"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cmath>
#include <vector>

using namespace heed;

namespace {

/// Result and gradients of x and the weight, for a bilinear operation.
using Bilinear = std::array<std::vector<double>, 3>;

/// Returns numbers from N(0, 1), rounded to bfloat16 if `rounded`.
template <class T>
Tensor<T> normal_tensor(const Shape& shape, std::uint64_t seed, bool rounded) {
  Tensor<T> x(shape);
  for (Index i = 0; i < x.size(); ++i) {
    const auto value = static_cast<float>(RandomStream(seed).normal(i));
    x[i] = static_cast<T>(rounded ? kernels::round_to_bf16(value) : value);
  }
  return x;
}

template <class T, class Operation>
Bilinear bilinear(const Operation& operation, const Shape& x_shape, const ParameterSpec& weight, Products products,
                  bool packs, bool rounded) {
  ParameterList list;
  list.add(weight);
  Parameters<T> parameters(list);
  const Tensor<T> x = normal_tensor<T>(x_shape, 1, rounded), w = normal_tensor<T>(weight.shape, 2, rounded);
  std::copy(w.begin(), w.end(), parameters[0].begin());
  PackedWeights<T> packed;
  if (packs) packed.pack(products, parameters, true);
  Gradients<T> gradients(parameters);
  gradients.reset();
  Tape<T> tape(Pass<T>{.parameters = &parameters,
                       .packed = packs ? &packed : nullptr,
                       .gradients = &gradients,
                       .execution = {.products = products}});
  const Var<T> input = tape.input(x.view()), y = operation(input, tape.parameter(0));
  const Tensor<T> dy = normal_tensor<T>(y.shape(), 3, rounded);
  tape.backward(y, dy.view());
  const View<const T> dx = tape.gradient(input);
  return {std::vector<double>(y.data(), y.data() + y.size()), std::vector<double>(dx.begin(), dx.end()),
          std::vector<double>(gradients[0].begin(), gradients[0].end())};
}

/// Returns the largest difference relative to the largest element of b.
double apart(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0, off = 0;
  for (std::size_t i = 0; i < b.size(); ++i)
    most = std::max(most, std::abs(b[i])), off = std::max(off, std::abs(a[i] - b[i]));
  return off / most;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ops_bf16)

// Sums in float are within 1e-5 of those in double. Rounding, by up to 2^-9 of each operand, changes them by more than
// 1e-4, so an operand that is not rounded is detected.
BOOST_AUTO_TEST_CASE(products_of_rounded_operands) {
  const auto check_rounding = [](const char* name, const Shape& x, const Shape& weight, Multiplied multiplied,
                                 const auto& operation) {
    const ParameterSpec spec{.name = "weight", .shape = weight, .multiplied = multiplied};
    const Bilinear expected = bilinear<double>(operation, x, spec, Products::exact, false, true),
                   exact = bilinear<float>(operation, x, spec, Products::exact, false, false);
    for (const bool packs : {false, true}) {
      const Bilinear got = bilinear<float>(operation, x, spec, Products::bf16, packs, false);
      for (std::size_t part = 0; part < 3; ++part) {
        const char* const what = std::array{"y", "dx", "dW"}[part];
        BOOST_TEST(apart(got[part], expected[part]) < 1e-5, name << ", " << what << (packs ? ", packed" : ""));
        BOOST_TEST(apart(exact[part], expected[part]) > 1e-4, name << ", " << what);
      }
    }
  };
  const auto product = [](auto x, auto weight) { return linear(x, weight); };
  check_rounding("linear", {40, 70}, {35, 70}, Multiplied::linear, product);
  check_rounding("linear, few rows", {3, 70}, {35, 70}, Multiplied::linear, product);
  check_rounding("patch_embedding", {3, 2, 6, 8}, {5, 2, 3, 4}, Multiplied::no,
                 [](auto x, auto weight) { return patch_embedding(x, weight, {}); });
  check_rounding("conv2d, centred", {2, 30, 4}, {6, 4, 3, 3}, Multiplied::centred_convolution, [](auto x, auto weight) {
    return conv2d(x, weight, {}, {6, 5, 1, 1});
  });
  check_rounding("conv2d, strided", {2, 30, 4}, {6, 4, 3, 3}, Multiplied::convolution, [](auto x, auto weight) {
    return conv2d(x, weight, {}, {6, 5, 2, 1});
  });
}

BOOST_AUTO_TEST_SUITE_END()
