// Costs as JSON: what `heed cost --json` prints and a run directory keeps.
#pragma once

#include "heed/analysis/model_cost.h"
#include "heed/cost/energy.h"

#include <span>
#include <string>

namespace heed {

/// Per image: {"params", "total": {"mul", ..., "energy_pj"}, "attention_exp", "layers": [{"name", "mul", ...}]} and
/// what was asked for; "counted" says in words what the counts are of. Memory energy, "memory_pj", has an entry per
/// kind of memory and is in no other figure.
std::string cost_json(const ModelCost& model, const CostQuery& query, const EnergyTable& table);

/// The same of several models: {"models": [{"model", "params", ...}]}.
std::string costs_json(std::span<const std::string> names, std::span<const ModelCost> models, const CostQuery& query,
                       const EnergyTable& table);

/// The same of a model in both conventions, whichever `query` has: {"version", "contractions": {...}, "all": {...}}, a
/// line for each figure.
std::string cost_file(const ModelCost& model, CostQuery query, const EnergyTable& table);

}  // namespace heed
