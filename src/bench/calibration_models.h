// The small models on which times of operations are found.
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

/// Small models that have every operation in several sizes. They are not the models whose prediction is tested:
/// experiments/tools/time-errors draws others.
std::vector<Candidate> candidates();

}  // namespace heed::bench
