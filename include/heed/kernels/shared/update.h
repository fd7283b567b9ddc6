#pragma once

#include "heed/base/tensor.h"

namespace heed {

/// How a kernel writes its result: over what is there, or added to it. Gradients are written with `assign`
/// the first time and accumulated from then on, so that nobody fills memory with zeros first.
enum class Update { assign, accumulate };

/// Writes one element by `update`.
template <class T>
inline void write(Update update, T& target, T value) {
  if (update == Update::assign)
    target = value;
  else
    target += value;
}

/// Writes n elements, `from` and `to` apart from each other.
template <class T>
inline void write_all(Update update, Index n, const T* from, T* to) {
#pragma GCC ivdep
  for (Index i = 0; i < n; ++i) write(update, to[i], from[i]);
}

}  // namespace heed
