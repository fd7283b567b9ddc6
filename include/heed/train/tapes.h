// The tapes and profiles of the passes that run side by side.
#pragma once

#include "heed/base/parallel.h"
#include "heed/tape/tape.h"

#include <memory>
#include <vector>

namespace heed {

/// Tapes with their profiles: one for each pass that runs beside others.
template <class T>
class Tapes {
 public:
  explicit Tapes(Index count = threads());

  /// Returns the index of the tape for item `item` of a parallel_for over `items`: the item's own, or if there are more
  /// items than tapes, of which there must then be one per thread, the calling thread's.
  Index index(Index item, Index items) const { return items <= static_cast<Index>(tapes_.size()) ? item : worker(); }

  /// Clears tape i for a pass and returns it.
  Tape<T>& begin(Pass<T> pass, Index i) const;

  /// Reserves on every tape the memory that the largest pass so far has used, also for recomputed parts (`with_inner`).
  /// Which tape records which microbatch may be random: without this a later step might allocate. Reserved memory that
  /// is never written costs nothing.
  void even_out(bool with_inner);

  /// Starts to collect the time of operations, by name, or by name and layer.
  void start_profile(bool by_layer) { profiles_.assign(tapes_.size(), Profile(by_layer)); }

  /// Returns the sum of all profiles.
  Profile profile() const;

 private:
  std::vector<std::unique_ptr<Tape<T>>> tapes_;
  mutable std::vector<Profile> profiles_;  ///< one per tape, or none
};

}  // namespace heed
