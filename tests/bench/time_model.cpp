// Non-negative least squares, and times predicted from counts, on an invented machine.
#include "heed/bench/time_model.h"

#include "src/bench/nonnegative.h"
#include "heed/config/experiment.h"
#include "heed/nn/families.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <set>

using namespace heed;
using namespace heed::bench;

namespace {

/// Returns the model of a machine with two threads of 100 GF/s each; everything else takes no time.
TimeModel made_up() {
  TimeModel model;
  model.machine.threads = 2;
  model.machine.rate.fill(1e30);
  model.machine.rate[static_cast<std::size_t>(Resource::gemm)] = 1e11;
  model.machine.l2_bytes = 1e6;
  model.machine.l3_bytes = 1e7;
  Coefficients operation(amount::count, 0.0), step(step_amount::count, 0.0);
  operation[amount::products] = 2;  // twice the time at the limit
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

// Measurements of 4 and 2 for the same amount, the first with three times the weight: 3/4 (x - 4) + 1/2 (x - 2) = 0
// gives 3.2. With equal weights, 1/4 (x - 4) + 1/2 (x - 2) = 0 gives 8/3.
BOOST_AUTO_TEST_CASE(measurements_have_weights) {
  for (const auto& [weight, expected] : {std::pair(3.0, 3.2), {1.0, 8.0 / 3}}) {
    Fit fit;
    fit.add({1}, 4, weight);
    fit.add({1}, 2);
    BOOST_TEST(nonnegative_fit(fit, {1}, 0)[0] == expected, closely);
  }
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

// Each pass has its own coefficients; `rest` is the time outside the operations. The busier of two threads processes 16
// images of a batch of 24, which has microbatches of 8, 8 and 8, and 12 images of a batch of 20, which has 8, 8 and 4.
BOOST_AUTO_TEST_CASE(passes_have_their_own_coefficients) {
  TimeModel model = made_up();
  model.backward[""][amount::products] = 3, model.still[""][amount::products] = 5;
  model.training[step_amount::operations] = 1.5, model.training[step_amount::once] = 0.25;
  model.inference[step_amount::operations] = 4, model.inference[step_amount::once] = 0.5;
  const Experiment x = load_experiment("models/vit-micro.toml", {"train.microbatch=8"});
  for (const auto& [batch, busiest] : {std::pair(24, 16), {20, 12}}) {
    const Workload work(x, batch);
    const auto seconds = [&](const std::vector<OperationCost>& operations, bool back, double coefficient) {
      return coefficient * 2 * products_of(operations, back) / 1e11 * busiest;
    };
    const PassTime step = model.predict(work, true), pass = model.predict(work, false);
    double forward = 0, backward = 0, still = 0;
    for (const LayerTime& layer : step.layers) forward += layer.forward, backward += layer.backward;
    for (const LayerTime& layer : pass.layers) still += layer.forward + layer.backward;
    BOOST_TEST(forward == 1.5 * seconds(work.training, false, 2), closely);
    BOOST_TEST(backward == 1.5 * seconds(work.training, true, 3), closely);
    BOOST_TEST(still == 4 * seconds(work.inference, false, 5), closely);
    BOOST_TEST(step.rest == 0.25, closely);
    BOOST_TEST(pass.rest == 0.5, closely);
    BOOST_TEST(step.seconds == forward + backward + 0.25, closely);
    BOOST_TEST(pass.seconds == still + 0.5, closely);
  }
}

// A kind without measurements has the coefficients of its mechanism, or else those of all operations. Two threads share
// a single microbatch.
BOOST_AUTO_TEST_CASE(unknown_kinds_are_like_their_mechanism) {
  TimeModel model = made_up();
  const Workload work(load_experiment("models/vit-micro.toml", {"attention.mechanism=sima", "train.microbatch=8"}), 8);
  std::string kind;
  double own = 0, others = 0;
  for (const OperationCost& o : work.inference) {
    (o.operation == "sima" ? own : others) += static_cast<double>(o.cost.forward_contractions.mul);
    if (o.operation == "sima") kind = work.kind(o);
  }
  BOOST_TEST(own > 0);
  const auto check = [&](double coefficient) {
    BOOST_TEST(model.predict(work, false).seconds == 2 * 8 * (2 * others + coefficient * own) / 1e11 / 2, closely);
  };
  check(2);
  model.still["attention:sima"] = model.still[""], model.still["attention:sima"][amount::products] = 7;
  model.still["attention:aft"] = Coefficients(amount::count, 100.0);
  check(7);
  model.still[kind] = model.still[""], model.still[kind][amount::products] = 11;
  check(11);
}

// Fewer operations run than the papers count: in the last block, the layers after attention process only the class
// token, and norms are fused into the following layers.
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

// Options of [attention.NAME] override those of [attention]; if stages differ in an option, the kind has no options.
BOOST_AUTO_TEST_CASE(variants_are_those_of_each_mechanism) {
  const auto variants = [](const std::string& model, const std::vector<std::string>& sets) {
    return Workload(load_experiment("models/" + model + "-micro.toml", sets), 8).variants;
  };
  const std::string mixed = "attention.mechanism=[\"aft\",\"softmax\",\"sima\",\"softmax\"]";
  const auto both = variants("vit", {mixed, "attention.variant=simple", "attention.sima.norm=l2"});
  BOOST_TEST(both.size() == 3u);
  BOOST_TEST(both.at("aft").starts_with(" variant=simple param=factored "), both.at("aft"));
  BOOST_TEST(both.at("sima") == " norm=l2 order=auto");
  BOOST_TEST(both.at("softmax") == "");
  const auto own = variants("vit", {mixed, "attention.variant=simple", "attention.aft.variant=local",
                                    "attention.aft.window=3", "attention.norm=none"});
  BOOST_TEST(own.at("aft").starts_with(" variant=local param=factored "), own.at("aft"));
  BOOST_TEST(own.at("sima") == " norm=none order=auto");
  for (const char* place : {"attention.", "attention.soft."})
    BOOST_TEST(variants("soft", {place + std::string("normalize=[\"map\",\"none\",\"none\"]")}).at("soft") == "");
}

/// Returns a machine whose rates are distinct.
Machine uneven(int threads) {
  Machine machine;
  machine.threads = threads, machine.l2_bytes = 1000, machine.l3_bytes = 8000;
  for (std::size_t i = 0; i < machine.rate.size(); ++i) machine.rate[i] = static_cast<double>(2 * i + 3);
  return machine;
}

BOOST_AUTO_TEST_CASE(amounts_by_hand) {
  const Machine machine = uneven(2);
  const auto rate = [&](Resource of) { return machine.rate[static_cast<std::size_t>(of)]; };
  OperationCost o;
  o.cost.forward = {.mul = 100, .add = 200, .div = 3, .sqrt = 4, .exp = 5, .log = 6, .erf = 7, .other = 8, .cmp = 9};
  o.cost.backward = {.mul = 50, .add = 20, .exp = 1};
  o.cost.forward_contractions.mul = 40, o.cost.backward_contractions.mul = 60, o.cost.distances = 10;
  o.forward = {11, 13}, o.backward = {17, 19}, o.rows = 23;
  for (const bool back : {false, true})
    for (const auto& [bytes, memory] : {std::pair(1000.0, Resource::l2_cache),
                                        {1001.0, Resource::l3_cache},
                                        {4000.0, Resource::l3_cache},
                                        {4001.0, Resource::memory}}) {
      std::vector<double> expected(amount::count);
      expected[amount::calls] = 1, expected[amount::examples] = 7;
      expected[amount::products] = 2 * (back ? 60 : 40) * 7 / rate(Resource::gemm);
      expected[amount::distances] = 10 * 7 / rate(back ? Resource::clamp : Resource::l1);
      expected[amount::exponentials] = (back ? 1 : 3 + 4 + 5 + 6 + 7 + 8) * 7 / rate(Resource::exp);
      // Backward, contractions and distances account for all operations, so no elementary ones remain.
      expected[amount::elementary] = (back ? 0 : 100 + 200 + 9 - 2 * 40 - 3 * 10) * 7 / rate(Resource::multiply_add);
      expected[amount::activations] = 4 * (back ? 17 : 11) * 7 / rate(memory);
      expected[amount::weights] = 4 * (back ? 19 : 13) / rate(Resource::l3_cache);
      expected[amount::shared_weights] = 4 * (back ? 19 : 13) * 7 / rate(Resource::l2_cache);
      expected[amount::windows] = 4 * 23 * 7 / rate(Resource::l2_cache);
      const std::vector<double> got = amounts_of(machine, o, back, 7, bytes);
      BOOST_REQUIRE(got.size() == expected.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        BOOST_TEST(got[i] == expected[i], "amount " << i << ", back " << back << ": " << got[i]);
    }
}

// Three lanes of 8 images on two threads: one thread has two of them. With batch norm, lanes run in lockstep.
BOOST_AUTO_TEST_CASE(step_amounts_by_hand) {
  const Machine machine = uneven(2);
  const auto rate = [&](Resource of) { return machine.rate[static_cast<std::size_t>(of)]; };
  for (const std::string family : {"vit", "cvt"})
    for (const bool training : {true, false}) BOOST_TEST_CONTEXT(family << ", training " << training) {
        const Experiment x = load_experiment("models/" + family + "-micro.toml", {"train.microbatch=8"});
        const Workload work(x, 24);
        BOOST_TEST(microbatch_sizes(work, training) == std::vector<Index>(3, 8), boost::test_tools::per_element());
        const double bytes = 4 * static_cast<double>(make_model(x)->parameters().trainable_elements());
        const bool together = family == "cvt";
        // Each of four blocks has three projections with norms; a norm has two sums forward and one backward.
        const double norms = together ? 3 * 3 * 4 : 0;
        std::vector<double> expected(step_amount::count);
        expected[step_amount::once] = 1;
        expected[training && together ? step_amount::lockstep : step_amount::operations] = 6.0 * 16 / 24;
        expected[step_amount::microbatches] = 3.0 / 2;
        if (training) {
          expected[step_amount::updates] = bytes / rate(Resource::memory) / 2;
          expected[step_amount::lane_sums] = 3 * bytes / rate(Resource::memory) / 2;
          expected[step_amount::loss] = 10 * 24 / rate(Resource::exp) / 2;
          expected[step_amount::batch_sums] = norms;
          expected[step_amount::switches] = norms * (3.0 / 2 - 1);
        }
        const std::vector<double> got = step_amounts(machine, work, training, 6);
        BOOST_REQUIRE(got.size() == expected.size());
        for (std::size_t i = 0; i < got.size(); ++i)
          BOOST_TEST(std::abs(got[i] - expected[i]) < 1e-12 * (1 + expected[i]),
                     "amount " << i << ": " << got[i] << ", expected " << expected[i]);
        // With fewer lanes than threads, all threads share each operation, which is handed out forward and backward.
        const std::vector<double> shared = step_amounts(uneven(4), work, training, 6);
        BOOST_TEST(shared[step_amount::spread] == 6.0 / 4);
        BOOST_TEST(shared[step_amount::operations] + shared[step_amount::lockstep] == 0);
        BOOST_TEST(shared[step_amount::handed_out] ==
                   static_cast<double>(3 * (training ? 2 * work.training.size() : work.inference.size())));
        BOOST_TEST(shared[step_amount::switches] == 0);
      }
}

// Lanes whose gradients have more than 2^28 elements in all run one after the other in training, so that threads share
// operations: three lanes of 89,478,486 elements have 2^28 + 2. Lanes in lockstep do not, and inference has no lanes.
BOOST_AUTO_TEST_CASE(lanes_of_many_weights_run_in_turn) {
  for (const std::string family : {"vit", "cvt"}) {
    Workload work(load_experiment("models/" + family + "-micro.toml", {"train.microbatch=8"}), 24);
    for (const auto& [weights, many] : {std::pair(89'478'485.0, false), {89'478'486.0, true}}) {
      work.weight_bytes = 4 * weights;
      BOOST_TEST((step_amounts(uneven(2), work, true, 6)[step_amount::spread] == 3) == (many && family == "vit"));
      BOOST_TEST(step_amounts(uneven(2), work, false, 6)[step_amount::spread] == 0);
    }
  }
}

// Rates are per thread while all are busy; a resource not measured on all threads has its rate on one thread.
BOOST_AUTO_TEST_CASE(a_machine_has_rates_per_thread) {
  const auto limit = [](Resource of, int threads, double rate) {
    Limit made{of, threads, {}, "", ""};
    made.measured.rate = rate;
    return made;
  };
  const std::vector<Limit> limits{
      limit(Resource::gemm, 4, 200),  limit(Resource::gemm, 1, 100),  limit(Resource::memory, 4, 80),
      limit(Resource::memory, 4, 60), limit(Resource::memory, 1, 90), limit(Resource::exp, 1, 3),
      limit(Resource::exp, 1, 2),     limit(Resource::l1, 1, 5),      limit(Resource::l1, 2, 800)};
  const Machine machine = machine_of(limits, 4, "a");
  BOOST_TEST(machine.seconds(Resource::gemm, 1e9) == 1 / 50.0, closely);
  BOOST_TEST(machine.seconds(Resource::exp, 1e9) == 1 / 3.0, closely);
  BOOST_TEST(machine.seconds(Resource::memory, 1e9) == 1 / 20.0, closely);
  BOOST_TEST(machine.seconds(Resource::l1, 1e9) == 1 / 5.0, closely);
  BOOST_TEST(machine.threads == 4);
  BOOST_TEST(machine.cpu == "a");
}

BOOST_AUTO_TEST_CASE(json_there_and_back) {
  TimeModel model = made_up();
  double value = 0;
  for (auto* const kinds : {&model.forward, &model.backward, &model.still})
    for (const char* const kind : {"", "linear"}) {
      (*kinds)[kind].assign(amount::count, 0.0);
      for (double& one : (*kinds)[kind]) one = ++value;
    }
  for (Coefficients* const step : {&model.training, &model.inference})
    for (double& one : *step) one = ++value;
  model.watts = 50;
  Json bench = Json::object({{"cpu", "a"}, {"threads", 2}, {"limits", Json::list()}});
  for (int i = 0; i <= static_cast<int>(Resource::memory); ++i)
    for (const int threads : {1, 2})
      bench["limits"].push_back(
          Json::object({{"name", std::string(name_of(static_cast<Resource>(i))) + (threads == 1 ? "" : ", triad")},
                        {"threads", threads},
                        {"rate", threads == 1 ? 70.0 : 100.0}}));
  bench["times"] = model.json();
  const TimeModel read(Json::parse(bench.dump()));
  BOOST_TEST(read.machine.threads == 2);
  for (const double rate : read.machine.rate) BOOST_TEST(rate == 5e10);  // one of two threads
  const auto same = [](const Coefficients& a, const Coefficients& b) {
    BOOST_REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) BOOST_TEST(a[i] == b[i], closely);
  };
  for (const auto kinds : {&TimeModel::forward, &TimeModel::backward, &TimeModel::still})
    for (const char* const kind : {"", "linear"}) same((read.*kinds).at(kind), (model.*kinds).at(kind));
  same(read.training, model.training);
  same(read.inference, model.inference);
  BOOST_TEST(read.watts == 50);
  BOOST_TEST(read.no_watts == "");
  model.no_watts = "no counters";
  bench["times"] = model.json();
  BOOST_TEST(TimeModel(Json::parse(bench.dump())).no_watts == "no counters");
  bench["times"]["training"]["loss"] = -1.0;
  BOOST_CHECK_EXCEPTION(TimeModel{bench}, Error, [](const Error& error) {
    return std::string(error.what()) == "loss is -1; expected 0 or more";
  });
  TimeModel named = model;
  for (auto* const kinds : {&named.forward, &named.backward, &named.still}) kinds->erase("");
  bench["times"] = named.json();
  BOOST_TEST(error_of([&] { TimeModel{bench}; }) == "the coefficients of an unnamed kind of operation are missing");
  bench["times"] = model.json();
  Json limits = Json::list();
  for (const Json& limit : bench.at("limits").items())
    if (limit.at("name").text() != "exp" && limit.at("name").text() != "exp, triad") limits.push_back(limit);
  bench["limits"] = limits;
  BOOST_TEST(error_of([&] { TimeModel{bench}; }) == "the limit 'exp' is missing");
}

// A microbatch takes four bytes for each example and each element that the pass's own operations save.
BOOST_AUTO_TEST_CASE(bytes_of_a_microbatch) {
  Workload work(load_experiment("models/vit-micro.toml"), 8);
  work.inference.pop_back();
  const auto held = [](const std::vector<OperationCost>& operations) {
    double sum = 0;
    for (const OperationCost& o : operations) sum += static_cast<double>(o.held);
    return sum;
  };
  BOOST_TEST(held(work.inference) < held(work.training));
  BOOST_TEST(microbatch_bytes(work, true, 3) == 12 * held(work.training));
  BOOST_TEST(microbatch_bytes(work, false, 3) == 12 * held(work.inference));
}

// The variant of a language model's mechanism is causal. For training that is not supported, the error names the key.
BOOST_AUTO_TEST_CASE(workloads_that_differ) {
  BOOST_TEST(Workload(load_experiment("models/text-micro.toml"), 8).variants.at("softmax") == " causal");
  const auto refusal = [](const auto& change) {
    Experiment x = load_experiment("models/vit-micro.toml");
    change(x.train);
    return error_of([&] { Workload(x, 8); },
                    "cost: --time predicts supervised training in float32 without recompute, not [train] ");
  };
  BOOST_TEST(refusal([](auto& train) { train.method = "dino"; }) == "method = 'dino'");
  BOOST_TEST(refusal([](auto& train) { train.dtype = "f64"; }) == "dtype = 'f64'");
  BOOST_TEST(refusal([](auto& train) { train.recompute = true; }) == "recompute = true");
}

BOOST_AUTO_TEST_SUITE_END()
