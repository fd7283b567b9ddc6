// The mechanism of each block or stage of a model.
#pragma once

#include "heed/attention/mechanism.h"
#include "heed/config/experiment.h"

namespace heed {

/// Item i of a list with one item for each, or of one with a single item for all.
template <class List>
const auto& item_of(const List& list, Index i) {
  return list[list.size() == 1 ? 0 : static_cast<std::size_t>(i)];
}

/// Throws Error unless every option means something to a mechanism that is used; lists of options have `stages` items,
/// which are counted from `first_stage`.
void check_options(const AttentionConfig& attention, Index stages = 0, Index first_stage = 0);

/// The mechanism of a block, or of a stage and its items of options that are lists: options for all blocks that it
/// knows, then its own table over them.
std::unique_ptr<Mechanism> mechanism_of(const AttentionConfig& attention, Index place);

/// Where the option was written that a mechanism's error is about, which says "[soft] ratio is 3; expected ...": as in
/// "a.toml:12: ". Empty if the error is about no option, or about one that was not given.
std::string place_of_option(const AttentionConfig& attention, std::string_view error);

}  // namespace heed
