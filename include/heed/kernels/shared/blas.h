// What every call of OpenBLAS needs.
#pragma once

#ifndef HEED_NO_BLAS

#include "heed/base/error.h"
#include "heed/base/parallel.h"
#include "heed/base/tensor.h"
#include "heed/kernels/products/gemm_buffers.h"

#include <cblas.h>

namespace heed::kernels {

/// To be called before OpenBLAS is. Its own threads lose most of their time on the skinny matrices of small
/// transformers (a quarter of the machine's speed on two cores), so calls run on the thread that asks; pieces of the
/// batch run side by side instead (base/parallel.h). Throws std::bad_alloc if there is no memory for a buffer for each
/// thread.
inline void prepare_call() {
  static const bool prepared = (openblas_set_num_threads(1), reserve_gemm_buffers(threads()), true);
  static_cast<void>(prepared);
}

/// A size as BLAS takes it.
inline blasint narrow(Index size) {
  HEED_ASSERT(size >= 0 && size <= INT32_MAX);
  return static_cast<blasint>(size);
}

}  // namespace heed::kernels

#endif
