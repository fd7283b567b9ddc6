// A pass as text and as a graph.
#include "heed/tape/trace.h"

#include "heed/ops/elementary/arithmetic.h"
#include "heed/ops/linear.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <sstream>

using namespace heed;

namespace {

/// y = x W^T + b in layer fc, then y + y, recorded with a trace.
struct Recorded {
  Parameters<float> weights{[] {
    ParameterList list;
    list.add({"fc.weight", {4, 3}, Initial::normal(1)});
    list.add({"fc.bias", {4}, Initial::constant(0)});
    return list;
  }()};
  Gradients<float> gradients{weights};
  Tensor<float> images{Shape{2, 3}};
  std::vector<TraceEntry> trace;
  Tape<float> tape;

  Recorded() {
    Pass<float> pass;
    pass.parameters = &weights;
    pass.gradients = &gradients;
    pass.observers.trace = &trace;
    tape.clear(pass);
    const std::string layer = "fc";
    Var<float> y;
    {
      const Tape<float>::Scope scope(tape, layer);
      const Var<float> x = tape.constant(images.view()), weight = tape.parameter(0), bias = tape.parameter(1);
      y = linear(x, weight, bias);
    }
    add(y, y);
  }
};

template <class Write>
std::string written(const Write& write) {
  std::ostringstream out;
  write(out);
  return out.str();
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(trace, Recorded)

BOOST_AUTO_TEST_CASE(a_line_for_each_operation) {
  const std::string expected =
      "%3 [2, 4] = linear(%0 [2, 3], fc.weight [4, 3], fc.bias [4])  forward 24 mul, 24 add; backward 24 mul, 16 add  "
      "in fc\n"
      "%4 [2, 4] = add(%3 [2, 4])  forward 8 add; backward 8 add\n";
  BOOST_TEST(written([&](std::ostream& out) { tape.dump(out); }) == expected);
  BOOST_TEST(written([&](std::ostream& out) {
               write_trace(out, trace);
             }).starts_with("%3 [2, 4] = linear(%0 [2, 3], parameter 0 [4, 3], parameter 1 [4])"));
}

BOOST_AUTO_TEST_CASE(a_graph) {
  BOOST_TEST(written([&](std::ostream& out) { tape.dot(out); }) ==
             "digraph tape {\n"
             "  rankdir = BT;\n"
             "  node [fontname = \"sans-serif\", fontsize = 10];\n"
             "  v3 [shape = box, label = \"linear\\n[2, 4]\", tooltip = \"forward 24 mul, 24 add; backward 24 mul, 16 "
             "add\"];\n"
             "  v0 [shape = ellipse, label = \"%0\\n[2, 3]\"];\n"
             "  v0 -> v3;\n"
             "  p0 [shape = ellipse, label = \"fc.weight\\n[4, 3]\"];\n"
             "  p0 -> v3;\n"
             "  p1 [shape = ellipse, label = \"fc.bias\\n[4]\"];\n"
             "  p1 -> v3;\n"
             "  v4 [shape = box, label = \"add\\n[2, 4]\", tooltip = \"forward 8 add; backward 8 add\"];\n"
             "  v3 -> v4;\n"
             "}\n");
}

BOOST_AUTO_TEST_CASE(a_pass_without_a_trace_cannot_be_printed) {
  tape.clear(Pass<float>{});
  for (const auto member : {&Tape<float>::dump, &Tape<float>::dot})
    BOOST_TEST(error_of([&] { written([&](std::ostream& out) { (tape.*member)(out); }); }) ==
               "[tape] the pass has no trace; set Pass::observers.trace to print it");
}

// A negation counts no arithmetic, and the value that both operations use is declared as one node.
BOOST_AUTO_TEST_CASE(a_value_with_two_uses) {
  std::vector<TraceEntry> entries;
  Tape<float> other(Pass<float>{.observers = {.trace = &entries}});
  const Var<float> x = other.constant(2.0);
  mul(x, neg(x));
  BOOST_TEST(written([&](std::ostream& out) { other.dump(out); }) ==
             "%1 [] = neg(%0 [])  forward 0; backward 0\n"
             "%2 [] = mul(%0 [], %1 [])  forward 1 mul; backward 0\n");
  BOOST_TEST(written([&](std::ostream& out) { other.dot(out); }) ==
             "digraph tape {\n"
             "  rankdir = BT;\n"
             "  node [fontname = \"sans-serif\", fontsize = 10];\n"
             "  v1 [shape = box, label = \"neg\\n[]\", tooltip = \"forward 0; backward 0\"];\n"
             "  v0 [shape = ellipse, label = \"%0\\n[]\"];\n"
             "  v0 -> v1;\n"
             "  v2 [shape = box, label = \"mul\\n[]\", tooltip = \"forward 1 mul; backward 0\"];\n"
             "  v0 -> v2;\n"
             "  v1 -> v2;\n"
             "}\n");
}

// The gradient of x gets its first contribution from the product; the contribution of the negation is added to it. The
// last result does not depend on the scaled value, which gets no gradient.
BOOST_AUTO_TEST_CASE(gradients_in_the_order_of_the_backward_pass) {
  std::vector<TraceEntry> entries;
  Tape<float> other(Pass<float>{.observers = {.trace = &entries}});
  const float two = 2;
  const Var<float> x = other.input({&two, Shape{}}), negative = neg(x);
  scale(x, 3);
  mul(negative, x);
  std::vector<std::string> calls;
  for_each_gradient(entries, [&](std::size_t i, const TraceEntry::Value* operand, bool joins) {
    calls.push_back(
        fmt::format("{} {} {}", entries[i].operation, operand ? fmt::format("%{}", operand->id) : "-", joins));
  });
  const std::vector<std::string> expected{"mul - false", "mul %1 false", "mul %0 false", "neg - false", "neg %0 true"};
  BOOST_TEST(calls == expected, boost::test_tools::per_element());
  for_each_gradient(std::span<const TraceEntry>(), [&](auto...) { BOOST_ERROR("an empty trace has no gradients"); });
}

BOOST_AUTO_TEST_SUITE_END()
