// Description of the initial weights that a run loaded.
#pragma once

#include "heed/io/weights.h"

#include <string>

namespace heed::cli {

/// Returns "loaded 41 tensors (118,410 values), 4 in part (...), 12 new (...), 3 unused in the file: ...".
std::string taken_text(const TakenWeights& taken);

}  // namespace heed::cli
