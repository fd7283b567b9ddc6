// What every call of OpenBLAS needs.
#pragma once

#ifndef HEED_NO_BLAS

#include "heed/base/error.h"
#include "heed/base/tensor.h"

#include <cblas.h>

namespace heed::kernels {

/// OpenBLAS' own threads lose most of their time on the skinny matrices of small transformers (a quarter of
/// the machine's speed on two cores), so calls run on the thread that asks; pieces of the batch run side by
/// side instead (base/parallel.h).
inline void single_threaded() {
  static const bool once = (openblas_set_num_threads(1), true);
  static_cast<void>(once);
}

/// A size as BLAS takes it.
inline blasint narrow(Index size) {
  HEED_ASSERT(size >= 0 && size <= INT32_MAX);
  return static_cast<blasint>(size);
}

}  // namespace heed::kernels

#endif
