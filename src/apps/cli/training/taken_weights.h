// What a run took of the weights that it starts from, in a line.
#pragma once

#include "heed/io/weights.h"

#include <string>

namespace heed::cli {

/// "loaded 41 tensors (118,410 numbers), 4 in part (...), 12 new (...), 3 of the file unused: ..."
std::string taken_text(const TakenWeights& taken);

}  // namespace heed::cli
