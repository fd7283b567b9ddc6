// Observers of intermediate results: steps are reported to the innermost observer of the thread, and softmax reports
// whole maps.
#include "heed/attention/steps.h"

#include "heed/base/with_threads.h"
#include "support/mechanism.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <thread>

using namespace heed;

namespace {

/// Reports to one observer: names, such as "S1" for step S of head 1, and the values of each.
struct Reports {
  std::vector<std::string> names;
  std::map<std::string, Tensor<double>> values;

  StepObserver::See see() {
    return [this](const char* name, Index head, const Matrix<const double>& matrix) {
      names.push_back(name + std::to_string(head));
      Tensor<double>& copy = values[names.back()] = Tensor<double>(Shape{matrix.rows, matrix.columns});
      for (Index i = 0; i < matrix.rows; ++i) std::copy_n(matrix[i], matrix.columns, copy.data() + i * matrix.columns);
    };
  }
};

using Names = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_steps)

BOOST_AUTO_TEST_CASE(the_innermost_observer_is_called) {
  double data[] = {1, 2};
  const Matrix<double> row(data, 1, 2);
  Reports outer, inner;
  report_step("before", 0, row);
  BOOST_TEST(StepObserver::current() == nullptr);
  {
    const StepObserver first(outer.see());
    report_step("a", 1, row);
    {
      const StepObserver second(inner.see());
      BOOST_TEST(StepObserver::current() == &second);
      report_step("b", 2, row);
    }
    BOOST_TEST(StepObserver::current() == &first);
    report_step("c", 3, row);
    float in_float[] = {1, 2};
    report_step("d", 4, Matrix<float>(in_float, 1, 2));  // only double is reported
    std::thread([&] { report_step("e", 5, row); }).join();
  }
  BOOST_TEST(StepObserver::current() == nullptr);
  report_step("after", 0, row);
  BOOST_TEST(outer.names == (Names{"a1", "c3"}), boost::test_tools::per_element());
  BOOST_TEST(inner.names == Names{"b2"}, boost::test_tools::per_element());
}

// Two heads: q = (ln 2, 0) and (0, ln 3), k = (1, 0), v = (3, 9) and (4, 8). S = q k^T, before the softmax; the rows of
// A are (2, 1) / 3, (1, 1) / 2 and (1, 1) / 2, (3, 1) / 4; dA = v in each row; dS = A (dA - sum A dA), by rows.
BOOST_AUTO_TEST_CASE(steps_of_softmax) {
  const WithThreads alone(1);
  const double ln2 = std::log(2.0), ln3 = std::log(3.0);
  Tensors x;
  x["q"] = Tensor<double>(Shape{1, 2, 2, 1}, {ln2, 0, 0, ln3});
  x["k"] = Tensor<double>(Shape{1, 2, 2, 1}, {1, 0, 1, 0});
  x["v"] = Tensor<double>(Shape{1, 2, 2, 1}, {3, 9, 4, 8});
  Reports reports;
  {
    const StepObserver observer(reports.see());
    run_mechanism<double>("softmax", {}, x);
  }
  BOOST_TEST(reports.names == (Names{"S0", "A0", "S1", "A1", "dA0", "dS0", "dA1", "dS1"}),
             boost::test_tools::per_element());
  check_near(reports.values["S0"], {ln2, 0, 0, 0});
  check_near(reports.values["S1"], {0, 0, ln3, 0});
  check_near(reports.values["A0"], {2.0 / 3, 1.0 / 3, 0.5, 0.5});
  check_near(reports.values["A1"], {0.5, 0.5, 0.75, 0.25});
  check_near(reports.values["dA0"], {3, 9, 3, 9});
  check_near(reports.values["dA1"], {4, 8, 4, 8});
  check_near(reports.values["dS0"], {-4.0 / 3, 4.0 / 3, -1.5, 1.5});
  check_near(reports.values["dS1"], {-1, 1, -0.75, 0.75});
}

// Heads of this size are computed in separate calls, but in one call if they are observed.
BOOST_AUTO_TEST_CASE(steps_of_large_heads_have_their_head) {
  const WithThreads alone(1);
  Reports reports;
  const StepObserver observer(reports.see());
  const Tensor<double> x = random_tensor({2, 2, 90, 8}, 1);
  run_mechanism<double>("softmax", {}, {{"q", x}, {"k", x}, {"v", x}});
  const Names forward{"S0", "A0", "S1", "A1", "S0", "A0", "S1", "A1"},
      backward{"dA0", "dS0", "dA1", "dS1", "dA0", "dS0", "dA1", "dS1"};
  BOOST_REQUIRE(reports.names.size() == 16u);
  BOOST_TEST(Names(reports.names.begin(), reports.names.begin() + 8) == forward, boost::test_tools::per_element());
  BOOST_TEST(Names(reports.names.begin() + 8, reports.names.end()) == backward, boost::test_tools::per_element());
}

// A map that is computed in several blocks is not reported.
BOOST_AUTO_TEST_CASE(blocks_of_a_map_are_not_reported) {
  const WithThreads alone(1);
  const auto steps = [](Index tokens) {
    Reports reports;
    const StepObserver observer(reports.see());
    const Tensor<double> x = random_tensor({1, 1, tokens, 2}, 1);
    run_mechanism<double>("softmax", {}, {{"q", x}, {"k", x}, {"v", x}});
    return reports.names.size();
  };
  BOOST_TEST(steps(95) == 4u);
  BOOST_TEST(steps(96) == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
