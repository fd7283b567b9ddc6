// Common declarations of the forms of `heed cost`: one model, several, one of growing size.
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

/// Returns the convention, pass, grouping and batch size that the arguments select.
CostQuery query_of(const CostArguments& a);

/// Describes the arguments' pass in words.
std::string pass_words(const CostArguments& a);

/// Returns mul, add, and the other kinds of operations that occur in the rows.
std::vector<CountKind> kinds_of(const std::vector<CostRow>& rows);

/// Returns the energies of these kinds, as a line below a table.
std::string energy_note(const EnergyTable& table, const std::vector<CountKind>& kinds);

/// A model to count, with its name.
struct NamedModel {
  std::string name;
  Experiment experiment;
};

/// Returns the models of --compare, or the single model with each mechanism of --attention.
std::vector<NamedModel> models_of(const CostArguments& a);

int compare_command(const CostArguments& a, const EnergyTable& table);
int scale_command(const CostArguments& a, const EnergyTable& table);

/// Predicts a model's time on the host described by a file of measurements.
int time_command(const CostArguments& a);

/// Throws Error unless the model's family is vit or xcit, in which all layers have the same grid of patches, whose size
/// --scale can change.
void require_one_resolution(const ModelConfig& model);

/// Sizes of --scale: for "tokens=49..4096" the patch counts of square grids, for "dim" those multiples of the number of
/// heads that the model family supports. Each is at least a sixth larger than the previous one, except for the last,
/// which is the largest in the range.
struct Scale {
  bool tokens = false;
  std::vector<Index> sizes;
};

/// Parses --scale. Throws Error if there is no such size.
Scale scale_of(const std::string& text, const ModelConfig& model);

/// Returns the model at one size: with a different image size, or with all widths scaled in proportion.
ModelConfig scaled(ModelConfig model, const Scale& scale, Index size);

}  // namespace heed::cli
