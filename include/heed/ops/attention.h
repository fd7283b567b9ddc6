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
/// Of sequences of different lengths, where there are segments.
struct HeadsPlace {
  Index offset = 0, image_distance = 0, count = 0, distance = 0, rows = 0, columns = 0, stride = 0;
  const Segments* segments = nullptr;

  template <class T>
  Heads<T> of(T* data, Index image) const {
    if (columns == 0) return {};
    if (segments)
      return {
          {data + offset + segments->start(image) * stride, segments->length(image), columns, stride}, count, distance};
    return {{data + offset + image * image_distance, rows, columns, stride}, count, distance};
  }
};

/// Where q, k and v lie in the rows of a qkv projection.
std::array<HeadsPlace, 3> packed_places(const AttentionLayout& layout, Index tokens, const Segments* segments);

/// The shapes of attention in the images of a batch.
struct AttentionShapes {
  AttentionLayout layout;
  AttentionShape common;  ///< of all where there are no segments
  Index images = 0;
  const Segments* segments = nullptr;

  /// For an input [B, N, layout.total()] whose tokens are those of `shape`.
  AttentionShapes(const AttentionLayout& layout, const AttentionShape& shape, const Shape& input,
                  const Segments* segments);
  AttentionShapes() = default;

  AttentionShape of(Index image) const { return segments ? layout.among(segments->length(image), common) : common; }
};

}  // namespace detail

/// What a mechanism makes of its own tensors alone: [numbers], to be handed to attention(). Only where
/// memory(shape).prepared is not 0. The mechanism must outlive the pass, and so must the noise, for mechanisms that
/// take some.
template <class T>
Var<T> prepare(const Mechanism& mechanism, const AttentionShape& shape, std::span<const Var<T>> parameters,
               View<const T> noise = {});

/// Attention on the output of a qkv projection: x [B, N, layout.total()], each row q of `layout.heads` parts,
/// then k, then v of `layout.key_heads` parts; out [B, N, heads * value width]. `shape` gives the grid; its other sizes
/// are filled in. Where the pass has segments, B is 1 and they are its images. The mechanism must outlive the pass, and
/// so must the noise. `prepared`: by prepare(), made here where it is left out.
template <class T>
Var<T> attention(const Mechanism& mechanism, Var<T> x, const AttentionLayout& layout, AttentionShape shape,
                 std::span<const Var<T>> parameters = {}, View<const T> noise = {}, Var<T> prepared = {});

/// Attention on separate tensors: q [B, H, N, d], k [B, H', M, d'], v [B, H', M, e], out [B, H, N, e], with as many
/// heads H' of keys as the mechanism's layout has for H of queries. Operands that it does not use are left out.
template <class T>
Var<T> attention(const Mechanism& mechanism, Var<T> q, Var<T> k, Var<T> v, AttentionShape shape,
                 std::span<const Var<T>> parameters = {}, View<const T> noise = {});

/// The same for the token of the pass's DecodingStep, x [1, 1, layout.total()], out [1, 1, heads * value width]; takes
/// its part of the state, which is as large as that of shape.longest tokens. No gradients. For float and double.
template <class T>
Var<T> attention_step(const Mechanism& mechanism, Var<T> x, const AttentionLayout& layout, const AttentionShape& shape,
                      std::span<const Var<T>> parameters);

/// The attention map of each head of one image: map_shape(). Only where traits().map.
template <class T>
void make_map(const Mechanism& mechanism, const AttentionInput<T>& in, T* map);

/// The term that a mechanism with a penalty adds to the training loss, a scalar, as a function of its own tensors
/// for this shape. The mechanism must outlive the pass.
template <class T>
Var<T> penalty(const Mechanism& mechanism, const AttentionShape& shape, std::span<const Var<T>> parameters);

}  // namespace heed
