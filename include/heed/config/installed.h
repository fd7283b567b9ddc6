// Where models and experiments are that came with heed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace heed {

/// Directories that have models/ and experiments/: the checkout that the program was built in, or PREFIX/share/heed.
/// None until somebody says so.
void set_installed_places(std::vector<std::filesystem::path> places);

/// The path itself if there is such a file; else, if it is relative, the first of the installed places that has it;
/// else the path itself.
std::string find_installed(const std::string& path);

}  // namespace heed
