// Costs of products in the papers' convention: a multiplication and an addition per term. tests/checks/cases.cpp counts
// the operations that run, which does not check this convention.
#include "heed/ops/adder_linear.h"
#include "heed/ops/conv2d.h"
#include "heed/ops/elementary/matmul.h"
#include "heed/ops/layer_norm.h"
#include "heed/ops/linear.h"
#include "heed/ops/patch_embedding.h"

#include <boost/test/unit_test.hpp>

#include <tuple>
#include <vector>

using namespace heed;

namespace {

/// Returns the cost of an operation on x and w; x has a gradient only if `want_x`.
template <class Operation>
Cost cost_of_two(const Shape& x, const Shape& w, bool want_x, const Operation& operation) {
  std::vector<TraceEntry> trace;
  Tape<double> tape(Pass<double>{.observers = {.trace = &trace}});
  const Tensor<double> of_x(x), of_w(w);
  operation(want_x ? tape.input(of_x.view()) : tape.constant(of_x.view()), tape.input(of_w.view()));
  return trace.at(0).cost;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ops_contractions)

// Each gradient has as many terms as the result.
BOOST_AUTO_TEST_CASE(terms_of_products) {
  const auto check_terms = [](const char* name, const Shape& x, const Shape& w, Index terms, const auto& operation) {
    for (const bool want_x : {false, true}) BOOST_TEST_CONTEXT(name << (want_x ? ", with dx" : "")) {
        const Cost cost = cost_of_two(x, w, want_x, operation);
        BOOST_TEST((cost.forward_contractions == Counts{.mul = terms, .add = terms}));
        const Index both = (want_x ? 2 : 1) * terms;
        BOOST_TEST((cost.backward_contractions == Counts{.mul = both, .add = both}));
        BOOST_TEST(cost.distances == 0);
      }
  };
  using D = Var<double>;
  check_terms("linear", {2, 3, 5}, {7, 5}, 6 * 5 * 7, [](D x, D w) { linear(x, w); });
  check_terms("patch_embedding", {2, 3, 4, 6}, {5, 3, 2, 3}, 2 * 4 * 18 * 5,
              [](D x, D w) { patch_embedding(x, w, {}); });
  // Windows of 3 x 3 at 2 x 3 positions.
  check_terms("conv2d", {2, 20, 3}, {4, 3, 3, 3}, 2 * 6 * 27 * 4, [](D x, D w) { conv2d(x, w, {}, {4, 5, 2, 1}); });
  check_terms("depthwise_conv2d", {2, 20, 3}, {3, 1, 3, 3}, 2 * 6 * 9 * 3, [](D x, D w) {
    depthwise_conv2d(x, w, {}, {4, 5, 2, 1});
  });
  check_terms("matmul", {2, 3, 4}, {2, 4, 5}, 2 * 3 * 4 * 5, [](D x, D w) { matmul(x, w); });
  check_terms("matmul, one matrix for all", {2, 3, 4}, {4, 5}, 2 * 3 * 4 * 5, [](D x, D w) { matmul(x, w); });
}

// A term |x - w| has two additions; its gradients have two more each, and a product unless only a sign is needed.
BOOST_AUTO_TEST_CASE(terms_of_distances) {
  constexpr Index terms = 6 * 5 * 7;
  using enum DistanceGradient;
  for (const auto& [input_grad, weight_grad, products] :
       {std::tuple(sign, sign, 0), {sign, full, 1}, {hardtanh, sign, 1}, {hardtanh, full, 2}}) {
    const Cost cost =
        cost_of_two({2, 3, 5}, {7, 5}, true, [&, input = input_grad, weight = weight_grad](auto x, auto w) {
          adder_linear(x, w, {}, {input, weight});
        });
    BOOST_TEST(cost.distances == terms);
    BOOST_TEST((cost.forward_contractions == Counts{.add = 2 * terms}));
    BOOST_TEST((cost.backward_contractions == Counts{.mul = products * terms, .add = 4 * terms}));
  }
}

BOOST_AUTO_TEST_SUITE_END()
