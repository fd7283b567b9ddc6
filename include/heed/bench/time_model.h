// Predicts a model's time without running it: each operation's exact counts, divided by the limits that were measured
// on this machine, times how far from them operations of its kind have been found to stay (docs/cost.md).
#pragma once

#include "heed/analysis/model_cost.h"
#include "heed/bench/limits.h"
#include "heed/config/experiment.h"
#include "heed/io/json.h"
#include "heed/train/lanes.h"

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace heed::bench {

/// The contributions to an operation's time on a microbatch: calls, calls for each example, and work that a limit
/// bounds.
namespace amount {
enum Amount : std::size_t {
  calls,
  examples,
  products,        ///< multiply-adds of products
  distances,       ///< terms of l1 distances, or on the way back of their clamped gradients
  exponentials,    ///< and other functions, divisions, roots
  elementary,      ///< remaining additions, multiplications and comparisons
  activations,     ///< bytes of operands, results and what is kept
  weights,         ///< bytes, once for the microbatch
  shared_weights,  ///< bytes, once for each example
  windows,         ///< bytes of the rows that weights multiply, of a convolution in all windows
  count
};
}  // namespace amount

/// The contributions to a pass's time besides its operations.
namespace step_amount {
enum StepAmount : std::size_t {
  once,          ///< a step
  operations,    ///< their time, where threads take microbatches
  lockstep,      ///< their time, where microbatches wait for each other
  spread,        ///< their time, where threads share each operation
  handed_out,    ///< operations that threads share
  updates,       ///< bytes of weights, at the speed of memory
  lane_sums,     ///< bytes of weights for each lane
  loss,          ///< exponentials for logits
  batch_sums,    ///< sums over the batch, by batch norm
  switches,      ///< switches between lanes on a thread, at each of these sums
  microbatches,  ///< taken by one thread
  count
};
}  // namespace step_amount

/// Seconds or, of what a limit bounds, multiples of the time at that limit.
using Coefficients = std::vector<double>;

/// The limits of one thread while all others are busy, and its caches.
struct Machine {
  std::string cpu;
  int threads = 1;
  std::array<double, 9> rate{};  ///< rate per second of each Resource
  double l2_bytes = 0, l3_bytes = 0;

  double seconds(Resource of, double amount) const { return amount / rate[static_cast<std::size_t>(of)]; }
  /// The memory that a thread's share of so many bytes lies in.
  Resource memory_of(double bytes) const {
    return bytes <= l2_bytes ? Resource::l2_cache : bytes <= l3_bytes / threads ? Resource::l3_cache : Resource::memory;
  }
};

/// The machine by its limits, on so many threads.
Machine machine_of(const std::vector<Limit>& limits, int threads, std::string cpu);

/// An experiment's operations and how a batch of them is cut up.
struct Workload {
  Workload(const Experiment& experiment, Index batch);

  /// Identifies operations of the same kind: by name, and for mechanisms by their choice options.
  std::string kind(const OperationCost& operation) const;

  std::string example;  ///< "image"
  std::vector<OperationCost> training, inference;
  std::map<std::string, std::string> variants;  ///< options of mechanisms, by name
  Lanes lanes;
  Index batch, microbatch;
  bool together;
  double weight_bytes, logits;  ///< bytes of all weights; logits of each example
  Index norms = 0;              ///< sums over the batch in a training step
};

/// A layer's part of a pass, in seconds of all threads together.
struct LayerTime {
  std::string layer;
  double forward = 0, backward = 0;
};

/// A prediction.
struct PassTime {
  double seconds = 0;             ///< for the batch
  std::vector<LayerTime> layers;  ///< in order of first execution
  double rest = 0;                ///< seconds that no layer takes: sums of gradients, the update, the loss
};

class TimeModel {
 public:
  TimeModel() = default;

  /// Reads the "limits" and "times" of heed bench --json. Throws Error, without naming the file, if they are
  /// missing or something else.
  explicit TimeModel(const Json& bench);

  /// The "times" of it.
  Json json() const;

  PassTime predict(const Workload& work, bool training) const;

  /// Returns the time of each layer on one thread, over all microbatches of a batch.
  std::vector<LayerTime> layer_times(const Workload& work, bool training) const;

  /// Joules per second while the machine trained, or why they are unknown.
  double watts = 0;
  std::string no_watts;

  Machine machine;
  /// By kind; "" for operations of no known kind. In training there and back; and in inference, where operations leave
  /// less behind and stay on other paths.
  std::map<std::string, Coefficients> forward, backward, still;
  Coefficients training, inference;  ///< by step_amount
};

/// Returns the contributions to an operation's time on a microbatch of `count` examples that occupies `bytes`.
std::vector<double> amounts_of(const Machine& machine, const OperationCost& operation, bool back, double count,
                               double bytes);

/// Sizes of the microbatches of a batch.
std::vector<Index> microbatch_sizes(const Workload& work, bool training);

/// Returns the contributions to a pass's time besides its operations, which take `seconds` of one thread in all.
std::vector<double> step_amounts(const Machine& machine, const Workload& work, bool training, double seconds);

/// Returns the memory of a microbatch of `count` examples in bytes.
double microbatch_bytes(const Workload& work, bool training, double count);

/// Usual coefficients, for kinds without measurements.
Coefficients usual_operation();
Coefficients usual_step();

/// Measures the operations of many small models for about `seconds` each, of those whose name contains `match`, and
/// finds the coefficients; tells before each model what it is. Throws Error if there is none.
TimeModel calibrate(const std::vector<Limit>& limits, const std::string& cpu, double seconds, const std::string& match,
                    const std::function<void(const std::string&)>& progress);

}  // namespace heed::bench
