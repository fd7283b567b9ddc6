// Memory available to this process.
#pragma once

#include "heed/base/tensor.h"

#include <string>

namespace heed::cli {

/// Returns the bytes that this process may allocate: the minimum of available memory, the limits of its control groups
/// and their parents, and the shell's limits. `root` is the file system's root.
Index available_memory(const std::string& root = "");

/// Throws Error if a shell limit leaves too little stack.
void require_stack();

/// Makes requests beyond available_memory() fail at once (std::bad_alloc). Otherwise the system grants them, and kills
/// some process when the memory is used.
void limit_memory();

}  // namespace heed::cli
