// Symbols that a shared object requires from the program that loads it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// Returns the linker names of functions and data that a shared object (ELF, 64 bits) uses but does not define. Throws
/// Error if the bytes are not such an object.
std::vector<std::string> undefined_symbols(std::string_view object);

}  // namespace heed
