// Elementary operations that move elements: reshape, transpose, slice, join, stack, gather_rows. They count no
// arithmetic except sums of gradients of elements that are used several times.
#pragma once

#include "heed/ops/elementary/axes.h"
#include "heed/tape/tape.h"

namespace heed {

/// Returns the elements of x, in the same order, in a different shape with the same number of elements. One size may be
/// -1: it is inferred. dx += dy.
template <class T>
Var<T> reshape(Var<T> x, std::initializer_list<Index> sizes);
template <class T>
Var<T> reshape(Var<T> x, const Shape& shape);

/// Returns x with its axes permuted: axis i of y is axis axes[i] of x; `axes` lists all axes. dx += dy, with the
/// inverse permutation.
template <class T>
Var<T> transpose(Var<T> x, const Axes& axes);

/// Returns x with two axes exchanged.
template <class T>
Var<T> swap_axes(Var<T> x, int axis, int other);

/// Returns the elements with indices begin <= i < end on an axis. dx += dy at these elements.
template <class T>
Var<T> slice(Var<T> x, int axis, Index begin, Index end);

/// Returns tensors concatenated along an axis; their other sizes must be equal. The gradient of each is a slice of dy.
template <class T>
Var<T> join(std::span<const Var<T>> parts, int axis);
template <class T>
Var<T> join(std::initializer_list<Var<T>> parts, int axis) {
  return join(std::span(parts.begin(), parts.size()), axis);
}

/// Returns tensors of the same shape stacked along a new axis.
template <class T>
Var<T> stack(std::span<const Var<T>> parts, int axis = 0);
template <class T>
Var<T> stack(std::initializer_list<Var<T>> parts, int axis = 0) {
  return stack(std::span(parts.begin(), parts.size()), axis);
}

/// Returns y[i] = x[rows[i]] for indices of the first axis. dx[rows[i]] += dy[i].
template <class T>
Var<T> gather_rows(Var<T> x, std::span<const Index> rows);
template <class T>
Var<T> gather_rows(Var<T> x, std::initializer_list<Index> rows) {
  return gather_rows(x, std::span(rows.begin(), rows.size()));
}

}  // namespace heed
