// The places of the program, and of models and experiments that came with it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace heed {

/// Returns the path of this program, also if the loader was called with it, `ld.so heed`; empty without /proc.
std::filesystem::path program_file();

/// Directories that have models/ and experiments/: the checkout that the program was built in, or PREFIX/share/heed.
/// None until somebody says so.
void set_installed_places(std::vector<std::filesystem::path> places);

/// Returns the candidates for a relative path, in order: in the working directory, or among what came with heed.
std::vector<std::filesystem::path> search_places(const std::string& path);

/// The path itself if there is such a file; else, if it is relative, the first of the installed places that has it;
/// else the path itself.
std::string find_installed(const std::string& path);

/// Returns the path of the file or directory that `file` names: beside it, else by its path, else among the installed
/// ones.
std::string find_base(const std::string& file, const std::string& base);

/// Throws Error, beginning with `where`, if there is no such file.
void require_base(const std::string& where, const std::string& base);

}  // namespace heed
