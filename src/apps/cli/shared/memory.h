// Memory that this process can still allocate.
#pragma once

#include "heed/base/tensor.h"

namespace heed::cli {

/// Bytes that this process may take: what the machine has available, or what its control group or a limit of the shell
/// allows, if that is less.
Index available_memory();

/// Throws Error where a limit of the shell leaves too little stack.
void require_stack();

/// Makes requests for more than that fail at once (std::bad_alloc). The system would grant them, and end some process
/// or other when the memory is used.
void limit_memory_to_what_is_available();

}  // namespace heed::cli
