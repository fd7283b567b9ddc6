// Landmarks of tokens: means over the cells of a grid, a convolution whose windows are the cells, or tokens themselves.
#pragma once

#include "heed/cost/counts.h"
#include "heed/kernels/gemm_by_stride.h"
#include "heed/base/tensor.h"

namespace heed::kernels {

/// A grid of tokens, height x width in row-major order, cut into rows x columns cells. Cell row i covers the token rows
/// from floor(i height / rows) up to, not including, ceil((i + 1) height / rows); columns likewise. Where `rows`
/// divides `height` these are equal cells side by side, otherwise neighbours may share a row. A sequence has height 1.
struct Cells {
  Index height = 1, width = 0, rows = 1, columns = 0;

  Index count() const { return rows * columns; }
  Index top(Index i) const { return i * height / rows; }
  Index bottom(Index i) const { return ((i + 1) * height + rows - 1) / rows; }
  Index left(Index j) const { return j * width / columns; }
  Index right(Index j) const { return ((j + 1) * width + columns - 1) / columns; }

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
    Index place = 0;
    for (Index y = top(i); y < bottom(i); ++y)
      for (Index x = left(j); x < right(j); ++x) f(place++, y * width + x);
  }
};

/// out[cell] = mean of the cell's tokens. x [height * width, d] with rows x_stride apart, out [cells, d]; no overlap.
/// Cells of as many equal tokens have equal means, to the last bit. Error: at most (tokens of the cell) eps of the
/// largest magnitude. Counts: (members - cells) d add, cells d div.
template <class T>
void pool_cells(const Cells& cells, Index d, const T* x, Index x_stride, T* out) {
  for (Index i = 0; i < cells.rows; ++i)
    for (Index j = 0; j < cells.columns; ++j, out += d) {
      cells.each(i, j, [&](Index place, Index token) {
        const Update update = place == 0 ? Update::assign : Update::accumulate;
        for (Index c = 0; c < d; ++c) write(update, out[c], x[token * x_stride + c]);
      });
      const T size(static_cast<double>(cells.size(i, j)));
      for (Index c = 0; c < d; ++c) out[c] = out[c] / size;
    }
}

/// dx[token] += dout[cell] / (tokens of the cell) for each cell that the token is in. Divides dout in place.
/// Counts: cells d div, members d add.
template <class T>
void pool_cells_backward(const Cells& cells, Index d, T* dout, T* dx, Index dx_stride) {
  for (Index i = 0; i < cells.rows; ++i)
    for (Index j = 0; j < cells.columns; ++j, dout += d) {
      const T size(static_cast<double>(cells.size(i, j)));
      for (Index c = 0; c < d; ++c) dout[c] = dout[c] / size;
      cells.each(i, j, [&](Index, Index token) {
        for (Index c = 0; c < d; ++c) dx[token * dx_stride + c] += dout[c];
      });
    }
}

/// patches[cell] = the cell's tokens, channel by channel: [cells, d, tokens of a cell], for cells of equal size. A
/// convolution whose windows are the cells is the product patches weight^T, weight [outputs, d, height, width of a
/// cell]. Counts nothing.
template <class T>
void gather_cells(const Cells& cells, Index d, const T* x, Index x_stride, T* patches) {
  const Index size = cells.size(0, 0);
  for (Index i = 0; i < cells.rows; ++i)
    for (Index j = 0; j < cells.columns; ++j, patches += d * size)
      cells.each(i, j, [&](Index place, Index token) {
        for (Index c = 0; c < d; ++c) patches[c * size + place] = x[token * x_stride + c];
      });
}

/// dx[token] += dpatches at the token's places. Counts: members d add.
template <class T>
void gather_cells_backward(const Cells& cells, Index d, const T* dpatches, T* dx, Index dx_stride) {
  const Index size = cells.size(0, 0);
  for (Index i = 0; i < cells.rows; ++i)
    for (Index j = 0; j < cells.columns; ++j, dpatches += d * size)
      cells.each(i, j, [&](Index place, Index token) {
        for (Index c = 0; c < d; ++c) dx[token * dx_stride + c] += dpatches[c * size + place];
      });
}

/// Where landmarks come from. The first `skip` tokens (a class token) are in no cell.
struct Landmarks {
  enum class Kind { mean, convolution, tokens } kind = Kind::mean;
  Index count = 0;  ///< m
  Index skip = 0;
  Cells cells{};  ///< of mean and convolution: as many as landmarks

  /// Numbers of a patch of d channels.
  Index taps(Index d) const { return d * cells.size(0, 0); }
  Index forward_scratch(Index d) const { return kind == Kind::convolution ? count * taps(d) : 0; }
  Index backward_scratch(Index d) const { return 2 * forward_scratch(d); }
};

/// Token i of those that are landmarks: `index` [m] counts all tokens; nullptr means the first ones.
template <class T>
Index landmark_token(const Landmarks& l, const T* index, Index i) {
  return index ? static_cast<Index>(static_cast<double>(index[i])) : l.skip + i;
}

/// out [m, d] = the landmarks of the tokens x [skip + tokens, d], rows x_stride apart. `tensor` is what the kind needs:
/// the weight [d, d, cell height, cell width] of the convolution, which has no bias; or the index of the tokens.
/// scratch [forward_scratch(d)]. Counts: landmarks_cost().
template <class T>
void sample_landmarks(const Landmarks& l, Index d, const T* x, Index x_stride, const T* tensor, T* out, T* scratch) {
  const T* const body = x + l.skip * x_stride;
  switch (l.kind) {
    case Landmarks::Kind::mean:
      pool_cells(l.cells, d, body, x_stride, out);
      break;
    case Landmarks::Kind::convolution:
      gather_cells(l.cells, d, body, x_stride, scratch);
      gemm(Transpose::no, Transpose::yes, l.count, d, l.taps(d), scratch, l.taps(d), tensor, l.taps(d), Update::assign,
           out, d);
      break;
    case Landmarks::Kind::tokens:
      for (Index i = 0; i < l.count; ++i) {
        const T* const token = x + landmark_token(l, tensor, i) * x_stride;
        std::copy(token, token + d, out + i * d);
      }
  }
}

/// dx += and, for the convolution, dtensor += the gradients for dout [m, d], which is overwritten.
/// scratch [backward_scratch(d)]. Counts: landmarks_cost().
template <class T>
void sample_landmarks_backward(const Landmarks& l, Index d, const T* x, Index x_stride, const T* tensor, T* dout, T* dx,
                               Index dx_stride, T* dtensor, T* scratch) {
  T* const dbody = dx + l.skip * dx_stride;
  const Index taps = l.kind == Landmarks::Kind::tokens ? 0 : l.taps(d);
  switch (l.kind) {
    case Landmarks::Kind::mean:
      pool_cells_backward(l.cells, d, dout, dbody, dx_stride);
      break;
    case Landmarks::Kind::convolution: {
      T *const patches = scratch, *const dpatches = patches + l.count * taps;
      gather_cells(l.cells, d, x + l.skip * x_stride, x_stride, patches);
      gemm(Transpose::yes, Transpose::no, d, taps, l.count, dout, d, patches, taps, Update::accumulate, dtensor, taps);
      gemm(Transpose::no, Transpose::no, l.count, taps, d, dout, d, tensor, taps, Update::assign, dpatches, taps);
      gather_cells_backward(l.cells, d, dpatches, dbody, dx_stride);
      break;
    }
    case Landmarks::Kind::tokens:
      for (Index i = 0; i < l.count; ++i)
        for (Index c = 0; c < d; ++c) dx[landmark_token(l, tensor, i) * dx_stride + c] += dout[i * d + c];
  }
}

inline Cost landmarks_cost(const Landmarks& l, Index d) {
  const Index m = l.count, members = l.cells.members();
  Cost cost;
  switch (l.kind) {
    case Landmarks::Kind::mean:
      cost.forward = {.add = (members - m) * d, .div = m * d};
      cost.backward = {.add = members * d, .div = m * d};
      break;
    case Landmarks::Kind::convolution:
      cost.forward = product_counts(m, d, l.taps(d));
      cost.backward = product_counts(d, l.taps(d), m) + product_counts(m, l.taps(d), d) +
                      Counts{.add = d * l.taps(d) + members * d};
      cost.forward_contractions = product_contractions(m, d, l.taps(d));
      cost.backward_contractions = 2 * cost.forward_contractions;
      break;
    case Landmarks::Kind::tokens:
      cost.backward = {.add = m * d};
  }
  return cost;
}

}  // namespace heed::kernels
