// What the forms of `heed cost` share: numbers to be read, and tables.
#pragma once

#include "heed/cost/energy.h"
#include "heed/analysis/model_cost.h"

#include <ostream>
#include <string>
#include <vector>

namespace heed::cli {

/// Four digits and an SI prefix: "1.254 G".
std::string si(double value);

/// An energy in the unit that suits it: "108.6 uJ".
std::string joules(double pj);

/// Thousands apart: "54,000".
std::string grouped(Index value);

/// Prints rows of cells, the first column flush left, the others flush right.
void print_table(std::ostream& out, std::vector<std::vector<std::string>> rows);

/// The kinds of operations that any of the rows has; mul and add in any case.
std::vector<CountKind> kinds_of(const std::vector<CostRow>& rows);

/// What the counts are priced by: a line below a table.
std::string energy_note(const EnergyTable& table, const std::vector<CountKind>& kinds);

}  // namespace heed::cli
