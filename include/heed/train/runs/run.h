// The directory of a training run: config.toml, environment.json, cost.json, metrics.csv, gradients.csv,
// last.safetensors, best.safetensors and, where it began with given weights, init.json, and where mechanisms came from
// plugins, plugins.json.
#pragma once

#include "heed/config/experiment.h"
#include "heed/io/file.h"
#include "heed/io/safetensors.h"

#include <memory>
#include <string>
#include <vector>

namespace heed {

/// Files of a run.
struct RunPaths {
  explicit RunPaths(std::string run) : directory(std::move(run)) {}
  std::string config() const { return directory + "/config.toml"; }
  std::string environment() const { return directory + "/environment.json"; }
  std::string init() const { return directory + "/init.json"; }
  std::string plugins() const { return directory + "/plugins.json"; }
  std::string cost() const { return directory + "/cost.json"; }
  std::string metrics() const { return directory + "/metrics.csv"; }
  std::string gradients() const { return directory + "/gradients.csv"; }
  std::string last() const { return directory + "/last.safetensors"; }
  std::string best() const { return directory + "/best.safetensors"; }

  /// The weights to use: best.safetensors, or last.safetensors where no epoch is complete yet.
  std::string weights() const;

  /// Does the directory hold a run, one that has come to its first checkpoint?
  bool exists() const;

  /// Removes temporary files of a process that died.
  void remove_leftovers() const;

  /// Removes the files of a run, and the directory if it holds nothing else.
  void remove() const;

  std::string directory;

 private:
  std::vector<std::string> files() const;
};

/// Says in a file of weights which version of heed wrote it.
void add_version(SafetensorsWriter& file);

/// Throws Error unless this version of heed wrote the checkpoint in `paths`: another one may number its random streams
/// or add up its sums otherwise, and a resumed run would not be the one that was begun.
void check_same_version(const RunPaths& paths);

/// Tells apart the configurations of which a resumed run keeps one (check_same_experiment).
std::string hash_to_resume(const Experiment& experiment);

/// Throws Error unless `experiment` may continue the run whose resolved configuration is in `paths`: all must be as it
/// was, except when to stop (train.epochs, too), what to log and save, and where the data lie.
/// Returns that configuration.
Experiment check_same_experiment(const RunPaths& paths, const Experiment& experiment);

/// Which mechanisms of an experiment came from plugins, and from which files:
/// {"hydra": {"file": "/home/ada/hydra.so", "checksum": "0badc0de-1024"}}. Empty if none did.
std::string plugins_json(const Experiment& experiment);

/// Throws Error, naming its plugin, if a mechanism of the run came from one that is not loaded.
void check_plugins(const RunPaths& paths);

/// One line that names a mechanism of the run whose plugin is loaded, but was compiled from something else than when
/// the run began; empty if there is none.
std::string changed_plugin(const RunPaths& paths);

/// The resolved configuration, with the version of heed.
std::string config_toml(const Experiment& experiment);

/// What the run runs on: version, the commit it was built from (if any), compiler, CPU, BLAS core, threads, and the
/// time at which that was asked.
std::string environment_json();

/// The configuration of the machine in one line: "AMD EPYC, 2 threads, OpenBLAS 0.3.21 Cooperlake".
std::string environment_line();

/// A row of metrics.csv: kind,epoch,step,loss,accuracy,lr,images_per_s. `kind` is step, train, valid or test; numbers
/// round-trip; negative ones are left empty. Those of steps and of training have one in gradients.csv too:
/// kind,epoch,step,gradient_norm, the norm before clipping, of an epoch the mean over its steps.
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

/// What the tables of a run must hold that is resumed.
struct MetricsSoFar {
  Index epochs = 0, steps = 0;  ///< completed, and updates made
  bool steps_logged = false;    ///< is there a row for the last update?
  bool validated = false;       ///< is there one for the validation of each epoch?
};

/// metrics.csv and gradients.csv, appended to row by row.
class MetricsFile {
 public:
  /// Begins the files.
  explicit MetricsFile(const RunPaths& paths);

  /// Goes on with the files. Rows beyond `so_far`, left by a run that was cut off after its last checkpoint, are
  /// dropped, and so is a test, which a run that goes on repeats. Throws Error where rows are missing, or hold what is
  /// no finite number.
  MetricsFile(const RunPaths& paths, const MetricsSoFar& so_far);
  void write(const MetricsRow& row);

  /// Brings the rows to the disk. Throws Error where a file has vanished.
  void sync();

 private:
  /// What the files begin with.
  struct Tables {
    std::string metrics, gradients;
  };
  static Tables kept_tables(const RunPaths& paths, const MetricsSoFar& so_far);
  MetricsFile(const RunPaths& paths, const Tables& begin);

  AppendedFile metrics_, gradients_;
};

}  // namespace heed
