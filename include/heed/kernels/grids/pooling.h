// Landmarks of tokens: means over the cells of a grid, a convolution whose windows are the cells, or tokens themselves.
#pragma once

#include "heed/base/carver.h"
#include "heed/kernels/products/gemm.h"

#include <algorithm>

namespace heed::kernels {

/// A grid of tokens, height x width in row-major order, cut into rows x columns cells. Cell row i covers the token rows
/// from floor(i height / rows) up to, not including, ceil((i + 1) height / rows); columns likewise. Where `rows`
/// divides `height` these are equal cells side by side, otherwise neighbours may share a row. A sequence has height 1;
/// it can also be cut into cells of `length` consecutive tokens, of which the last has what is left.
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

  /// Tokens of cell (i, j), and of all cells together; a token that is in two counts twice.
  Index size(Index i, Index j) const { return (bottom(i) - top(i)) * (right(j) - left(j)); }
  Index members() const {
    Index sum = 0;
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < columns; ++j) sum += size(i, j);
    return sum;
  }

  /// Calls f(place, token) for each token of cell (i, j): place counts them from 0, row by row.
  template <class F>
  void each(Index i, Index j, const F& f) const {
    const Index below = bottom(i), first = left(j), after = right(j);
    Index place = 0;
    for (Index y = top(i); y < below; ++y)
      for (Index x = first; x < after; ++x) f(place++, y * width + x);
  }
};

/// out[cell] = mean of the cell's tokens. x [height * width, d], out [cells, d]; no overlap. Cells of as many equal
/// tokens have equal means, to the last bit. Error: at most (tokens of the cell) eps of the largest magnitude.
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

inline Counts pool_cells_counts(const Cells& cells, Index d) {
  return {.add = (cells.members() - cells.count()) * d, .div = cells.count() * d};
}

/// dx[token] += dout[cell] / (tokens of the cell) for each cell that the token is in. Divides dout in place.
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

inline Counts pool_cells_backward_counts(const Cells& cells, Index d) {
  return {.add = cells.members() * d, .div = cells.count() * d};
}

/// patches[cell] = the cell's tokens x [height * width, d], channel by channel: a row of d times the tokens of a cell,
/// for cells of equal size. A convolution whose windows are the cells is the product patches weight^T, weight [outputs,
/// d, height, width of a cell]. Counts nothing.
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

/// dx[token] += dpatches at the token's places.
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

inline Counts gather_cells_backward_counts(const Cells& cells, Index d) { return {.add = cells.members() * d}; }

/// Where landmarks come from. The first `skip` tokens (a class token) are in no cell.
struct Landmarks {
  enum class Kind { mean, convolution, tokens } kind = Kind::mean;
  Index count = 0;  ///< m
  Index skip = 0;
  Cells cells{};  ///< of mean and convolution: as many as landmarks

  /// Numbers of a patch of d channels.
  Index taps(Index d) const { return d * cells.size(0, 0); }
};

/// Memory for the patches of a convolution and their gradient.
template <class T>
struct LandmarkScratch {
  Matrix<T> patches, dpatches;

  LandmarkScratch(const Landmarks& l, Index d, Carver<T>& carve) {
    if (l.kind != Landmarks::Kind::convolution) return;
    patches = carve.matrix(l.count, l.taps(d)), dpatches = carve.matrix(l.count, l.taps(d));
  }
};

/// Token i of those that are landmarks: `index` [m, 1] counts all tokens; where it is left out they are the first ones.
template <class T>
Index landmark_token(const Landmarks& l, Matrix<const T> index, Index i) {
  return index ? static_cast<Index>(static_cast<double>(index(i, 0))) : l.skip + i;
}

/// What landmarks are made from: the tokens x [skip + tokens, d] and the `tensor` that the kind needs: the weight
/// [d, taps] of the convolution, which has no bias; or the index of the tokens; or none.
template <class T>
struct LandmarkSampling {
  const Landmarks& landmarks;
  Matrix<const T> x, tensor;
  const LandmarkScratch<T>& scratch;
};

/// out [m, d] = the landmarks.
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

/// dx += and, for the convolution, dtensor += the gradients for dout [m, d], which is overwritten.
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

/// Of sample_landmarks() and its gradient.
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
