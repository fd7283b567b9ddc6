// Selection of the mechanism of each block or stage.
#pragma once

#include "heed/attention/mechanism.h"
#include "heed/config/experiment.h"

namespace heed {

/// Returns item i of a list that has an item for each block or stage, or a single item for all.
template <class List>
const auto& item_of(const List& list, Index i) {
  return list[list.size() == 1 ? 0 : static_cast<std::size_t>(i)];
}

/// Throws Error for an unknown mechanism, for an option that no selected mechanism has, and for an option with a list
/// of values that does not have `stages` items. Errors number the stages from `first_stage`.
void check_options(const AttentionConfig& attention, Index stages = 0, Index first_stage = 0);

/// Creates the mechanism of a block or stage. It takes the common options that it supports (from a list, the item of
/// its stage); the options of its own table override them.
std::unique_ptr<Mechanism> mechanism_of(const AttentionConfig& attention, Index place);

/// Returns the file and line of the option that a mechanism's error names: "a.toml:12: " for an error such as "[soft]
/// ratio is 3; expected ...". Empty if the error is not about an option, or the option was not set.
std::string place_of_option(const AttentionConfig& attention, std::string_view error);

}  // namespace heed
