// Location of the program and of the models and experiments installed with it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace heed {

/// Returns the path of this program, even if it was started through the loader, `ld.so heed`; empty without /proc.
std::filesystem::path program_file();

/// Sets the directories that contain models/ and experiments/: the build's checkout, or PREFIX/share/heed. There are
/// none by default.
void set_installed_places(std::vector<std::filesystem::path> places);

/// Returns the candidates for a relative path, in order: in the working directory, then in the installed directories.
std::vector<std::filesystem::path> search_places(const std::string& path);

/// Returns the path unchanged if the file exists. Otherwise returns the first match of a relative path in the installed
/// directories, or the path unchanged if there is none or if it is absolute.
std::string find_installed(const std::string& path);

/// Returns the path of the file or directory `base` that `file` refers to. A relative `base` is searched for beside
/// `file`, then in the working directory, then in the installed directories.
std::string find_base(const std::string& file, const std::string& base);

/// Throws Error with a message that begins with `where` unless the path `base` exists.
void require_base(const std::string& where, const std::string& base);

}  // namespace heed
