// Runs to be compared.
#pragma once

#include "run_table.h"

#include <map>
#include <string>
#include <vector>

namespace heed::cli {

struct ComparedRun {
  std::string directory;
  Experiment experiment;
  RunHistory history;
  std::string data;  ///< data_hash()

  Index seed() const { return experiment.train.seed; }
};

/// Runs that differ only in the seed, on the same data. Runs without a record of their data belong to the arm with the
/// same settings if there is only one; otherwise they form a separate arm.
struct ComparedArm {
  std::string name;  ///< own_name(), or the first run's directory if several arms have that name
  std::vector<ComparedRun> runs;

  TableArm table() const;

  /// Returns the arm's name in the sweep or, for a run outside a sweep, the last component of its directory's path.
  std::string own_name() const;
};

/// Returns the runs in these directories and below, grouped by arm. Throws Error for a directory without runs,
/// and for two runs of an arm with the same seed.
std::vector<ComparedArm> find_arms(const std::vector<std::string>& directories);

std::vector<TableArm> tables_of(const std::vector<ComparedArm>& arms);

/// Returns the settings that differ between arms: for each key, the value in each arm, or "-" if an arm has none. If
/// the data differ, the key "data" holds data_text() relative to the first arm with a record of its data.
std::map<std::string, std::vector<std::string>> differing_settings(const std::vector<ComparedArm>& arms);

/// Returns arms_json() of the arms, with their differing settings.
Json compared_json(const std::vector<ComparedArm>& arms);

/// A curve over epochs.
struct CurveName {
  const char* key;
  std::optional<double> EpochRecord::*value;
  bool share;  ///< true: a fraction, printed as a percentage
};
inline constexpr std::array<CurveName, 4> curve_names{{
    {"validation_accuracy", &EpochRecord::validation_accuracy, true},
    {"validation_loss", &EpochRecord::validation_loss, false},
    {"loss", &EpochRecord::loss, false},
    {"accuracy", &EpochRecord::accuracy, true},
}};

/// Returns, for each epoch of the longest run, the sample of the values of the arm's runs.
std::vector<Sample> samples_of(const ComparedArm& arm, const CurveName& curve);

}  // namespace heed::cli
