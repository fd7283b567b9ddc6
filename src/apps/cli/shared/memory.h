// Memory available to this process.
#pragma once

#include "heed/base/tensor.h"

namespace heed::cli {

/// Returns the bytes that this process may allocate: the minimum of available memory, control-group limit and shell
/// limit.
Index available_memory();

/// Throws Error if a shell limit leaves too little stack.
void require_stack();

/// Makes requests beyond available_memory() fail at once (std::bad_alloc). Otherwise the system grants them, and kills
/// some process when the memory is used.
void limit_memory();

}  // namespace heed::cli
