// A layer passes independent heads to the mechanism one by one if they are large, otherwise all at once.
#include "support/mechanism.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

/// Returns the shape of a square grid without a class token.
AttentionShape grid_of(Index side) { return {.grid_height = side, .grid_width = side}; }

Tensors operands_of(Index heads, Index side, Index channels) {
  Tensors given;
  for (const char* name : {"q", "k", "v", "dout"})
    given[name] = random_tensor(Shape{1, heads, side * side, channels}, 10 + given.size());
  return given;
}

Tensor<double> head_of(const Tensor<double>& x, Index head) {
  const Shape& s = x.shape();
  Tensor<double> one(Shape{1, 1, s[2], s[3]});
  std::copy_n(x.begin() + head * one.size(), one.size(), one.begin());
  return one;
}

/// Checks that results and gradients of all heads have the same bits as each head alone.
template <class T>
void check_heads(const std::string& name, const OptionValues& options, Index side, Index channels) {
  const bool keys = make_mechanism(name, options)->layout(3 * channels, 3).key_width > 0;
  const Tensors given = operands_of(3, side, channels), all = run_mechanism<T>(name, options, given, grid_of(side));
  for (Index head = 0; head < 3; ++head) {
    Tensors one;
    for (const auto& [tensor, values] : given) one[tensor] = head_of(values, head);
    one = run_mechanism<T>(name, options, one, grid_of(side));
    for (const char* result : {"out", "dq", "dk", "dv"}) {
      if (!keys && result == std::string("dk")) continue;
      const Tensor<double> expected = head_of(all.at(result), head);
      BOOST_TEST(std::equal(expected.begin(), expected.end(), one.at(result).begin()),
                 name << ", head " << head << " of " << side * side << " tokens: " << result);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_operation)

BOOST_AUTO_TEST_CASE(independent_heads_are_computed_alone_or_together) {
  int checked = 0;
  for (const MechanismEntry& entry : mechanisms())
    for (const OptionValues& options : entry.variants()) {
      const auto mechanism = make_mechanism(entry.name, options);
      AttentionShape shape = grid_of(6);
      shape.heads = 3, shape.queries = shape.keys = 36, shape.width = shape.value_width = 8;
      if (!mechanism->traits().independent_heads || !mechanism->parameters(shape).empty()) continue;
      check_heads<float>(entry.name, options, 6, 8);
      check_heads<double>(entry.name, options, 6, 8);
      check_heads<float>(entry.name, options, 12, 32);  // enough work for separate threads
      ++checked;
    }
  BOOST_TEST(checked >= 20);
}

BOOST_AUTO_TEST_SUITE_END()
