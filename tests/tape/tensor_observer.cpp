// Tensors passed to an observer: each result, each complete gradient, and their names.
#include "heed/tape/tensor_observer.h"

#include "heed/ops/activation.h"
#include "heed/ops/elementary/arithmetic.h"
#include "heed/tape/tape.h"

#include <boost/test/unit_test.hpp>
#include <fmt/ranges.h>

#include <algorithm>

using namespace heed;

namespace {

/// Collects lines "result NAME: VALUES", "again NAME: VALUES" for a recomputed result, and "gradient NAME: VALUES".
class Lines : public TensorObserver<double> {
 public:
  void observe(const ObservedTensor<double>& tensor) override {
    const char* const kind = tensor.gradient ? "gradient" : tensor.recomputed ? "again" : "result";
    seen.push_back(
        fmt::format("{} {}: {}", kind, names_.of(tensor), fmt::join(tensor.values.begin(), tensor.values.end(), " ")));
  }

  std::vector<std::string> seen;

 private:
  ResultNames names_;
};

/// Computes y = 2 (x + x)^2 in layer "double", whose first two operations are optionally recomputed, then a product
/// that is outside of layers and gets no gradient. The loss is y.
std::vector<std::string> observed(bool recompute, Lines observer = {}) {
  Gradients<double> gradients{Parameters<double>(ParameterList())};
  Tape<double> tape({.gradients = &gradients, .observers = {.tensors = &observer}});
  const std::string layer = "double";
  const auto square = [&](Var<double> x) {
    const Tape<double>::Scope scope(x.tape(), layer);
    const Var<double> twice = add(x, x);
    return mul(twice, twice);
  };
  const double three = 3, one = 1;
  const Var<double> x = tape.input({&three, Shape{1}}), z = recompute ? tape.recompute(x, square) : square(x);
  Var<double> y;
  {
    const Tape<double>::Scope scope(tape, layer);
    y = add(z, z);
  }
  mul(tape.constant({&one, Shape{1}}), tape.constant({&three, Shape{1}}));
  tape.backward(y, {&one, y.shape()});
  BOOST_TEST(*tape.gradient(x).data() == 48);
  return observer.seen;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tensor_observer)

// A gradient observed before all its contributions are added would be 12, not 24.
BOOST_AUTO_TEST_CASE(results_and_complete_gradients_in_the_order_of_computation) {
  const std::vector<std::string> expected = {
      "result double/add: 6",     "result double/mul: 36",  "result double/add#2: 72", "result mul: 3",
      "gradient double/add#2: 1", "gradient double/mul: 2", "gradient double/add: 24"};
  BOOST_TEST(observed(false) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(recomputed_results_keep_their_names) {
  std::vector<std::string> seen = observed(true), again;
  std::copy_if(seen.begin(), seen.end(), std::back_inserter(again), [](auto& s) { return s.starts_with("again"); });
  std::erase_if(seen, [](auto& s) { return s.starts_with("again"); });
  BOOST_TEST(seen == observed(false), boost::test_tools::per_element());
  const std::vector<std::string> expected = {"again double/add: 6", "again double/mul: 36"};
  BOOST_TEST(again == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_further_pass_has_names_of_its_own) {
  ResultNames names;
  const auto name = [&](std::uint32_t index, bool gradient) {
    return names.of(ObservedTensor<double>{.result = {index, "add", nullptr}, .gradient = gradient});
  };
  for (int pass = 0; pass < 2; ++pass) {
    BOOST_TEST(name(0, false) == "add");
    BOOST_TEST(name(1, false) == "add#2");
    BOOST_TEST(name(0, true) == "add");
  }
}

// A cleared tape counts results from 0: every pass has the same names.
BOOST_AUTO_TEST_CASE(passes_of_one_tape_have_the_same_names) {
  const std::vector<std::string> expected{"result add: 4",     "result mul: 8",   "result add#2: 16",
                                          "gradient add#2: 1", "gradient mul: 2", "gradient add: 4"};
  for (const bool recompute : {false, true}) {
    Lines observer;
    Gradients<double> gradients{Parameters<double>(ParameterList())};
    const Pass<double> pass{.gradients = &gradients, .observers = {.tensors = &observer}};
    Tape<double> tape(pass);
    for (int number = 0; number < 3; ++number) {
      if (number > 0) tape.clear(pass);
      const double two = 2;
      const Var<double> x = tape.input({&two, Shape{}});
      const auto square = [](Var<double> z) { return mul(add(z, z), z); };
      const Var<double> y = recompute ? tape.recompute(x, square) : square(x);
      tape.backward(add(y, y));
      std::vector<std::string> seen = std::exchange(observer.seen, {});
      std::erase_if(seen, [](const std::string& line) { return line.starts_with("again"); });
      BOOST_TEST(seen == expected, boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_dry_run_has_no_tensors) {
  Lines observer;
  Tape<double> tape({.execution = {.dry_run = true}, .observers = {.tensors = &observer}});
  const Var<double> x = tape.constant(1.0);
  add(x, x);
  BOOST_TEST(observer.seen.empty());
}

BOOST_AUTO_TEST_SUITE_END()
