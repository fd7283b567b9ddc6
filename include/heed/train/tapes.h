// Tapes and profiles of parallel passes.
#pragma once

#include "heed/base/parallel.h"
#include "heed/tape/tape.h"

#include <memory>
#include <vector>

namespace heed {

/// Tapes with their profiles, one for each parallel pass.
template <class T>
class Tapes {
 public:
  explicit Tapes(Index count = threads());

  /// Returns the tape's index for `item` of a parallel_for over `items`: the item itself or, if there are more items
  /// than tapes, the index of the calling thread; there must then be one tape per thread.
  Index index(Index item, Index items) const { return items <= static_cast<Index>(tapes_.size()) ? item : worker(); }

  /// Clears tape i for a pass and returns it.
  Tape<T>& begin(Pass<T> pass, Index i) const;

  /// Reserves on every tape the maximum memory that any tape has used so far; with `with_inner`, also for recomputed
  /// parts. Without this call, a later step could still allocate, since a microbatch may run on a different tape in
  /// each step. Reserved memory costs nothing until it is written.
  void even_out(bool with_inner);

  /// Starts profiling operations by name, or by name and layer.
  void start_profile(bool by_layer) { profiles_.assign(tapes_.size(), Profile(by_layer)); }

  /// Returns the sum of all profiles.
  Profile profile() const;

 private:
  std::vector<std::unique_ptr<Tape<T>>> tapes_;
  mutable std::vector<Profile> profiles_;  ///< one per tape, or none
};

}  // namespace heed
