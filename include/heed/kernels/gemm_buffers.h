// OpenBLAS keeps buffers of its own for the products that run at the same time.
#pragma once

namespace heed::kernels {

/// Has OpenBLAS allocate buffers for `count` simultaneous products now, and not when so many first happen to coincide.
void reserve_gemm_buffers(int count);

}  // namespace heed::kernels
