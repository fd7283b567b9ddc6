// Interpolation on a grid: bilinear, and bicubic. Keys, "Cubic convolution interpolation for digital image processing",
// IEEE Trans. ASSP 29(6), 1981, Eq. 15 with his a = -1/2 replaced by -3/4, as PyTorch's interpolate has it
// (align_corners=False, no antialiasing), by which timm's and DeiT's position embeddings travel between image sizes.
// Counts are those of the sums; weights are not counted, since they follow from the sizes of the grids alone.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counts.h"

#include <array>
#include <cmath>

namespace heed::kernels {

/// Weight of a neighbour `x` cells away: piecewise cubic, 1 at 0, 0 at the other integers and from 2 on; the weights
/// of four neighbours sum to 1.
inline double cubic_weight(double x, double a = -0.75) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? a * (((x - 5) * x + 8) * x - 4) : 0;
}

/// Where the centre of cell i of `to` lies among the centres of the cells of `from`, which are at 0, 1, ...
inline double place_of_cell(Index i, Index from, Index to) {
  return (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5;
}

/// Along one axis: the four cells that make cell i of `to`, and their weights. Beyond an edge the outermost cell is
/// repeated.
struct CubicTaps {
  static constexpr std::size_t count = 4;
  std::array<Index, count> cell;
  std::array<double, count> weight;

  CubicTaps(Index i, Index from, Index to) {
    const double at = place_of_cell(i, from, to);
    for (std::size_t k = 0; k < count; ++k) {
      const Index neighbour = static_cast<Index>(std::floor(at)) - 1 + static_cast<Index>(k);
      cell[k] = std::clamp<Index>(neighbour, 0, from - 1);
      weight[k] = cubic_weight(at - static_cast<double>(neighbour));
    }
  }
};

/// The same with the two nearest cells, whose weights fall linearly with the distance.
struct LinearTaps {
  static constexpr std::size_t count = 2;
  std::array<Index, count> cell;
  std::array<double, count> weight;

  LinearTaps(Index i, Index from, Index to) {
    const double inside = std::clamp(place_of_cell(i, from, to), 0.0, static_cast<double>(from - 1));
    cell[0] = static_cast<Index>(inside);
    cell[1] = std::min(cell[0] + 1, from - 1);
    weight[1] = inside - static_cast<double>(cell[0]);
    weight[0] = 1 - weight[1];
  }
};

/// How the rows of a matrix lie on a grid, row-major.
struct Grid {
  Index height, width;
};

/// The cells of a grid that make one cell of another, and their weights.
template <class Taps>
struct GridTaps {
  static constexpr std::size_t count = Taps::count * Taps::count;
  std::array<Index, count> cell;
  std::array<double, count> weight;
};

/// Calls f(cell of `to`, taps in `from`) for all cells.
template <class Taps, class F>
void for_each_cell(Grid from, Grid to, const F& f) {
  for (Index i = 0; i < to.height; ++i)
    for (Index j = 0; j < to.width; ++j) {
      const Taps rows(i, from.height, to.height), columns(j, from.width, to.width);
      GridTaps<Taps> taps;
      for (std::size_t r = 0; r < Taps::count; ++r)
        for (std::size_t c = 0; c < Taps::count; ++c) {
          taps.cell[r * Taps::count + c] = rows.cell[r] * from.width + columns.cell[c];
          taps.weight[r * Taps::count + c] = rows.weight[r] * columns.weight[c];
        }
      f(i * to.width + j, taps);
    }
}

/// A grid of vectors, x [from.height from.width, channels], brought to y [to.height to.width, channels]; they do not
/// overlap. At the same size y is x exactly. Sums run in double.
template <class Taps, class T>
void interpolate(Grid from, MatrixFor<T> x, Grid to, Matrix<T> y) {
  for_each_cell<Taps>(from, to, [&](Index cell, const GridTaps<Taps>& taps) {
    for (Index c = 0; c < y.columns; ++c) {
      double sum = 0;
      for (std::size_t k = 0; k < taps.count; ++k) sum += taps.weight[k] * static_cast<double>(x(taps.cell[k], c));
      y(cell, c) = static_cast<T>(sum);
    }
  });
}

template <class T>
void bicubic(Grid from, MatrixFor<T> x, Grid to, Matrix<T> y) {
  interpolate<CubicTaps>(from, x, to, y);
}
template <class T>
void bilinear(Grid from, MatrixFor<T> x, Grid to, Matrix<T> y) {
  interpolate<LinearTaps>(from, x, to, y);
}

/// Of the sums that make `numbers` numbers, cells times channels; on the way back each tap of each adds to dx.
inline Counts bicubic_counts(Index numbers) { return product_counts(numbers, 1, GridTaps<CubicTaps>::count); }
inline Counts bicubic_backward_counts(Index numbers) {
  return product_contractions(numbers, 1, GridTaps<CubicTaps>::count);
}

}  // namespace heed::kernels
