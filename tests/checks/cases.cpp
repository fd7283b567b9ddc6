// Every operation and mechanism of the list: gradients against central differences, costs against execution, float
// against double. Also checks that every operation is in the list.
#include "heed/attention/mechanism_base.h"
#include "heed/checks/attention_case.h"
#include "heed/checks/costcheck.h"
#include "heed/io/file.h"
#include "src/checks/cases.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

using namespace heed;

namespace {

/// out = 2 v, with a gradient that is doubled under one condition.
struct WrongUnderACondition : MechanismBase<WrongUnderACondition> {
  static constexpr const char *mechanism_name = "conditional", *summary = "", *complexity = "";
  using Condition = bool (*)(const AttentionShape& s, Index head, bool in_float, Products products);
  static inline Condition condition;

  template <class Visitor>
  void options(Visitor&) {}
  static std::vector<OptionValues> variants() { return {{}}; }
  AttentionLayout layout(Index dim, Index heads) const override { return {heads, 0, 0, dim / heads}; }
  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, NoMemory, NoMemory) const {
    for (Index h = 0; h < out.count; ++h)
      for (Index i = 0; i < in.shape.queries; ++i)
        for (Index c = 0; c < in.shape.value_width; ++c) out[h](i, c) = T(2) * in.v[h](i, c);
  }
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, NoMemory, NoMemory,
                    const AttentionGradient<T>& gradient) const {
    for (Index h = 0; h < dout.count; ++h) {
      const bool wrong = condition(in.shape, h, std::is_same_v<T, float>, in.products);
      for (Index i = 0; i < in.shape.queries; ++i)
        for (Index c = 0; c < in.shape.value_width; ++c)
          write(gradient.update, gradient.v[h](i, c), T(wrong ? 4 : 2) * dout[h](i, c));
    }
  }
  Cost cost(const AttentionShape&) const override { return {}; }
};

/// Returns true if gradcheck finds the gradient right in all cases of the mechanism that is wrong under `condition`.
bool right_if(WrongUnderACondition::Condition condition) {
  WrongUnderACondition::condition = condition;
  CheckCases cases;
  add_mechanism_cases(cases, mechanism_entry<WrongUnderACondition>());
  bool right = true;
  for (const CheckCase& c : cases)
    for (const CheckRow& row : gradcheck(c)) right &= row.passed;
  return right;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(check_cases)

BOOST_AUTO_TEST_CASE(gradients_that_are_wrong_under_a_condition) {
  using Shape = const AttentionShape&;
  BOOST_TEST(right_if([](Shape, Index, bool, Products) { return false; }));
  BOOST_TEST(!right_if([](Shape s, Index, bool, Products) { return s.sequence() && s.whole; }), "whole sequences");
  BOOST_TEST(!right_if([](Shape s, Index, bool, Products) { return s.sequence() && !s.whole; }), "other sequences");
  BOOST_TEST(!right_if([](Shape, Index, bool in_float, Products) { return in_float; }), "float");
  BOOST_TEST(!right_if([](Shape, Index, bool, Products p) { return p != Products::exact; }), "bfloat16");
  BOOST_TEST(!right_if([](Shape, Index head, bool, Products) { return head >= 3; }), "head 3");
  BOOST_TEST(!right_if([](Shape s, Index, bool, Products) { return s.queries > 12; }), "many tokens");
  BOOST_TEST(!right_if([](Shape s, Index, bool, Products) { return s.value_width > 9; }), "many channels");
  BOOST_TEST(!right_if([](Shape s, Index, bool, Products) { return s.class_token > 1; }), "several class tokens");
  BOOST_TEST(!right_if([](Shape s, Index, bool, Products) { return s.grid_height > s.grid_width; }), "a tall grid");
  BOOST_TEST(!right_if([](Shape s, Index, bool, Products) { return s.queries > 95; }), "two blocks of queries");
  BOOST_TEST(!right_if([](Shape s, Index, bool, Products) { return s.keys > 960; }), "two blocks of keys");
}

/// A mechanism with an option that its variants do not set.
struct Unreached : WrongUnderACondition {
  bool causal = false;
  template <class Visitor>
  void options(Visitor& visit) {
    visit("causal", causal, "");
  }
};

BOOST_AUTO_TEST_CASE(values_of_options_that_no_variant_has) {
  const auto faults = [](const MechanismEntry& entry) {
    CheckCases cases;
    add_mechanism_cases(cases, entry);
    return cases[0].memory_faults();
  };
  BOOST_TEST(faults(mechanism_entry<WrongUnderACondition>()).empty());
  const std::vector<std::string> found = faults(mechanism_entry<Unreached>());
  BOOST_REQUIRE(found.size() == 1u);
  BOOST_TEST(found[0] == "[conditional] no variant in variants() has causal=true, which is therefore not checked");
}

BOOST_AUTO_TEST_CASE(causal_variants_have_a_long_sequence) {
  bool found = false;
  CheckCases cases;
  add_mechanism_cases(cases, find_mechanism("softmax"));
  for (const CheckCase& c : cases) found |= c.name == "softmax, causal=true, sequences, 40 tokens";
  BOOST_TEST(found);
}

BOOST_AUTO_TEST_CASE(gradients_agree_with_central_differences) {
  for (const CheckCase& c : all_check_cases())
    for (const CheckRow& row : gradcheck(c))
      BOOST_TEST(row.passed, row.operation << ", " << row.tensor << "[" << row.index << "]: got " << row.got
                                           << ", expected " << row.expected);
}

std::string text(const Counts& c) {
  std::ostringstream out;
  out << "mul " << c.mul << ", add " << c.add << ", div " << c.div << ", sqrt " << c.sqrt << ", exp " << c.exp
      << ", log " << c.log << ", erf " << c.erf << ", other " << c.other << ", cmp " << c.cmp;
  return out.str();
}

BOOST_AUTO_TEST_CASE(stated_costs_are_what_runs) {
  for (const CheckCase& c : all_check_cases())
    for (const CheckedCost& row : costcheck(c))
      BOOST_TEST(row.passed(),
                 c.name << " " << row.pass << ": ran " << text(row.executed) << "; stated " << text(row.stated));
}

// Many tokens are divided into blocks, and tensors too large to save are recomputed in the backward pass.
BOOST_AUTO_TEST_CASE(stated_costs_of_many_tokens_are_what_runs) {
  int checked = 0;
  // The grid is only for mechanisms that need one. Performer sums over 128 keys at a time, others over fewer.
  const AttentionCaseShape rows{"140 queries, 135 keys", 1, 2, 140, 135, 4, 0, 0, 0},
      grid{"grid of 12 x 12", 1, 2, 144, 144, 4, 12, 12, 0};
  for (const MechanismEntry& entry : mechanisms())
    for (const OptionValues& options : entry.variants()) {
      const auto mechanism = make_mechanism(entry.name, options);
      auto c = attention_case(entry.name, *mechanism, rows);
      if (!c) c = attention_case(entry.name, *mechanism, grid);
      if (!c) continue;
      ++checked;
      // Papers count every pair of tokens in SOFT's exact kernel. heed uses its symmetry and computes only half of the
      // pairs between blocks.
      const auto kernel = options.find("kernel");
      const bool symmetric = kernel != options.end() && kernel->second == "exact";
      for (const CheckedCost& row : costcheck(*c))
        BOOST_TEST((row.passed() || (symmetric && std::string_view(row.pass).ends_with("contractions"))),
                   entry.name << " " << c->name << " " << row.pass << ": ran " << text(row.executed) << "; stated "
                              << text(row.stated));
    }
  BOOST_TEST(checked > 60);
}

/// Returns the operations declared in the headers of include/heed/ops: functions that return a Var.
std::set<std::string> declared_operations() {
  static const std::regex declaration("\nVar<T> (\\w+)\\(");
  std::set<std::string> names;
  for (const auto& file : std::filesystem::recursive_directory_iterator("include/heed/ops")) {
    if (file.is_directory()) continue;
    const std::string text = read_file(file.path().string());
    for (std::sregex_iterator match(text.begin(), text.end(), declaration), end; match != end; ++match)
      names.insert((*match)[1]);
  }
  return names;
}

BOOST_AUTO_TEST_CASE(every_operation_has_a_case) {
  std::vector<TraceEntry> trace;
  std::set<std::string> ran;
  for (const CheckCase& c : all_check_cases()) {
    ran.insert(c.name.substr(0, c.name.find(',')));  // named after its operation; traces add others
    const std::vector<Tensor<float>> inputs = draw_inputs<float>(c, 1);
    Tape<float> tape({.training = c.training, .random = RandomStream(1), .observers = {.trace = &trace}});
    std::vector<Var<float>> variables;
    for (const auto& input : inputs) variables.push_back(tape.input(input.view()));
    c.in_float(tape, variables);
  }
  for (const TraceEntry& entry : trace) ran.insert(entry.operation);
  for (const MechanismEntry& entry : mechanisms()) BOOST_TEST(ran.contains(entry.name), entry.name << " has no case");
  // attention and prepare are recorded under the name of their mechanism, attention_step has no gradient, and step
  // returns its operand.
  const std::set<std::string> others{"attention", "prepare", "attention_step", "step"};
  const std::set<std::string> declared = declared_operations();
  BOOST_TEST(std::includes(declared.begin(), declared.end(), others.begin(), others.end()));
  for (const std::string& name : declared)
    BOOST_TEST((ran.contains(name) || others.contains(name)), name << " has no case");
}

template <class T>
std::vector<Tensor<double>> run(const CheckCase& c, const CheckCase::Function<T>& function) {
  const std::vector<Tensor<T>> inputs = draw_inputs<T>(c, 2);
  Tape<T> tape({.training = c.training, .random = RandomStream(1)});
  std::vector<Var<T>> variables;
  for (const auto& input : inputs) variables.push_back(tape.input(input.view()));
  const Var<T> y = function(tape, variables);
  Tensor<T> cotangent(y.shape());
  for (Index i = 0; i < cotangent.size(); ++i) cotangent[i] = static_cast<float>(RandomStream(3).uniform(i, -1, 1));
  std::vector<Tensor<double>> results;
  const auto keep = [&](View<const T> values) {
    std::copy(values.begin(), values.end(), results.emplace_back(values.shape()).begin());
  };
  keep(y.value());
  tape.backward(y, std::as_const(cotangent).view());
  for (const Var<T>& x : variables) keep(tape.gradient(x));
  return results;
}

BOOST_AUTO_TEST_CASE(values_have_another_width_than_keys) {
  int differ = 0;
  for (const CheckCase& c : all_check_cases())
    if (c.setting == "softmax" && c.name.find("packed") == std::string::npos)
      differ += c.sizes.at(4).second != c.sizes.at(5).second ? 1 : 0;  // sizes d and e
  BOOST_TEST(differ == 4);
}

// Separate operands have the widths d and e, packed operands a single width. Each sequence is 3 tokens shorter than the
// one before it.
BOOST_AUTO_TEST_CASE(a_mechanism_as_a_case) {
  const auto softmax = make_mechanism("softmax", {});
  const auto case_of = [&](const AttentionCaseShape& shape, CaseOperands given = CaseOperands::apart) {
    return *attention_case("mine", *softmax, shape, given);
  };
  using Sizes = std::vector<std::pair<char, Index>>;
  const CheckCase apart = case_of({"small", 2, 3, 5, 7, 12, 0, 0, 0, 6});
  BOOST_TEST(apart.name == "mine, small");
  BOOST_TEST(apart.setting == "mine");
  BOOST_TEST((apart.sizes == Sizes{{'B', 2}, {'H', 3}, {'N', 5}, {'M', 7}, {'d', 4}, {'e', 6}}));
  BOOST_TEST(apart.of_attention);
  BOOST_TEST_REQUIRE(apart.inputs.size() == 3u);
  BOOST_TEST(apart.inputs[0].shape == Shape({2, 3, 5, 4}));
  BOOST_TEST(apart.inputs[1].shape == Shape({2, 3, 7, 4}));
  BOOST_TEST(apart.inputs[2].shape == Shape({2, 3, 7, 6}));
  const CheckCase packed = case_of({"small", 2, 3, 5, 5, 12, 0, 0, 0, 6}, CaseOperands::packed);
  BOOST_TEST_REQUIRE(packed.inputs.size() == 1u);
  BOOST_TEST(packed.inputs[0].shape == Shape({2, 5, 36}));
  BOOST_TEST((packed.sizes == Sizes{{'B', 2}, {'H', 3}, {'N', 5}, {'M', 5}, {'d', 4}, {'e', 4}}));
  const CheckCase sequences = case_of({"seven", 3, 2, 7, 7, 8, 0, 0, 0}, CaseOperands::sequences);
  BOOST_TEST_REQUIRE(sequences.inputs.size() == 1u);
  BOOST_TEST(sequences.inputs[0].shape == Shape({1, 7 + 4 + 1, 24}));
  BOOST_TEST(!sequences.of_attention);
  BOOST_TEST(!case_of({"one query", 1, 2, 1, 3, 8, 0, 0, 0}).of_attention);
  BOOST_TEST(!case_of({"one key", 1, 2, 3, 1, 8, 0, 0, 0}).of_attention);
}

// Sums have up to a thousand terms of order one: that many float rounding errors of random sign (6e-8 each) add up to
// 2e-6, and the fast kernels' errors are below 1e-6. After several sums in sequence, as in the inverse of `soft`,
// errors are within 2e-5 of the tensor's largest element, or of 0.1 if that is larger.
BOOST_AUTO_TEST_CASE(float_agrees_with_double) {
  for (const CheckCase& c : all_check_cases()) {
    const auto in_float = run<float>(c, c.in_float), in_double = run<double>(c, c.in_double);
    for (std::size_t k = 0; k < in_double.size(); ++k) {
      double difference = 0, most = 0.1;
      for (Index i = 0; i < in_double[k].size(); ++i) {
        difference = std::max(difference, std::abs(in_float[k][i] - in_double[k][i]));
        most = std::max(most, std::abs(in_double[k][i]));
      }
      BOOST_TEST(difference <= 2e-5 * most, c.name << ", " << (k == 0 ? "result" : c.inputs[k - 1].name)
                                                   << ": differs by " << difference << " at most, largest element "
                                                   << most);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
