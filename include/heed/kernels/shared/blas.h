// Preparation and argument conversion for OpenBLAS calls.
#pragma once

#ifndef HEED_NO_BLAS

#include "heed/base/error.h"
#include "heed/base/parallel.h"
#include "heed/base/tensor.h"
#include "heed/kernels/products/gemm_buffers.h"

#include <cblas.h>

namespace heed::kernels {

/// Makes OpenBLAS single-threaded and reserves a buffer for each heed thread, at its first call only; call it before
/// every use of OpenBLAS. OpenBLAS's own threads are inefficient on the skinny matrices of small transformers: with two
/// cores they reach a quarter of the cores' speed. heed runs microbatches in parallel instead (base/parallel.h). Throws
/// std::bad_alloc if there is no memory for the buffers.
inline void prepare_call() {
  static const bool prepared = (openblas_set_num_threads(1), reserve_gemm_buffers(threads()), true);
  static_cast<void>(prepared);
}

/// Converts a size to BLAS's integer type.
inline blasint narrow(Index size) {
  HEED_ASSERT(size >= 0 && size <= INT32_MAX);
  return static_cast<blasint>(size);
}

}  // namespace heed::kernels

#endif
