#include "heed/kernels/gemm_buffers.h"

#ifndef HEED_NO_BLAS

#include <vector>

// OpenBLAS exports them but declares them in no header; another BLAS lacks them.
extern "C" {
[[gnu::weak]] void* blas_memory_alloc(int);
[[gnu::weak]] void blas_memory_free(void*);
}

void heed::kernels::reserve_gemm_buffers(int count) {
  if (!blas_memory_alloc || !blas_memory_free) return;
  std::vector<void*> buffers;
  for (int i = 0; i < count; ++i) buffers.push_back(blas_memory_alloc(0));
  for (void* buffer : buffers) blas_memory_free(buffer);
}

#else

void heed::kernels::reserve_gemm_buffers(int) {}

#endif
