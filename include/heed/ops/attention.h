// Runs an attention mechanism on the tape: cuts the batch into images, hands their heads to the mechanism as matrices,
// and adds up the gradients of tensors that all images share, in order.
#pragma once

#include "heed/attention/mechanism.h"
#include "heed/tape/tape.h"

#include <array>
#include <span>

namespace heed {

namespace detail {

/// Where the heads of each image lie in a tensor: the first of image 0 at `offset`, as [rows, columns] with `stride`.
struct HeadsPlace {
  Index offset = 0, image_distance = 0, count = 0, distance = 0, rows = 0, columns = 0, stride = 0;

  template <class T>
  Heads<T> of(T* data, Index image) const {
    if (columns == 0) return {};
    return {{data + offset + image * image_distance, rows, columns, stride}, count, distance};
  }
};

/// Where q, k and v lie in the rows of a qkv projection.
std::array<HeadsPlace, 3> packed_places(const AttentionLayout& layout, Index tokens);

}  // namespace detail

/// What a mechanism makes of its own tensors alone: [numbers], to be handed to attention(). Only where
/// memory(shape).prepared is not 0. The mechanism must outlive the pass, and so must the noise, for mechanisms that
/// take some.
template <class T>
Var<T> prepare(const Mechanism& mechanism, const AttentionShape& shape, std::span<const Var<T>> parameters,
               View<const T> noise = {});

/// Attention on the output of a qkv projection: x [B, N, layout.total()], each row q of `layout.heads` parts,
/// then k, then v of `layout.key_heads` parts; out [B, N, heads * value width]. `shape` gives the grid; its other sizes
/// are filled in. The mechanism must outlive the pass, and so must the noise. `prepared`: by prepare(), made here where
/// it is left out.
template <class T>
Var<T> attention(const Mechanism& mechanism, Var<T> x, const AttentionLayout& layout, AttentionShape shape,
                 std::span<const Var<T>> parameters = {}, View<const T> noise = {}, Var<T> prepared = {});

/// Attention on separate tensors: q [B, H, N, d], k [B, H', M, d'], v [B, H', M, e], out [B, H, N, e], with as many
/// heads H' of keys as the mechanism's layout has for H of queries. Operands that it does not use are left out.
template <class T>
Var<T> attention(const Mechanism& mechanism, Var<T> q, Var<T> k, Var<T> v, AttentionShape shape,
                 std::span<const Var<T>> parameters = {}, View<const T> noise = {});

/// The attention map of each head of one image: map_shape(). Only where traits().map.
template <class T>
void make_map(const Mechanism& mechanism, const AttentionInput<T>& in, T* map);

/// The term that a mechanism with a penalty adds to the training loss, a scalar, as a function of its own tensors
/// for this shape. The mechanism must outlive the pass.
template <class T>
Var<T> penalty(const Mechanism& mechanism, const AttentionShape& shape, std::span<const Var<T>> parameters);

}  // namespace heed
