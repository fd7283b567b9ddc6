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

/// Returns the model of a file's tensors by their names and shapes. Throws Error if they are not those of a Vision
/// Transformer.
ModelOfTensors model_of_tensors(const SafetensorsFile& file);

/// Returns the keys of [model] that a file's tensors fix, as overrides: "model.dim=384".
std::vector<std::string> sets_of_tensors(const ModelConfig& model);

/// Returns the experiment that overrides alone describe, all else at its default.
Experiment load_sets(const std::vector<std::string>& sets);

/// Returns "; --set model.KEY=VALUE ... fits the file" with the keys that differ between `model` and that of the file's
/// tensors; empty if none do, or if the file is of another family.
std::string fitting_keys(const SafetensorsFile& file, const ModelConfig& model);

}  // namespace heed
