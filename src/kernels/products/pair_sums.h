// Sums over pairs, in register tiles:
//
//   C[i,j] (+)= sum over l of term(A[i,l], B[l,j])
//
// A term is a product, or a part of a distance. C is computed in tiles that stay in registers while l runs over k. B is
// first copied to panels, in the order in which tiles read it (panels.h), unless C has few rows (in_place_rows). A is
// read in place, one element at a time; only a large transposed A is copied too. If many panels are copied together, A
// is processed in blocks of rows that stay in the L2 cache for all these panels.
//
// Tile size. With 32 vector registers, 6 x 4: 24 sums, 4 vectors of B and 1 element of A are 29 registers. Each step
// over k has 24 multiply-adds for 4 + 6 loads, so a core that executes two multiply-adds and two loads per cycle is
// limited by its multipliers only. Four AVX-512 vectors are 64 columns, which divides the usual widths. With 16
// registers, 6 x 2: 12 + 2 + 1 are 15 registers; a tile is 5 x 2 if a term needs two or three registers itself, and
// 4 x 2 in WebAssembly, which has no multiply-add and so needs registers for products. Narrower tiles have 8 rows: two
// multipliers with a latency of 4 cycles need 8 independent sums, and 8 x 3 takes 28 registers.
//
// Each element of C is a chain of additions in the order of k, restarted at multiples of `block`, with the sums of the
// blocks added in order. The element does not depend on m, on n or on its position in a tile.
#pragma once

#include "panels.h"

#include <array>
#include <utility>

namespace heed::kernels::simd {

inline constexpr int most_rows = 8;
template <class AddTerm>
constexpr int tile_rows(Index vectors) {
  if (vectors < tile_vectors) return most_rows;
  if (HWY_ARCH_WASM) return 4;
  return registers == 32 ? 6 : (registers - tile_vectors - 1 - AddTerm::registers) / tile_vectors;
}

/// Steps of k per block, during which sums stay in registers. A panel of 256 x 64 floats is 64 KB, a sixteenth of an L2
/// cache of 1 MB; a tile reads 256 bytes of it in the 12 to 24 cycles of a step, less than the L2 bandwidth.
inline constexpr Index block = 256;

/// Maximum number of rows of C for which an untransposed B of whole vectors is read in place, since few tiles would
/// share a panel.
inline constexpr Index in_place_rows = 96;

/// Minimum number of panels for sum_large(), whose panels are copied together and share blocks of rows of a large A.
inline constexpr Index many_panels = 8;

/// Number of elements above which A is large. Every panel reads all of A, and uses an element in 2 x 64 operations with
/// 32 registers, in 2 x 16 operations with 16 registers. The L3 bandwidth suffices for an A of 4 MB with 32 registers,
/// and for one of 512 KB with 16.
inline constexpr Index large = Index{1} << (registers == 32 ? 20 : 17);

/// Elements of A per block of rows: 128 KB, a quarter of an L2 cache of 512 KB.
inline constexpr Index cached = Index{1} << 15;

/// Returns the number of rows, of k elements each, per block: a multiple of 48, which divides into tiles of 8, 6 or 4
/// rows.
inline Index rows_at_once(Index k) { return std::max<Index>(cached / std::max<Index>(48 * k, 1), 1) * 48; }

/// Addends of the sums, instead of the previous values of C: row[j] + column[i], or row[j] + matrix[i,j]. column and
/// matrix may be empty.
struct Start {
  const float* row = nullptr;
  const float* column = nullptr;
  Matrix<const float> matrix{};

  /// Returns the addends for the columns of C from `first` on.
  Start from_column(Index first) const {
    return {row + first, column, matrix ? matrix.middle_columns(first, matrix.columns - first) : matrix};
  }
  /// Returns the addends for the rows of C from `first` on.
  Start from_row(Index first) const {
    return {row, column ? column + first : column, matrix ? matrix.middle_rows(first, matrix.rows - first) : matrix};
  }
};

/// Operands of a tile: A [m, k]; B [k, n], readable up to the end of its last vector; C [m, n]. The tile computes the
/// first rows of C and does not use m.
struct TileWork {
  Operand<float> a;
  Matrix<const float> b;
  Update update;
  Matrix<float> c;
  Start start;  ///< used by tiles with addends

  /// Advances past the first `rows` rows, which take `a_distance` elements of A.
  void skip(Index rows, Index a_distance) {
    a.data += a_distance, c.data += rows * c.stride;
    if (start.column) start.column += rows;
    if (start.matrix) start.matrix.data += rows * start.matrix.stride;
  }
};

template <class AddTerm, bool starts, int rows, int vectors>
void tile(const TileWork& w) {
  const AddTerm add_term;
  Vector sums[rows][vectors];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) sums[i][v] = hn::Zero(tag);

  const Index a_down = w.a.down(), a_across = w.a.across(), b_stride = w.b.stride;
  const float *a = w.a.data, *b = w.b.data;
  for (Index l = w.b.rows; l > 0; --l, a += a_across, b += b_stride) {
    Vector b_row[vectors];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) b_row[v] = hn::LoadU(tag, b + v * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const Broadcast number(a + i * a_down);
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) sums[i][v] = add_term(sums[i][v], number, b_row[v]);
    }
  }

  // The functions below take the addresses of the sums. They use a copy, so that the sums above stay in registers even
  // if the compiler (Clang) does not inline these functions.
  Vector results[rows][vectors];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) results[i][v] = sums[i][v];

  // Calls put(lanes, sum, row, address in C, index in the row) for each vector of the tile.
  const auto write_all = [&](const auto& put) {
    const auto write_rows = [&, c_stride = w.c.stride](auto use) {
      float* c = w.c.data;
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i, c += c_stride) {
#pragma GCC unroll 16
        for (int v = 0; v + 1 < vectors; ++v) put(AllLanes{}, results[i][v], i, c + v * lanes, v * lanes);
        put(use, results[i][vectors - 1], i, c + (vectors - 1) * lanes, (vectors - 1) * lanes);
      }
    };
    const Index in_last = w.c.columns - (vectors - 1) * lanes;
    if (in_last == lanes)
      write_rows(AllLanes{});
    else
      write_rows(FirstLanes(in_last));
  };
  if constexpr (starts) {
    const Start s = w.start;
    if (s.matrix)
      write_all([s](auto use, Vector sum, int i, float* c, Index j) {
        use.store(hn::Add(hn::Add(use.load(s.matrix[i] + j), use.load(s.row + j)), sum), c);
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

/// All tiles up to the height tile_rows(): tiles[vectors - 1][rows - 1].
template <class AddTerm, bool starts>
constexpr auto tiles = []<int... v>(std::integer_sequence<int, v...>) {
  constexpr auto of_width =
      []<int width, int... r>(std::integer_sequence<int, width>, std::integer_sequence<int, r...>) {
    return std::array<Tile, most_rows>{tile<AddTerm, starts, r + 1, width>...};
  };
  return std::array{
      of_width(std::integer_sequence<int, v + 1>{}, std::make_integer_sequence<int, tile_rows<AddTerm>(v + 1)>{})...};
}
(std::make_integer_sequence<int, tile_vectors>{});

/// The term of a matrix product.
struct AddProduct {
  static constexpr int registers = 0;  ///< registers beyond those of the sum, a and b

  Vector operator()(Vector sum, Broadcast a, Vector b) const { return hn::MulAdd(a.vector(), b, sum); }
};

/// Computes sum_pairs() for a C at most as wide as a tile. b_rows(first, count) returns `count` rows of B from `first`
/// on, as in TileWork. With `height`, A is the first sliver of one block, as returned by copy_slivers().
template <class AddTerm, bool starts, class F>
HWY_INLINE void sum_panel(const Operand<float>& a, const F& b_rows, Update update, Matrix<float> c, const Start& start,
                          Index height = 0) {
  const Index m = c.rows, k = a.columns, vectors = (c.columns + lanes - 1) / lanes;
  const Index highest = height > 0 ? height : tile_rows<AddTerm>(vectors), row_tiles = (m + highest - 1) / highest;
  for (Index first = 0; first < k; first += block) {
    const Index steps = std::min(block, k - first);
    // Constructed in place: a copy would wait for the stores to the original, which takes a twentieth of the time of a
    // 50 x 50 x 16 product.
    TileWork work{a.middle_columns(first, steps), b_rows(first, steps), term_update(first, update), c, start};
    // NOLINTNEXTLINE(bugprone-branch-clone): the two branches differ if `starts` is true.
    const auto& of_width = (first == 0 ? tiles<AddTerm, starts> : tiles<AddTerm, false>)[vectors - 1];
    for (Index t = 0; t < row_tiles; ++t) {
      const Index rows = m * (t + 1) / row_tiles - m * t / row_tiles;
      of_width[rows - 1](work);
      work.skip(rows, height > 0 ? height * steps : rows * a.down());
    }
  }
}

/// Computes sum_pairs() for a B [k, columns] packed by pack_all(). C [m, n] is the columns [begin, begin + n) of the
/// result; `begin` must be a multiple of `lanes`. `start` has the addends of C. With `height`, A is the slivers of one
/// block of rows.
template <class AddTerm, bool starts>
void sum_packed(const Operand<float>& a, const float* packed, Index columns, Index begin, Update update,
                const Matrix<float>& c, const Start& start, Index height = 0) {
  const Index k = a.columns, most = rows_at_once(k);
  for (Index top = 0; top < c.rows; top += most) {
    const Index m = std::min(most, c.rows - top);
    for (Index p = 0; p < panels(columns); ++p) {
      const Panel panel = panel_at(columns, p);
      const Panel part{std::max(panel.begin, begin), std::min(panel.end, begin + c.columns)};
      if (part.begin >= part.end) continue;
      const Matrix<const float> whole(packed + panel.begin * k, k, panel.columns(), panel.width());
      const Matrix<const float> b = whole.middle_columns(part.begin - panel.begin, part.columns());
      const auto b_rows = [&](Index first, Index count) { return b.middle_rows(first, count); };
      const Index column = part.begin - begin;
      sum_panel<AddTerm, starts>(a.middle_rows(top, m), b_rows, update,
                                 c.middle_rows(top, m).middle_columns(column, part.columns()),
                                 starts ? start.from_row(top).from_column(column) : start, height);
    }
  }
}

/// Memory for the copies of sum_large(). Thread-local memory takes space of the thread's stack, so all types of terms
/// share one instance.
struct LargeCopies {
  static constexpr Index width = 512;
  alignas(alignment) float a[cached + most_rows * block], b[block * width];
};
inline LargeCopies& large_copies() {
  thread_local LargeCopies copies;
  return copies;
}

/// Computes sum_pairs() for a large A and many panels of B. Up to 512 columns of B are copied at a time, so that a
/// block of rows of A stays in the L2 cache for all these panels. A transposed A is copied too: in place, a tile would
/// read a few elements from each of `block` rows, all in different cache lines; in slivers they are adjacent.
template <class AddTerm>
void sum_large(const Operand<float>& a, const Operand<float>& b, Update update, const Matrix<float>& c) {
  constexpr Index width = LargeCopies::width, height = tile_rows<AddTerm>(tile_vectors);
  LargeCopies& copies = large_copies();
  const Index most = rows_at_once(std::min(block, a.columns));
  for (Index left = 0; left < c.columns; left += width) {
    const Index n = std::min(width, c.columns - left);
    for (Index first = 0; first < a.columns; first += block) {
      const Index steps = std::min(block, a.columns - first);
      pack_all(b.middle_columns(left, n).middle_rows(first, steps), copies.b);
      for (Index top = 0; top < c.rows; top += most) {
        const Index m = std::min(most, c.rows - top);
        const Operand<float> part = a.middle_rows(top, m).middle_columns(first, steps);
        const bool sliced = part.transposed;
        sum_packed<AddTerm, false>(sliced ? copy_slivers<height>(part, copies.a) : part, copies.b, n, 0,
                                   term_update(first, update), c.middle_rows(top, m).middle_columns(left, n), {},
                                   sliced ? height : 0);
      }
    }
  }
}

/// Computes C[i,j] (+)= sum over l of the term of A[i,l] and B[l,j]; shapes as in gemm(). AddTerm()(sum, a, b) adds a
/// term. With `starts`, computes C = start + that sum if there is a term, and ignores `update`.
template <class AddTerm, bool starts = false>
void sum_pairs(const Operand<float>& a, const Operand<float>& b, Update update, const Matrix<float>& c,
               const Start& start = {}) {
  if (a.columns == 0 && update == Update::assign) fill(c, 0.0f);
  if constexpr (!starts)
    if (a.rows * a.columns > large && panels(c.columns) >= many_panels) return sum_large<AddTerm>(a, b, update, c);

  alignas(alignment) thread_local float packed[block * tile_vectors * lanes];
  for (Index p = 0; p < panels(c.columns); ++p) {
    const Panel panel = panel_at(c.columns, p);
    const Operand<float> part = b.middle_columns(panel.begin, panel.columns());
    const bool in_place = !b.transposed && part.columns % lanes == 0 && c.rows <= in_place_rows;
    const auto b_rows = [&](Index first, Index count) {
      const Operand<float> rows = part.middle_rows(first, count);
      if (in_place) return Matrix<const float>(rows.data, count, rows.columns, rows.stride);
      pack(rows, panel.width(), packed);
      return Matrix<const float>(packed, count, rows.columns, panel.width());
    };
    sum_panel<AddTerm, starts>(a, b_rows, update, c.middle_columns(panel.begin, panel.columns()),
                               starts ? start.from_column(panel.begin) : start);
  }
}

}  // namespace heed::kernels::simd
