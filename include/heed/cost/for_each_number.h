// Explicit instantiation for all number types.
#pragma once

#include "heed/cost/counted.h"

/// Expands to MAKE(T) for each number type T.
#define HEED_FOR_EACH_NUMBER(MAKE) MAKE(float) MAKE(double) MAKE(Counted)
