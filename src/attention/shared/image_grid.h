// Checks shared by mechanisms that need an image grid.
#pragma once

#include "heed/attention/mechanism.h"

#include <string_view>

namespace heed {

/// Throws Error unless queries and keys are the tokens of an image grid, with or without a class token before them.
/// `setting` is the option that requires the grid, with its value; `instead` names options that do not.
inline void require_image_grid(const AttentionShape& s, const char* owner, std::string_view setting,
                               const char* instead) {
  require(!s.sequence(), "[{}] {}; a sequence has no image grid: expected {}", owner, setting, instead);
  require(s.queries == s.keys && s.grid_height > 0 && s.grid_height * s.grid_width + s.class_token == s.queries,
          "[{}] {}; {} queries and {} keys do not form an image grid of {} x {}", owner, setting, s.queries, s.keys,
          s.grid_height, s.grid_width);
}

/// Throws Error in the same cases as require_image_grid(), and if there are tokens before the patches.
inline void require_image_grid_alone(const AttentionShape& s, const char* owner, std::string_view setting,
                                     const char* instead) {
  require_image_grid(s, owner, setting, instead);
  require(!s.class_token, "[{}] {}; a class token or register has no position on the image grid: expected {}", owner,
          setting, instead);
}

/// Throws Error unless option `name`, the side of square cells, divides the grid's height and width.
inline void require_cells(const AttentionShape& s, const char* owner, const char* name, Index side) {
  require(s.grid_height % side == 0 && s.grid_width % side == 0,
          "[{}] {} is {}; it must divide both sides of the image grid, {} x {}", owner, name, side, s.grid_height,
          s.grid_width);
}

}  // namespace heed
