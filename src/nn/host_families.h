// The papers' host families: models beyond the Vision Transformer that accept any mechanism. Each is one file,
// src/nn/NAME.cpp. The functions throw Error for an invalid configuration.
#pragma once

#include "heed/config/experiment.h"
#include "heed/nn/model.h"

#include <memory>

namespace heed {

/// Creates XCiT: one resolution, convolutions within blocks, class attention.
std::unique_ptr<Model> make_xcit(const Experiment& experiment);

/// Creates CvT: stages with convolutional embeddings; queries, keys and values by convolutions.
std::unique_ptr<Model> make_cvt(const Experiment& experiment);

/// Creates SOFT's pyramid: stages of post-norm blocks; the blocks of the last stage are pre-norm.
std::unique_ptr<Model> make_soft_pyramid(const Experiment& experiment);

}  // namespace heed
