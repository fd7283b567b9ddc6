#include "heed/kernels/products/gemm_buffers.h"

#ifndef HEED_NO_BLAS

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

// Exported by OpenBLAS but not declared in its headers; other BLAS libraries lack them.
extern "C" {
[[gnu::weak]] void* blas_memory_alloc(int);
[[gnu::weak]] void blas_memory_free(void*);
}

void heed::kernels::reserve_gemm_buffers(int count) {
  static std::mutex one_at_a_time;
  static int reserved = 0;
  const std::lock_guard lock(one_at_a_time);
  if (count <= reserved) return;
  {
    // First allocates and frees the memory that the new buffers may take: throws std::bad_alloc if there is too little.
    constexpr std::size_t size = std::size_t{1} << 27;  // the largest buffer of OpenBLAS on x86-64
    std::vector<std::unique_ptr<std::byte[]>> room;
    for (int i = reserved; i < count; ++i) room.push_back(std::make_unique_for_overwrite<std::byte[]>(size));
  }
  if (blas_memory_alloc && blas_memory_free) {
    std::vector<void*> buffers;
    for (int i = 0; i < count; ++i) buffers.push_back(blas_memory_alloc(0));
    for (void* buffer : buffers) blas_memory_free(buffer);
  }
  reserved = count;
}

#else

void heed::kernels::reserve_gemm_buffers(int) {}

#endif
