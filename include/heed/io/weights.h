// The tensors of a model in a safetensors file.
#pragma once

#include "heed/io/safetensors.h"
#include "heed/base/parameters.h"

namespace heed {

/// Tensors whose name begins so are training state, not weights; a model's loader skips them.
inline constexpr const char* state_prefix = "heed.";

/// The source of a model's tensor in a file.
struct TakenTensor {
  enum class Status {
    loaded,        ///< all of it
    part,          ///< some of its rows
    interpolated,  ///< positions of another grid
    fresh,         ///< nothing: it keeps its values
  } status = Status::fresh;
  std::string name;
  Index rows = 0, of = 0;  ///< rows of the first axis that were taken, of so many
  std::string reason{};    ///< why not all
};

/// The tensors that a model loaded from a file.
struct TakenWeights {
  std::vector<TakenTensor> tensors;  ///< the model's, in its order
  std::vector<std::string> unused;   ///< the file's that went nowhere; training state does not count
  Index numbers = 0;                 ///< number of loaded elements
  std::string prefix{};              ///< that was removed from the file's names
};

/// Allowed differences between a model and the one whose weights it loads.
struct WeightChanges {
  bool new_head = false;   ///< head.* keep the values they have where the file's have another shape or are missing
  bool positions = false;  ///< position embeddings of another square grid are interpolated (kernels/grids/bicubic.h),
                           ///< rows of tokens before the grid kept
  bool antialias = false;  ///< with antialiasing
  std::string cure{}, positions_cure{};  ///< end the errors about tensors that do not fit, and about positions of
                                         ///< another grid: what can be done about it
};

/// Reads every tensor of the model, buffers included, from `file`. A tensor that is missing, surplus, misshapen or
/// not finite is an Error that names it, except where `changes` allows it; what other programs count beside running
/// statistics, *.num_batches_tracked, is read past. Nothing is changed if an Error is thrown.
template <class T>
TakenWeights load_weights(const SafetensorsFile& file, Parameters<T>& parameters, const WeightChanges& changes = {});

/// The weights to load from another model.
struct MatchingRules {
  bool positions = false;             ///< as above
  bool antialias = false;             ///< as above
  std::vector<std::string> skip{};    ///< patterns of names that are not taken; * stands for any text
  std::vector<std::string> parts{};   ///< of tensors that have parts (ParameterSpec): which to take, if as many rows
  std::vector<RowPart> file_parts{};  ///< the parts of such tensors in the file
};

/// Takes the tensors that fit: of the same name and shape, or in part. The others keep their values. Throws Error, and
/// changes nothing, where no tensor fits, one is not finite, or a pattern matches no name at all.
template <class T>
TakenWeights load_matching(const SafetensorsFile& file, Parameters<T>& parameters, const MatchingRules& rules);

/// Adds every tensor of the model that is not for training only to a file, in the order of its declaration.
/// `parameters` must outlive the writing.
template <class T>
void add_weights(SafetensorsWriter& file, const Parameters<T>& parameters);

}  // namespace heed
