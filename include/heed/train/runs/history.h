// What a run has come to, as its metrics.csv and gradients.csv say.
#pragma once

#include "heed/train/runs/run.h"

#include <array>
#include <optional>
#include <vector>

namespace heed {

/// An epoch. What was not measured is missing.
struct EpochRecord {
  Index epoch = 0, step = 0;  ///< completed, and updates made in all
  std::optional<double> loss, accuracy, lr, gradient_norm, images_per_s;
  std::optional<double> validation_loss, validation_accuracy;
};

/// A step of a run that logs them (train.log_steps); the same is missing.
struct StepRecord {
  Index step = 0;  ///< updates made in all
  std::optional<double> loss, lr, gradient_norm;
};

/// A run up to now.
struct RunHistory {
  std::vector<EpochRecord> epochs;
  std::vector<StepRecord> steps;
  bool finished = false;  ///< has the test set been looked at?
  std::optional<double> test_loss, test_accuracy;
};

/// Reads metrics.csv; a run without one has come to nothing yet. Throws Error, naming file and line, where a row
/// is none of heed train's; one that is being written is left out.
RunHistory read_history(const RunPaths& paths);

/// What a run is judged by. Only a finished run has figures.
struct RunFigures {
  std::optional<double> test_accuracy, test_loss;
  std::optional<double> validation_accuracy, validation_loss;  ///< in the epoch of the best accuracy
  std::optional<double> train_loss;                            ///< of the last epoch
  std::optional<double> epochs;                                ///< completed
  std::optional<double> seconds_per_epoch;                     ///< of training, without validation; the median
  std::optional<double> parameters;                            ///< trainable, of the model
};

/// `batch` is train.batch of the run. Parameters are in cost.json, where the directory has one.
RunFigures read_figures(const RunPaths& paths, Index batch);

/// A figure, for tables.
struct FigureName {
  const char* key;    ///< in CSV and JSON
  const char* title;  ///< in tables of text; none: left out there
  std::optional<double> RunFigures::*value;
  bool share;    ///< of 1, which text shows as a percentage
  int decimals;  ///< in text
};
inline constexpr std::array<FigureName, 8> figure_names{{
    {"test_accuracy", "test accuracy", &RunFigures::test_accuracy, true, 2},
    {"test_loss", "test loss", &RunFigures::test_loss, false, 4},
    {"validation_accuracy", "validation", &RunFigures::validation_accuracy, true, 2},
    {"validation_loss", nullptr, &RunFigures::validation_loss, false, 4},
    {"train_loss", nullptr, &RunFigures::train_loss, false, 4},
    {"epochs", "epochs", &RunFigures::epochs, false, 0},
    {"seconds_per_epoch", "s/epoch", &RunFigures::seconds_per_epoch, false, 1},
    {"parameters", "parameters", &RunFigures::parameters, false, 0},
}};

}  // namespace heed
