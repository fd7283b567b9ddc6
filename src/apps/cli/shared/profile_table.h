// The time of training steps by operation, for the terminal.
#pragma once

#include "heed/tape/profile.h"

namespace heed::cli {

/// Prints milliseconds per step of each operation, forward and backward, the longest first.
void print_profile(const Profile& profile, Index steps);

}  // namespace heed::cli
