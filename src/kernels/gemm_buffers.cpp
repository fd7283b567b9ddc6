#include "heed/kernels/gemm_buffers.h"

#ifndef HEED_NO_BLAS

#include <cstddef>
#include <memory>
#include <vector>

// OpenBLAS exports them but declares them in no header; another BLAS lacks them.
extern "C" {
[[gnu::weak]] void* blas_memory_alloc(int);
[[gnu::weak]] void blas_memory_free(void*);
}

// Asked for in the ordinary way, and given back untouched.
void heed::kernels::require_gemm_buffers(int count) {
  constexpr std::size_t size = std::size_t{1} << 27;  // of OpenBLAS' buffers on x86-64, the largest that it has
  std::vector<std::unique_ptr<std::byte[]>> buffers;
  for (int i = 0; i < count; ++i) buffers.push_back(std::make_unique_for_overwrite<std::byte[]>(size));
}

void heed::kernels::reserve_gemm_buffers(int count) {
  require_gemm_buffers(count);
  if (!blas_memory_alloc || !blas_memory_free) return;
  std::vector<void*> buffers;
  for (int i = 0; i < count; ++i) buffers.push_back(blas_memory_alloc(0));
  for (void* buffer : buffers) blas_memory_free(buffer);
}

#else

void heed::kernels::require_gemm_buffers(int) {}
void heed::kernels::reserve_gemm_buffers(int) {}

#endif
