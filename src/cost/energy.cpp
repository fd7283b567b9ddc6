#include "heed/cost/energy.h"

namespace heed {

const EnergyTable& default_energy_table() {
  static const EnergyTable table = [] {
    const std::string horowitz = "Horowitz, Computing's energy problem, ISSCC 2014, Fig. 1.1.9: ";
    EnergyTable t;
    t.name = "float32, 45 nm";
    t.operations = {{"add", 0.9, horowitz + "FAdd 32 bit"}, {"mul", 3.7, horowitz + "FMult 32 bit"}};
    t.memory = {{"cache", 12.5, horowitz + "cache of 1 MB, 100 pJ per 64 bits"},
                {"dram", 162.5, horowitz + "DRAM, 1.3 nJ per 64 bits, the lower end of 1.3-2.6 nJ"}};
    return t;
  }();
  return table;
}

double energy_pj(const EnergyTable& table, const Counts& counts) {
  double sum = 0;
  for (const EnergyFigure& figure : table.operations)
    for (const CountKind& kind : count_kinds)
      if (figure.of == kind.name) sum += figure.pj * static_cast<double>(counts.*kind.member);
  return sum;
}

}  // namespace heed
