// A mechanism on the tape, as a case to check.
#pragma once

#include "heed/attention/mechanism.h"
#include "heed/checks/gradcheck.h"

#include <optional>

namespace heed {

/// A shape in which mechanisms are checked: self-attention in a grid, with or without tokens before it, or any numbers
/// of queries and keys without a grid.
struct AttentionCaseShape {
  std::string label;
  Index images, heads, queries, keys, dim;
  Index grid_height, grid_width;
  Index class_token;      ///< number of tokens before the grid
  Index value_width = 0;  ///< e of separate operands, if the mechanism allows e != d; 0: e = d
  bool growing = false;   ///< tokens may be appended to sequences, as in text generation; for causal mechanisms
};

/// Form of a mechanism's operands: separate tensors, or packed as the output of a qkv projection, for images or for
/// sequences without a grid. The first sequence has the shape's length; the others are shorter or, in whole_sequences,
/// equally long.
enum class CaseOperands { apart, packed, sequences, whole_sequences };

/// Returns the case `label` of a mechanism in a shape; none if the mechanism does not support the shape. The mechanism
/// must outlive the case. The case's inputs are the operands (q, k and v, or qkv) and the trainable mechanism
/// parameters, by name.
std::optional<CheckCase> attention_case(const std::string& label, const Mechanism& mechanism,
                                        const AttentionCaseShape& shape, CaseOperands given = CaseOperands::apart);

}  // namespace heed
