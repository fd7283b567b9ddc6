// Elementary operations, with and without broadcasting, in shapes whose sizes above 1 mostly differ.
#include "cases.h"

#include "heed/ops/elementary/arithmetic.h"
#include "heed/ops/elementary/functions.h"
#include "heed/ops/elementary/losses.h"
#include "heed/ops/elementary/matmul.h"
#include "heed/ops/elementary/reductions.h"
#include "heed/ops/elementary/shapes.h"

namespace heed {

namespace {

/// Shapes of two operands: equal, broadcast along leading, middle or last axes, in one operand or in both at once, and
/// with a scalar.
struct Pair {
  Shape a, b;
};

template <class F>
void add_pairs(CheckCases& cases, const std::string& name, const CheckInput& a, const CheckInput& b, const F& f) {
  for (const Pair& shapes : {Pair{{2, 3, 5}, {2, 3, 5}}, Pair{{2, 3, 5}, {5}}, Pair{{3, 1}, {2, 3, 5}},
                             Pair{{2, 1, 5}, {3, 1}}, Pair{{}, {2, 3}}, Pair{{1, 4}, {1, 1, 4}}}) {
    CheckInput first = a, second = b;
    first.shape = shapes.a, second.shape = shapes.b;
    cases.add(fmt::format("{}, {} and {}", name, shapes.a, shapes.b), {first, second}, f);
  }
}

void add_arithmetic(CheckCases& cases) {
  const CheckInput a{"a", {}}, b{"b", {}}, divisor{"b", {}, 0.5, 2}, x{"x", {2, 3, 5}};
  add_pairs(cases, "add", a, b, [](auto&, const auto& v) { return v[0] + v[1]; });
  add_pairs(cases, "sub", a, b, [](auto&, const auto& v) { return v[0] - v[1]; });
  add_pairs(cases, "mul", a, b, [](auto&, const auto& v) { return v[0] * v[1]; });
  add_pairs(cases, "div", a, divisor, [](auto&, const auto& v) { return v[0] / v[1]; });
  // Disjoint ranges keep finite differences away from the kink.
  add_pairs(cases, "maximum", {"a", {}, -1, 0}, {"b", {}, 0.01, 1},
            [](auto&, const auto& v) { return maximum(v[0], v[1]); });
  const auto chosen = [](const Shape& shape) {
    return [=](auto& tape, const auto& v) {
      const auto condition = filled(tape, shape, [](Index i) { return i % 3 == 1 ? 0.0 : 1.0; });
      return where(tape.constant(condition), v[0], v[1]);
    };
  };
  cases.add("where, one shape", {{"a", {2, 3, 5}}, {"b", {2, 3, 5}}}, chosen({2, 3, 5}));
  cases.add("where, broadcast", {{"a", {2, 1, 5}}, {"b", {}}}, chosen({3, 1}));
  // The same operand twice.
  cases.add("add, x to x", {x}, [](auto&, const auto& v) { return v[0] + v[0]; });
  cases.add("mul, x by x", {x}, [](auto&, const auto& v) { return v[0] * v[0]; });
  cases.add("where, x or x", {x}, [=](auto& tape, const auto& v) {
    return chosen({2, 3, 5})(tape, std::array{v[0], v[0]});
  });
  cases.add("neg", {x}, [](auto&, const auto& v) { return -v[0]; });
  cases.add("scale", {x}, [](auto&, const auto& v) { return scale(v[0], -0.7); });
}

void add_functions(CheckCases& cases) {
  const CheckInput x{"x", {2, 3, 5}, -2, 2}, positive{"x", {2, 3, 5}, 0.3, 2}, kinked{"x", {2, 3, 5}, -1, 1, 0.01};
  cases.add("exp", {x}, [](auto&, const auto& v) { return exp(v[0]); });
  cases.add("log", {positive}, [](auto&, const auto& v) { return log(v[0]); });
  cases.add("sqrt", {positive}, [](auto&, const auto& v) { return sqrt(v[0]); });
  cases.add("pow, 2.5", {positive}, [](auto&, const auto& v) { return pow(v[0], 2.5); });
  cases.add("pow, 3", {x}, [](auto&, const auto& v) { return pow(v[0], 3); });
  cases.add("pow, 0", {x}, [](auto&, const auto& v) { return pow(v[0], 0); });
  cases.add("abs", {kinked}, [](auto&, const auto& v) { return abs(v[0]); });
  cases.add("tanh", {x}, [](auto&, const auto& v) { return tanh(v[0]); });
  cases.add("sigmoid", {x}, [](auto&, const auto& v) { return sigmoid(v[0]); });
}

void add_reductions(CheckCases& cases) {
  const CheckInput x{"x", {2, 3, 37}};
  const auto add = [&](const std::string& axes, const auto& reduce) {
    cases.add("sum" + axes, {x},
              [=](auto&, const auto& v) { return reduce(v[0], [](auto... a) { return sum(a...); }); });
    cases.add("mean" + axes, {x},
              [=](auto&, const auto& v) { return reduce(v[0], [](auto... a) { return mean(a...); }); });
    cases.add("max" + axes, {x},
              [=](auto&, const auto& v) { return reduce(v[0], [](auto... a) { return max(a...); }); });
  };
  add(", all axes", [](auto x, auto f) { return f(x); });
  add(", axis 1", [](auto x, auto f) { return f(x, Axes{1}, false); });
  add(", the last axis, kept", [](auto x, auto f) { return f(x, Axes{-1}, true); });
  add(", axes 0 and 2", [](auto x, auto f) { return f(x, Axes{0, 2}, false); });
}

void add_matmuls(CheckCases& cases) {
  cases.add("matmul", {{"a", {2, 3, 4}}, {"b", {2, 4, 5}}}, [](auto&, const auto& v) { return matmul(v[0], v[1]); });
  cases.add("matmul, a transposed", {{"a", {2, 4, 3}}, {"b", {2, 4, 5}}},
            [](auto&, const auto& v) { return matmul(transposed(v[0]), v[1]); });
  cases.add("matmul, b transposed", {{"a", {2, 3, 4}}, {"b", {2, 5, 4}}},
            [](auto&, const auto& v) { return matmul(v[0], transposed(v[1])); });
  cases.add("matmul, both transposed, broadcast", {{"a", {6, 1, 4, 3}}, {"b", {2, 5, 4}}},
            [](auto&, const auto& v) { return matmul(transposed(v[0]), transposed(v[1])); });
  cases.add("matmul, of x by itself", {{"x", {2, 4, 3}}},
            [](auto&, const auto& v) { return matmul(transposed(v[0]), v[0]); });
  cases.add("matmul, one matrix for all", {{"a", {2, 6, 3, 4}}, {"b", {4, 5}}},
            [](auto&, const auto& v) { return matmul(v[0], v[1]); });
}

void add_shapes(CheckCases& cases) {
  const CheckInput x{"x", {2, 3, 5}};
  cases.add("reshape", {x}, [](auto&, const auto& v) { return reshape(v[0], {5, -1, 2}); });
  cases.add("transpose", {x}, [](auto&, const auto& v) { return transpose(v[0], {2, 0, 1}); });
  cases.add("swap_axes", {x}, [](auto&, const auto& v) { return swap_axes(v[0], 0, -1); });
  cases.add("slice", {x}, [](auto&, const auto& v) { return slice(v[0], 1, 1, 3); });
  cases.add("slice, twice", {x}, [](auto&, const auto& v) { return slice(v[0], 2, 0, 3) + slice(v[0], 2, 2, 5); });
  cases.back().unstated.backward.add = 18;  // gradient of the second slice
  cases.add("join", {x, {"y", {2, 4, 5}}, {"z", {2, 1, 5}}}, [](auto&, const auto& v) {
    return join({v[0], v[1], v[2]}, -2);
  });
  cases.add("join, x three times", {x}, [](auto&, const auto& v) { return join({v[0], v[0], v[0]}, 1); });
  cases.add("stack", {x, {"y", {2, 3, 5}}}, [](auto&, const auto& v) { return stack({v[0], v[1]}, 1); });
  cases.add("gather_rows", {x}, [](auto&, const auto& v) { return gather_rows(v[0], {1, 0, 1, 1}); });
}

void add_losses(CheckCases& cases) {
  cases.add("mean_squared_error", {{"y", {3, 5}}, {"target", {3, 5}}},
            [](auto&, const auto& v) { return mean_squared_error(v[0], v[1]); });
  cases.add("cross_entropy, labels", {{"logits", {3, 5}, -2, 2}}, [](auto&, const auto& v) {
    static constexpr int labels[] = {4, 0, 2};
    return cross_entropy(v[0], std::span<const int>(labels));
  });
}

}  // namespace

void add_elementary_cases(CheckCases& cases) {
  add_arithmetic(cases);
  add_functions(cases);
  add_reductions(cases);
  add_matmuls(cases);
  add_shapes(cases);
  add_losses(cases);
}

}  // namespace heed
