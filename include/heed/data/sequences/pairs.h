// A synthetic stand-in for sets of related and unrelated document pairs.
#pragma once

#include "heed/base/tensor.h"

#include <string>

namespace heed {

/// Number of pairs in each part, and the random seed.
struct PairsSetting {
  Index train = 40'000, valid = 2'000, test = 2'000;
  Index seed = 1;
};

/// Creates a directory and writes new_aan_pairs.train.tsv, .eval.tsv and .test.tsv. A topic is a distribution p ~
/// Dirichlet(1/2) over 16 letters. Each text has 64 to 128 letters drawn from a topic. The second text has the topic of
/// the first with probability 1/2 (label 1.0), otherwise a new topic (label 0.0).
void write_pairs(const PairsSetting& setting, const std::string& directory);

}  // namespace heed
