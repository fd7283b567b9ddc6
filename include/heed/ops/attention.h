// Runs an attention mechanism on the tape: cuts the batch into images, hands their heads to the mechanism as matrices,
// and adds up the gradients of tensors that all images share, in order.
#pragma once

#include "heed/attention/mechanism.h"
#include "heed/tape/tape.h"

#include <array>
#include <span>

namespace heed {

/// Where the heads of each image lie in a tensor: the first of image 0 at `offset`, as [rows, columns] with `stride`.
struct HeadsPlace {
  Index offset = 0, image_distance = 0, count = 0, distance = 0, rows = 0, columns = 0, stride = 0;

  template <class T>
  Heads<T> of(T* data, Index image) const {
    if (columns == 0) return {};
    return {{data + offset + image * image_distance, rows, columns, stride}, count, distance};
  }
};

/// q, k and v of a batch, in three tensors or in one; those that a mechanism does not take are left out.
template <class T>
struct AttentionOperands {
  std::array<Var<T>, 3> qkv;
  std::array<HeadsPlace, 3> places;

  Tape<T>& tape() const { return qkv[2].tape(); }
  Index images() const { return qkv[2].shape()[0]; }
  Index queries() const { return qkv[0] ? places[0].rows : places[2].rows; }
  Index keys() const { return places[2].rows; }

  /// q (0), k (1) or v (2) of an image.
  Heads<const T> heads(std::size_t i, Index image) const {
    return places[i].template of<const T>(qkv[i] ? qkv[i].data() : nullptr, image);
  }
};

/// In the output of a qkv projection: x [B, N, layout.total()], each row q of `layout.heads` parts, then k, then v of
/// `layout.key_heads`.
template <class T>
AttentionOperands<T> packed_operands(Var<T> x, const AttentionLayout& layout);

/// In the outputs of three: q [B, N, heads * query width], k [B, M, key heads * key width], v [B, M, key heads * value
/// width]. A single token may be [B, ...]. Those that the
/// layout lacks are left out.
template <class T>
AttentionOperands<T> operands_apart(Var<T> q, Var<T> k, Var<T> v, const AttentionLayout& layout);

/// What a mechanism makes of its own tensors alone: [numbers], to be handed to attention(). Only where
/// memory(shape).prepared is not 0. The mechanism must outlive the pass, and so must the noise, for mechanisms that
/// take some.
template <class T>
Var<T> prepare(const Mechanism& mechanism, const AttentionShape& shape, std::span<const Var<T>> parameters,
               View<const T> noise = {});

/// out [B, N, heads * value width] of what projections made. `shape` gives the grid; its other sizes are filled in. The
/// mechanism must outlive the pass, and so must the noise. `prepared`: by prepare(), made here where it is left out.
template <class T>
Var<T> attention(const Mechanism& mechanism, const AttentionOperands<T>& of, const AttentionLayout& layout,
                 AttentionShape shape, std::span<const Var<T>> parameters = {}, View<const T> noise = {},
                 Var<T> prepared = {});

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
