// Detection of memory faults of a mechanism.
#pragma once

#include "heed/attention/mechanism.h"

namespace heed {

/// Returns the mechanism's memory faults in this shape, one line each, such as
///
///   [sima] backward writes outside part 2 of its scratch memory
///
/// The passes run on one image, in float and in double, on memory filled with a signalling value. A guard region
/// precedes the first part of the memory, and guard regions follow each part and each row of q, k, v, the output and
/// their gradients. Each parameter's gradient is between two guard regions. Detects writes to guard regions; results
/// that were not written or that depend on uninitialised memory; gradients that are assigned instead of accumulated, or
/// omitted; backward passes that change the forward pass's saved memory; and maps whose product with v is not the
/// output. In a growing sequence, a mechanism that decodes must compute the same rows token by token. Prepared tensors
/// are checked as in evaluation and as in training.
/// The mechanism must support the shape, which has the layout's heads and widths.
std::vector<std::string> memory_faults(const Mechanism& mechanism, const AttentionLayout& layout,
                                       const AttentionShape& shape);

}  // namespace heed
