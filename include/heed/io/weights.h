// Tensors of a model in a safetensors file.
#pragma once

#include "heed/io/safetensors.h"
#include "heed/base/parameters.h"

namespace heed {

/// Name prefix of training state, which a model's loader skips.
inline constexpr const char* state_prefix = "heed.";

/// Result of loading a tensor of a model from a file.
struct TakenTensor {
  enum class Status {
    loaded,        ///< completely loaded
    part,          ///< some of its rows loaded
    interpolated,  ///< position embeddings of a different grid, interpolated
    fresh,         ///< not loaded: it keeps its values
  } status = Status::fresh;
  std::string name;
  Index rows = 0, of = 0;  ///< number of loaded rows (first axis), and of all rows
  std::string reason{};    ///< reason for an incomplete load
};

/// The tensors that a model loaded from a file.
struct TakenWeights {
  std::vector<TakenTensor> tensors;  ///< one per tensor of the model that files hold, in order
  std::vector<std::string> unused;   ///< tensors of the file that were neither loaded nor ignored
  Index numbers = 0;                 ///< number of loaded elements
  std::string prefix{};              ///< prefix removed from the file's names
};

/// Allowed differences between a model and the one whose weights it loads.
struct WeightChanges {
  bool new_head = false;                 ///< head.* and head_dist.* keep their values if the file lacks them or has
                                         ///< other shapes
  bool positions = false;                ///< position embeddings of a different grid are interpolated, except for
                                         ///< rows before the grid: pos_embed bicubically, others bilinearly
  PositionRows from{};                   ///< rows of the file's pos_embed; if unset, the file's grid must be square
  bool antialias = false;                ///< bicubic interpolation is antialiased
  std::string cure{}, positions_cure{};  ///< remedies appended to errors about tensors that do not fit, and about
                                         ///< position embeddings of a different grid
};

/// Reads every tensor of the model, including buffers, from `file`. Throws Error, naming the tensor, if one is missing,
/// surplus, of the wrong shape, not finite or a negative variance, except as `changes` allows. Ignores
/// *.num_batches_tracked, mask_token and training state (state_prefix, head.mlp.*, head.last_layer.*). Changes nothing
/// if it throws.
template <class T>
TakenWeights load_weights(const SafetensorsFile& file, Parameters<T>& parameters, const WeightChanges& changes = {});

/// Selection of the weights to load from another model.
struct MatchingRules {
  bool positions = false;            ///< as in WeightChanges
  bool antialias = false;            ///< as in WeightChanges
  PositionRows from{};               ///< as in WeightChanges
  std::vector<std::string> skip{};   ///< patterns of names to skip; * matches any text
  std::vector<std::string> parts{};  ///< names of parts (ParameterSpec) to load if they have as many rows in the file
  std::vector<std::vector<RowPart>> divisions{};  ///< divisions of the file's tensors into parts, by number of rows
};

/// Loads the tensors that match by name and shape, or in part. The other tensors keep their values. Throws Error, and
/// changes nothing, if no tensor matches, one is not finite, or a pattern matches no name.
template <class T>
TakenWeights load_matching(const SafetensorsFile& file, Parameters<T>& parameters, const MatchingRules& rules);

/// Adds the model's tensors to a file, in declaration order, except those used only in training. `parameters` must stay
/// valid until the file is written.
template <class T>
void add_weights(SafetensorsWriter& file, const Parameters<T>& parameters);

}  // namespace heed
