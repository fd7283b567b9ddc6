// Costs as JSON, for `heed cost --json` and run directories.
#pragma once

#include "heed/analysis/model_cost.h"
#include "heed/cost/energy.h"

#include <span>
#include <string>

namespace heed {

/// Returns a model's costs per example as JSON: {"params", "total": {"mul", ..., "energy_pj"}, "attention_exp",
/// "layers": [{"name", "mul", ...}]}, with the convention, pass and batch size of `query` and the name of the energy
/// table; "counted" describes the convention. Memory energy, "memory_pj", has an entry per kind of memory and is not
/// included in "energy_pj". "activation_bytes" is the memory that a training step holds for a whole batch.
std::string cost_json(const ModelCost& model, const CostQuery& query, const EnergyTable& table);

/// Returns the costs of several models: {"models": [{"model", "params", ...}]}.
std::string costs_json(std::span<const std::string> names, std::span<const ModelCost> models, const CostQuery& query,
                       const EnergyTable& table);

/// Returns a model's costs in both conventions, whatever the convention in `query`: {"version", "contractions": {...},
/// "all": {...}}, one figure per line.
std::string cost_file(const ModelCost& model, CostQuery query, const EnergyTable& table);

}  // namespace heed
