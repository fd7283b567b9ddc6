// Parts of the list of check cases that stand in files of their own.
#pragma once

#include "heed/checks/gradcheck.h"

namespace heed {

/// Adder layers and adder attention: sign, the derivative proper, against differences of the operation itself, and
/// hardtanh and full against differences of the functions whose derivatives they are.
void add_adder_cases(std::vector<CheckCase>& cases);

}  // namespace heed
