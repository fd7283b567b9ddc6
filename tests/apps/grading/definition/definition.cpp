// Personal mechanisms: two hundred identities have two hundred different, well-conditioned mechanisms. The generated
// headers are tested in tests/apps/cli/course/labs.cpp.
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

// A solution fits another identity if its output equals that of the other's definition.
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

// Dual numbers give the derivative, and capitals do not change an identity.
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

// No mechanism of the repair task solves a writing task.
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

BOOST_AUTO_TEST_SUITE_END()
