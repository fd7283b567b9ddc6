// Probes of heed probe: one declaration each; probe_command.cpp runs them.
#pragma once

#include "pass_trace.h"
#include "src/apps/cli/shared/commands.h"

#include "heed/attention/options.h"
#include "heed/io/given_tensors.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <type_traits>

namespace heed::cli {

struct ProbeArguments {
  std::string mechanism, grid, model, weights, in, out, trace;
  std::vector<std::string> sets;
  int threads = 0;
};

/// Results of a probe, to be written to a file.
template <class T>
class ProbeOutput {
 public:
  explicit ProbeOutput(bool traced) {
    if (traced) trace_.emplace();
  }

  /// Returns the observers of the pass, which record a trace if requested.
  Observers<T> observers() { return trace_ ? trace_->observers() : Observers<T>{}; }

  /// Adds a result. Throws Error if an element is not finite, as after overflow.
  void add(const std::string& name, View<const T> values) {
    require(std::all_of(values.begin(), values.end(), [](T x) { return std::isfinite(x); }),
            "probe: '{}' is not finite: the given values are too large for {}", name,
            std::is_same_v<T, float> ? "F32; use F64" : "F64");
    Tensor<T>& copy = saved_.emplace_back(values.shape());
    std::copy(values.begin(), values.end(), copy.begin());
    file_.add(name, std::as_const(copy).view());
    if (trace_ && name.starts_with(gradient_prefix))
      trace_->add_gradient(name.substr(gradient_prefix.size()), std::as_const(copy).view());
    if (trace_ && name == "map") trace_->add_map(std::as_const(copy).view());
  }

  void add_integers(const std::string& name, std::vector<std::int64_t> values) {
    const std::vector<std::int64_t>& copy = saved_integers_.emplace_back(std::move(values));
    file_.add(name, View<const std::int64_t>(copy.data(), Shape{static_cast<Index>(copy.size())}));
  }

  /// Writes the trace, if any, and the results.
  void write(const ProbeArguments& a) {
    if (trace_) trace_->write(a.trace, step_of_weights(a));
    file_.write(a.out);
  }

 private:
  static constexpr std::string_view gradient_prefix = "grad.";

  static std::string step_of_weights(const ProbeArguments& a) {
    if (a.weights.empty()) return "";
    const SafetensorsFile weights(a.weights);
    const auto step = weights.metadata().find("heed.step");
    return step != weights.metadata().end() ? step->second : "";
  }

  std::optional<PassTrace<T>> trace_;
  std::deque<Tensor<T>> saved_;
  std::deque<std::vector<std::int64_t>> saved_integers_;
  SafetensorsWriter file_;
};

/// Reads the probe's --set options, declared by declare(reader).
template <class Declare>
void read_sets(const ProbeArguments& a, const char* probe, const Declare& declare) {
  const OptionValues values = parse_options(a.sets);
  OptionReader reader(probe, values);
  declare(reader);
  reader.finish();
}

/// Subject of a probe: a mechanism adds --mechanism and --grid, a model adds MODEL and --weights.
enum class Probed { tensors, mechanism, model };

/// A probe's function: takes its tensors from `in`, calls in.finish(), computes, and adds the results.
template <class T>
using ProbeFunction = void (*)(const ProbeArguments& a, GivenTensors& in, ProbeOutput<T>& results);

/// A subcommand of `heed probe`: its help, its options, and the function that computes its results.
struct Probe {
  const char *name, *summary;
  Probed probed = Probed::tensors;
  bool traces = false;         ///< runs a pass, so that --trace is available
  const char* sets = nullptr;  ///< meaning of --set; null: no --set
  const char* contract;        ///< tensors of IN and OUT, sizes and options, printed below the options in the help
  void (*check)(const ProbeArguments& a) = nullptr;  ///< checks arguments before tensors are read; throws Error
  std::pair<ProbeFunction<float>, ProbeFunction<double>> run;
};

extern const Probe attention_probe, linear_probe, model_probe, decode_probe, knn_probe, ridge_probe, dino_probe,
    dino_head_probe;

}  // namespace heed::cli
