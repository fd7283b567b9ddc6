// Marks of mechanisms for fabricated answers: correct ones, and ones with a single fault.
#include "src/apps/grading/marks/mechanism_marks.h"

#include "heed/attention/mechanism_base.h"
#include "heed/checks/costcheck.h"
#include "heed/cost/energy.h"
#include "src/apps/grading/marks/mechanism_messages.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <cmath>
#include <deque>
#include <limits>
#include <set>

using namespace heed;

namespace {

/// Two images, three heads of width 4, and more queries than keys.
const HiddenCase hidden{{"hidden", 2, 3, 5, 3, 12, 0, 0, false}, 11};

/// Gradients of one input as a submission sends them: in double, added to existing values, in float, and in `Counted`.
struct Sent {
  std::string name;
  Tensor<double> alone, added, in_float, in_counted;
};

/// A submission whose answers are softmax's, changed by a test.
struct Fabricated {
  std::unique_ptr<Mechanism> softmax = make_mechanism("softmax", {});
  CheckCase c = *attention_case("mine", *softmax, hidden.shape);
  std::vector<std::string> faults;
  Tensor<double> output = case_output(c, hidden.seed);
  std::deque<Sent> gradients;
  std::vector<CheckedCost> costs = costcheck(c);
  Message loaded;
  bool known = true, accepted = true, refers = true;
  std::string problem;
  double slack = 2;
  std::string source;                    ///< the submission's text
  std::size_t shapes = 1, answered = 2;  ///< numbers of shapes requested and answered

  Fabricated() {
    const CaseResults results = case_results(c, hidden.seed);
    for (std::size_t k = 0; k < c.inputs.size(); ++k) {
      const Tensor<double>& g = results.gradients[k];
      gradients.push_back({c.inputs[k].name, g, results.added[k], g, g});
    }
  }

  Sent& of(const std::string& tensor) { return *std::ranges::find(gradients, tensor, &Sent::name); }

  static void put(Message& message, const Counts& counts) {
    for (const CountKind& kind : count_kinds) message.put(counts.*kind.member);
  }

  Message answer(Question question) {
    Message message;
    message.put(Index{problem.empty()});
    if (!problem.empty()) return message.put(problem), message;
    message.put(Index{accepted});
    if (!accepted) return message;
    if (question == Question::memory) {
      message.put(static_cast<Index>(faults.size()));
      for (const std::string& fault : faults) message.put(fault);
    } else if (question == Question::output) {
      message.put(output);
    } else if (question == Question::costs) {
      for (const CheckedCost& pass : std::span(costs).first(2)) put(message, pass.stated), put(message, pass.executed);
    } else {
      if (question == Question::differences) message.put(Tensor<double>({1}, {1e-9}));
      message.put(static_cast<Index>(gradients.size()));
      for (const Sent& one : gradients) {
        message.put(one.name), message.put(question == Question::differences ? one.in_counted : one.alone);
        if (question == Question::differences) continue;
        message.put(one.added), message.put(one.in_float), message.put(one.in_counted);
      }
    }
    return message;
  }

  std::vector<Mark> marks(const std::vector<std::string>& points) {
    const PrivateDirectory place;
    const MechanismTask task{
        "mine", {}, refers ? softmax.get() : nullptr, slack, std::vector<HiddenCase>(shapes, hidden)};
    return mark_mechanism(points, task, source, [&](const Message& asked) {
      Message question(asked.bytes()), names;
      names.put(Index{1}), names.put(Index{1}), names.put(known ? "mine" : "yours");
      const Message& first = loaded.bytes().empty() ? names : loaded;
      const Message second = answer(get_question(question).question);
      const std::size_t count = std::min(shapes, answered);
      auto process = std::make_unique<Confined>(
          std::vector<std::string>{"/usr/bin/python3", "-I", "-S", "-c",
                                   fmt::format("import os, sys\ndata = sys.stdin.buffer.read({})\n"
                                               "while data: data = data[os.write(3, data):]\n",
                                               8 * (1 + count) + first.bytes().size() + count * second.bytes().size())},
          Confinement{.directory = place.path()});
      process->send(first);
      for (std::size_t i = 0; i < count; ++i) process->send(second);
      return process;
    });
  }

  /// Returns "right", or the first sentence about one point.
  std::string says(const std::string& point) {
    const Mark mark = marks({point})[0];
    BOOST_TEST(mark.right == mark.says.empty());
    return mark.right ? "right" : mark.says.at(0);
  }
};

/// A mechanism without computations that accepts only shapes without a class token or, if `none`, no shape.
struct Choosy : MechanismBase<Choosy> {
  static constexpr const char *mechanism_name = "choosy", *summary = "", *complexity = "";
  bool none;
  explicit Choosy(bool none) : none(none) {}
  void check(const AttentionShape& s) const override {
    require(!none && s.class_token == 0, "[choosy] not this shape");
  }
  template <class T>
  void run_forward(const AttentionInput<T>&, Heads<T>, NoMemory, NoMemory) const {}
  template <class T>
  void run_backward(const AttentionInput<T>&, Heads<const T>, Heads<const T>, NoMemory, NoMemory,
                    const AttentionGradient<T>&) const {}
  Cost cost(const AttentionShape&) const override { return {}; }
};

void check_start(const std::string& text, const std::string& start) {
  BOOST_TEST(text.starts_with(start), "'" << text << "' does not start with '" << start << "'");
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(mechanism_marks, Fabricated)

BOOST_AUTO_TEST_CASE(correct_answers_are_right_in_all_points) {
  for (const Mark& mark :
       marks({"memory", "output", "gradient q", "gradient k", "gradient v", "cost forward", "cost backward"})) {
    BOOST_TEST(mark.right);
    BOOST_TEST(mark.says.empty());
  }
}

// Errors relative to the tensor's largest element, on both sides of each bound: 1e-11 in double and with counting, 2e-5
// in float. A gradient that is not a number exceeds every bound.
BOOST_AUTO_TEST_CASE(gradients_have_a_precision_in_each_number_type) {
  Sent& k = of("k");
  const Sent right = k;
  double largest = 0.01;
  for (const double x : right.alone) largest = std::max(largest, std::abs(x));
  const auto said = [&](std::initializer_list<Tensor<double> Sent::*> which, double error, Index at = 71) {
    k = right;
    for (Tensor<double> Sent::*one : which) (k.*one)[at] += error * largest;
    return says("gradient k");
  };
  BOOST_TEST(said({&Sent::in_float}, 1.9e-5) == "right");
  check_start(said({&Sent::in_float}, 2.1e-5), "in float its error is 2e-05 of the tensor's largest element;");
  for (const Index at : {0, 7, 71}) check_start(said({&Sent::in_float}, NAN, at), "in float its error is nan");
  BOOST_TEST(said({&Sent::in_counted}, -0.9e-11) == "right");
  check_start(said({&Sent::in_counted}, -1.2e-11), "with the number type that counts operations its error is 1e-11");
  for (const Index at : {0, 7, 71})
    check_start(said({&Sent::in_counted}, NAN, at), "with the number type that counts operations its error is nan");
  BOOST_TEST(said({&Sent::alone, &Sent::in_counted}, 0.9e-11) == "right");
  check_start(said({&Sent::alone, &Sent::in_counted}, 3e-11), "in double its error is 3e-11");
  check_start(said({&Sent::alone}, NAN), "it is wrong in 1 of 72 elements where ");
  check_start(said({&Sent::added}, 1e-3), "it is wrong in ");
  k = right;
  BOOST_TEST(says("gradient k") == "right");
}

BOOST_AUTO_TEST_CASE(gradients_have_a_name_and_a_shape) {
  Sent& v = of("v");
  const Sent right = v;
  v.name = "w";
  BOOST_TEST(says("gradient v") == "it has no tensor 'v'");
  v = right, v.alone = Tensor<double>({2});
  check_start(says("gradient v"), "it has shape [2]; expected [2, 3, 3, 4]");
  v = right, v.in_float = Tensor<double>({2});
  BOOST_TEST(says("gradient v") == "in float it has the wrong shape");
  // An error costs the point of its own tensor only.
  v = right, v.alone[3] *= 2, v.added[3] *= 2;
  const std::vector<Mark> all = marks({"gradient q", "gradient v", "gradient k", "output"});
  for (const std::size_t point : {0, 2, 3}) BOOST_TEST(all[point].right);
  BOOST_TEST(!all[1].right);
}

// An output element may have a relative error of 1e-6.
BOOST_AUTO_TEST_CASE(an_output_is_compared_with_the_reference) {
  const Tensor<double> right = output;
  const auto at = std::ranges::max_element(right, {}, [](double x) { return std::abs(x); }) - right.begin();
  const auto with_factor = [&](double factor) {
    output = right, output[at] *= factor;
    return says("output");
  };
  BOOST_TEST(with_factor(1 + 0.9e-6) == "right");
  check_start(with_factor(1 + 1.2e-6), "it is wrong in 1 of 120 elements where B = 2, H = 3, N = 5, M = 3, d = 4");
  check_start(with_factor(NAN), "it is wrong in 1 of 120 elements");
  output = Tensor<double>({3});
  check_start(says("output"), "it has shape [3]; expected [2, 3, 5, 4]");
}

// A wrong count costs the point of its pass only.
BOOST_AUTO_TEST_CASE(stated_costs_are_the_executed_ones) {
  for (const std::size_t pass : {0, 1}) {
    const Counts right = costs[pass].stated;
    costs[pass].stated.mul += 5;
    std::vector<Mark> both = marks({"cost forward", "cost backward"});
    BOOST_TEST(both[1 - pass].right);
    const Index mul = costs[pass].executed.mul;
    BOOST_TEST(both[pass].says.at(0) ==
               fmt::format("mul is stated as {}, but {} are executed: 5 too many", mul + 5, mul));
    costs[pass].stated = right, costs[pass].stated.add -= 2;
    both = marks({"cost forward", "cost backward"});
    BOOST_TEST(both[1 - pass].right);
    BOOST_TEST(!both[pass].right);
    BOOST_TEST(both[pass].says.at(0).ends_with(": 2 too few"), both[pass].says.at(0));
    costs[pass].stated = right;
  }
}

// A negative or huge stated count is marked as wrong, with the usual message. A negative executed count cannot come
// from the counter, so the results are rejected as unreadable.
BOOST_AUTO_TEST_CASE(stated_costs_may_be_any_numbers) {
  constexpr Index large = std::numeric_limits<Index>::max();
  for (const std::size_t pass : {0, 1}) {
    const CheckedCost right = costs[pass];
    const std::string point = pass == 0 ? "cost forward" : "cost backward";
    const Index mul = right.executed.mul;
    const auto says_of = [&](Index stated) {
      costs[pass].stated.mul = stated;
      return says(point);
    };
    BOOST_TEST(says_of(-1) == fmt::format("mul is stated as -1, but {} are executed: {} too few", mul, mul + 1));
    BOOST_TEST(says_of(Index{1} << 41) == fmt::format("mul is stated as {}, but {} are executed: {} too many",
                                                      Index{1} << 41, mul, (Index{1} << 41) - mul));
    for (const Index stated : {large, -large - 1}) check_start(says_of(stated), "mul is stated as ");
    costs[pass] = right;
    costs[pass].executed.mul = -1;
    check_start(says(point), "its results cannot be read");
    costs[pass] = right;
  }
}

// For each of 2 images and 3 heads, the contractions take 2 N M d multiplications in the forward pass and twice as many
// in the backward pass, and as many additions. A submission must execute at least half of these operations, and at most
// the reference's operations times the slack.
BOOST_AUTO_TEST_CASE(operations_are_neither_wasted_nor_left_out) {
  slack = 1.5;
  const Index products = 2 * 3 * 2 * 5 * 3 * 4;
  for (const std::size_t pass : {0, 1}) {
    const CheckedCost right = costs[pass];
    const std::string point = pass == 0 ? "cost forward" : "cost backward";
    Index all = 0;
    for (const CountKind& kind : count_kinds) all += right.executed.*kind.member;
    const auto with_operations = [&](Index operations) {
      costs[pass].stated = costs[pass].executed = Counts{.add = operations};
      return says(point);
    };
    const Index most = static_cast<Index>(1.5 * static_cast<double>(all)), least = products * (pass == 0 ? 1 : 2);
    BOOST_TEST(with_operations(most) == "right");
    BOOST_TEST(
        with_operations(most + 1) ==
        fmt::format("it executes {} operations for B = 2, H = 3, N = 5, M = 3, d = 4, e = 4; expected at most {}",
                    most + 1, most));
    BOOST_TEST(with_operations(least) == "right");
    check_start(with_operations(least - 1), fmt::format("it executes {} operations for ", least - 1));
    costs[pass] = right;
  }
}

BOOST_AUTO_TEST_CASE(faults_and_failures_are_described) {
  faults = {"it writes beyond its scratch memory", "it reads v"};
  const Mark memory = marks({"memory"})[0];
  BOOST_TEST(memory.says == faults, boost::test_tools::per_element());
  accepted = false;
  BOOST_TEST(says("output") == "it rejects a shape that softmax accepts");
  refers = false;
  BOOST_TEST(says("cost forward") == "it accepts none of the shapes that it is checked with");
  problem = "it throws";
  BOOST_TEST(says("memory") == "it throws");
  known = false;
  BOOST_CHECK_EXCEPTION(says("output"), Refused, [](const Refused& refusal) {
    return std::string(refusal.what()) == "it has no mechanism called 'mine'; found 'yours'";
  });
  loaded.put(Index{0}), loaded.put("it cannot be loaded");
  BOOST_CHECK_EXCEPTION(says("output"), Refused,
                        [](const Refused& refusal) { return std::string(refusal.what()) == "it cannot be loaded"; });
}

// A submission that ends after the first of two shapes gets no points, although its first answer is right.
BOOST_AUTO_TEST_CASE(each_shape_needs_an_answer) {
  shapes = 2;
  for (const char* const point : {"output", "memory", "gradient q", "cost forward"})
    BOOST_TEST(says(point) == "right", point);
  answered = 1;
  for (const char* const point : {"output", "memory", "gradient q", "cost forward"})
    BOOST_TEST(says(point) != "right", point);
}

// Without a reference, gradients are compared with finite differences of the submission's own output.
BOOST_AUTO_TEST_CASE(without_a_reference_differences_are_the_measure) {
  refers = false;
  BOOST_TEST(says("gradient q") == "right");
  Sent& q = of("q");
  q.alone[2] += 0.1, q.added[2] += 0.1;
  check_start(says("gradient q"), "it is wrong in 1 of 120 elements where ");
  BOOST_TEST(says("gradient v") == "right");
}

// Every seed draws five shapes: three grids, with N > d, with N < d and with a class token, then N < M and N > M.
BOOST_AUTO_TEST_CASE(hidden_shapes_cover_all_kinds) {
  std::set<std::uint64_t> seeds;
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    const std::vector<HiddenCase> cases = draw_cases(nullptr, false, RandomStream(seed));
    BOOST_TEST_REQUIRE(cases.size() == 5u);
    const auto shape = [&](std::size_t i) -> const AttentionCaseShape& { return cases[i].shape; };
    for (const HiddenCase& one : cases) {
      seeds.insert(one.seed);
      const AttentionCaseShape& s = one.shape;
      BOOST_TEST(s.dim % s.heads == 0);
      BOOST_TEST(s.heads > 1);
      if (s.grid_height > 0) BOOST_TEST(s.queries == s.grid_height * s.grid_width + s.class_token);
      if (s.grid_height > 0) BOOST_TEST(s.queries == s.keys);
    }
    BOOST_TEST(shape(0).queries > shape(0).dim / shape(0).heads);
    BOOST_TEST(shape(1).queries < shape(1).dim / shape(1).heads);
    for (const std::size_t i : {0, 1, 3, 4}) BOOST_TEST(!shape(i).class_token);
    BOOST_TEST(shape(2).class_token);
    for (const std::size_t i : {0, 1, 2}) BOOST_TEST(shape(i).grid_height > 1);
    BOOST_TEST(shape(0).grid_height != shape(0).grid_width);
    for (const std::size_t i : {3, 4}) BOOST_TEST(shape(i).grid_height == 0);
    BOOST_TEST(shape(3).queries < shape(3).keys);
    BOOST_TEST(shape(4).queries > shape(4).keys);
  }
  BOOST_TEST(seeds.size() == 30u);
}

// An error is reported with its position and, for a gradient, the backward step that computes it.
BOOST_AUTO_TEST_CASE(errors_are_located) {
  source = "// Undoing 1: dq = dS k.\n\n// Undoing 2: dk = dS^T q.\n";
  output[((1 * 3 + 2) * 5 + 3) * 4 + 1] *= 2;
  Sent& k = of("k");
  k.alone[7] += 1, k.added[7] += 1;
  of("v").in_float[5] += 1;
  const std::vector<Mark> all = marks({"output", "gradient k", "gradient v"});
  BOOST_TEST_REQUIRE(all[0].says.size() == 3u);
  check_start(all[0].says[0],
              "it is wrong in 1 of 120 elements where B = 2, H = 3, N = 5, M = 3, d = 4, e = 4: looks ");
  BOOST_TEST(all[0].says[1] == "it is right for tokens 0 to 2 and 4; wrong for token 3");
  BOOST_TEST(all[0].says[2] == "it is worst at image 1, head 2, token 3, channel 1");
  BOOST_TEST_REQUIRE(all[1].says.size() == 4u);
  check_start(all[1].says[0], "it is wrong in 1 of 72 elements where ");
  BOOST_TEST(all[1].says[2] == "it is worst at image 0, head 0, token 1, channel 3");
  BOOST_TEST(all[1].says[3] == "see undoing 2: dk = dS^T q");
  BOOST_TEST_REQUIRE(all[2].says.size() == 1u);
  check_start(all[2].says[0], "in float its error is ");
}

BOOST_AUTO_TEST_CASE(without_a_reference_tensors_have_places_too) {
  refers = false;
  of("q").alone[2] += 0.1, of("q").added[2] += 0.1;
  const Mark mark = marks({"gradient q"})[0];
  BOOST_TEST_REQUIRE(mark.says.size() == 3u);
  check_start(mark.says[0], "it is wrong in 1 of 120 elements where B = 2, H = 3, N = 5, M = 3, d = 4: looks ");
  BOOST_TEST(mark.says[1] == "it is right for tokens 1 to 4; wrong for token 0");
  BOOST_TEST(mark.says[2] == "it is worst at image 0, head 0, token 0, channel 2");
  BOOST_TEST(says("gradient w") == "its output does not depend on w");
}

BOOST_AUTO_TEST_CASE(questions_arrive_as_they_are_asked) {
  const MechanismQuestion asked{
      Question::differences,
      "mine",
      {{"norm", "l2"}, {"order", "auto"}},
      {{{"first", 2, 3, 5, 7, 12, 4, 6, true}, 11}, {{"second", 1, 2, 4, 3, 8, 0, 0, false}, ~0ull}}};
  Message message;
  put_question(message, asked);
  Message received(message.bytes());
  const MechanismQuestion got = get_question(received);
  BOOST_TEST((got.question == asked.question));
  BOOST_TEST(got.name == "mine");
  BOOST_TEST((got.options == asked.options));
  BOOST_TEST_REQUIRE(got.cases.size() == 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const AttentionCaseShape &a = got.cases[i].shape, &b = asked.cases[i].shape;
    BOOST_TEST(got.cases[i].seed == asked.cases[i].seed);
    BOOST_TEST(a.label == b.label);
    for (Index AttentionCaseShape::*size :
         {&AttentionCaseShape::images, &AttentionCaseShape::heads, &AttentionCaseShape::queries,
          &AttentionCaseShape::keys, &AttentionCaseShape::dim, &AttentionCaseShape::grid_height,
          &AttentionCaseShape::grid_width})
      BOOST_TEST((a.*size) == (b.*size));
    BOOST_TEST(a.class_token == b.class_token);
  }
}

// A shape that the reference rejects is left out; the others stay as they are.
BOOST_AUTO_TEST_CASE(hidden_shapes_are_those_of_the_reference) {
  const RandomStream random(3);
  const std::vector<HiddenCase> all = draw_cases(nullptr, false, random);
  const Choosy choosy(false), none(true);
  const std::vector<HiddenCase> some = draw_cases(&choosy, true, random);
  BOOST_TEST_REQUIRE(some.size() == 4u);
  const std::size_t kept[] = {0, 1, 3, 4};
  for (std::size_t i = 0; i < 4; ++i) {
    BOOST_TEST(some[i].seed == all[kept[i]].seed);
    BOOST_TEST(some[i].shape.queries == all[kept[i]].shape.queries);
    BOOST_TEST(some[i].shape.keys == all[kept[i]].shape.keys);
    BOOST_TEST(some[i].shape.dim == all[kept[i]].shape.dim);
  }
  BOOST_TEST(error_of([&] { draw_cases(&none, true, random); }) ==
             "[choosy] accepts none of the shapes that labs are graded with");
}

BOOST_AUTO_TEST_CASE(points_have_known_names) {
  const auto refusal = [](const std::string& name, bool has_reference = true) {
    return error_of([&] { check_mechanism_point(name, has_reference); });
  };
  for (const char* name : {"output", "memory", "cost forward", "cost backward", "gradient q"})
    BOOST_TEST(refusal(name) == "no error", name);
  BOOST_TEST(refusal("memory", false) == "no error");
  BOOST_TEST(refusal("output", false) == "point 'output' requires a reference");
  for (const char* name : {"", "gradient", "gradient ", "cost"})
    check_start(refusal(name), fmt::format("unknown point of a mechanism '{}'; expected ", name));
}

// A point for a gradient that the reference lacks is refused: every submission would get it.
BOOST_AUTO_TEST_CASE(points_have_tensors_of_the_reference) {
  const auto reference = make_mechanism("linformer", {{"length", "3"}});
  const std::vector<HiddenCase> cases = draw_cases(reference.get(), false, RandomStream(3));
  const auto refusal = [&](const std::string& name) {
    return error_of([&] { check_tensor_of_point(name, *reference, cases); });
  };
  for (const char* name : {"output", "cost forward", "gradient q", "gradient v", "gradient e", "gradient f"})
    BOOST_TEST(refusal(name) == "no error", name);
  BOOST_TEST(refusal("gradient E") ==
             "point 'gradient E': the reference has no tensor 'E'; expected 'q', 'k', 'v', 'e' and 1 more");
}

BOOST_AUTO_TEST_SUITE_END()
