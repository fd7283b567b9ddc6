// Common declarations of the forms of `heed bench`: one model, scaling, and the suite.
#pragma once

#include "src/apps/cli/shared/table.h"

#include "heed/bench/kernels.h"
#include "heed/bench/time_model.h"
#include "heed/io/json.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace heed::cli {

struct BenchArguments {
  std::string model, mode, compare, match, drawing;
  std::vector<std::string> sets, only;
  Index batch = 0;
  int threads = 0;
  double seconds = 0;  ///< time of a measurement; 0: the form's default
  bool json = false, profile = false, scaling = false, shares = false;
};

/// Measures one model, in this process.
int bench_model(const BenchArguments& a);

/// Measures the scaling of training with threads and processes; starts separate processes for each measurement.
int bench_scaling(const BenchArguments& a);

/// Runs the command line `words` and returns its output. Throws Error, naming the command line, if it fails.
std::string output_of(std::vector<std::string> words);

/// A standard model with a mechanism, in training or inference.
struct ModelCase {
  std::string name;  ///< "vit-micro softmax train"
  std::string model, file, mode;
  std::vector<std::string> sets;
  Index batch = 0;
};

struct ModelResult {
  bench::Measurement measured;
  std::string model, mode, limit;
  Index batch = 0;
  double fraction = 0;  ///< ideal time, with all products and distances at their limits, divided by the measured time
  double megabytes = 0;
  Json profile;  ///< milliseconds per training step by operation
};

/// Returns all standard models. Throws Error if a model's file is missing.
std::vector<ModelCase> model_cases();

/// Measures a model in a separate process, so that its peak memory can be measured.
ModelResult measure(const ModelCase& model, const bench::Limits& limits, double seconds);

struct SuiteResult {
  std::vector<std::string> warnings;
  std::vector<bench::Limit> limits;
  std::vector<bench::KernelResult> kernels;
  std::vector<ModelResult> models;
  std::optional<bench::TimeModel> times;
};

void print_suite(const SuiteResult& result);
Json suite_json(const SuiteResult& result);

/// Returns a kernel's rate as a fraction of its limit. Uses the 90th percentile of the rate, since other load disturbs
/// the fastest calls least.
double share_of(const bench::KernelResult& kernel);

/// Returns share_of() for each kernel, and the CPU, as the content of a file for --compare.
Json shares_json(const SuiteResult& result);

/// The file of --compare: an earlier result of `heed bench --json`, for the suite or a model, or of `heed bench
/// --shares`; or none.
class Baseline {
 public:
  /// Reads the file unless `path` is empty. Throws Error, naming the file, for any other content.
  explicit Baseline(std::string path);

  /// Throws Error if there is a file, but without any of these measurements. Called before measuring, which may take
  /// minutes.
  void require_common(const std::vector<std::string>& names) const;

  /// Prints a result as one JSON object. If there is an old result, "compare" has [{"name", "unit", "old", "new",
  /// "ratio", "change"}]. The change is "faster" or "slower" if spreads do not overlap or, for a file of --shares, if
  /// one share is less than nine tenths of the other; otherwise "".
  void print_json(Json result) const;

  /// Prints old and new values of common measurements, if there is an old result.
  void print(const Json& result) const;

  /// Returns true if the file holds the output of heed bench --shares.
  bool holds_shares() const { return holds_shares_; }

  /// Returns true if a kernel reaches less than nine tenths of its recorded share; false if its share is not recorded.
  bool lost(const bench::KernelResult& kernel) const;

  /// Returns a line for each kernel for which lost() is true, and one if the file's shares are from another CPU.
  std::vector<std::string> warnings(const SuiteResult& result) const;

 private:
  std::optional<double> share_of(const std::string& kernel) const;
  Table changes(const Json& result) const;

  std::string path_, cpu_;
  std::vector<bench::Measurement> before_;
  bool holds_shares_ = false;
  std::vector<std::pair<std::string, double>> shares_;
};

}  // namespace heed::cli
