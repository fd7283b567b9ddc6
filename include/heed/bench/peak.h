// The peak rate of this CPU, to compare a program's speed with.
#pragma once

namespace heed {

/// Floating-point operations per second (multiplications and additions) of products of 512 x 512 float matrices, each
/// thread busy with products of its own: the best of some, measured for about `seconds`.
double peak_flops(double seconds = 0.2);

}  // namespace heed
