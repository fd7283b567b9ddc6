// Non-negative least squares, and times predicted from counts, on an invented machine.
#include "heed/bench/time_model.h"

#include "src/bench/nonnegative.h"
#include "heed/config/experiment.h"
#include "heed/nn/families.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <set>

using namespace heed;
using namespace heed::bench;

namespace {

/// Returns a machine with two threads of 100 GF/s each; everything else takes no time.
TimeModel made_up() {
  TimeModel model;
  model.machine.threads = 2;
  model.machine.rate.fill(1e30);
  model.machine.rate[static_cast<std::size_t>(Resource::gemm)] = 1e11;
  model.machine.l2_bytes = 1e6;
  model.machine.l3_bytes = 1e7;
  Coefficients operation(amount::count, 0.0), step(step_amount::count, 0.0);
  operation[amount::products] = 2;  // half of the limit
  step[step_amount::operations] = step[step_amount::lockstep] = step[step_amount::spread] = 1;
  model.forward[""] = model.backward[""] = model.still[""] = operation;
  model.training = model.inference = step;
  return model;
}

double products_of(const std::vector<OperationCost>& operations, bool back) {
  double sum = 0;
  for (const OperationCost& o : operations)
    sum += static_cast<double>(back ? o.cost.backward_contractions.mul : o.cost.forward_contractions.mul);
  return sum;
}

const auto closely = boost::test_tools::tolerance(1e-6);

}  // namespace

BOOST_AUTO_TEST_SUITE(bench_time_model)

BOOST_AUTO_TEST_CASE(coefficients_are_found) {
  Fit fit;
  for (const auto& [a, b] : {std::pair{1.0, 2.0}, {3.0, 1.0}, {5.0, 7.0}}) fit.add({a, b, 0}, 4 * a + 0.5 * b);
  const std::vector<double> x = nonnegative_fit(fit, {1, 1, 3}, 0);
  BOOST_TEST(x[0] == 4, closely);
  BOOST_TEST(x[1] == 0.5, closely);
  BOOST_TEST(x[2] == 3);  // undetermined, keeps its value
}

// y falls as b grows: the best fit has a negative coefficient, and zero is the nearest allowed.
BOOST_AUTO_TEST_CASE(coefficients_are_not_negative) {
  Fit fit;
  for (const auto& [a, b] : {std::pair{1.0, 0.0}, {2.0, 1.0}, {3.0, 3.0}}) fit.add({a, b}, 4 * a - b);
  const std::vector<double> x = nonnegative_fit(fit, {1, 1}, 0);
  BOOST_TEST(x[1] == 0);
  BOOST_TEST(x[0] > 3);
  BOOST_TEST(x[0] < 4);
}

BOOST_AUTO_TEST_CASE(a_pull_leads_to_what_is_usual) {
  Fit fit;
  fit.add({1}, 4);
  BOOST_TEST(nonnegative_fit(fit, {2}, 1)[0] == 3, closely);
}

// A batch of 24 is three microbatches of 8; one of two threads processes two of them: two thirds of all work.
BOOST_AUTO_TEST_CASE(time_is_work_over_rate) {
  const TimeModel model = made_up();
  const Experiment x = load_experiment("models/vit-micro.toml", {"train.microbatch=8"});
  const Workload work(x, 24);
  const double forward = 24 * products_of(work.training, false), back = 24 * products_of(work.training, true);
  const PassTime step = model.predict(work, true);
  BOOST_TEST(step.seconds == 2 * 2 * (forward + back) / 1e11 * 2 / 3, closely);
  BOOST_TEST(step.rest < 1e-9 * step.seconds);
  double layers = 0;
  for (const LayerTime& layer : step.layers) layers += layer.forward + layer.backward;
  BOOST_TEST(layers == step.seconds, closely);
  BOOST_TEST(model.predict(work, false).seconds == 2 * 2 * 24 * products_of(work.inference, false) / 1e11 * 2 / 3,
             closely);
  // Both threads share a single microbatch.
  const Workload alone(x, 8);
  BOOST_TEST(model.predict(alone, false).seconds == 2 * 2 * 8 * products_of(alone.inference, false) / 1e11 / 2,
             closely);
}

// Fewer operations run than the papers count: the last block computes its class token only, and norms are fused into
// layers.
BOOST_AUTO_TEST_CASE(operations_are_those_that_run) {
  const Experiment x = load_experiment("models/vit-micro.toml");
  const std::unique_ptr<Model> model = make_model(x);
  const std::vector<OperationCost> operations = operations_as_run(*model, true);
  const auto called = [&](const char* name) {
    return std::count_if(operations.begin(), operations.end(),
                         [=](const OperationCost& o) { return o.operation == name; });
  };
  BOOST_TEST(called("layer_norm") == 0);
  BOOST_TEST(called("layer_norm_linear") == 2 * 4 + 1);
  BOOST_TEST(called("softmax") == 4);
  constexpr double N = 50, D = 64, hidden = 128;
  const double whole = products_of(cost_of(*model).training, false);
  BOOST_TEST(products_of(operations, false) == whole - (N - 1) * D * (D + 2 * hidden));
}

BOOST_AUTO_TEST_CASE(kinds_are_by_mechanism_and_choice) {
  const auto kinds = [](const std::vector<std::string>& sets) {
    const Workload work(load_experiment("models/vit-micro.toml", sets), 8);
    std::set<std::string> found;
    for (const OperationCost& o : work.training) found.insert(work.kind(o));
    return found;
  };
  // The mechanism and the layer's operation have the same name, linear.
  const std::set<std::string> linear = kinds({"attention.mechanism=linear"});
  BOOST_TEST(linear.contains("linear"));
  BOOST_TEST(linear.contains("attention:linear"));
  const std::set<std::string> simple = kinds({"attention.mechanism=aft", "attention.variant=simple"});
  BOOST_TEST(std::any_of(simple.begin(), simple.end(), [](const std::string& kind) {
    return kind.starts_with("attention:aft") && kind.find("variant=simple") != std::string::npos;
  }));
}

BOOST_AUTO_TEST_CASE(json_there_and_back) {
  TimeModel model = made_up();
  model.forward[""][amount::calls] = 3e-6;
  model.watts = 50;
  Json bench = Json::object({{"cpu", "a"}, {"threads", 2}, {"limits", Json::list()}});
  for (int i = 0; i <= static_cast<int>(Resource::memory); ++i)
    for (const int threads : {1, 2})
      bench["limits"].push_back(Json::object({{"name", std::string(name_of(static_cast<Resource>(i))) + ", triad"},
                                              {"threads", threads},
                                              {"rate", threads == 1 ? 70.0 : 100.0}}));
  bench["times"] = model.json();
  const TimeModel read(Json::parse(bench.dump()));
  BOOST_TEST(read.machine.threads == 2);
  for (const double rate : read.machine.rate) BOOST_TEST(rate == 5e10);  // one of two threads
  BOOST_TEST(read.forward.at("")[amount::calls] == 3e-6, closely);
  BOOST_TEST(read.forward.at("")[amount::products] == 2);
  BOOST_TEST(read.still.at("")[amount::products] == 2);
  BOOST_TEST(read.watts == 50);
  BOOST_TEST(read.no_watts == "");
  bench["limits"] = Json::list();
  BOOST_CHECK_THROW(TimeModel{bench}, Error);
}

BOOST_AUTO_TEST_SUITE_END()
