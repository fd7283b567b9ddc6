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

  Index seed() const { return experiment.train.seed; }
};

/// Runs that differ by the seed alone.
struct ComparedArm {
  std::string name;  ///< that of its sweep, or the first run's directory
  std::vector<ComparedRun> runs;

  TableArm table() const;
};

/// The runs in these directories and below, by arms. Throws Error for one that holds none, and where an arm has two
/// runs of a seed.
std::vector<ComparedArm> find_arms(const std::vector<std::string>& directories);

/// The settings that are not the same in all arms: by key, a value for each arm, "-" where it has none.
std::map<std::string, std::vector<std::string>> differing_settings(const std::vector<ComparedArm>& arms);

/// What is drawn over epochs.
struct CurveName {
  const char* key;
  std::optional<double> EpochRecord::*value;
  bool share;  ///< of 1, which text shows as a percentage
};
inline constexpr std::array<CurveName, 4> curve_names{{
    {"validation_accuracy", &EpochRecord::validation_accuracy, true},
    {"validation_loss", &EpochRecord::validation_loss, false},
    {"loss", &EpochRecord::loss, false},
    {"accuracy", &EpochRecord::accuracy, true},
}};

/// What the arm's runs have of a curve in each epoch, as many as the run has that has most.
std::vector<Sample> samples_of(const ComparedArm& arm, const CurveName& curve);

}  // namespace heed::cli
