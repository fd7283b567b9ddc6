// The host families of the papers: models that take any mechanism, and are more than a Vision Transformer. Each is one
// file, src/nn/NAME.cpp.
#pragma once

#include "heed/config/experiment.h"
#include "heed/nn/model.h"

#include <memory>

namespace heed {

/// XCiT: one resolution, convolutions within blocks, class attention. Throws Error if the configuration describes none;
/// so do the others.
std::unique_ptr<Model> make_xcit(const Experiment& experiment);

/// CvT: stages of convolutional embeddings, queries, keys and values by convolutions.
std::unique_ptr<Model> make_cvt(const Experiment& experiment);

/// SOFT's pyramid: stages of post-norm blocks.
std::unique_ptr<Model> make_soft_pyramid(const Experiment& experiment);

}  // namespace heed
