// An attention mechanism on the tape: splits the batch into images, passes their heads to the mechanism as matrices,
// and sums the gradients of tensors shared by all images, in order.
#pragma once

#include "heed/attention/mechanism.h"
#include "heed/tape/tape.h"

#include <array>
#include <span>

namespace heed {

/// Location of each image's heads in a tensor. The first head of image 0 is a matrix [rows, columns] at `offset`, with
/// its rows `stride` elements apart. The `count` heads of an image are `distance` elements apart, and the images are
/// `image_distance` apart. With segments, the images are sequences of different lengths, and `rows` is the sum of the
/// lengths.
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

/// q, k and v of a batch, in three tensors or in one; operands that the mechanism does not use are absent.
template <class T>
struct AttentionOperands {
  std::array<Var<T>, 3> qkv;
  std::array<HeadsPlace, 3> places;

  Tape<T>& tape() const { return qkv[2].tape(); }
  const Segments* segments() const { return places[2].segments; }
  Index images() const { return segments() ? segments()->count() : qkv[2].shape()[0]; }
  Index queries() const { return qkv[0] ? places[0].rows : places[2].rows; }
  Index keys() const { return places[2].rows; }

  /// Returns the shape of attention in an image; `common` holds the sizes that all images share.
  AttentionShape shape(const AttentionLayout& layout, const AttentionShape& common, Index image) const {
    return segments() ? layout.among(segments()->length(image), common) : layout.among(queries(), keys(), common);
  }

  /// Returns `common` with the token counts of the first image, and with `whole` = false if any sequence of the batch
  /// is shorter than `longest`.
  AttentionShape first_shape(const AttentionLayout& layout, AttentionShape common) const {
    common.whole = true;
    for (Index image = 0; image < (segments() ? images() : 1) && common.sequence(); ++image)
      common.whole = common.whole && shape(layout, common, image).queries == common.longest;
    return shape(layout, common, 0);
  }

  /// Returns q (0), k (1) or v (2) of an image.
  Heads<const T> heads(std::size_t i, Index image) const {
    return places[i].template of<const T>(qkv[i] ? qkv[i].data() : nullptr, image);
  }
};

/// Returns the operands in the output of a qkv projection: x [B, N, layout.total()]; each row is q of `layout.heads`
/// heads, then k, then v of `layout.key_heads` heads. If the pass has segments, B is 1 and the segments are the images.
template <class T>
AttentionOperands<T> packed_operands(Var<T> x, const AttentionLayout& layout);

/// Returns the operands in the outputs of three projections: q [B, N, heads * query width], k [B, M, key heads * key
/// width], v [B, M, key heads * value width]. An operand with a single token may lack the token axis. Unused operands
/// are empty.
template <class T>
AttentionOperands<T> operands_apart(Var<T> q, Var<T> k, Var<T> v, const AttentionLayout& layout);

/// Computes out [B, N, heads * value width] from the outputs of projections. `shape` gives the class token and the grid
/// or sequence; its other sizes are taken from the operands and the layout. The mechanism and the noise must outlive
/// the pass. `prepared` is the result of prepare(), which is called if it is omitted.
template <class T>
Var<T> attention(const Mechanism& mechanism, const AttentionOperands<T>& of, const AttentionLayout& layout,
                 AttentionShape shape, std::span<const Var<T>> parameters = {}, ViewFor<T> noise = {},
                 Var<T> prepared = {});

/// Computes attention on separate tensors: q [B, H, N, d], k [B, H', M, d'], v [B, H', M, e], out [B, H, N, e], where
/// the mechanism's layout gives H' key heads for H query heads. Operands that the mechanism does not use are omitted.
template <class T>
Var<T> attention(const Mechanism& mechanism, Var<T> q, Var<T> k, Var<T> v, AttentionShape shape = {},
                 std::span<const Var<T>> parameters = {}, ViewFor<T> noise = {});

}  // namespace heed
