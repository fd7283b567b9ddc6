// Personal mechanisms of two hundred identities: all are well-conditioned, and each equals at most two others. The
// generated headers are tested in tests/apps/cli/course/labs.cpp.
#include "src/apps/grading/definition/definition.h"

#include "heed/checks/attention_case.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <set>

using namespace heed;

namespace {

constexpr int class_size = 200;
constexpr std::uint64_t seed = 7;
const AttentionCaseShape small{"small", 1, 1, 5, 4, 3, 0, 0, false};

std::string identity(int i) { return "s" + std::to_string(1000 + i); }

CheckCase case_of(const Mechanism& mechanism) { return *attention_case("defined", mechanism, small); }

Tensor<double> output(const Definition& definition) {
  const auto mechanism = mechanism_of(definition);
  return case_output(case_of(*mechanism), seed);
}

/// Returns the largest difference relative to the largest element.
double distance(const Tensor<double>& a, const Tensor<double>& b) {
  double most = 0, difference = 0;
  for (Index i = 0; i < a.size(); ++i) {
    most = std::max({most, std::abs(a[i]), std::abs(b[i])});
    difference = std::max(difference, std::abs(a[i] - b[i]));
  }
  return difference / most;
}

double value_at(const FeatureMap& map, double x) {
  const double y = map.c * x, sigmoid = 1 / (1 + std::exp(-y));
  switch (map.feature) {
    case Feature::identity:
      return x;
    case Feature::sigmoid:
      return sigmoid;
    case Feature::softplus:
      return std::log(1 + std::exp(y));
    case Feature::square:
      return 1 + y * y;
    case Feature::root:
      return std::sqrt(1 + y * y);
    case Feature::exp:
      return std::exp(y);
    case Feature::silu:
      return y * sigmoid;
    default:
      return std::erf(y);
  }
}

/// Returns the features of x [rows, 3], divided by the lengths of their rows or columns unless `norm` is none.
std::vector<double> features_by_hand(const FeatureMap& map, Norm norm, double eps, const double* x, Index rows) {
  std::vector<double> raw, divided;
  for (Index i = 0; i < 3 * rows; ++i) raw.push_back(value_at(map, x[i]));
  for (Index i = 0; i < 3 * rows; ++i) {
    double squares = eps;
    for (Index j = 0; j < 3 * rows; ++j)
      if (norm == Norm::token ? j / 3 == i / 3 : j % 3 == i % 3)
        squares += raw[static_cast<std::size_t>(j)] * raw[static_cast<std::size_t>(j)];
    divided.push_back(raw[static_cast<std::size_t>(i)] / (norm == Norm::none ? 1 : std::sqrt(squares)));
  }
  return divided;
}

/// Returns out [5, 3] for q [5, 3], k and v [4, 3], pair by pair: both orders of the products have the same result.
Tensor<double> output_by_hand(const Definition& d, const double* q, const double* k, const double* v) {
  const std::vector<double> F = features_by_hand(d.query, d.query_norm, d.eps, q, 5),
                            G = features_by_hand(d.key, d.key_norm, d.eps, k, 4);
  const auto gate = [](const FeatureMap& map, double x) {
    return map.feature == Feature::identity ? 1 : value_at(map, x);
  };
  Tensor<double> out(Shape{1, 1, 5, 3});
  for (Index i = 0; i < 5; ++i) {
    double E[4], sum = 0;
    for (Index j = 0; j < 4; ++j) {
      double score = 0;
      for (Index c = 0; c < 3; ++c)
        score += F[static_cast<std::size_t>(3 * i + c)] * G[static_cast<std::size_t>(3 * j + c)];
      sum += E[j] = value_at(d.score, score);
    }
    for (Index c = 0; c < 3; ++c) {
      double P = 0;
      for (Index j = 0; j < 4; ++j) P += E[j] / (d.by_sums ? sum : 4) * v[3 * j + c] * gate(d.key_gate, k[3 * j + c]);
      out[3 * i + c] = P * gate(d.query_gate, q[3 * i + c]);
    }
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(definitions)

BOOST_AUTO_TEST_CASE(an_identity_has_the_same_for_all_time) {
  BOOST_TEST(equations_of(definition_of("s1000", PersonalTask::write)) ==
             "  1. X_ic = 1 / (1 + exp(-0.86 q_ic))\n"
             "  2. F_ic = X_ic / sqrt(2 + sum_b X_ib^2)\n"
             "  3. Y_ic = log(1 + exp(1.01 k_ic))\n"
             "  4. G_ic = Y_ic / sqrt(2 + sum_j Y_jc^2)\n"
             "  5. Z = G^T v   [d, e]; the product of all pairs is never computed\n"
             "  6. s_c = sum_j G_jc\n"
             "  7. P_i = F_i Z / (F_i s)\n"
             "  8. out_ic = P_ic u, u = 0.9 q_ic / (1 + exp(-0.9 q_ic))\n");
  BOOST_TEST(equations_of(definition_of("s1000", PersonalTask::repair)) ==
             "  1. X_ic = 0.97 q_ic / (1 + exp(-0.97 q_ic))\n"
             "  2. F_ic = X_ic / sqrt(0.5 + sum_b X_ib^2)\n"
             "  3. Y_ic = 1 / (1 + exp(-0.86 k_ic))\n"
             "  4. G_ic = Y_ic / sqrt(0.5 + sum_b Y_ib^2)\n"
             "  5. S = F G^T   [N, M]\n"
             "  6. E_ij = 1 / (1 + exp(-0.97 S_ij))\n"
             "  7. A_ij = E_ij / M\n"
             "  8. out = A v   [N, e]\n");
}

// Outputs equal those of the definitions, computed pair by pair, for sixty identities, which cover every order,
// divisor, feature, norm and gate.
BOOST_AUTO_TEST_CASE(outputs_follow_from_the_equations) {
  for (int i = 0; i < 60; ++i)
    for (const PersonalTask task : {PersonalTask::write, PersonalTask::repair}) {
      const Definition definition = definition_of(identity(i), task);
      const auto mechanism = mechanism_of(definition);
      const CheckCase c = case_of(*mechanism);
      const std::vector<Tensor<double>> in = draw_inputs<double>(c, seed);
      const Tensor<double> expected = output_by_hand(definition, in[0].data(), in[1].data(), in[2].data());
      BOOST_TEST(distance(case_output(c, seed), expected) < 1e-11, identity(i) << "\n" << equations_of(definition));
    }
}

// Two definitions: one with a key gate, division by row sums, no score function, and queries not divided by their
// lengths; one with a state divided by M.
BOOST_AUTO_TEST_CASE(equations_of_other_definitions) {
  const Definition pairs{.query = {Feature::erf, 0.5},
                         .key = {Feature::square, 0.6},
                         .score = {},
                         .query_gate = {},
                         .key_gate = {Feature::root, 0.75},
                         .key_norm = Norm::token,
                         .eps = 0.25,
                         .by_sums = true};
  BOOST_TEST(equations_of(pairs) ==
             "  1. F_ic = erf(0.5 q_ic)\n"
             "  2. Y_ic = 1 + (0.6 k_ic)^2\n"
             "  3. G_ic = Y_ic / sqrt(0.25 + sum_b Y_ib^2)\n"
             "  4. W_jc = v_jc t, t = sqrt(1 + (0.75 k_jc)^2)\n"
             "  5. E = F G^T   [N, M]\n"
             "  6. A_ij = E_ij / sum_l E_il\n"
             "  7. out = A W   [N, e]\n");
  const Definition state{.order = ProductOrder::state,
                         .query = {Feature::exp, 0.6},
                         .key = {Feature::softplus, 0.7},
                         .score = {},
                         .query_gate = {Feature::erf, 0.9},
                         .key_gate = {Feature::sigmoid, 0.8},
                         .query_norm = Norm::channel,
                         .key_norm = Norm::token};
  BOOST_TEST(equations_of(state) ==
             "  1. X_ic = exp(0.6 q_ic)\n"
             "  2. F_ic = X_ic / sqrt(1 + sum_j X_jc^2)\n"
             "  3. Y_ic = log(1 + exp(0.7 k_ic))\n"
             "  4. G_ic = Y_ic / sqrt(1 + sum_b Y_ib^2)\n"
             "  5. W_jc = v_jc t, t = 1 / (1 + exp(-0.8 k_jc))\n"
             "  6. Z = G^T W   [d, e]; the product of all pairs is never computed\n"
             "  7. P_i = F_i Z / M\n"
             "  8. out_ic = P_ic u, u = erf(0.9 q_ic)\n");
}

// A solution fits another identity if its output equals the output of that identity's definition. This is so for at
// most two of the 199 others.
BOOST_AUTO_TEST_CASE(ones_solution_is_nobody_elses) {
  for (const PersonalTask task : {PersonalTask::write, PersonalTask::repair}) {
    std::vector<Tensor<double>> outputs;
    for (int i = 0; i < class_size; ++i) outputs.push_back(output(definition_of(identity(i), task)));
    int worst = 0;
    for (int i = 0; i < class_size; ++i) {
      int alike = 0;
      for (int j = 0; j < class_size; ++j)
        alike += i != j && distance(outputs[static_cast<std::size_t>(i)], outputs[static_cast<std::size_t>(j)]) < 1e-4;
      worst = std::max(worst, alike);
    }
    BOOST_TEST(worst <= class_size / 100);
  }
}

// Gradients equal finite differences; capitals and surrounding white space do not change an identity.
BOOST_AUTO_TEST_CASE(gradients_are_derivatives) {
  for (int i = 0; i < 20; ++i)
    for (const PersonalTask task : {PersonalTask::write, PersonalTask::repair}) {
      const auto mechanism = mechanism_of(definition_of(identity(i), task));
      for (const CheckRow& row : gradcheck(case_of(*mechanism), seed))
        BOOST_TEST(row.passed, identity(i) << row.tensor);
    }
  BOOST_TEST(equations_of(definition_of(" S1000\n", PersonalTask::write)) ==
             equations_of(definition_of("s1000", PersonalTask::write)));
}

// Composed and decomposed letters look equal: identities with combining marks, U+0300 to U+036F, are refused. Letters
// beyond ASCII keep their case.
BOOST_AUTO_TEST_CASE(identities_beyond_ascii) {
  const std::string bytes_of_latin1 = "\xcc!";
  for (const std::string& composed :
       {std::string("jos\u00e9"), std::string("\u02ff"), std::string("\u0370"), std::string("\u4e00"), bytes_of_latin1})
    BOOST_TEST(plain_identity(" A" + composed + " ") == "a" + composed);
  BOOST_TEST(plain_identity("JOS\u00c9") == "jos\u00c9");
  for (const std::string mark : {"\u0300", "\u0301", "\u036f"})
    BOOST_CHECK_THROW(definition_of("jose" + mark, PersonalTask::write), Error);
}

// All gradients have a suitable size for finite differences, and every input matters.
BOOST_AUTO_TEST_CASE(all_are_well_conditioned) {
  for (const PersonalTask task : {PersonalTask::write, PersonalTask::repair})
    for (int i = 0; i < class_size; ++i) {
      const Definition definition = definition_of(identity(i), task);
      const auto mechanism = mechanism_of(definition);
      const CheckCase c = case_of(*mechanism);
      const ExpectedGradients expected = expected_gradients(c, seed);
      for (std::size_t k = 0; k < expected.gradients.size(); ++k) {
        double most = 0;
        for (const double x : expected.gradients[k]) {
          BOOST_TEST(std::isfinite(x));
          most = std::max(most, std::abs(x));
        }
        BOOST_TEST(most > 1e-3, identity(i) << " " << c.inputs[k].name << "\n" << equations_of(definition));
        BOOST_TEST(most < 1e3, identity(i) << " " << c.inputs[k].name << "\n" << equations_of(definition));
      }
      for (const double x : case_output(c, seed)) BOOST_TEST(std::abs(x) < 1e3);
    }
}

// No mechanism of the repair task solves a writing task, since only writing tasks have gates.
BOOST_AUTO_TEST_CASE(gates_are_for_those_who_write) {
  const auto gated = [](const Definition& d) {
    return d.query_gate.feature != Feature::identity || d.key_gate.feature != Feature::identity;
  };
  for (int i = 0; i < class_size; ++i) {
    BOOST_TEST(gated(definition_of(identity(i), PersonalTask::write)));
    BOOST_TEST(!gated(definition_of(identity(i), PersonalTask::repair)));
  }
}

// Products of all pairs cost N M (d + e), those of a state (N + M) d e, so the wrong order is detected.
BOOST_AUTO_TEST_CASE(the_order_of_products_is_counted) {
  for (int i = 0; i < class_size; ++i) {
    const Definition definition = definition_of(identity(i), PersonalTask::write);
    const auto mechanism = mechanism_of(definition);
    const AttentionShape shape{.heads = 2, .queries = 50, .keys = 40, .width = 3, .value_width = 3};
    const Counts counts = mechanism->cost(shape).forward;
    const Index pairs = 2 * 50 * 40 * 6, state = 2 * 90 * 9;
    BOOST_TEST(counts.mul >= (definition.order == ProductOrder::pairs ? pairs : state));
    if (definition.order == ProductOrder::state) BOOST_TEST(counts.mul < pairs / 4);
    const Cost cost = mechanism->cost(shape);
    BOOST_TEST(cost.forward_contractions.mul == (definition.order == ProductOrder::pairs ? pairs : state));
    BOOST_TEST(cost.backward_contractions.mul == 2 * cost.forward_contractions.mul);
    BOOST_TEST(cost.backward.exp == 3 * counts.exp);
  }
}

BOOST_AUTO_TEST_CASE(bugs_differ) {
  std::set<std::array<int, 5>> all;
  for (int i = 0; i < class_size; ++i) {
    const PlantedBugs b = bugs_of(identity(i));
    all.insert({b.query, b.key, b.value, b.forward_cost, b.backward_cost});
    const Definition d = definition_of(identity(i), PersonalTask::repair);
    BOOST_TEST(header_of(d, "x", b) != header_of(d, "x"));
  }
  BOOST_TEST(all.size() > 50u);
}

// Headers and stubs begin with the equations, and state the mechanism's name and complexity.
BOOST_AUTO_TEST_CASE(headers_state_the_definition) {
  for (int i = 0; i < 20; ++i) {
    const Definition d = definition_of(identity(i), PersonalTask::write);
    const std::string equations = equations_of(d);
    for (const std::string& text : {header_of(d, "some_name"), stub_of(d, "some_name")}) {
      for (std::size_t from = 0, to; from < equations.size(); from = to + 1) {
        to = equations.find('\n', from);
        const std::string line = "\n// " + equations.substr(from, to + 1 - from);
        BOOST_TEST(text.find(line) != std::string::npos, identity(i) << line);
      }
      BOOST_TEST(text.find("mechanism_name = \"some_name\";") != std::string::npos);
      const bool pairs = d.order == ProductOrder::pairs;
      BOOST_TEST((text.find("complexity = \"time O(N M d)\";") != std::string::npos) == pairs);
      BOOST_TEST((text.find("complexity = \"time O((N + M) d^2)\";") != std::string::npos) == !pairs);
    }
  }
}

// Each bug of each sort changes the header in a different way, and occurs for at least one identity in the class.
BOOST_AUTO_TEST_CASE(every_bug_is_planted) {
  struct Sort {
    int PlantedBugs::*bug;
    int count;
  };
  for (const auto& [bug, count] : {Sort{&PlantedBugs::query, 4},
                                   {&PlantedBugs::key, 4},
                                   {&PlantedBugs::value, 4},
                                   {&PlantedBugs::forward_cost, 2},
                                   {&PlantedBugs::backward_cost, 3}}) {
    std::set<int> drawn;
    for (int i = 0; i < class_size; ++i) drawn.insert(bugs_of(identity(i)).*bug);
    BOOST_TEST((static_cast<int>(drawn.size()) == count && *drawn.begin() == 1 && *drawn.rbegin() == count));
    for (int i = 0; i < 8; ++i) {
      std::set<std::string> headers;
      for (PlantedBugs bugs; bugs.*bug <= count; ++(bugs.*bug))
        headers.insert(header_of(definition_of(identity(i), PersonalTask::repair), "x", bugs));
      BOOST_TEST(static_cast<int>(headers.size()) == 1 + count, identity(i));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
