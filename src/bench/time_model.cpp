#include "heed/bench/time_model.h"

#include "heed/attention/mechanism.h"
#include "heed/base/parallel.h"
#include "heed/nn/families.h"
#include "heed/train/lanes.h"

#include <algorithm>

namespace heed::bench {

namespace {

constexpr const char* amount_names[] = {"call_us",    "example_us",  "products", "distances",      "exponentials",
                                        "elementary", "activations", "weights",  "shared_weights", "windows"};
static_assert(std::size(amount_names) == amount::count);

constexpr const char* step_names[] = {"step_us",       "operations", "lockstep",  "spread",
                                      "handed_out_us", "updates",    "lane_sums", "loss",
                                      "batch_sum_us",  "switch_us",  "piece_us"};
static_assert(std::size(step_names) == step_amount::count);

template <std::size_t N>
Json coefficients_json(const Coefficients& values, const char* const (&names)[N]) {
  Json json = Json::object({});
  for (std::size_t i = 0; i < N; ++i)
    if (values[i] > 0) json[names[i]] = values[i] * (std::string_view(names[i]).ends_with("_us") ? 1e6 : 1);
  return json;
}

template <std::size_t N>
Coefficients coefficients_in(const Json& json, const char* const (&names)[N]) {
  Coefficients values(N, 0.0);
  for (std::size_t i = 0; i < N; ++i) {
    if (!json.contains(names[i])) continue;
    values[i] = json.at(names[i]).number() / (std::string_view(names[i]).ends_with("_us") ? 1e6 : 1);
    require(values[i] >= 0, "{} is {}; expected 0 or more", names[i], values[i]);
  }
  return values;
}

double sum_of(const Coefficients& x, const std::vector<double>& amounts) {
  double sum = 0;
  for (std::size_t i = 0; i < amounts.size(); ++i) sum += x[i] * amounts[i];
  return sum;
}

/// Returns the coefficients of a kind or, if they are unknown, those of all variants of its mechanism or, without
/// these, those of all operations.
const Coefficients& of_kind(const std::map<std::string, Coefficients>& known, const std::string& kind) {
  for (const std::string& name : {kind, kind.substr(0, kind.find(' ')), std::string()})
    if (const auto found = known.find(name); found != known.end()) return found->second;
  HEED_ASSERT(false);
}

/// Returns the largest load of a thread, if each takes the next of `loads` as soon as it is idle.
double longest(const std::vector<double>& loads, int threads) {
  std::vector<double> busy(static_cast<std::size_t>(threads), 0.0);
  for (const double load : loads) *std::min_element(busy.begin(), busy.end()) += load;
  return *std::max_element(busy.begin(), busy.end());
}

/// Returns the number of examples in each unit of work for a thread: a lane in training, a microbatch in inference.
std::vector<double> loads_of(const Workload& work, bool training) {
  if (!training) {
    const std::vector<Index> sizes = microbatch_sizes(work, false);
    return {sizes.begin(), sizes.end()};
  }
  std::vector<double> loads;
  for (Index i = 0; i < work.lanes.count; ++i)
    loads.push_back(static_cast<double>(work.lanes.examples_of({i, i + 1}).count));
  return loads;
}

/// Returns true if threads share operations: if lanes run sequentially, or there are fewer lanes (in inference,
/// microbatches) than threads.
bool shares_operations(const Workload& work, bool training, int threads) {
  const auto weights = static_cast<Index>(work.weight_bytes / 4);
  return (training && !work.together && streams_lanes(weights, work.lanes.count)) ||
         loads_of(work, training).size() < static_cast<std::size_t>(threads);
}

/// Returns the values of a mechanism's options that have a list of choices, as in " variant=local param=dense"; empty
/// if the value of such an option differs between stages.
std::string variant_of(const AttentionConfig& attention, const std::string& mechanism) {
  std::string text;
  for (const OptionInfo& option : find_mechanism(mechanism).options()) {
    if (option.choices.empty()) continue;
    std::string value = option.fallback;
    const auto take = [&](const Options& options) {
      const auto found = options.find(option.name);
      if (found == options.end()) return true;
      value = found->second.text;
      return found->second.list.empty();
    };
    const auto own = attention.per_mechanism.find(mechanism);
    if (!take(attention.options) || (own != attention.per_mechanism.end() && !take(own->second))) return "";
    text += fmt::format(" {}={}", option.name, value);
  }
  return text;
}

}  // namespace

std::vector<Index> microbatch_sizes(const Workload& work, bool training) {
  const Lanes cut = training ? work.lanes : Lanes{work.batch, work.microbatch};
  std::vector<Index> sizes;
  for (Index i = 0; i < cut.microbatches(); ++i) sizes.push_back(cut.microbatch_at(i).count);
  return sizes;
}

Machine machine_of(const std::vector<Limit>& limits, int threads, std::string cpu) {
  Machine machine;
  machine.cpu = std::move(cpu);
  machine.threads = threads;
  machine.l2_bytes = cache_bytes(Resource::l2_cache);
  machine.l3_bytes = cache_bytes(Resource::l3_cache);
  // Rates per thread: limits measured with all threads replace the limits of one thread; if a resource has several, the
  // fastest is used.
  for (const int of : {1, threads}) {
    decltype(machine.rate) fastest{};
    for (const Limit& limit : limits) {
      double& rate = fastest[static_cast<std::size_t>(limit.of)];
      if (limit.threads == of) rate = std::max(rate, limit.measured.rate * 1e9 / of);
    }
    for (std::size_t i = 0; i < fastest.size(); ++i)
      if (fastest[i] > 0) machine.rate[i] = fastest[i];
  }
  return machine;
}

Workload::Workload(const Experiment& experiment, Index batch)
    : batch(batch), microbatch(microbatch_of(experiment.train, batch)) {
  require(!experiment.self_supervised() && experiment.train.dtype == "f32" && !experiment.train.recompute,
          "cost: --time predicts supervised training in float32 without recompute, not [train] {}",
          experiment.self_supervised()      ? "method = 'dino'"
          : experiment.train.dtype != "f32" ? "dtype = '" + experiment.train.dtype + "'"
                                            : "recompute = true");
  const std::unique_ptr<Model> model = make_model(experiment);
  example = model->example_name();
  training = operations_as_run(*model, true);
  inference = operations_as_run(*model, false);
  const Index count = model->parameters().trainable_elements();
  together = model->examples_depend(batch);
  lanes = lanes_of(batch, microbatch, count, together);
  weight_bytes = 4 * static_cast<double>(count);
  logits = static_cast<double>(model->outputs().elements());
  if (together)
    for (const OperationCost& operation : training) norms += operation.operation == "batch_norm" ? 3 : 0;
  for (const std::string& mechanism : experiment.attention.mechanism)
    variants[mechanism] =
        variant_of(experiment.attention, mechanism) + (experiment.model.task == "lm" ? " causal" : "");
}

std::string Workload::kind(const OperationCost& operation) const {
  const auto variant = variants.find(operation.operation);
  // A mechanism may have the same name as another operation.
  if (variant == variants.end() || !operation.layer.ends_with("attn")) return operation.operation;
  return "attention:" + operation.operation + variant->second;
}

double microbatch_bytes(const Workload& work, bool training, double count) {
  double numbers = 0;
  for (const OperationCost& operation : training ? work.training : work.inference)
    numbers += static_cast<double>(operation.held);
  return 4 * numbers * count;
}

std::vector<double> amounts_of(const Machine& machine, const OperationCost& operation, bool back, double count,
                               double bytes) {
  const Cost& cost = operation.cost;
  const Counts& all = back ? cost.backward : cost.forward;
  const Counts& contractions = back ? cost.backward_contractions : cost.forward_contractions;
  const Traffic& traffic = back ? operation.backward : operation.forward;
  const auto number = [](Index n) { return static_cast<double>(n); };
  std::vector<double> amounts(amount::count);
  const double functions = number(all.exp + all.erf + all.log + all.other + all.div + all.sqrt);
  const double multiplied = number(contractions.mul), compared = number(cost.distances);
  const double others = number(all.mul + all.add + all.cmp) - 2 * multiplied - 3 * compared;
  const double weight_bytes = 4 * number(traffic.weights);
  amounts[amount::calls] = 1;
  amounts[amount::examples] = count;
  amounts[amount::products] = machine.seconds(Resource::gemm, 2 * multiplied * count);
  amounts[amount::distances] = machine.seconds(back ? Resource::clamp : Resource::l1, compared * count);
  amounts[amount::exponentials] = machine.seconds(Resource::exp, functions * count);
  amounts[amount::elementary] = machine.seconds(Resource::multiply_add, std::max(others, 0.0) * count);
  amounts[amount::activations] = machine.seconds(machine.memory_of(bytes), 4 * number(traffic.activations) * count);
  amounts[amount::weights] = machine.seconds(Resource::l3_cache, weight_bytes);
  amounts[amount::shared_weights] = machine.seconds(Resource::l2_cache, weight_bytes * count);
  amounts[amount::windows] = machine.seconds(Resource::l2_cache, 4 * operation.rows * count);
  return amounts;
}

std::vector<double> step_amounts(const Machine& machine, const Workload& work, bool training, double seconds) {
  std::vector<double> amounts(step_amount::count);
  const double threads = machine.threads, batch = static_cast<double>(work.batch);
  const double lanes = static_cast<double>(work.lanes.count);
  amounts[step_amount::once] = 1;
  if (shares_operations(work, training, machine.threads)) {
    amounts[step_amount::spread] = seconds / threads;
    amounts[step_amount::handed_out] = static_cast<double>(
        (training ? 2 * work.training.size() : work.inference.size()) * microbatch_sizes(work, training).size());
  } else {
    amounts[training && work.together ? step_amount::lockstep : step_amount::operations] =
        seconds * longest(loads_of(work, training), machine.threads) / batch;
  }
  if (training) {
    amounts[step_amount::updates] = machine.seconds(Resource::memory, work.weight_bytes) / threads;
    amounts[step_amount::lane_sums] = machine.seconds(Resource::memory, work.weight_bytes) * lanes / threads;
    amounts[step_amount::loss] = machine.seconds(Resource::exp, work.logits * batch) / threads;
    amounts[step_amount::batch_sums] = static_cast<double>(work.norms);
    amounts[step_amount::switches] = static_cast<double>(work.norms) * std::max(0.0, lanes / threads - 1);
  }
  amounts[step_amount::microbatches] = static_cast<double>(microbatch_sizes(work, training).size()) / threads;
  return amounts;
}

Coefficients usual_operation() { return {5e-7, 0, 1.4, 1.3, 1.6, 1, 1, 1, 0, 0}; }
Coefficients usual_step() { return {0, 1, 1, 1.2, 2e-6, 6, 2, 2, 2e-6, 2e-6, 1e-6}; }

std::vector<LayerTime> TimeModel::layer_times(const Workload& work, bool pass_trains) const {
  std::vector<LayerTime> layers;
  const std::vector<Index> sizes = microbatch_sizes(work, pass_trains);
  std::map<Index, double> how_many;
  for (const Index size : sizes) ++how_many[size];
  for (const OperationCost& operation : pass_trains ? work.training : work.inference) {
    const auto known =
        std::find_if(layers.begin(), layers.end(), [&](const LayerTime& l) { return l.layer == operation.layer; });
    LayerTime& layer = known == layers.end() ? layers.emplace_back(LayerTime{operation.layer}) : *known;
    const std::string kind = work.kind(operation);
    for (const auto& [size, many] : how_many) {
      const double count = static_cast<double>(size), bytes = microbatch_bytes(work, pass_trains, count);
      layer.forward += many * sum_of(of_kind(pass_trains ? forward : still, kind),
                                     amounts_of(machine, operation, false, count, bytes));
      if (pass_trains)
        layer.backward += many * sum_of(of_kind(backward, kind), amounts_of(machine, operation, true, count, bytes));
    }
  }
  return layers;
}

PassTime TimeModel::predict(const Workload& work, bool pass_trains) const {
  PassTime time{0, layer_times(work, pass_trains), 0};
  double sum = 0;
  for (const LayerTime& layer : time.layers) sum += layer.forward + layer.backward;
  const std::vector<double> amounts = step_amounts(machine, work, pass_trains, sum);
  const Coefficients& x = pass_trains ? training : inference;
  time.seconds = sum_of(x, amounts);
  // The operations' total is divided among layers in proportion to their times.
  double of_operations = 0;
  for (const std::size_t of : {step_amount::operations, step_amount::lockstep, step_amount::spread})
    of_operations += x[of] * amounts[of];
  time.rest = time.seconds - of_operations;
  for (LayerTime& layer : time.layers) layer.forward *= of_operations / sum, layer.backward *= of_operations / sum;
  return time;
}

Json TimeModel::json() const {
  Json json;
  json["l2_bytes"] = machine.l2_bytes;
  json["l3_bytes"] = machine.l3_bytes;
  json["watts"] = no_watts.empty() ? Json(watts) : Json(no_watts);
  json["training"] = coefficients_json(training, step_names);
  json["inference"] = coefficients_json(inference, step_names);
  json["operations"] = Json::list();
  for (const auto& [kind, coefficients] : forward)
    json["operations"].push_back(Json::object({{"kind", kind},
                                               {"forward", coefficients_json(coefficients, amount_names)},
                                               {"backward", coefficients_json(backward.at(kind), amount_names)},
                                               {"inference", coefficients_json(still.at(kind), amount_names)}}));
  return json;
}

TimeModel::TimeModel(const Json& bench) {
  std::vector<Limit> limits;
  for (const Json& entry : bench.at("limits").items())
    for (int i = 0; i <= static_cast<int>(Resource::memory); ++i) {
      const auto resource = static_cast<Resource>(i);
      const std::string name = entry.at("name").text(), prefix = name_of(resource);
      if (name != prefix && !name.starts_with(prefix + ",")) continue;
      Limit limit{resource, static_cast<int>(entry.at("threads").integer()), {}, "", ""};
      limit.measured.rate = entry.at("rate").number();
      limits.push_back(std::move(limit));
    }
  machine = machine_of(limits, static_cast<int>(bench.at("threads").integer()), bench.at("cpu").text());
  for (std::size_t i = 0; i < machine.rate.size(); ++i)
    require(machine.rate[i] > 0, "the limit '{}' is missing", name_of(static_cast<Resource>(i)));
  const Json& times = bench.at("times");
  machine.l2_bytes = times.at("l2_bytes").number();
  machine.l3_bytes = times.at("l3_bytes").number();
  try {
    watts = times.at("watts").number();
  } catch (const Error&) {
    no_watts = times.at("watts").text();
  }
  training = coefficients_in(times.at("training"), step_names);
  inference = coefficients_in(times.at("inference"), step_names);
  for (const Json& entry : times.at("operations").items()) {
    forward[entry.at("kind").text()] = coefficients_in(entry.at("forward"), amount_names);
    backward[entry.at("kind").text()] = coefficients_in(entry.at("backward"), amount_names);
    still[entry.at("kind").text()] = coefficients_in(entry.at("inference"), amount_names);
  }
  require(forward.contains(""), "the coefficients of an unnamed kind of operation are missing");
}

}  // namespace heed::bench
