// Sums over pairs, in tiles of registers:
//
//   C[i,j] (+)= sum over l of term(A[i,l], B[l,j])
//
// where a term is a product, or a distance between two numbers. C is made in tiles that stay in registers while k runs.
// What a tile reads of B is copied beforehand into a panel, in the order in which it is read; A is read in place, one
// number at a time.
//
// The size of a tile. With 32 vector registers, 6 x 4: 24 sums, 4 vectors of B and 1 number of A, 29 registers.
// Each step over k does 24 multiply-adds for 4 + 6 loads, so a core that does two of each in a cycle waits for
// its multipliers alone. Four AVX-512 vectors are 64 columns, of which the usual widths are multiples. With 16
// registers, 6 x 2: 12 + 2 + 1. Narrower tiles have 8 rows: 8 sums are what two multipliers with a latency of 4
// cycles need, and 8 x 3 takes 28 registers.
//
// Each element of C is a chain of additions in the order of k, begun anew at multiples of `block`, with the
// sums of the blocks added in order. Neither m, n nor the element's place in a tile has a part in it.
#pragma once

#include "heed/kernels/gemm.h"
#include "heed/kernels/simd.h"

#include <array>
#include <utility>

namespace heed::kernels::simd {

inline constexpr int tile_vectors = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 4 : 2;
inline constexpr int most_rows = 8;
constexpr int tile_rows(Index vectors) { return vectors == tile_vectors ? 6 : most_rows; }

/// Steps of k between which sums are kept in registers. A panel of 256 x 64 floats is 64 KB, a sixteenth of an L2
/// cache of 1 MB; a tile reads 256 bytes of it in the 12 to 24 cycles of a step, less than L2 delivers.
inline constexpr Index block = 256;

/// Up to so many rows of C, an untransposed B of whole vectors is read in place: fewer tiles share a panel then.
inline constexpr Index in_place_rows = 96;

/// op(A) or op(B), at [row, column] = data[row * row_stride + column * column_stride].
struct Operand {
  const float* data;
  Index row_stride, column_stride;

  Operand(Transpose transpose, const float* from, Index ld)
      : data(from),
        row_stride(transpose == Transpose::no ? ld : 1),
        column_stride(transpose == Transpose::no ? 1 : ld) {}
  const float* at(Index row, Index column) const { return data + row * row_stride + column * column_stride; }
};

/// What sums are added to, not what is in C: row[j] + column[i] + matrix[i,j], of which the last two may be nullptr.
struct Start {
  const float* row = nullptr;
  const float* column = nullptr;
  const float* matrix = nullptr;
  Index stride = 0;

  /// The same from element [i,j] on.
  Start at(Index i, Index j) const {
    return {row + j, column ? column + i : nullptr, matrix ? matrix + i * stride + j : nullptr, stride};
  }
};

/// What a tile needs to know: C [rows, vectors], A [rows, k], B [k, vectors], with `in_last` lanes of the last vector.
struct TileWork {
  Index k;
  Operand a;
  const float* b;
  Index b_stride;
  Update update;
  float* c;
  Index c_stride, in_last;
  Start start{};  ///< for a tile that has one
};

template <class AddTerm, bool starts, int rows, int vectors>
void tile(const TileWork& w) {
  const AddTerm add_term;
  Vector sums[rows][vectors];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) sums[i][v] = hn::Zero(tag);

  const Index a_row = w.a.row_stride, a_column = w.a.column_stride, b_stride = w.b_stride;
  const float *a = w.a.data, *b = w.b;
  for (Index l = w.k; l > 0; --l, a += a_column, b += b_stride) {
    Vector b_row[vectors];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) b_row[v] = hn::LoadU(tag, b + v * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const Broadcast number(a + i * a_row);
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) sums[i][v] = add_term(sums[i][v], number, b_row[v]);
    }
  }

  // put(lanes, sum, row, its place in C and in the row)
  const auto write_all = [&](const auto& put) {
    const auto write_rows = [&, c_stride = w.c_stride](auto use) {
      float* c = w.c;
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i, c += c_stride) {
#pragma GCC unroll 16
        for (int v = 0; v + 1 < vectors; ++v) put(AllLanes{}, sums[i][v], i, c + v * lanes, v * lanes);
        put(use, sums[i][vectors - 1], i, c + (vectors - 1) * lanes, (vectors - 1) * lanes);
      }
    };
    if (w.in_last == lanes)
      write_rows(AllLanes{});
    else
      write_rows(FirstLanes(w.in_last));
  };
  if constexpr (starts) {
    const Start s = w.start;
    if (s.matrix)
      write_all([s](auto use, Vector sum, int i, float* c, Index j) {
        use.store(hn::Add(hn::Add(use.load(s.matrix + i * s.stride + j), use.load(s.row + j)), sum), c);
      });
    else if (s.column)
      write_all([s](auto use, Vector sum, int i, float* c, Index j) {
        use.store(hn::Add(hn::Add(set(s.column[i]), use.load(s.row + j)), sum), c);
      });
    else
      write_all([s](auto use, Vector sum, int, float* c, Index j) { use.store(hn::Add(use.load(s.row + j), sum), c); });
  } else {
    write_all([update = w.update](auto use, Vector sum, int, float* c, Index) { write(update, use, sum, c); });
  }
}

using Tile = void (*)(const TileWork&);

/// All tiles that are at most as high as tile_rows allows: tiles[vectors - 1][rows - 1].
template <class AddTerm, bool starts>
constexpr auto tiles = []<int... v>(std::integer_sequence<int, v...>) {
  constexpr auto of_width =
      []<int width, int... r>(std::integer_sequence<int, width>, std::integer_sequence<int, r...>) {
    return std::array<Tile, most_rows>{tile<AddTerm, starts, r + 1, width>...};
  };
  return std::array{
      of_width(std::integer_sequence<int, v + 1>{}, std::make_integer_sequence<int, tile_rows(v + 1)>{})...};
}
(std::make_integer_sequence<int, tile_vectors>{});

/// The term of a matrix product.
struct AddProduct {
  Vector operator()(Vector sum, Broadcast a, Vector b) const { return hn::MulAdd(a.vector(), b, sum); }
};

/// Four-lane blocks of rows `stride` apart, the first row in the lowest block.
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

/// to[l * width + j] = from[j * ld + l] for j < lanes and l < k: rows become columns, four steps of k at a time.
/// Vector r gets rows r, 4 + r, 8 + r, ... of which each 4 x 4 block is then transposed by itself.
inline void pack_transposed(Index k, const float* from, Index ld, Index width, float* to) {
  const hn::Repartition<double, Tag> pairs;
  const auto low = [&](Vector x, Vector y) {
    return hn::BitCast(tag, hn::InterleaveLower(pairs, hn::BitCast(pairs, x), hn::BitCast(pairs, y)));
  };
  const auto high = [&](Vector x, Vector y) {
    return hn::BitCast(tag, hn::InterleaveUpper(pairs, hn::BitCast(pairs, x), hn::BitCast(pairs, y)));
  };
  Index l = 0;
  for (; l + 4 <= k; l += 4, to += 4 * width) {
    const Vector r0 = load_blocks(tag, from + l, 4 * ld), r1 = load_blocks(tag, from + ld + l, 4 * ld);
    const Vector r2 = load_blocks(tag, from + 2 * ld + l, 4 * ld), r3 = load_blocks(tag, from + 3 * ld + l, 4 * ld);
    const Vector low01 = hn::InterleaveLower(tag, r0, r1), low23 = hn::InterleaveLower(tag, r2, r3);
    const Vector high01 = hn::InterleaveUpper(tag, r0, r1), high23 = hn::InterleaveUpper(tag, r2, r3);
    hn::Store(low(low01, low23), tag, to);
    hn::Store(high(low01, low23), tag, to + width);
    hn::Store(low(high01, high23), tag, to + 2 * width);
    hn::Store(high(high01, high23), tag, to + 3 * width);
  }
  for (; l < k; ++l, to += width)
    for (Index j = 0; j < lanes; ++j) to[j] = from[j * ld + l];
}

/// Copies `columns` columns of B, k rows of it, to a panel `width` wide, zero beyond the columns.
inline void pack(Index k, Index columns, const Operand& b, Index first_row, Index first_column, Index width,
                 float* panel) {
  for_each_vector(columns, [&](Index j, auto use) {
    const float* from = b.at(first_row, first_column + j);
    float* to = panel + j;
    if (b.column_stride == 1) {
      for (Index l = 0; l < k; ++l, from += b.row_stride, to += width) hn::Store(use.load(from), tag, to);
    } else if constexpr (std::is_same_v<decltype(use), AllLanes>) {
      pack_transposed(k, from, b.column_stride, width, to);
    } else {
      for (Index l = 0; l < k; ++l) {
        hn::Store(hn::Zero(tag), tag, to + l * width);
        for (Index c = 0; c < columns - j; ++c) to[l * width + c] = from[c * b.column_stride + l];
      }
    }
  });
}

/// Columns of B that tiles take together.
struct Panel {
  Index begin, end;

  Index vectors() const { return (end - begin + lanes - 1) / lanes; }
  Index width() const { return vectors() * lanes; }
};

/// Rows and vectors of C are cut into tiles of equal size, give or take one: five vectors are 3 + 2, not 4 + 1.
inline Index panels(Index n) { return ((n + lanes - 1) / lanes + tile_vectors - 1) / tile_vectors; }
inline Panel panel_at(Index n, Index p) {
  const Index vectors = (n + lanes - 1) / lanes;
  return {vectors * p / panels(n) * lanes, std::min(n, vectors * (p + 1) / panels(n) * lanes)};
}

/// Some rows of a panel of B, `stride` apart.
struct Source {
  const float* data;
  Index stride;
};

/// The columns of C that a panel gives. source(first, count) says where `count` rows of it lie, from `first` on.
template <class AddTerm, bool starts, class F>
void sum_panel(Panel columns, Index m, Index k, const Operand& op_a, Update update, float* c, Index ldc,
               const Start& start, const F& source) {
  const Index vectors = columns.vectors(), in_last = columns.end - columns.begin - (vectors - 1) * lanes;
  const Index row_tiles = (m + tile_rows(vectors) - 1) / tile_rows(vectors);
  for (Index first = 0; first < k; first += block) {
    const Index count = std::min(block, k - first);
    const Source b = source(first, count);
    TileWork work{count, op_a, b.data, b.stride, first == 0 ? update : Update::accumulate, nullptr, ldc, in_last};
    for (Index t = 0; t < row_tiles; ++t) {
      const Index row = m * t / row_tiles, rows = m * (t + 1) / row_tiles - row;
      work.a.data = op_a.at(row, first);
      work.c = c + row * ldc + columns.begin;
      const auto v = static_cast<std::size_t>(vectors - 1), r = static_cast<std::size_t>(rows - 1);
      if constexpr (starts)
        if (first == 0) {
          work.start = start.at(row, columns.begin);
          tiles<AddTerm, true>[v][r](work);
          continue;
        }
      tiles<AddTerm, false>[v][r](work);
    }
  }
}

/// C[i,j] (+)= sum over l < k of a term of op(A)[i,l] and op(B)[l,j]; shapes as in gemm(). AddTerm()(sum, a, b) adds
/// one. With `starts` it is C = start + that sum, whatever `update` is, for k > 0.
template <class AddTerm, bool starts = false>
void sum_pairs(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const float* a, Index lda,
               const float* b, Index ldb, Update update, float* c, Index ldc, const Start& start = {}) {
  const Operand op_a(transpose_a, a, lda), op_b(transpose_b, b, ldb);
  if (k == 0 && update == Update::assign)
    for (Index i = 0; i < m; ++i) std::fill(c + i * ldc, c + i * ldc + n, 0.0f);

  alignas(alignment) thread_local float packed[block * tile_vectors * lanes];
  for (Index p = 0; p < panels(n); ++p) {
    const Panel panel = panel_at(n, p);
    const Index columns = panel.end - panel.begin;
    const bool in_place = transpose_b == Transpose::no && columns % lanes == 0 && m <= in_place_rows;
    sum_panel<AddTerm, starts>(panel, m, k, op_a, update, c, ldc, start, [&](Index first, Index count) {
      if (in_place) return Source{op_b.at(first, panel.begin), ldb};
      pack(count, columns, op_b, first, panel.begin, panel.width(), packed);
      return Source{packed, panel.width()};
    });
  }
}

/// All of B, panel after panel: B [k, n] takes packed_size(n, k) numbers.
inline Index packed_size(Index n, Index k) { return (n + lanes - 1) / lanes * lanes * k; }
inline void pack_all(Index n, Index k, const Operand& b, float* to) {
  for (Index p = 0; p < panels(n); ++p) {
    const Panel panel = panel_at(n, p);
    pack(k, panel.end - panel.begin, b, 0, panel.begin, panel.width(), to + panel.begin * k);
  }
}

/// As sum_pairs, for A and a B that pack_all has arranged: columns [begin, end) of C, where `begin` is a multiple of
/// `lanes`, and `end` too or n.
template <class AddTerm, bool starts>
void sum_packed(Index m, Index n, Index k, Index begin, Index end, const float* a, Index lda, const float* packed,
                Update update, float* c, Index ldc, const Start& start) {
  const Operand op_a(Transpose::no, a, lda);
  for (Index p = 0; p < panels(n); ++p) {
    const Panel whole = panel_at(n, p), part{std::max(whole.begin, begin), std::min(whole.end, end)};
    if (part.begin >= part.end) continue;
    const float* const data = packed + whole.begin * k + (part.begin - whole.begin);
    sum_panel<AddTerm, starts>(part, m, k, op_a, update, c, ldc, start, [&](Index first, Index) {
      return Source{data + first * whole.width(), whole.width()};
    });
  }
}

}  // namespace heed::kernels::simd
