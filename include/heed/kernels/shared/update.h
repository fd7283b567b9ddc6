// Storing results: overwriting or accumulating.
#pragma once

#include "heed/base/tensor.h"

namespace heed {

/// Mode of storing a kernel's result: overwrite the target, or add to it. A tensor's first gradient is assigned and
/// later ones are accumulated, so gradient memory is not zeroed first.
enum class Update { assign, accumulate };

/// Assigns `value` to `target`, or adds it.
template <class T>
inline void write(Update update, T& target, T value) {
  if (update == Update::assign)
    target = value;
  else
    target += value;
}

/// Assigns n elements to `to`, or adds them. `from` and `to` must not overlap.
template <class T>
inline void write_all(Update update, Index n, const T* from, T* to) {
#pragma GCC ivdep
  for (Index i = 0; i < n; ++i) write(update, to[i], from[i]);
}

/// Returns the update for term i of a sum: `first` for term 0, which starts the sum, accumulate for the others. A sum
/// of n terms then takes n - 1 additions.
constexpr Update term_update(Index i, Update first = Update::assign) { return i == 0 ? first : Update::accumulate; }

}  // namespace heed
