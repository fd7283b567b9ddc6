// Operands of the tiles of pair_sums.h, copied into the order in which tiles read them: columns of B to panels, rows of
// a transposed A to slivers.
#pragma once

#include "heed/kernels/products/gemm.h"
#include "heed/kernels/shared/simd.h"

namespace heed::kernels::simd {

/// Maximum vectors of B per tile; pair_sums.h gives the reason.
inline constexpr int tile_vectors = registers == 32 ? 4 : 2;

/// Loads four elements from each of several rows, which are `stride` apart, into the four-lane blocks of a vector, the
/// first row into the lowest.
template <class D>
hn::Vec<D> load_blocks(D d, const float* from, Index stride) {
  if constexpr (hn::MaxLanes(D{}) == 4) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<D> half;
    const Index rows = static_cast<Index>(hn::MaxLanes(half)) / 4;
    return hn::Combine(d, load_blocks(half, from + rows * stride, stride), load_blocks(half, from, stride));
  }
}

/// Transposes: to[l * width + j] = from[j * stride + l] for j < lanes and l < k, four values of l at a time. Vector r
/// holds rows r, 4 + r, 8 + r, ..., and each of their 4 x 4 blocks is transposed.
inline void pack_transposed(Index k, const float* from, Index stride, Index width, float* to) {
  const hn::Repartition<double, Tag> pairs;
  const auto low = [&](Vector x, Vector y) {
    return hn::BitCast(tag, hn::InterleaveLower(pairs, hn::BitCast(pairs, x), hn::BitCast(pairs, y)));
  };
  const auto high = [&](Vector x, Vector y) {
    return hn::BitCast(tag, hn::InterleaveUpper(pairs, hn::BitCast(pairs, x), hn::BitCast(pairs, y)));
  };
  Index l = 0;
  for (; l + 4 <= k; l += 4, to += 4 * width) {
    const Vector r0 = load_blocks(tag, from + l, 4 * stride);
    const Vector r1 = load_blocks(tag, from + stride + l, 4 * stride);
    const Vector r2 = load_blocks(tag, from + 2 * stride + l, 4 * stride);
    const Vector r3 = load_blocks(tag, from + 3 * stride + l, 4 * stride);
    const Vector low01 = hn::InterleaveLower(tag, r0, r1), low23 = hn::InterleaveLower(tag, r2, r3);
    const Vector high01 = hn::InterleaveUpper(tag, r0, r1), high23 = hn::InterleaveUpper(tag, r2, r3);
    hn::StoreU(low(low01, low23), tag, to);
    hn::StoreU(high(low01, low23), tag, to + width);
    hn::StoreU(low(high01, high23), tag, to + 2 * width);
    hn::StoreU(high(high01, high23), tag, to + 3 * width);
  }
  for (; l < k; ++l, to += width)
    for (Index j = 0; j < lanes; ++j) to[j] = from[j * stride + l];
}

/// Computes y = x^T. y must not overlap x.
inline void transpose(Matrix<const float> x, Matrix<float> y) {
  const Index whole = x.rows / lanes * lanes;
  for (Index r = 0; r < whole; r += lanes) pack_transposed(x.columns, x[r], x.stride, y.stride, y.data + r);
  for (Index c = 0; c < x.columns; ++c)
    for (Index r = whole; r < x.rows; ++r) y(c, r) = x(r, c);
}

/// Copies B to a panel of `width` columns, padded with zeros.
HWY_INLINE void pack(Operand<float> b, Index width, float* panel) {
  for_each_vector(b.columns, [=](Index j, auto use) {
    const float* from = &b(0, j);
    float* to = panel + j;
    if (!b.transposed) {
      for (Index l = 0; l < b.rows; ++l, from += b.stride, to += width) hn::Store(use.load(from), tag, to);
    } else if constexpr (std::is_same_v<decltype(use), AllLanes>) {
      pack_transposed(b.rows, from, b.stride, width, to);
    } else {
      for (Index l = 0; l < b.rows; ++l, ++from, to += width) {
        hn::Store(hn::Zero(tag), tag, to);
        for (Index c = 0; c < b.columns - j; ++c) to[c] = from[c * b.stride];
      }
    }
  });
}

/// The columns of B in a panel.
struct Panel {
  Index begin, end;

  Index columns() const { return end - begin; }
  /// Width in memory: whole vectors.
  Index width() const { return (columns() + lanes - 1) / lanes * lanes; }
};

/// Return the number of panels for n columns, and panel p. Their sizes in vectors differ by at most one: five vectors
/// are divided into 2 + 3, not 4 + 1.
inline Index panels(Index n) { return ((n + lanes - 1) / lanes + tile_vectors - 1) / tile_vectors; }
inline Panel panel_at(Index n, Index p) {
  const Index vectors = (n + lanes - 1) / lanes;
  return {vectors * p / panels(n) * lanes, std::min(n, vectors * (p + 1) / panels(n) * lanes)};
}

/// packed_size() returns the number of elements of all panels of B [k, n]; pack_all() copies B to them.
inline Index packed_size(Index n, Index k) { return (n + lanes - 1) / lanes * lanes * k; }
inline void pack_all(const Operand<float>& b, float* to) {
  for (Index p = 0; p < panels(b.columns); ++p) {
    const Panel panel = panel_at(b.columns, p);
    pack(b.middle_columns(panel.begin, panel.columns()), panel.width(), to + panel.begin * b.rows);
  }
}

/// Copies a transposed A [m, k] to slivers: the rows of each tile of at most `height` rows, in the order in which the
/// tile reads them. to[(t k + l) height + i] is A[i,l] of tile t. Returns the first sliver.
template <Index height>
Operand<float> copy_slivers(const Operand<float>& a, float* to) {
  const Index count = (a.rows + height - 1) / height;
  for (Index t = 0; t < count; ++t, to += height * a.columns) {
    const Index first = a.rows * t / count, rows = a.rows * (t + 1) / count - first;
    // With a constant number of rows, one or two loads copy a column; nearly all tiles have `height` rows.
    const auto copy = [&, from = a.data + first](auto number) {
      for (Index l = 0; l < a.columns; ++l) std::copy_n(from + l * a.stride, Index{number}, to + l * height);
    };
    if (rows == height)
      copy(std::integral_constant<Index, height>{});
    else
      copy(rows);
  }
  return transposed(Matrix<const float>(to - count * height * a.columns, a.columns, a.rows, height));
}

}  // namespace heed::kernels::simd
