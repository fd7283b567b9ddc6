// Preparation of images as families of published checkpoints expect it.
#pragma once

#include "command_line.h"

#include <string>
#include <vector>

namespace heed::cli {

/// Adds --preset.
void add_preset(Command command, std::string& preset);

/// Returns the keys of [data] that a preset stands for, as overrides, and announces them; empty for no preset.
std::vector<std::string> preset_sets(const std::string& preset);

}  // namespace heed::cli
