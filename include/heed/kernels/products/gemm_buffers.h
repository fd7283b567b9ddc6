// OpenBLAS keeps buffers of its own for the products that run at the same time.
#pragma once

namespace heed::kernels {

/// Has OpenBLAS allocate the buffers of `count` simultaneous products now, and not when so many first happen to
/// coincide; those of an earlier call count. Throws std::bad_alloc if there is no memory for them: OpenBLAS itself
/// would ask again and again, without end.
void reserve_gemm_buffers(int count);

}  // namespace heed::kernels
