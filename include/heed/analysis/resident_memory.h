// Resident memory of this process, from Linux's /proc/self/status.
#pragma once

#include "heed/base/tensor.h"

namespace heed {

/// Return the current and the peak bytes; 0 if unsupported. (getrusage's peak includes the parent process's.)
Index resident_bytes();
Index peak_resident_bytes();

/// Resets the peak; returns false if unsupported.
bool reset_peak_resident();

}  // namespace heed
