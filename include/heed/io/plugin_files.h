// Checks of a plugin's header and shared object before the compiler and the loader read them.
#pragma once

#include <string>
#include <vector>

namespace heed {

/// Splits a text into lines, each cut to 2000 characters: std::regex uses stack for each character.
std::vector<std::string> lines_of(const std::string& text);

/// Returns the mechanism classes of a header, from its lines `template MechanismEntry mechanism_entry<CLASS>();`.
/// Throws Error, with `shown` as the header's name, if there are none.
std::vector<std::string> mechanism_classes(const std::string& header, const std::string& shown);

/// Throws Error, with `name` as the object's name, if a shared object ends before the end of its loadable segments.
/// dlopen maps segments as declared, and reading beyond the end of the file would kill the program.
void require_whole(const std::string& file, const std::string& name);

}  // namespace heed
