// Bilinear and bicubic interpolation on a grid. Keys, "Cubic convolution interpolation for digital image processing",
// IEEE Trans. ASSP 29(6), 1981, Eq. 15, with a = -3/4 instead of -1/2, as in PyTorch's interpolate
// (align_corners=False, no antialiasing), which timm and DeiT use to resize position embeddings. The counts cover the
// sums but not the weights, which depend only on the grid sizes.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counts.h"

#include <array>
#include <cmath>
#include <vector>

namespace heed::kernels {

/// Returns the weight of a neighbour at distance x cells: piecewise cubic, 1 at 0, 0 at the other integers and for
/// |x| >= 2. The weights of the four nearest neighbours sum to 1.
inline double cubic_weight(double x, double a = -0.75) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? a * (((x - 5) * x + 8) * x - 4) : 0;
}

/// Returns the centre of cell i of a grid of `to` cells, in units where the cells of `from` have centres 0, 1, ...
inline double place_of_cell(Index i, Index from, Index to) {
  return (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5;
}

/// The four cells of `from` along one axis that cell i of `to` depends on, and their weights. Beyond an edge the
/// outermost cell is repeated.
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

/// The two nearest cells, with weights that decrease linearly with distance.
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

/// The cells of `from` along one axis, starting with `first`, that cell i of `to` depends on with antialiasing, and
/// their weights, which sum to 1. As in PyTorch's interpolate, a = -1/2, and the support is from / to times as wide if
/// `from` is larger.
struct AntialiasedTaps {
  Index first;
  std::vector<double> weights;

  AntialiasedTaps(Index i, Index from, Index to) {
    constexpr double a = -0.5;
    const double scale = static_cast<double>(from) / static_cast<double>(to), unit = std::max(scale, 1.0);
    const double centre = (static_cast<double>(i) + 0.5) * scale, reach = 2 * unit;
    first = std::max<Index>(static_cast<Index>(centre - reach + 0.5), 0);
    const Index end = std::min(static_cast<Index>(centre + reach + 0.5), from);
    double sum = 0;
    for (Index k = first; k < end; ++k) {
      weights.push_back(cubic_weight((static_cast<double>(k) + 0.5 - centre) / unit, a));
      sum += weights.back();
    }
    for (double& weight : weights) weight /= sum;
  }
};

/// The size of a grid, whose cells are the rows of a matrix in row-major order.
struct Grid {
  Index height, width;
};

/// The cells of a grid that one cell of another grid depends on, and their weights.
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

/// Interpolates a grid of vectors x [from.height from.width, channels] to y [to.height to.width, channels]. y must not
/// overlap x. If both grids have the same size, y is exactly x. Sums are in double.
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

/// Interpolate with cubic and with linear taps in each direction.
template <class T>
void bicubic(Grid from, MatrixFor<T> x, Grid to, Matrix<T> y) {
  interpolate<CubicTaps>(from, x, to, y);
}
template <class T>
void bilinear(Grid from, MatrixFor<T> x, Grid to, Matrix<T> y) {
  interpolate<LinearTaps>(from, x, to, y);
}

/// Computes bicubic() with antialiasing.
template <class T>
void bicubic_antialiased(Grid from, MatrixFor<T> x, Grid to, Matrix<T> y) {
  for (Index i = 0; i < to.height; ++i)
    for (Index j = 0; j < to.width; ++j) {
      const AntialiasedTaps rows(i, from.height, to.height), columns(j, from.width, to.width);
      for (Index c = 0; c < y.columns; ++c) {
        double sum = 0;
        for (std::size_t r = 0; r < rows.weights.size(); ++r)
          for (std::size_t k = 0; k < columns.weights.size(); ++k) {
            const Index cell =
                (rows.first + static_cast<Index>(r)) * from.width + columns.first + static_cast<Index>(k);
            sum += rows.weights[r] * columns.weights[k] * static_cast<double>(x(cell, c));
          }
        y(i * to.width + j, c) = static_cast<T>(sum);
      }
    }
}

/// Return the counts for `elements` = cells of the result times channels. The backward pass adds one term to dx for
/// each tap of each element.
inline Counts bicubic_counts(Index elements) { return product_counts(elements, 1, GridTaps<CubicTaps>::count); }
inline Counts bicubic_backward_counts(Index elements) {
  return product_contractions(elements, 1, GridTaps<CubicTaps>::count);
}

}  // namespace heed::kernels
