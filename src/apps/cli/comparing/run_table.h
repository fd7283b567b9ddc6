// Tables of many runs: each arm's mean and standard deviation over its seeds.
#pragma once

#include "src/apps/cli/shared/commands.h"

#include "heed/analysis/statistics.h"
#include "heed/io/json.h"
#include "heed/train/runs/history.h"

#include <ostream>
#include <string>
#include <vector>

namespace heed::cli {

/// A run in a table.
struct TableRun {
  std::string directory;
  Index seed = 0;
  std::string state;    ///< "finished", "diverged", ...
  std::string note;     ///< reason why the run is not finished, if known
  std::string hash;     ///< configuration_hash() of the run's configuration
  std::string version;  ///< version of heed that ran it; empty if it has not been started
  RunFigures figures;   ///< no values unless the run is finished
};

/// Runs on the same data that differ only in the seed.
struct TableArm {
  std::string name;
  std::vector<TableRun> runs;
};

/// Returns the values of a figure in the arm's finished runs.
std::vector<double> values_of(const TableArm& arm, const FigureName& figure);

/// Returns the mean; null for an empty sample.
Json mean_json(const Sample& sample);

/// Returns a figure as text: "98.47 %", "0.0512".
std::string shown(const FigureName& figure, double value);

/// The format of a table.
struct TableFormat {
  bool csv = false, json = false, markdown = false;  ///< at most one is true; if none is: text
  bool runs = false;                                 ///< CSV has a line for each run instead of each arm
};

void print_arms(std::ostream& out, const std::vector<TableArm>& arms, const TableFormat& format);

/// Returns the arms as JSON: count, mean and deviation of each figure, and the runs. Missing values are null.
Json arms_json(const std::vector<TableArm>& arms);

/// Returns the version of heed that ran in a directory, from its environment.json; empty if this file is missing.
std::string version_of(const RunPaths& paths);

}  // namespace heed::cli
