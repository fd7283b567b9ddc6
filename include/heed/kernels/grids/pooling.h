// Landmarks: means of the tokens of grid cells, outputs of a convolution whose windows are the cells, or selected
// tokens.
#pragma once

#include "heed/base/memory_layout.h"
#include "heed/kernels/products/gemm.h"

#include <algorithm>

namespace heed::kernels {

/// A grid of height x width tokens in row-major order, divided into rows x columns cells. Cell row i covers the token
/// rows [floor(i height / rows), ceil((i + 1) height / rows)); columns likewise. If `rows` divides `height`, the cells
/// have equal heights; otherwise neighbours may share a token row. A sequence has height 1; it can also be divided into
/// cells of `length` consecutive tokens, the last of which may be shorter.
struct Cells {
  Index height = 1, width = 0, rows = 1, columns = 0;
  Index length = 0;

  Index count() const { return rows * columns; }
  Index top(Index i) const { return i * height / rows; }
  Index bottom(Index i) const { return ((i + 1) * height + rows - 1) / rows; }
  Index left(Index j) const { return length > 0 ? j * length : j * width / columns; }
  Index right(Index j) const {
    return length > 0 ? std::min((j + 1) * length, width) : ((j + 1) * width + columns - 1) / columns;
  }

  /// Return the number of tokens in cell (i, j), and in all cells; a token in two cells counts twice.
  Index size(Index i, Index j) const { return (bottom(i) - top(i)) * (right(j) - left(j)); }
  Index members() const {
    Index sum = 0;
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < columns; ++j) sum += size(i, j);
    return sum;
  }

  /// Calls f(index in the cell, token) for each token of cell (i, j), row by row.
  template <class F>
  void each(Index i, Index j, const F& f) const {
    const Index below = bottom(i), first = left(j), after = right(j);
    Index index = 0;
    for (Index y = top(i); y < below; ++y)
      for (Index x = first; x < after; ++x) f(index++, y * width + x);
  }
};

/// Computes out[cell] = the mean of the cell's tokens. x [height * width, d] and out [cells, d] must not overlap. Two
/// cells that hold equal tokens in the same order have bitwise equal means. Error: at most (tokens of the cell) eps
/// times the largest magnitude.
template <class T>
void pool_cells(const Cells& cells, MatrixFor<T> x, Matrix<T> out) {
  const Index d = out.columns;
  for (Index i = 0; i < cells.rows; ++i)
    for (Index j = 0; j < cells.columns; ++j) {
      T* const mean = out[i * cells.columns + j];
      cells.each(i, j, [&](Index place, Index token) {
        const T* const row = x[token];
        if (place == 0)
          std::copy_n(row, d, mean);
        else
          for (Index c = 0; c < d; ++c) mean[c] += row[c];
      });
      const T size(static_cast<double>(cells.size(i, j)));
      for (Index c = 0; c < d; ++c) mean[c] = mean[c] / size;
    }
}

/// Returns the counts for d channels.
inline Counts pool_cells_counts(const Cells& cells, Index d) {
  return {.add = (cells.members() - cells.count()) * d, .div = cells.count() * d};
}

/// Computes dx[token] += dout[cell] / (tokens of the cell) for each cell that contains the token. Divides dout in
/// place.
template <class T>
void pool_cells_backward(const Cells& cells, Matrix<std::type_identity_t<T>> dout, Matrix<T> dx) {
  const Index d = dx.columns;
  for (Index i = 0; i < cells.rows; ++i)
    for (Index j = 0; j < cells.columns; ++j) {
      T* const dmean = dout[i * cells.columns + j];
      const T size(static_cast<double>(cells.size(i, j)));
      for (Index c = 0; c < d; ++c) dmean[c] = dmean[c] / size;
      cells.each(i, j, [&](Index, Index token) {
        T* const row = dx[token];
        for (Index c = 0; c < d; ++c) row[c] += dmean[c];
      });
    }
}

/// Returns the counts for d channels.
inline Counts pool_cells_backward_counts(const Cells& cells, Index d) {
  return {.add = cells.members() * d, .div = cells.count() * d};
}

/// Copies the tokens x [height * width, d] of each cell, channel by channel, to a row of patches
/// [cells, d * tokens of a cell]. All cells must have the same size. A convolution whose windows are the cells is then
/// the product patches weight^T, weight [outputs, d, height, width of a cell]. Counts no operations.
template <class T>
void gather_cells(const Cells& cells, MatrixFor<T> x, Matrix<T> patches) {
  const Index size = cells.size(0, 0);
  for (Index i = 0; i < cells.rows; ++i)
    for (Index j = 0; j < cells.columns; ++j) {
      T* const patch = patches[i * cells.columns + j];
      cells.each(i, j, [&](Index place, Index token) {
        for (Index c = 0; c < x.columns; ++c) patch[c * size + place] = x(token, c);
      });
    }
}

/// Adds the elements of dpatches to the tokens that they were copied from.
template <class T>
void gather_cells_backward(const Cells& cells, MatrixFor<T> dpatches, Matrix<T> dx) {
  const Index size = cells.size(0, 0);
  for (Index i = 0; i < cells.rows; ++i)
    for (Index j = 0; j < cells.columns; ++j) {
      const T* const dpatch = dpatches[i * cells.columns + j];
      cells.each(i, j, [&](Index place, Index token) {
        for (Index c = 0; c < dx.columns; ++c) dx(token, c) += dpatch[c * size + place];
      });
    }
}

/// Returns the counts for d channels.
inline Counts gather_cells_backward_counts(const Cells& cells, Index d) { return {.add = cells.members() * d}; }

/// Kind and number of landmarks. The first `skip` tokens (a class token) are in no cell.
struct Landmarks {
  enum class Kind { mean, convolution, tokens } kind = Kind::mean;
  Index count = 0;  ///< m
  Index skip = 0;
  Cells cells{};  ///< for mean and convolution, one per landmark

  /// Returns the number of elements of a patch of d channels.
  Index taps(Index d) const { return d * cells.size(0, 0); }
};

/// Scratch memory for the patches of a convolution and their gradient.
template <class T>
struct LandmarkScratch {
  Matrix<T> patches, dpatches;

  LandmarkScratch(const Landmarks& l, Index d, MemoryLayout<T>& layout) {
    if (l.kind != Landmarks::Kind::convolution) return;
    patches = layout.matrix(l.count, l.taps(d)), dpatches = layout.matrix(l.count, l.taps(d));
  }
};

/// Returns the token index of landmark i: element i of `index` [m, 1], an index among all tokens, or skip + i if
/// `index` is empty.
template <class T>
Index landmark_token(const Landmarks& l, Matrix<const T> index, Index i) {
  return index ? static_cast<Index>(static_cast<double>(index(i, 0))) : l.skip + i;
}

/// Operands of sample_landmarks(): the tokens x [skip + tokens, d] and, depending on the kind, `tensor`: the weight
/// [d, taps] of the convolution, which has no bias; the indices of selected tokens; or empty.
template <class T>
struct LandmarkSampling {
  const Landmarks& landmarks;
  Matrix<const T> x, tensor;
  const LandmarkScratch<T>& scratch;
};

/// Computes the landmarks out [m, d].
template <class T>
void sample_landmarks(const LandmarkSampling<std::type_identity_t<T>>& of, Matrix<T> out) {
  const auto& [l, x, tensor, scratch] = of;
  const Matrix<const T> body = x.middle_rows(l.skip, x.rows - l.skip);
  switch (l.kind) {
    case Landmarks::Kind::mean:
      return pool_cells(l.cells, body, out);
    case Landmarks::Kind::convolution:
      gather_cells(l.cells, body, scratch.patches);
      return gemm(scratch.patches, transposed(tensor), out);
    case Landmarks::Kind::tokens:
      for (Index i = 0; i < l.count; ++i) std::copy_n(x[landmark_token(l, tensor, i)], out.columns, out[i]);
  }
}

/// Adds the gradients for dout [m, d] to dx and, for the convolution, to dtensor. May overwrite dout.
template <class T>
void sample_landmarks_backward(const LandmarkSampling<std::type_identity_t<T>>& of,
                               Matrix<std::type_identity_t<T>> dout, Matrix<std::type_identity_t<T>> dtensor,
                               Matrix<T> dx) {
  const auto& [l, x, tensor, scratch] = of;
  const Index tokens = x.rows - l.skip;
  const Matrix<T> dbody = dx.middle_rows(l.skip, tokens);
  switch (l.kind) {
    case Landmarks::Kind::mean:
      return pool_cells_backward(l.cells, dout, dbody);
    case Landmarks::Kind::convolution:
      gather_cells(l.cells, x.middle_rows(l.skip, tokens), scratch.patches);
      gemm(transposed(dout), scratch.patches, Update::accumulate, dtensor);
      gemm(dout, tensor, scratch.dpatches);
      return gather_cells_backward(l.cells, scratch.dpatches, dbody);
    case Landmarks::Kind::tokens:
      for (Index i = 0; i < l.count; ++i)
        for (Index c = 0; c < dx.columns; ++c) dx(landmark_token(l, tensor, i), c) += dout(i, c);
  }
}

/// Returns the cost of sample_landmarks() and sample_landmarks_backward().
inline Cost landmarks_cost(const Landmarks& l, Index d) {
  const Index m = l.count;
  Cost cost;
  switch (l.kind) {
    case Landmarks::Kind::mean:
      cost.forward = pool_cells_counts(l.cells, d);
      cost.backward = pool_cells_backward_counts(l.cells, d);
      break;
    case Landmarks::Kind::convolution:
      cost.forward = product_counts(m, d, l.taps(d));
      cost.backward = product_counts(d, l.taps(d), m) + product_counts(m, l.taps(d), d) + Counts{.add = d * l.taps(d)} +
                      gather_cells_backward_counts(l.cells, d);
      cost.forward_contractions = product_contractions(m, d, l.taps(d));
      cost.backward_contractions = 2 * cost.forward_contractions;
      break;
    case Landmarks::Kind::tokens:
      cost.backward = {.add = m * d};
  }
  return cost;
}

}  // namespace heed::kernels
