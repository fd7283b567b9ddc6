// Plugins: mechanisms of shared objects, which join the list when the program starts.
#pragma once

#include <string>
#include <vector>

namespace heed::cli {

/// Loads a plugin, which is or will be called `name`, and adds its mechanisms to the list; returns their names, none if
/// it was loaded already. Throws Error, naming it, if it is no plugin, was made for another heed, has a mechanism whose
/// name is taken, or throws.
std::vector<std::string> load_plugin(const std::string& file, const std::string& name);

/// Loads those that HEED_PLUGINS names, separated by colons, and then these. Programs that this one starts find all of
/// them in HEED_PLUGINS.
void load_plugins(const std::vector<std::string>& files);

}  // namespace heed::cli
