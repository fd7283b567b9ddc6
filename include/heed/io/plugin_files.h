// Checks of a plugin's files, a header and a shared object, before the compiler or the loader reads them.
#pragma once

#include <string>
#include <vector>

namespace heed {

/// The lines of a text, each cut to 2000 characters: std::regex takes stack for each character.
std::vector<std::string> lines_of(const std::string& text);

/// The classes of the mechanisms of a header: those of its lines `template MechanismEntry mechanism_entry<CLASS>();`.
/// Throws Error, which calls the header `shown`, if there are none.
std::vector<std::string> mechanism_classes(const std::string& header, const std::string& shown);

/// Throws Error, with `name`, if a shared object ends before the parts that it says are loaded. dlopen maps them as
/// they are said to be, and looking into what lies behind the end of a file ends the program.
void require_whole(const std::string& file, const std::string& name);

}  // namespace heed
