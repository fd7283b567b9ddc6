// The history of a run, from its metrics.csv and gradients.csv.
#pragma once

#include "heed/train/runs/run.h"

#include <array>
#include <optional>
#include <vector>

namespace heed {

/// An epoch. Unmeasured values are empty.
struct EpochRecord {
  Index epoch = 0, step = 0;  ///< completed epochs and steps
  std::optional<double> loss, accuracy, lr, gradient_norm, images_per_s;
  std::optional<double> validation_loss, validation_accuracy;
};

/// A logged step (train.log_steps). Unmeasured values are empty.
struct StepRecord {
  Index step = 0;  ///< completed steps
  std::optional<double> loss, lr, gradient_norm;
};

/// Progress of a run.
struct RunHistory {
  std::vector<EpochRecord> epochs;
  std::vector<StepRecord> steps;
  bool finished = false;  ///< whether the test set has been evaluated
  std::optional<double> test_loss, test_accuracy;
};

/// Reads metrics.csv and gradients.csv; the history is empty without metrics.csv. Skips an incomplete last row. Throws
/// Error, naming file and line, for a row that `heed train` does not write.
RunHistory read_history(const RunPaths& paths);

/// Figures of a finished run, for comparisons.
struct RunFigures {
  std::optional<double> test_accuracy, test_loss;
  std::optional<double> validation_accuracy, validation_loss;  ///< figures of the epoch with the best accuracy
  std::optional<double> train_loss;                            ///< training loss of the last epoch
  std::optional<double> epochs;                                ///< completed epochs
  std::optional<double> seconds_per_epoch;                     ///< median training time, without validation
  std::optional<double> parameters;                            ///< trainable elements of the model
};

/// Reads the figures of a run with train.batch = `batch`; all are empty unless the run has finished, and `parameters`
/// is empty without cost.json.
RunFigures read_figures(const RunPaths& paths, Index batch);

/// A figure's names and format in tables.
struct FigureName {
  const char* key;    ///< in CSV and JSON
  const char* title;  ///< in text tables; null: omitted
  std::optional<double> RunFigures::*value;
  bool share;    ///< true: a percentage in text
  int decimals;  ///< decimals in text
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
