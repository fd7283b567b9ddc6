// Training the cells of a sweep.
#pragma once

#include "sweep_cells.h"

namespace heed::cli {

/// Trains the cells that are open or begun, `jobs` at a time with `threads` shared out among them, each in a process of
/// its own. Says on stderr what becomes of each. Returns false if it was interrupted: begun cells are then saved.
bool run_cells(std::vector<Cell>& cells, int jobs, int threads);

}  // namespace heed::cli
