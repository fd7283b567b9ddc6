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

/// Returns small models that contain every operation in several sizes. Predictions are tested on other models, which
/// experiments/tools/time-errors generates at random.
std::vector<Candidate> candidates();

}  // namespace heed::bench
