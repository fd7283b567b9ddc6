// OpenBLAS's buffers, one for each product in progress.
#pragma once

namespace heed::kernels {

/// Makes OpenBLAS allocate buffers for `count` simultaneous products; buffers of earlier calls count towards them.
/// Throws std::bad_alloc if memory is exhausted; OpenBLAS itself would retry forever in the middle of a product.
void reserve_gemm_buffers(int count);

}  // namespace heed::kernels
