// The CPU's peak rate, as a reference for a program's speed.
#pragma once

namespace heed {

/// Returns the floating-point operations per second (multiplications and additions) of products of 512 x 512 float
/// matrices, separate ones on each thread: the best repetition in about `seconds`.
double peak_flops(double seconds);

}  // namespace heed
