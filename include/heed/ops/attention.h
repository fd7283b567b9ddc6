// Runs an attention mechanism on the tape: cuts the batch into images, hands their heads to the mechanism as matrices,
// and adds up the gradients of tensors that all images share, in order.
#pragma once

#include "heed/attention/capabilities/map.h"
#include "heed/tape/tape.h"

#include <array>
#include <span>

namespace heed {

/// Where the heads of each image lie in a tensor: the first of image 0 at `offset`, as [rows, columns] with `stride`.
/// Where there are segments, the images are sequences of different lengths, and rows those of all together.
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

/// q, k and v of a batch, in three tensors or in one; those that a mechanism does not take are left out.
template <class T>
struct AttentionOperands {
  std::array<Var<T>, 3> qkv;
  std::array<HeadsPlace, 3> places;

  Tape<T>& tape() const { return qkv[2].tape(); }
  const Segments* segments() const { return places[2].segments; }
  Index images() const { return segments() ? segments()->count() : qkv[2].shape()[0]; }
  Index queries() const { return qkv[0] ? places[0].rows : places[2].rows; }
  Index keys() const { return places[2].rows; }

  /// The shape of attention in an image; `common` says all that is the same in all of them.
  AttentionShape shape(const AttentionLayout& layout, const AttentionShape& common, Index image) const {
    return segments() ? layout.among(segments()->length(image), common) : layout.among(queries(), keys(), common);
  }

  /// `common` with the tokens of the first image, and whether all have as many as there can be.
  AttentionShape first_shape(const AttentionLayout& layout, AttentionShape common) const {
    common.whole = true;
    for (Index image = 0; image < (segments() ? images() : 1) && common.sequence(); ++image)
      common.whole = common.whole && shape(layout, common, image).queries == common.longest;
    return shape(layout, common, 0);
  }

  /// q (0), k (1) or v (2) of an image.
  Heads<const T> heads(std::size_t i, Index image) const {
    return places[i].template of<const T>(qkv[i] ? qkv[i].data() : nullptr, image);
  }
};

/// In the output of a qkv projection: x [B, N, layout.total()], each row q of `layout.heads` parts, then k, then v of
/// `layout.key_heads`. Where the pass has segments, B is 1 and they are its images.
template <class T>
AttentionOperands<T> packed_operands(Var<T> x, const AttentionLayout& layout);

/// In the outputs of three: q [B, N, heads * query width], k [B, M, key heads * key width], v [B, M, key heads * value
/// width]. A single token may be [B, ...]. Those that the
/// layout lacks are left out.
template <class T>
AttentionOperands<T> operands_apart(Var<T> q, Var<T> k, Var<T> v, const AttentionLayout& layout);

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

/// The same for the token of the pass's DecodingStep, out [1, 1, heads * value width]; takes its part of the state,
/// which is as large as that of shape.longest tokens. No gradients. For float and double.
template <class T>
Var<T> attention_step(const Mechanism& mechanism, const AttentionOperands<T>& of, const AttentionLayout& layout,
                      const AttentionShape& shape, std::span<const Var<T>> parameters);

/// The attention map of each head of one image: map_shape(). Only where traits().map.
template <class T>
void make_map(const Mechanism& mechanism, const AttentionInput<T>& in, T* map);

/// The term that a mechanism with a penalty adds to the training loss, a scalar, as a function of its own tensors
/// for this shape. The mechanism must outlive the pass.
template <class T>
Var<T> penalty(const Mechanism& mechanism, const AttentionShape& shape, std::span<const Var<T>> parameters);

}  // namespace heed
