// Energy tables in TOML files. models/energy/ has some tables; other files in the same format can supply other figures.
#pragma once

#include "heed/cost/energy.h"

#include <string>

namespace heed {

/// Reads a table:
///
///   name = "float32, 45 nm"
///   number_bytes = 4
///   [operations]
///   mul = { pj = 3.7, source = "..." }
///   [memory]
///   dram = { pj = 162.5, source = "..." }
///
/// Throws Error for unknown keys and operations, for figures without a source, and for negative or infinite ones.
EnergyTable load_energy_table(const std::string& path);

}  // namespace heed
