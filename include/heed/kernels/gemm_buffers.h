// OpenBLAS keeps buffers of its own for the products that run at the same time.
#pragma once

namespace heed::kernels {

/// Throws std::bad_alloc if there is no memory for the buffers of `count` products at a time. OpenBLAS itself would ask
/// for them again and again, without end.
void require_gemm_buffers(int count);

/// Has OpenBLAS allocate buffers for `count` simultaneous products now, and not when so many first happen to coincide.
/// Throws std::bad_alloc if there is no memory for them.
void reserve_gemm_buffers(int count);

}  // namespace heed::kernels
