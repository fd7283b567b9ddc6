// The attention operation: heads, which are passed to the mechanism one by one or all at once; forms of its operands;
// batches of images; errors.
#include "support/mechanism.h"

#include "heed/checks/attention_case.h"
#include "heed/checks/costcheck.h"
#include "heed/ops/attention.h"
#include "heed/ops/elementary/shapes.h"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cmath>
#include <deque>

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

/// Checks that results and gradients of all heads have the same bits as those of each head alone.
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

/// Returns operands of `images` images, and parameters, for a mechanism on the grid of `shape`.
Tensors operands_of(const Mechanism& mechanism, const AttentionShape& shape, Index images) {
  const AttentionLayout layout = mechanism.layout(shape.heads * shape.value_width, shape.heads);
  Tensors given;
  const auto add = [&](const char* name, Index heads, Index width) {
    if (width > 0) given[name] = random_tensor({images, heads, shape.keys, width}, 10 + given.size());
  };
  add("q", layout.heads, layout.query_width);
  add("k", layout.key_heads, layout.key_width);
  add("v", layout.key_heads, layout.value_width);
  add("dout", given.contains("q") ? layout.heads : layout.key_heads, layout.value_width);
  for (const ParameterSpec& spec : mechanism.parameters(layout.among(shape.keys, shape))) {
    Tensor<double>& own = given[spec.name] = random_tensor(spec.shape, 10 + given.size());
    if (!spec.trainable) fill_initial(spec.initial, RandomStream(1), own.view());
  }
  return given;
}

bool has_images(const std::string& name) {
  return name == "q" || name == "k" || name == "v" || name == "dout" || name == "out" || name == "dq" || name == "dk" ||
         name == "dv" || name == "map";
}

/// Returns images [first, first + count) of operands or results and, with `others`, the tensors that have no images.
Tensors images_of(const Tensors& all, Index first, Index count, bool others) {
  Tensors some;
  for (const auto& [name, tensor] : all) {
    if (!has_images(name)) {
      if (others) some[name] = tensor;
      continue;
    }
    const View<const double> part = tensor.view().part(first, count);
    std::copy(part.begin(), part.end(), (some[name] = Tensor<double>(part.shape())).begin());
  }
  return some;
}

/// Calls f(mechanism, options, shape) for each variant of each mechanism, with a grid of 6 x 6 tokens.
template <class F>
void for_each_variant(Index heads, Index width, const F& f) {
  AttentionShape shape = grid_of(6);
  shape.heads = heads, shape.queries = shape.keys = 36, shape.width = shape.value_width = width;
  for (const MechanismEntry& entry : mechanisms())
    for (const OptionValues& options : entry.variants()) f(*make_mechanism(entry.name, options), options, shape);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_operation)

BOOST_AUTO_TEST_CASE(independent_heads_are_computed_alone_or_together) {
  int checked = 0;
  for_each_variant(3, 8, [&](const Mechanism& mechanism, const OptionValues& options, const AttentionShape& shape) {
    if (!mechanism.traits().independent_heads || !mechanism.parameters(shape).empty()) return;
    check_heads<float>(mechanism.name(), options, 6, 8);
    check_heads<double>(mechanism.name(), options, 6, 8);
    check_heads<float>(mechanism.name(), options, 12, 32);  // enough work for separate threads
    ++checked;
  });
  BOOST_TEST(checked >= 20);
}

// If one tensor is q, k and v, its gradient is the sum of the gradients of three separate copies, up to rounding.
BOOST_AUTO_TEST_CASE(one_tensor_as_several_operands) {
  int checked = 0;
  for_each_variant(2, 4, [&](const Mechanism& mechanism, const OptionValues&, const AttentionShape& shape) {
    const AttentionLayout layout = mechanism.layout(8, 2);
    if (layout.heads != 2 || layout.key_heads != 2 || layout.query_width + layout.key_width == 0) return;
    if (layout.key_width > 0 && layout.key_channels(4) != 4) return;
    mechanism.check(shape);
    const Tensor<double> x = random_tensor({2, 2, 36, 4}, 1), dout = random_tensor({2, 2, 36, 4}, 2);
    const auto gradient = [&](bool copied) {
      Tape<double> tape;
      std::deque<Tensor<double>> own;
      std::vector<Var<double>> parameters;
      for (const ParameterSpec& spec : mechanism.parameters(shape)) {
        fill_initial(spec.initial, RandomStream(3).derive(spec.name), own.emplace_back(spec.shape).view());
        parameters.push_back(tape.constant(std::as_const(own.back()).view()));
      }
      const Var<double> all = tape.input(x.view());
      const auto operand = [&](bool used) { return !used ? Var<double>() : copied ? reshape(all, x.shape()) : all; };
      tape.backward(attention<double>(mechanism, operand(layout.query_width > 0), operand(layout.key_width > 0),
                                      operand(true), shape, parameters),
                    dout.view());
      const View<const double> dx = tape.gradient(all);
      return std::vector<double>(dx.begin(), dx.end());
    };
    const std::vector<double> once = gradient(false), apart = gradient(true);
    for (std::size_t i = 0; i < once.size(); ++i)
      BOOST_TEST(std::abs(once[i] - apart[i]) <= 1e-12 * (1 + std::abs(apart[i])), mechanism.name() << " " << i);
    ++checked;
  });
  BOOST_TEST(checked >= 30);
}

// An operand without a gradient may be the value of another operand, as in a "stop gradient": the gradient is the same
// as for separate tensors.
BOOST_AUTO_TEST_CASE(an_operand_that_is_the_constant_value_of_another) {
  const std::unique_ptr<Mechanism> softmax = make_mechanism("softmax", {});
  const Shape shape{1, 2, 5, 3};
  const Tensor<double> x = random_tensor(shape, 1), copy = x, dout = random_tensor(shape, 2);
  for (const std::size_t wanted : {0, 1, 2}) {
    const auto gradient = [&](bool copied) {
      Tape<double> tape;
      const Var<double> input = tape.input(x.view()), constant = tape.constant(copied ? copy.view() : input.value());
      std::array<Var<double>, 3> qkv{constant, constant, constant};
      qkv[wanted] = input;
      tape.backward(attention<double>(*softmax, qkv[0], qkv[1], qkv[2]), dout.view());
      const View<const double> dx = tape.gradient(input);
      return std::vector<double>(dx.begin(), dx.end());
    };
    BOOST_TEST(gradient(false) == gradient(true), boost::test_tools::per_element());
  }
}

// A batch of nine images has the results of two batches, of the first four images and of the other five. Gradients of
// parameters, for which a batch has at most eight sums over images, equal the sums of the two batches' gradients.
BOOST_AUTO_TEST_CASE(images_of_a_batch_do_not_depend_on_each_other) {
  int checked = 0;
  for_each_variant(2, 4, [&](const Mechanism& mechanism, const OptionValues& options, const AttentionShape& shape) {
    const AttentionLayout layout = mechanism.layout(8, 2);
    try {
      mechanism.check(layout.among(shape.keys, shape));
    } catch (const Error&) {
      return;
    }
    const auto run = [&](const Tensors& given) {
      return run_mechanism<double>(mechanism.name(), options, given, grid_of(6));
    };
    const Tensors given = operands_of(mechanism, shape, 9), all = run(given);
    Tensors sums;
    for (const auto& [first, count] : {std::pair<Index, Index>{0, 4}, {4, 5}}) {
      const Tensors part = run(images_of(given, first, count, true));
      check_same(part, images_of(all, first, count, false), 1e-13, mechanism.name());
      for (const auto& [name, gradient] : part) {
        if (has_images(name)) continue;
        Tensor<double>& sum = sums.try_emplace(name, gradient.shape()).first->second;
        for (Index i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
      }
    }
    check_same(sums, all, 1e-12, std::string(mechanism.name()) + ", sums");
    ++checked;
  });
  BOOST_TEST(checked >= 30);
}

// Operands may be in one tensor, whose rows hold q of each head, then k, then v; in three tensors, which have these
// parts of the rows; or in tensors [images, heads, tokens, channels]. Results and gradients are the same up to
// rounding, which inverses amplify.
BOOST_AUTO_TEST_CASE(operands_in_one_tensor_in_three_and_by_head) {
  constexpr Index images = 2, tokens = 36;
  int checked = 0;
  for_each_variant(3, 4, [&](const Mechanism& mechanism, const OptionValues&, const AttentionShape& place) {
    const AttentionLayout layout = mechanism.layout(12, 3);
    const AttentionShape shape = layout.among(tokens, place);
    try {
      mechanism.check(shape);
    } catch (const Error&) {
      return;
    }
    // For q, k, v and the output: the number of heads and their width; in the tensor that holds q, k and v together, or
    // in the output, their first column and the number of columns.
    const std::array<Index, 4> heads{layout.heads, layout.key_heads, layout.key_heads, layout.heads},
        widths{layout.query_width, layout.key_width, layout.value_width, layout.value_width},
        first{0, heads[0] * widths[0], heads[0] * widths[0] + heads[1] * widths[1], 0},
        columns{layout.total(), layout.total(), layout.total(), heads[3] * widths[3]};
    enum Form { in_one, in_three, by_head };
    const auto index = [&](Form form, std::size_t p, Index b, Index n, Index h, Index c) {
      if (form == by_head) return ((b * heads[p] + h) * tokens + n) * widths[p] + c;
      return (b * tokens + n) * (form == in_one ? columns[p] : heads[p] * widths[p]) + (form == in_one ? first[p] : 0) +
             h * widths[p] + c;
    };
    const auto each = [&](std::size_t p, const auto& f) {
      for (Index b = 0; b < images; ++b)
        for (Index n = 0; n < tokens; ++n)
          for (Index h = 0; h < heads[p]; ++h)
            for (Index c = 0; c < widths[p]; ++c) f(b, n, h, c);
    };
    const Tensor<double> x = random_tensor({images, tokens, columns[0]}, 1),
                         dout = random_tensor({images, tokens, columns[3]}, 2);
    const auto moved = [&](const Tensor<double>& from, Form form, std::size_t p) {
      Tensor<double> to(form == by_head ? Shape{images, heads[p], tokens, widths[p]}
                                        : Shape{images, tokens, heads[p] * widths[p]});
      each(p, [&](auto... at) { to[index(form, p, at...)] = from[index(in_one, p, at...)]; });
      return to;
    };
    std::deque<Tensor<double>> own;
    for (const ParameterSpec& spec : mechanism.parameters(shape)) {
      own.push_back(random_tensor(spec.shape, 10 + own.size()));
      if (!spec.trainable) fill_initial(spec.initial, RandomStream(1), own.back().view());
    }
    const auto run = [&](Form form) {
      Tape<double> tape;
      std::vector<Var<double>> parameters;
      for (const Tensor<double>& tensor : own) parameters.push_back(tape.constant(tensor.view()));
      std::deque<Tensor<double>> parts;
      std::array<Var<double>, 3> v;
      if (form == in_one) v.fill(tape.input(x.view()));
      for (std::size_t p = 0; p < 3; ++p)
        if (form != in_one && widths[p] > 0)
          v[p] = tape.input(std::as_const(parts.emplace_back(moved(x, form, p))).view());
      Var<double> y;
      if (form == by_head)
        y = attention<double>(mechanism, v[0], v[1], v[2], place, parameters);
      else
        y = attention<double>(mechanism,
                              form == in_one ? packed_operands(v[2], layout) : operands_apart(v[0], v[1], v[2], layout),
                              layout, place, parameters);
      const Tensor<double> dy = moved(dout, form, 3);
      BOOST_TEST_REQUIRE(y.shape() == dy.shape());
      tape.backward(y, dy.view());
      std::vector<double> results;
      each(3, [&](auto... at) { results.push_back(y.data()[index(form, 3, at...)]); });
      for (std::size_t p = 0; p < 3; ++p)
        each(p, [&](auto... at) { results.push_back(tape.gradient(v[p])[index(form, p, at...)]); });
      return results;
    };
    const std::vector<double> one = run(in_one);
    for (const Form form : {in_three, by_head}) {
      const std::vector<double> other = run(form);
      BOOST_TEST_REQUIRE(other.size() == one.size());
      double worst = 0;
      for (std::size_t i = 0; i < one.size(); ++i)
        worst = std::max(worst, std::abs(one[i] - other[i]) / (1 + std::abs(one[i])));
      BOOST_TEST(worst < 1e-9, mechanism.name() << ", form " << form);
    }
    ++checked;
  });
  BOOST_TEST(checked >= 30);
}

// Gradients of parameters are computed as at most eight sums over images, which are then added.
BOOST_AUTO_TEST_CASE(costs_of_more_images_than_sums) {
  int checked = 0;
  for (const MechanismEntry& entry : mechanisms())
    for (const OptionValues& options : entry.variants()) {
      const auto mechanism = make_mechanism(entry.name, options);
      const auto c = attention_case(entry.name, *mechanism, {"9 images", 9, 2, 4, 4, 4, 2, 2, 0});
      if (!c || mechanism->parameters(mechanism->layout(4, 2).among(4, grid_of(2))).empty()) continue;
      for (const CheckedCost& row : costcheck(*c)) {
        if (std::string_view(row.pass) != "backward") continue;
        ++checked;
        BOOST_TEST(row.passed(), entry.name << ": " << row.executed.add);
      }
    }
  BOOST_TEST(checked >= 10);
}

BOOST_AUTO_TEST_CASE(operands_that_do_not_fit) {
  const Tensor<float> four(Shape{1, 2, 8, 4}), two(Shape{1, 2, 8, 2});
  Tape<float> tape;
  const Var<float> x = tape.input(four.view()), narrow = tape.input(two.view());
  const auto refused = [&](const char* name, Var<float> q, Var<float> k) {
    try {
      const MechanismEntry& entry = find_mechanism(name);
      attention(*make_mechanism(name, entry.variants().front()), q, k, x);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  BOOST_TEST(refused("softmax", x, x) == "");
  BOOST_TEST(refused("softmax", x, narrow) == "[softmax] k has 2 channels; expected 4 (0: omitted)");
  BOOST_TEST(refused("softmax", x, {}) == "[softmax] k has 0 channels; expected 4 (0: omitted)");
  BOOST_TEST(refused("softmax", {}, x) == "[softmax] q has 0 channels; expected 4 (0: omitted)");
  BOOST_TEST(refused("reformer", x, x) == "[reformer] k has 4 channels; expected 0 (0: omitted)");
}

BOOST_AUTO_TEST_SUITE_END()
