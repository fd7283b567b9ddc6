// Energy of operations and memory accesses, from a table. The built-in table is the adder paper's; others are read from
// files (config/energy_table.h).
#pragma once

#include "heed/cost/counts.h"

#include <string>
#include <vector>

namespace heed {

/// Energy of one kind of operation or memory, with its published source.
struct EnergyFigure {
  std::string of;  ///< the kind, such as "mul" or "dram"
  double pj = 0;
  std::string source;

  bool operator==(const EnergyFigure&) const = default;
};

/// Energy of operations and of memory accesses, in picojoules.
struct EnergyTable {
  std::string name;                      ///< such as "float32, 45 nm"
  Index number_bytes = 4;                ///< bytes per value in memory
  std::vector<EnergyFigure> operations;  ///< per operation; unlisted kinds cost nothing
  std::vector<EnergyFigure> memory;      ///< per byte, by kind of memory

  bool operator==(const EnergyTable&) const = default;
};

/// Returns the adder paper's table, float32 at 45 nm: 3.7 pJ per multiplication, 0.9 pJ per addition (Horowitz, ISSCC
/// 2014).
const EnergyTable& default_energy_table();

/// Returns the energy of the counted operations in pJ.
double energy_pj(const EnergyTable& table, const Counts& counts);

/// A kind of operations: its name in tables and JSON, and its count.
struct CountKind {
  const char* name;
  Index Counts::*member;
};
inline constexpr CountKind count_kinds[] = {
    {"mul", &Counts::mul},   {"add", &Counts::add},     {"div", &Counts::div},
    {"sqrt", &Counts::sqrt}, {"exp", &Counts::exp},     {"log", &Counts::log},
    {"erf", &Counts::erf},   {"other", &Counts::other}, {"cmp", &Counts::cmp},
};

}  // namespace heed
