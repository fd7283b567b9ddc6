// The resident memory of this process, as Linux gives it in /proc/self/status.
#pragma once

#include "heed/base/tensor.h"

namespace heed {

/// Bytes now, and the most so far; 0 where the system does not tell. (getrusage's peak begins with that of the process
/// that started this one.)
Index resident_bytes();
Index peak_resident_bytes();

/// Measures the peak from now on; false where the system cannot.
bool reset_peak_resident();

}  // namespace heed
