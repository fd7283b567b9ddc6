// The line of a training run that is redrawn in place.
#pragma once

#include "heed/train/trainer.h"

#include <string>

namespace heed::cli {

/// Returns the terminal's present number of columns: as it says, else as the environment variable COLUMNS says,
/// else 80.
Index terminal_columns();

/// Seconds as m:ss or h:mm:ss.
std::string duration(double seconds);

/// "epoch 2/8 ████░░░░ 41/859  loss 0.6312  accuracy 78.20 %  0:51 left  4321 images/s": as much of it, from its
/// beginning, as there are columns, the last of which stays free: some terminals go on in the next line from there.
std::string progress_line(const StepReport& step, const TrainPlan& plan, Index epochs, double seconds_left,
                          Index columns);

}  // namespace heed::cli
