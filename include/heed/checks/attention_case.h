// A mechanism on the tape, as a case to check.
#pragma once

#include "heed/attention/mechanism.h"
#include "heed/checks/gradcheck.h"

#include <optional>

namespace heed {

/// A shape that mechanisms are checked in: a grid, with or without a class token, or, where there is no grid, another
/// number of keys than queries.
struct AttentionCaseShape {
  std::string label;
  Index images, heads, queries, keys, dim;
  Index grid_height, grid_width;
  bool class_token;
};

/// The form of a mechanism's operands: separate tensors, or packed as a qkv projection leaves them, of images or
/// of sequences without a grid, of which the first is as long as the shape says and the others are shorter.
enum class CaseOperands { apart, packed, sequences };

/// The case of a mechanism, called `label`, in a shape, if it accepts that. The mechanism must outlive the case. Inputs
/// are q, k and v, and its own trainable tensors by name.
std::optional<CheckCase> attention_case(const std::string& label, const Mechanism& mechanism,
                                        const AttentionCaseShape& shape, CaseOperands given = CaseOperands::apart);

}  // namespace heed
