// Resident memory of this process, from Linux's /proc/self/status.
#pragma once

#include "heed/base/tensor.h"

namespace heed {

/// Return the current and the peak resident memory in bytes; 0 if unsupported. The peak excludes the parent process's
/// memory, unlike that of getrusage().
Index resident_bytes();
Index peak_resident_bytes();

/// Resets the peak; returns false if unsupported.
bool reset_peak_resident();

}  // namespace heed
