// Costs as JSON: what `heed cost --json` prints and a run directory keeps.
#pragma once

#include "heed/cost/energy.h"
#include "heed/analysis/model_cost.h"

#include <nlohmann/json.hpp>

namespace heed {

/// Per image: {"params", "total": {"mul", ..., "energy_pj"}, "attention_exp", "layers": [{"name", "mul", ...}]} and
/// what was asked for. Memory energy, "memory_pj", has an entry per kind of memory and is in no other figure.
nlohmann::ordered_json cost_json(const ModelCost& model, const CostQuery& query, const EnergyTable& table);

}  // namespace heed
