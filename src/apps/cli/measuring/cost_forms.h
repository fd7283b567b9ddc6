// The forms of `heed cost`: one model, several, one growing.
#pragma once

#include "src/apps/cli/shared/commands.h"
#include "src/apps/cli/shared/table.h"

#include "heed/config/experiment.h"
#include "heed/cost/energy.h"
#include "heed/analysis/model_cost.h"

namespace heed::cli {

struct CostArguments {
  std::vector<std::string> sets, compare;
  std::string model, convention, pass, by, energy, attention, scale, measured, operations;
  Index batch = 0;
  bool json = false, time = false;
};

/// Returns the query that the arguments describe.
CostQuery query_of(const CostArguments& a);

/// The pass that they ask for, in words.
std::string pass_words(const CostArguments& a);

/// Returns the kinds of operations that any of the rows has; mul and add in any case.
std::vector<CountKind> kinds_of(const std::vector<CostRow>& rows);

/// Returns the prices of these kinds, for a line below a table.
std::string energy_note(const EnergyTable& table, const std::vector<CountKind>& kinds);

/// A model whose cost is counted, and what to call it.
struct NamedModel {
  std::string name;
  Experiment experiment;
};

/// The models of --compare, or the one model with each of the mechanisms of --attention.
std::vector<NamedModel> models_of(const CostArguments& a);

int compare_command(const CostArguments& a, const EnergyTable& table);
int scale_command(const CostArguments& a, const EnergyTable& table);

/// Predicts a model's time on the machine that a file of measurements describes.
int time_command(const CostArguments& a);

/// The sizes that --scale asks for: of "tokens=49..4096" the sides of square grids of patches, of "dim" multiples of
/// the number of heads; each about a sixth more than the one before. Throws Error where there are none.
struct Scale {
  bool tokens = false;
  std::vector<Index> sizes;
};
Scale scale_of(const std::string& text, const ModelConfig& model);

/// The model at one size: an image with as many patches, or all widths in proportion.
ModelConfig scaled(ModelConfig model, const Scale& scale, Index size);

}  // namespace heed::cli
