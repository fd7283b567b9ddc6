// Image preprocessing for families of published checkpoints.
#pragma once

#include "command_line.h"

#include <string>
#include <vector>

namespace heed::cli {

/// Adds --preset.
void add_preset(Command command, std::string& preset);

/// Returns a preset's keys of [data] as overrides, and prints them as a warning; empty for no preset.
std::vector<std::string> preset_sets(const std::string& preset);

}  // namespace heed::cli
