// The weights that a run starts from, where it is given some.
#pragma once

#include "heed/base/parameters.h"
#include "heed/config/experiment.h"
#include "heed/io/weights.h"

#include <string>

namespace heed {

struct InitialWeights {
  std::string file, checksum;
  TakenWeights taken;
};

/// Takes weights out of `source`, a file or a run directory (whose best weights are meant), as [train] init and the
/// keys beside it say.
template <class T>
InitialWeights take_initial_weights(const std::string& source, const Experiment& experiment, Parameters<T>& parameters);

/// The content of init.json: the file, its checksum, and what each tensor got out of it.
std::string init_json(const InitialWeights& weights, const TrainConfig& train);

}  // namespace heed
