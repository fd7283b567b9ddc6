// OpenBLAS keeps buffers of its own for the products that run at the same time.
#pragma once

namespace heed::kernels {

/// Has OpenBLAS map buffers for `count` products at a time now rather than when so many happen to coincide.
void reserve_gemm_buffers(int count);

}  // namespace heed::kernels
