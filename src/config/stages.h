// How the stages of a model are counted.
#pragma once

#include "heed/config/experiment.h"

namespace heed {

/// The number of item i of a list, as the tensors of its stage are called: CvT counts from 0, SOFT's pyramid from 1.
inline std::size_t stage_number(const ModelConfig& model, std::size_t i) {
  return family_called(model.family) == cvt ? i : i + 1;
}

}  // namespace heed
