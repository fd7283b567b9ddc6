// The symbols that a shared object needs from the program that loads it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// The names of functions and data that a shared object (ELF, 64 bits) does not define itself, as the linker has them.
/// Throws Error if the bytes are no such object.
std::vector<std::string> undefined_symbols(std::string_view object);

}  // namespace heed
