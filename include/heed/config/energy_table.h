// Energy tables as TOML files. models/energy/ holds some; with better figures, write a file of the same form.
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
/// Throws Error at unknown keys and kinds, at figures without a source, and at negative or infinite ones.
EnergyTable load_energy_table(const std::string& path);

}  // namespace heed
