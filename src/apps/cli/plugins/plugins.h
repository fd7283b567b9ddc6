// Plugins: mechanisms in shared objects, added to the list when the program starts.
#pragma once

#include <string>
#include <vector>

namespace heed::cli {

/// Loads a plugin, called `name` in errors, and adds its mechanisms to the list. Returns their names; none if the
/// plugin is already loaded. Throws Error if the file is not a plugin or was built for another heed, if a mechanism's
/// name is invalid or taken, or if a mechanism's entry is incomplete or throws an exception. Ends the program if one of
/// the plugin's constructors of static objects throws an exception.
std::vector<std::string> load_plugin(const std::string& file, const std::string& name);

/// Loads the plugins in HEED_PLUGINS, separated by colons, then `files`, and adds these to HEED_PLUGINS for child
/// processes.
void load_plugins(const std::vector<std::string>& files);

}  // namespace heed::cli
