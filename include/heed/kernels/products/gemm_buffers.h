// OpenBLAS's buffers, one for each product in progress.
#pragma once

namespace heed::kernels {

/// Makes OpenBLAS allocate the buffers of `count` simultaneous products, minus those of earlier calls. Throws
/// std::bad_alloc if there is no memory for them; OpenBLAS itself would retry forever in the middle of a product.
void reserve_gemm_buffers(int count);

}  // namespace heed::kernels
