// Operations and mechanisms at the sizes of real models.
#pragma once

#include "heed/checks/gradcheck.h"

#include <functional>

namespace heed {

/// Calls `visit` with cases for float alone: operations on long rows and on many rows, and each variant of the built-in
/// mechanisms on 196 and on 197 tokens, if it accepts them. The cases of `heed gradcheck` have few elements, which do
/// not fill a vector register.
void for_wide_cases(const std::function<void(const CheckCase&)>& visit);

}  // namespace heed
