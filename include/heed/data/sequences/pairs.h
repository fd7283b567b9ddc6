// A stand-in for pairs of documents of which some belong together.
#pragma once

#include "heed/base/tensor.h"

#include <string>

namespace heed {

struct PairsSetting {
  Index train = 40'000, valid = 2'000, test = 2'000;
  Index seed = 1;
};

/// Writes new_aan_pairs.train.tsv, .eval.tsv and .test.tsv to a directory, which is made. A topic is a distribution
/// p ~ Dirichlet(1/2) over 16 letters. The first text has 64 to 128 letters from a topic; the second, likewise, from
/// the same topic with probability 1/2 (label 1.0), else from a fresh one (label 0.0).
void write_pairs(const PairsSetting& setting, const std::string& directory);

}  // namespace heed
