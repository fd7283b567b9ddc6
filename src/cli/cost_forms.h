// The forms of `heed cost`: one model, several, one growing.
#pragma once

#include "commands.h"

#include "heed/config/experiment.h"
#include "heed/cost/energy.h"
#include "heed/analysis/model_cost.h"

namespace heed::cli {

struct CostArguments {
  std::vector<std::string> sets, compare;
  std::string model, convention = "contractions", pass = "forward", by = "layer", energy, attention, scale;
  Index batch = 1;
  bool json = false;
};

/// What the arguments ask for.
CostQuery query_of(const CostArguments& a);

/// A model whose cost is counted, and what to call it.
struct NamedModel {
  std::string name;
  Experiment experiment;
};

/// The models of --compare, or the one model with each of the mechanisms of --attention.
std::vector<NamedModel> models_of(const CostArguments& a);

int compare_command(const CostArguments& a, const EnergyTable& table);
int scale_command(const CostArguments& a, const EnergyTable& table);

}  // namespace heed::cli
