// Progress line of a training run, redrawn in place.
#pragma once

#include "heed/train/trainer.h"

#include <string>

namespace heed::cli {

/// Returns the terminal's columns: the system's value, otherwise the environment variable COLUMNS, otherwise 80.
Index terminal_columns();

/// Formats seconds as m:ss or h:mm:ss.
std::string duration(double seconds);

/// Returns the number of steps after `step` in a run of `epochs` epochs and, unless max_steps is 0, at most max_steps
/// steps. Counts the remaining epochs, since earlier ones may have had a different number of steps if the data changed.
Index steps_left(const StepReport& step, Index steps_per_epoch, Index epochs, Index max_steps);

/// Returns "epoch 2/8 ████░░░░ 41/859  loss 0.6312  accuracy 78.20 %  0:51 left  4321 images/s", shortened to less than
/// `columns` columns, since some terminals wrap after the last column.
std::string progress_line(const StepReport& step, const TrainPlan& plan, Index epochs, double seconds_left,
                          Index columns);

}  // namespace heed::cli
