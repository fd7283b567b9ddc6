// A mechanism watched while it uses its memory.
#pragma once

#include "heed/attention/mechanism.h"

namespace heed {

/// Returns the mechanism's misuses of memory in this shape, a line each, such as
///
///   [sima] backward writes outside part 2 of its scratch memory
///
/// Its passes run on one image, in float and in double, on memory full of a signalling value, with a guard region after
/// each part of it, before the first, beside each row of q, k and v, and around the gradient of each of its tensors.
/// Found are writes to any of them; results that were never written, or were made of what was never written; gradients
/// that overwrite where they are to be added, or that are left out; and changes to what forward left, made by backward.
/// Prepared tensors are checked as in evaluation and as in training. The mechanism must accept the shape, which has the
/// layout's heads and widths.
std::vector<std::string> memory_faults(const Mechanism& mechanism, const AttentionLayout& layout,
                                       const AttentionShape& shape);

}  // namespace heed
