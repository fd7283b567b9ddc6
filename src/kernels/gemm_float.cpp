// The float product. C is made in tiles that stay in registers while k runs; what a tile reads of B is copied
// beforehand into a panel, in the order in which it is read, and A is read in place, one number at a time.
//
// The size of a tile. With 32 vector registers, 6 x 4: 24 sums, 4 vectors of B and 1 number of A, 29 registers.
// Each step over k does 24 multiply-adds for 4 + 6 loads, so a core that does two of each in a cycle waits for
// its multipliers alone, and 24 sums cover a latency of 4 cycles three times. Four AVX-512 vectors are 64
// columns, of which the usual widths are multiples. With 16 registers, 6 x 2: 12 + 2 + 1. Six rows are also six
// pointers, which fit the general registers of x86 beside the rest.
//
// Each element of C is a chain of multiply-adds in the order of k, begun anew at multiples of `block`, with the
// sums of the blocks added in order. Neither m, n nor the element's place in a tile has a part in it.
#include "heed/kernels/gemm.h"

#ifndef HEED_REFERENCE

#include "simd.h"

#include <utility>

namespace heed::kernels {

using namespace simd;

namespace {

constexpr int tile_rows = 6;
constexpr int tile_vectors = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 4 : 2;

/// Steps of k between which sums are kept in registers. A panel of 256 x 64 floats is 64 KB, a sixteenth of an L2
/// cache of 1 MB; a tile reads 256 bytes of it in the 12 to 24 cycles of a step, less than L2 delivers.
constexpr Index block = 256;

/// op(A) or op(B), at [row, column] = data[row * row_stride + column * column_stride].
struct Operand {
  const float* data;
  Index row_stride, column_stride;

  Operand(Transpose transpose, const float* from, Index ld)
      : data(from), row_stride(transpose == Transpose::no ? ld : 1), column_stride(transpose == Transpose::no ? 1 : ld) {}
  const float* at(Index row, Index column) const { return data + row * row_stride + column * column_stride; }
};

/// C[rows, vectors * lanes] (+)= A[rows, k] panel[k, vectors * lanes], `use` saying which lanes of the last vector
/// exist.
template <int rows, int vectors, class Lanes>
void tile(Index k, const float* a, Index a_row, Index a_column, const float* panel, Update update, float* c, Index ldc,
          Lanes use) {
  Vector sums[rows][vectors];
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) sums[i][v] = hn::Zero(tag);

  for (Index l = 0; l < k; ++l, a += a_column, panel += vectors * lanes) {
    Vector b[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) b[v] = hn::Load(tag, panel + v * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
      const Vector number = set(a[i * a_row]);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[i][v] = hn::MulAdd(number, b[v], sums[i][v]);
    }
  }

#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i, c += ldc) {
#pragma GCC unroll 8
    for (int v = 0; v + 1 < vectors; ++v) write(update, AllLanes{}, sums[i][v], c + v * lanes);
    write(update, use, sums[i][vectors - 1], c + (vectors - 1) * lanes);
  }
}

/// All rows of C in the columns of one panel.
template <int vectors, class Lanes>
void panel_product(Index m, Index k, const Operand& a, Index first, const float* panel, Update update, float* c,
                   Index ldc, Lanes use) {
  Index i = 0;
  for (; i + tile_rows <= m; i += tile_rows)
    tile<tile_rows, vectors>(k, a.at(i, first), a.row_stride, a.column_stride, panel, update, c + i * ldc, ldc, use);
  const auto rest = [&]<int... less>(std::integer_sequence<int, less...>) {
    static_cast<void>(((m - i == less + 1 && (tile<less + 1, vectors>(k, a.at(i, first), a.row_stride, a.column_stride,
                                                                      panel, update, c + i * ldc, ldc, use),
                                              true)) ||
                       ...));
  };
  rest(std::make_integer_sequence<int, tile_rows - 1>{});
}

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
void pack_transposed(Index k, const float* from, Index ld, Index width, float* to) {
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
void pack(Index k, Index columns, const Operand& b, Index first_row, Index first_column, Index width, float* panel) {
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

}  // namespace

void gemm(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const float* a, Index lda,
          const float* b, Index ldb, Update update, float* c, Index ldc) {
  const Operand op_a(transpose_a, a, lda), op_b(transpose_b, b, ldb);
  if (k == 0 && update == Update::assign)
    for (Index i = 0; i < m; ++i) std::fill(c + i * ldc, c + i * ldc + n, 0.0f);

  alignas(alignment) thread_local float panel[block * tile_vectors * lanes];
  // Panels of equal width, in vectors: five vectors are 3 + 2, not 4 + 1.
  const Index all_vectors = (n + lanes - 1) / lanes, panels = (all_vectors + tile_vectors - 1) / tile_vectors;
  for (Index p = 0; p < panels; ++p) {
    const Index begin = all_vectors * p / panels * lanes, end = std::min(n, all_vectors * (p + 1) / panels * lanes);
    const Index vectors = (end - begin + lanes - 1) / lanes, in_last = end - begin - (vectors - 1) * lanes;
    for (Index first = 0; first < k; first += block) {
      const Index steps = std::min(block, k - first);
      pack(steps, end - begin, op_b, first, begin, vectors * lanes, panel);
      const auto product = [&](auto count, auto use) {
        panel_product<count>(m, steps, op_a, first, panel, first == 0 ? update : Update::accumulate, c + begin, ldc, use);
      };
      const auto with_count = [&]<int... less>(std::integer_sequence<int, less...>) {
        const auto choose = [&](auto count) {
          if (vectors != count) return;
          if (in_last == lanes)
            product(count, AllLanes{});
          else
            product(count, FirstLanes(in_last));
        };
        (choose(std::integral_constant<int, less + 1>{}), ...);
      };
      with_count(std::make_integer_sequence<int, tile_vectors>{});
    }
  }
}

}  // namespace heed::kernels

#endif
