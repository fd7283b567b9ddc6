// What the parts of heed probe share.
#pragma once

#include "src/apps/cli/shared/commands.h"

#include "heed/io/given_tensors.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <type_traits>

namespace heed::cli {

struct ProbeArguments {
  std::string mechanism, grid, model, weights, in, out;
  std::vector<std::string> sets;
  int threads = 0;
};

/// Results on their way to a file; kept until it is written.
template <class T>
class ProbeOutput {
 public:
  /// Throws Error for a number that is not finite: it would be none of the function that is probed, but of the range of
  /// floating point.
  void add(const std::string& name, View<const T> values) {
    require(std::all_of(values.begin(), values.end(), [](T x) { return std::isfinite(x); }),
            "probe: '{}' is not finite: what was given is too large for {}", name,
            std::is_same_v<T, float> ? "F32; F64 has more room" : "F64");
    Tensor<T>& copy = kept_.emplace_back(values.shape());
    std::copy(values.begin(), values.end(), copy.begin());
    file_.add(name, std::as_const(copy).view());
  }
  void write(const std::string& path) const { file_.write(path); }

 private:
  std::deque<Tensor<T>> kept_;
  SafetensorsWriter file_;
};

/// Runs in double where the file's tensors are F64, in float where they are F32; where it holds integers alone, as the
/// weights are.
template <class InFloat, class InDouble>
int by_dtype(const ProbeArguments& a, InFloat in_float, InDouble in_double) {
  use_threads(a.threads);
  GivenTensors in(a.in);
  const bool by_weights = !a.weights.empty() && !in.has_numbers();
  const bool twice = by_weights ? GivenTensors(a.weights).in_double() : in.in_double();
  return twice ? in_double(a, in) : in_float(a, in);
}

inline void add_files(Command command, ProbeArguments& a) {
  command.option("IN", &a.in, "safetensors with the inputs, F32 or F64", {.required = true});
  command.option("OUT", &a.out, "safetensors to write the results to", {.required = true});
  add_threads(command, a.threads);
}

/// Adds the probes of what is done to frozen features, and of self-supervision.
void add_probe_features(Command probe, ProbeArguments& arguments);
void add_probe_dino(Command probe, ProbeArguments& arguments);

}  // namespace heed::cli
