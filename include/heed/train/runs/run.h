// Directory of a training run: config.toml, data.json, environment.json, cost.json, metrics.csv, gradients.csv,
// last.safetensors, best.safetensors; init.json if the run started from given weights, plugins.json and copies of the
// plugins if mechanisms came from plugins.
#pragma once

#include "heed/base/parameters.h"
#include "heed/config/experiment.h"
#include "heed/io/file.h"
#include "heed/io/safetensors.h"

#include <filesystem>
#include <string>
#include <vector>

namespace heed {

/// Paths of a run's files.
struct RunPaths {
  /// `run`: the run's directory; slashes at its end are dropped.
  explicit RunPaths(std::string run) : directory(std::move(run)) {
    while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  }
  std::string config() const { return directory + "/config.toml"; }
  std::string environment() const { return directory + "/environment.json"; }
  std::string init() const { return directory + "/init.json"; }
  std::string data() const { return directory + "/data.json"; }
  std::string plugins() const { return directory + "/plugins.json"; }
  std::string cost() const { return directory + "/cost.json"; }
  std::string metrics() const { return directory + "/metrics.csv"; }
  std::string gradients() const { return directory + "/gradients.csv"; }
  std::string last() const { return directory + "/last.safetensors"; }
  std::string best() const { return directory + "/best.safetensors"; }

  /// Returns the paths of all files except copies of plugins.
  std::vector<std::string> files() const;

  /// Returns the path of the weights to use: best.safetensors, or last.safetensors before the first complete epoch.
  std::string weights() const;

  /// Returns true if the directory holds a run that has written a checkpoint.
  bool exists() const;

  /// Removes temporary files of a killed process.
  void remove_leftovers() const;

  /// Removes the files of a run, and the directory if it is then empty.
  void remove() const;

  std::string directory;

 private:
  std::vector<std::filesystem::path> plugin_copies() const;
};

/// Adds the version of heed to a file of weights.
void add_version(SafetensorsWriter& file);

/// Throws Error unless this version of heed wrote the checkpoint in `paths`: random streams and summation orders may
/// differ between versions.
void check_same_version(const RunPaths& paths);

/// Returns the rows of the position embedding of a run's Vision Transformer; the height is 0 for other models.
PositionRows position_rows(const RunPaths& paths);

/// Returns a hash of the settings that a resumed run must not change (check_same_experiment).
std::string hash_to_resume(const Experiment& experiment);

/// Throws Error unless `experiment` may continue the run in `paths`: only limits (including train.epochs), logging,
/// checkpoints, the data's path and keys for initial weights may differ from its configuration. Returns the recorded
/// configuration.
Experiment check_same_experiment(const RunPaths& paths, const Experiment& experiment);

/// Returns the mechanisms of an experiment that came from plugins, with their files; empty if there are none: {"hydra":
/// {"file": "/home/ada/hydra.so", "checksum": "0badc0de-1024", "copy": "plugin-hydra.so"}}.
std::string plugins_json(const RunPaths& paths, const Experiment& experiment);

/// Copies the plugins of an experiment into the run's directory, so that the run can be used on another host.
void copy_plugins(AtomicFiles& files, const RunPaths& paths, const Experiment& experiment);

/// Throws Error if a mechanism of the run came from a plugin that is not loaded.
void check_plugins(const RunPaths& paths);

/// Returns a line naming a mechanism that has changed since the run began: its plugin was rebuilt, or it came from a
/// plugin and is now built in, or the reverse. Empty if there is none.
std::string changed_plugin(const RunPaths& paths, const Experiment& experiment);

/// Returns the resolved configuration, with the version of heed.
std::string config_toml(const Experiment& experiment);

/// Returns the environment of the run: version, commit (if any) and ARCH of the build, compiler, CPU, BLAS, threads,
/// treatment of subnormals, time.
std::string environment_json();

/// Returns the host's configuration in one line, such as "AMD EPYC, 2 threads, OpenBLAS 0.3.21 Cooperlake".
std::string environment_line();

/// A row of metrics.csv: kind,epoch,step,loss,accuracy,lr,images_per_s. `kind` is step, train, valid or test; numbers
/// round-trip; negative ones are written as empty fields. Rows of kind step and train also have a row in gradients.csv:
/// kind,epoch,step,gradient_norm. gradient_norm is the norm before clipping; for kind train, its mean over the epoch's
/// steps, except skipped ones.
struct MetricsRow {
  const char* kind;
  Index epoch = 0;
  Index step = 0;
  double loss = 0;
  double accuracy = 0;
  double lr = -1;
  double images_per_s = -1;
  double gradient_norm = -1;
};

/// Rows that the tables of a resumed run must contain.
struct MetricsSoFar {
  Index epochs = 0, steps = 0;  ///< completed epochs and steps
  bool validated = false;       ///< each epoch must have a validation row; false if the data have changed
};

/// Writer of metrics.csv and gradients.csv, row by row.
class MetricsFile {
 public:
  /// Creates the files with their headers.
  explicit MetricsFile(const RunPaths& paths);

  /// Continues the files. Drops rows written after the last checkpoint and rows of a test, which the resumed run
  /// repeats. Throws Error if rows of `so_far` are missing or values are not finite.
  MetricsFile(const RunPaths& paths, const MetricsSoFar& so_far);
  void write(const MetricsRow& row);

  /// Flushes the rows to the disk. Throws Error if a file has been removed.
  void sync();

 private:
  AppendedFile metrics_, gradients_;
};

}  // namespace heed
