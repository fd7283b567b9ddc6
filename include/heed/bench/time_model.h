// Prediction of a model's time without running it. The time of an operation is its exact counts divided by the measured
// limits of the host, times measured factors by which operations of its kind are slower than the limits (docs/cost.md).
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

/// The contributions to an operation's time on a microbatch: calls, examples, and work bounded by a limit.
namespace amount {
/// Index of a contribution in Coefficients.
enum Amount : std::size_t {
  calls,
  examples,
  products,        ///< multiply-adds of products
  distances,       ///< terms of l1 distances, or of their clamped gradients in the backward pass
  exponentials,    ///< exps and other functions, divisions, roots
  elementary,      ///< remaining additions, multiplications and comparisons
  activations,     ///< bytes of operands, results and saved memory
  weights,         ///< bytes of weights, read once per microbatch
  shared_weights,  ///< bytes of weights, read once per example
  windows,         ///< bytes of the rows multiplied by weights; for a convolution, summed over all windows
  count
};
}  // namespace amount

/// The contributions to a pass's time.
namespace step_amount {
/// Index of a contribution in Coefficients.
enum StepAmount : std::size_t {
  once,          ///< constant time per step
  operations,    ///< time of operations, if threads take whole lanes (in inference, microbatches)
  lockstep,      ///< time of operations, if lanes run in lockstep
  spread,        ///< time of operations, if threads share each operation
  handed_out,    ///< number of operations that threads share
  updates,       ///< bytes of weights, at memory speed
  lane_sums,     ///< bytes of weights, once per lane
  loss,          ///< exps of logits
  batch_sums,    ///< number of batch norm's sums over the batch
  switches,      ///< number of switches between lanes on a thread, at all sums over the batch
  microbatches,  ///< microbatches per thread
  count
};
}  // namespace step_amount

/// Seconds or, for work bounded by a limit, multiples of the time at that limit.
using Coefficients = std::vector<double>;

/// The limits of one thread while all others are busy, and the sizes of the caches.
struct Machine {
  std::string cpu;
  int threads = 1;
  std::array<double, 9> rate{};  ///< rate per second of each Resource
  double l2_bytes = 0, l3_bytes = 0;

  double seconds(Resource of, double amount) const { return amount / rate[static_cast<std::size_t>(of)]; }
  /// Returns the fastest of the L2 cache, the L3 cache and main memory that has room for `bytes` per thread.
  Resource memory_of(double bytes) const {
    return bytes <= l2_bytes ? Resource::l2_cache : bytes <= l3_bytes / threads ? Resource::l3_cache : Resource::memory;
  }
};

/// Returns the machine with the measured `limits`, for `threads` threads.
Machine machine_of(const std::vector<Limit>& limits, int threads, std::string cpu);

/// An experiment's operations and the division of its batch.
struct Workload {
  Workload(const Experiment& experiment, Index batch);

  /// Returns the kind of an operation: its name or, for a mechanism, "attention:", its name and its text in `variants`.
  std::string kind(const OperationCost& operation) const;

  std::string example;  ///< "image"
  std::vector<OperationCost> training, inference;
  std::map<std::string, std::string> variants;  ///< options as text, and " causal" in language models, by mechanism
  Lanes lanes;
  Index batch, microbatch;
  bool together;
  double weight_bytes, logits;  ///< bytes of all weights; logits per example
  Index norms = 0;              ///< number of sums over the batch in a training step
};

/// A layer's time in a pass, in seconds.
struct LayerTime {
  std::string layer;
  double forward = 0, backward = 0;
};

/// A predicted time.
struct PassTime {
  double seconds = 0;             ///< time of the batch
  std::vector<LayerTime> layers;  ///< in order of first execution; their sum is `seconds` - `rest`
  double rest = 0;                ///< seconds outside layers, such as sums of gradients, the update and the loss
};

/// The model of `heed cost --time`: a machine's limits, and coefficients fitted to its measurements.
class TimeModel {
 public:
  TimeModel() = default;

  /// Reads "cpu", "threads", "limits" and "times" in the output of heed bench --json. Throws Error, without the file's
  /// name, if one is missing or malformed.
  explicit TimeModel(const Json& bench);

  /// Returns the "times", in the form that the constructor reads.
  Json json() const;

  /// Returns the time of a training step, or of a forward pass in inference, over the workload's batch.
  PassTime predict(const Workload& work, bool training) const;

  /// Returns the time of each layer on one thread, over all microbatches of a batch.
  std::vector<LayerTime> layer_times(const Workload& work, bool training) const;

  /// Watts during training, or the reason why they are unknown.
  double watts = 0;
  std::string no_watts;

  Machine machine;
  /// Coefficients by kind, "" for unknown kinds: training forward, training backward, and inference, where operations
  /// save less memory and take other code paths.
  std::map<std::string, Coefficients> forward, backward, still;
  Coefficients training, inference;  ///< indexed by step_amount
};

/// Returns the contributions to an operation's time, in the backward pass if `back` is true, on a microbatch of `count`
/// examples that occupies `bytes`.
std::vector<double> amounts_of(const Machine& machine, const OperationCost& operation, bool back, double count,
                               double bytes);

/// Returns the sizes of the microbatches of a batch.
std::vector<Index> microbatch_sizes(const Workload& work, bool training);

/// Returns the contributions to a pass's time, given `seconds`, the total time of its operations on one thread.
std::vector<double> step_amounts(const Machine& machine, const Workload& work, bool training, double seconds);

/// Returns the bytes of the results and saved tensors of a microbatch of `count` examples.
double microbatch_bytes(const Workload& work, bool training, double count);

/// Return the default coefficients, for kinds without measurements.
Coefficients usual_operation();
Coefficients usual_step();

/// Measures the operations of many small models (those whose names contain `match`) for about `seconds` each, in
/// several turns, and fits the coefficients; calls progress(text) before each measurement. Throws Error if no name
/// matches.
TimeModel calibrate(const std::vector<Limit>& limits, const std::string& cpu, double seconds, const std::string& match,
                    const std::function<void(const std::string&)>& progress);

}  // namespace heed::bench
