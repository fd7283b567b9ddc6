// Numbers of a model's stages.
#pragma once

#include "heed/config/experiment.h"

namespace heed {

/// Returns the number of stage i in the names of its tensors: CvT counts from 0, SOFT's pyramid from 1.
inline std::size_t stage_number(const ModelConfig& model, std::size_t i) {
  return family_called(model.family) == cvt ? i : i + 1;
}

}  // namespace heed
