// What attention mechanisms prepare of their own tensors, as tensors of a model.
#pragma once

#include "heed/attention/mechanism.h"
#include "heed/tape/preparation.h"

#include <cmath>

namespace heed {

/// Standard Gumbel noise, -log(-log(u)), of a layer in a step: the same for all pieces of the batch.
template <class T>
void draw_gumbel(const RandomStream& step, const std::string& layer, Index count, T* noise) {
  const RandomStream stream = step.derive("gumbel").derive(layer);
  for (Index i = 0; i < count; ++i)
    noise[i] = T(-std::log(-std::log(1 - stream.uniform(i))));  // 1 - u is in (0, 1]; log(1) = 0 has probability 2^-53
}

/// Declares NAME.prepared, which the mechanism of the layer NAME makes of its tensors `own` once per step.
ParameterId add_prepared_attention(ParameterList& list, const std::string& name,
                                   std::shared_ptr<const Mechanism> mechanism, const AttentionShape& shape,
                                   std::vector<ParameterId> own);

}  // namespace heed
