// Inference of a Vision Transformer's configuration from a file's tensors.
#pragma once

#include "heed/config/experiment.h"
#include "heed/io/safetensors.h"

#include <map>
#include <string>
#include <vector>

namespace heed {

/// Keys of [model] determined by tensors with timm's names, and assumptions about undetermined keys.
struct ModelOfTensors {
  ModelConfig model;
  std::vector<std::string> assumed;  ///< such as "heads = 6 (64 channels per head)"
};

/// Infers the model of a file from the names and shapes of its tensors, with `heads` heads. If `heads` is 0, a head is
/// as wide as the query norm or, without qk_norm, has 64 channels. Throws Error if the tensors do not determine a
/// Vision Transformer.
ModelOfTensors model_of_tensors(const SafetensorsFile& file, Index heads = 0);

/// Infers the model in the same way from `shapes`, the shape of each tensor by name; errors begin with `file`.
ModelOfTensors model_of_tensors(const std::string& file, const std::map<std::string, Shape>& shapes, Index heads);

/// Returns the value of the last override of model.heads that is a number; 0 if there is none.
Index heads_given(const std::vector<std::string>& sets);

/// Returns the keys of an inferred model, except `classes`, as overrides: "model.dim=384".
std::vector<std::string> sets_of_tensors(const ModelConfig& model);

/// Returns the experiment given by overrides alone, with defaults for everything else.
Experiment load_sets(const std::vector<std::string>& sets);

/// Returns "; --set model.KEY=VALUE ... fits the file" with the keys in which `model` differs from the model of the
/// file's tensors; empty if none differ, if `model` is of another family, or if no model can be inferred from the file.
std::string fitting_keys(const SafetensorsFile& file, const ModelConfig& model);

}  // namespace heed
