// Initial weights of a run from a file (--init).
#pragma once

#include "heed/base/parameters.h"
#include "heed/config/experiment.h"
#include "heed/io/weights.h"

#include <string>
#include <vector>

namespace heed {

struct InitialWeights {
  std::string file, checksum;
  TakenWeights taken;
};

/// Loads weights from `source`, a file or a run directory (its best weights or, if there are none, its last), by the
/// rules of [train] init and init_*.
template <class T>
InitialWeights take_initial_weights(const std::string& source, const Experiment& experiment, Parameters<T>& parameters);

/// Warns if the classifier was loaded from a run with as many classes as `classes`, those of the new run, but with
/// other names or another order.
void warn_of_other_classes(const InitialWeights& weights, const std::vector<std::string>& classes);

/// Returns the content of init.json: the file, its checksum, and whether and how each tensor was loaded.
std::string init_json(const InitialWeights& weights, const TrainConfig& train);

}  // namespace heed
