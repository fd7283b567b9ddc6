// Capability of mechanisms: an attention map, the matrix that multiplies v.
#pragma once

#include "heed/attention/mechanism.h"

namespace heed {

/// Arguments of map().
template <class T>
struct AttentionMap {
  AttentionInput<T> in;
  Heads<T> map;                       ///< one matrix per head, together of shape map_shape()
  AttentionMemory<T> saved, scratch;  ///< for intermediate results
};

/// Meaning of the rows and columns of an attention map.
enum class MapAxes {
  tokens,    ///< queries and keys: the map multiplies v
  channels,  ///< the channels of a query and those of a key: the map multiplies the transpose of v
};

/// Properties of a map.
struct MapTraits {
  MapAxes axes = MapAxes::tokens;
  bool identity = false;  ///< the map contains the identity, as in A + I
  bool partial = false;   ///< the output is not just map times v, as with an added convolution of v
};

/// Interface for callers, returned by Mechanism::maps().
class MapCapability {
 public:
  virtual ~MapCapability() = default;
  virtual MapTraits map_traits() const { return {}; }

  /// Computes the attention map of each head.
  virtual void map(const OfNumber<AttentionMap>& call) const = 0;
};

/// Base of mechanisms with a map. Derived defines
///   run_map(in, map, saved, scratch)
template <class Derived>
class WithMap : public MapCapability {
 public:
  void map(const OfNumber<AttentionMap>& call) const final {
    const auto& self = static_cast<const Derived&>(*this);
    std::visit(
        [&](const auto& c) {
          static_assert(
              requires {
                self.run_map(c.in, c.map, self.saved_of(c.in.shape, c.saved), self.scratch_of(c.in.shape, c.scratch));
              },
              "run_map must be run_map(const AttentionInput<T>& in, Heads<T> map, saved, scratch) const, saved "
              "and scratch of the types that saved() and scratch() return");
          self.run_map(c.in, c.map, self.saved_of(c.in.shape, c.saved), self.scratch_of(c.in.shape, c.scratch));
        },
        call);
  }
};

/// Returns the shape of the attention maps of one image: [heads, N, M], or [heads, d, d] between channels.
inline Shape map_shape(const Mechanism& mechanism, const AttentionShape& s) {
  const MapCapability* const maps = mechanism.maps();
  if (maps && maps->map_traits().axes == MapAxes::channels) return {s.heads, s.width, s.width};
  return {s.heads, s.queries, s.keys};
}

}  // namespace heed
