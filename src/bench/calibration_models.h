// The small models for measuring times of operations.
#pragma once

#include "heed/config/experiment.h"

#include <string>
#include <vector>

namespace heed::bench {

struct Candidate {
  std::string name;
  Experiment experiment;
  Index batch;
};

/// Returns small models that contain every operation in several sizes. Predictions are tested on other models, drawn by
/// experiments/tools/time-errors.
std::vector<Candidate> candidates();

}  // namespace heed::bench
