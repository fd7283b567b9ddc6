// Part of SOFT (soft.cpp): the convolution of v in the authors' code.
#pragma once

#include "heed/base/memory_layout.h"
#include "heed/kernels/grids/depthwise.h"

namespace heed {

/// The values and a filter [kernel, kernel], or their gradients.
template <class T>
struct VconvTensors {
  Matrix<T> v;
  T* filter;
};
template <class T>
struct VconvScratch;

/// The convolution out += v * filter, with a filter that all channels of a head share, on the grid after `skip` tokens.
struct Vconv {
  Index kernel;  ///< 0: none
  Index skip;
  kernels::Windows windows;

  template <class T>
  void add(MatrixFor<T> v, const T* filter, const VconvScratch<T>& scratch, Matrix<T> out) const {
    spread(filter, scratch.W);
    kernels::depthwise(windows, grid(v), scratch.W, nullptr, Update::accumulate, grid(out));
  }

  /// Returns out without the contribution of add().
  template <class T>
  Matrix<const T> without(MatrixFor<T> v, const T* filter, const VconvScratch<T>& scratch, Matrix<const T> out) const {
    for (Index r = 0; r < out.rows; ++r)
      for (Index c = 0; c < out.columns; ++c) scratch.before(r, c) = -out(r, c);
    add(v, filter, scratch, scratch.before);
    for (Index i = 0; i < scratch.before.size(); ++i) scratch.before.data[i] = -scratch.before.data[i];
    return scratch.before;
  }

  /// Adds to the gradients of v and of the filter, whose weights are shared by all channels.
  template <class T>
  void add_backward(const VconvTensors<const T>& of, MatrixFor<T> dout, const VconvScratch<T>& scratch,
                    const VconvTensors<T>& to) const {
    spread(of.filter, scratch.W);
    kernels::depthwise_backward(windows, grid(dout), scratch.W, Update::accumulate, grid(to.v));
    kernels::depthwise_weight_gradient(windows, grid(of.v), grid(dout), Update::assign, scratch.W);
    for (Index tap = 0; tap < scratch.W.rows; ++tap)
      for (Index c = 0; c < scratch.W.columns; ++c) to.filter[tap] += scratch.W(tap, c);
  }

  Cost cost(bool takes_away) const {
    Cost cost;
    const Counts added{.add = windows.places() * windows.channels};
    cost.forward = kernels::depthwise_counts(windows, false) + added;
    cost.backward = kernels::depthwise_backward_counts(windows) + kernels::depthwise_weight_gradient_counts(windows) +
                    Counts{.add = windows.taps()};
    if (takes_away) cost.backward += cost.forward;
    cost.forward_contractions = product_contractions(windows.places(), windows.channels, kernel * kernel);
    cost.backward_contractions = 2 * cost.forward_contractions;
    return cost;
  }

 private:
  template <class T>
  Matrix<T> grid(Matrix<T> tokens) const {
    return tokens.middle_rows(skip, tokens.rows - skip);
  }

  template <class T>
  void spread(const T* filter, Matrix<T> W) const {
    for (Index tap = 0; tap < W.rows; ++tap) fill(W.middle_rows(tap, 1), filter[tap]);
  }
};

/// W: the filter of each channel, or its gradient; before: out without the convolution.
template <class T>
struct VconvScratch {
  Matrix<T> W, before;

  VconvScratch(const Vconv& of, MemoryLayout<T>& layout) {
    if (of.kernel == 0) return;
    W = layout.matrix(of.kernel * of.kernel, of.windows.channels);
    before = layout.matrix(of.skip + of.windows.height * of.windows.width, of.windows.channels);
  }
};

}  // namespace heed
