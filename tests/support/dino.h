// Small runs of self-supervision by a teacher.
#pragma once

#include "support/training.h"

namespace heed::test {

/// Two large views of 8 x 8 and two small ones of 4 x 4 of grey images; 112 of them make 7 batches.
inline Experiment dino_experiment(const Workshop& workshop) {
  Experiment x = workshop.experiment();
  x.model.patch = 2;
  x.train.method = "dino";
  x.optim.clip = 3;
  x.optim.weight_decay_end = 0.4;
  x.dino.out_dim = 24;
  x.dino.hidden = 20;
  x.dino.bottleneck = 8;
  x.dino.local_crops = 2;
  x.dino.local_size = 4;
  x.dino.local_scale = {0.1, 0.4};
  x.dino.ema = 0.9;
  return x;
}

/// One with batch norm, whose views of a step depend on each other.
inline Experiment dino_with_batch_norm(const Workshop& workshop) {
  Experiment x = dino_experiment(workshop);
  x.model.family = "xcit";
  x.model.cls_depth = 1;
  return x;
}

}  // namespace heed::test
