// Shared by the forms of `heed bench`: one model, and the whole suite.
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

/// Measures how fast a model trains with more threads and in more processes, each time in processes of their own.
int bench_scaling(const BenchArguments& a);

/// Returns the output of a program; `words` are its name and arguments. Throws Error if it fails, with its message.
std::string output_of(std::vector<std::string> words);

/// Measures the machine, the kernels and the standard models.
int bench_suite(const BenchArguments& a);

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
  double fraction = 0;  ///< its ideal time, with all products and distances at their limits, by the measured time
  double megabytes = 0;
  Json profile;  ///< milliseconds of a training step by operation
};

/// All of them. Throws Error where a model's file is missing.
std::vector<ModelCase> model_cases();

/// Measures a model in a process of its own, so that its peak memory is its own too.
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

/// The share of its limit that a kernel reaches in its fastest tenth of calls, which others on the machine disturb
/// least.
double share_of(const bench::KernelResult& kernel);

/// The shares of kernels alone, with the processor that they were measured on: for a file that is kept.
Json shares_json(const SuiteResult& result);

/// The file of --compare: an earlier result of `heed bench --json`, of the suite or of a model; of `heed bench
/// --shares`; or nothing.
class Baseline {
 public:
  /// Reads the file unless `path` is empty. Throws Error, naming it, if it holds something else.
  explicit Baseline(std::string path);

  /// Prints a result as one JSON object; beside what was measured, "compare" has [{"name", "unit", "old", "new",
  /// "ratio", "change"}], the change "faster" or "slower" where spreads do not overlap and else "".
  void print_json(Json result) const;

  /// Prints old and new of what both results have, if there is an old one.
  void print(const Json& result) const;

  /// Returns true if the file has shares of kernels, as heed bench --shares prints them.
  bool holds_shares() const { return holds_shares_; }

  /// Returns true if a kernel has lost more than a tenth of its share; false if the file has no shares.
  bool lost(const bench::KernelResult& kernel) const;

  /// A line for each kernel that has, and one where the shares are of another processor.
  std::vector<std::string> warnings(const SuiteResult& result) const;

 private:
  std::optional<double> share_of(const std::string& kernel) const;
  Table changes(const Json& result) const;
  void add_changed_rates(const Json& result, Table& table) const;
  void add_changed_shares(const Json& result, Table& table) const;

  std::string path_, cpu_;
  std::vector<bench::Measurement> before_;
  bool holds_shares_ = false;
  std::vector<std::pair<std::string, double>> shares_;
};

}  // namespace heed::cli
