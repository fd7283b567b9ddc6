// The Vision Transformer that a file's tensors belong to.
#pragma once

#include "heed/config/experiment.h"
#include "heed/io/safetensors.h"

#include <string>
#include <vector>

namespace heed {

/// The keys of [model] that tensors with timm's names fix, and the assumptions about those that they leave open.
struct ModelOfTensors {
  ModelConfig model;
  std::vector<std::string> assumed;  ///< "heads = 6 (64 channels a head)"
};

/// Returns the model of a file's tensors by their names and shapes, with `heads` heads; 0: as many as the norms of
/// queries say, or heads of 64 channels. Throws Error if they are not the tensors of a Vision Transformer.
ModelOfTensors model_of_tensors(const SafetensorsFile& file, Index heads = 0);

/// Returns the value of the last override of model.heads; 0 if there is none or if it is no number.
Index heads_given(const std::vector<std::string>& sets);

/// Returns the keys of [model] that a file's tensors fix, as overrides: "model.dim=384".
std::vector<std::string> sets_of_tensors(const ModelConfig& model);

/// Returns the experiment that overrides alone describe, all else at its default.
Experiment load_sets(const std::vector<std::string>& sets);

/// Returns "; --set model.KEY=VALUE ... fits the file" with the keys that differ between `model` and that of the file's
/// tensors; empty if none do, or if the file is of another family.
std::string fitting_keys(const SafetensorsFile& file, const ModelConfig& model);

}  // namespace heed
