// What is compiled once is compiled for the number types that there are.
#pragma once

#include "heed/cost/counted.h"

/// MAKE(T) for each number type T.
#define HEED_FOR_EACH_NUMBER(MAKE) MAKE(float) MAKE(double) MAKE(Counted)
