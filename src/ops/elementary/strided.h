// Loops over tensors of different shapes or axis orders, shared by elementary operations.
#pragma once

#include "heed/ops/rows.h"

#include <algorithm>
#include <array>

namespace heed {

/// Distances between neighbours along each axis of a shape, in elements.
using Strides = std::array<Index, Shape::max_rank>;

/// Returns the non-negative index of an axis. Throws Error if x has no such axis.
inline std::size_t axis_of(const char* operation, const Shape& x, int axis) {
  require(axis >= -x.rank() && axis < x.rank(), "[{}] shape {} has no axis {}", operation, x, axis);
  return static_cast<std::size_t>(axis < 0 ? axis + x.rank() : axis);
}

/// Returns the strides of a row-major tensor.
inline Strides strides_of(const Shape& shape) {
  Strides strides{};
  Index stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; stride *= shape[axis--])
    strides[static_cast<std::size_t>(axis)] = stride;
  return strides;
}

/// Returns the strides of a tensor that is broadcast to `to`: 0 along the axes where it is repeated.
inline Strides broadcast_strides(const Shape& from, const Shape& to) {
  Strides strides{};
  const Strides own = strides_of(from);
  for (int axis = 0; axis < from.rank(); ++axis)
    if (from[axis] > 1)
      strides[static_cast<std::size_t>(axis + to.rank() - from.rank())] = own[static_cast<std::size_t>(axis)];
  return strides;
}

/// Returns the common shape of two tensors by NumPy's rules (ops/elementary/arithmetic.h). Throws Error with both
/// shapes if there is none.
inline Shape broadcast_shape(const char* operation, const Shape& a, const Shape& b) {
  Strides sizes{};
  const int rank = std::max(a.rank(), b.rank());
  for (int axis = -1; axis >= -rank; --axis) {
    const Index of_a = axis < -a.rank() ? 1 : a[axis], of_b = axis < -b.rank() ? 1 : b[axis];
    require(of_a == of_b || of_a == 1 || of_b == 1,
            "[{}] shapes {} and {} cannot be broadcast; aligned at the last axis, sizes must be equal or 1", operation,
            a, b);
    sizes.data()[rank + axis] = of_a == 1 ? of_b : of_a;
  }
  return {sizes.data(), rank};
}

/// A run of elements along one axis in a loop over K tensors.
template <std::size_t K>
struct Run {
  Index count = 0;
  std::array<Index, K> start{}, strides{};
  std::array<bool, K> first{};  ///< no previous run visited these elements of tensor i

  Index stride(std::size_t i) const { return strides[i]; }

  /// Returns the position of element j of the run in tensor i.
  Index at(std::size_t i, Index j) const { return start[i] + j * stride(i); }

  /// Returns true if element j of the run is the first visit to its element of tensor i.
  bool visits_first(std::size_t i, Index j) const { return first[i] && (j == 0 || stride(i) != 0); }
};

/// A run whose strides are all 1, so that the compiler vectorises loops over it.
template <std::size_t K>
struct ContiguousRun : Run<K> {
  static constexpr Index stride(std::size_t) { return 1; }
  Index at(std::size_t i, Index j) const { return this->start[i] + j; }
};

/// A loop over the elements of a shape that visits K tensors, each with its own strides. Elements are visited in
/// row-major order, in runs along the last axis.
template <std::size_t K>
class StridedLoop {
 public:
  StridedLoop(const Shape& shape, const std::array<Strides, K>& strides) : elements_(shape.elements()) {
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == 1) continue;
      Axis next{shape[axis], {}};
      for (std::size_t i = 0; i < K; ++i) next.stride[i] = strides[i][static_cast<std::size_t>(axis)];
      if (rank_ > 0 && continues(axes_[rank_ - 1], next)) next.size *= axes_[--rank_].size;
      axes_[rank_++] = next;
    }
    if (rank_ == 0) axes_[rank_++] = {1, {}};
  }

  Index elements() const { return elements_; }

  /// Calls f(run) for the runs of the elements [begin, end); run is a Run or a ContiguousRun.
  template <class F>
  void for_runs(Index begin, Index end, const F& f) const {
    const Axis& last = axes_[rank_ - 1];
    ContiguousRun<K> run;
    run.strides = last.stride;
    const bool contiguous =
        std::all_of(last.stride.begin(), last.stride.end(), [](Index stride) { return stride == 1; });
    for (Index at = begin; at < end; at += run.count) {
      run.start.fill(0);
      run.first.fill(true);
      Index rest = at;
      for (std::size_t axis = rank_; axis-- > 0; rest /= axes_[axis].size) {
        const Index index = rest % axes_[axis].size;
        for (std::size_t i = 0; i < K; ++i) {
          run.start[i] += index * axes_[axis].stride[i];
          run.first[i] = run.first[i] && (index == 0 || axes_[axis].stride[i] != 0);
        }
      }
      run.count = std::min(end - at, last.size - at % last.size);
      if (contiguous)
        f(run);
      else
        f(static_cast<const Run<K>&>(run));
    }
  }

  /// Calls f(run) for all runs, divided among threads. Runs must not write to the same elements.
  template <class F>
  void for_all_runs(const F& f) const {
    for_row_ranges(elements_, 1, [&](Index begin, Index end) { for_runs(begin, end, f); });
  }

 private:
  struct Axis {
    Index size = 1;
    std::array<Index, K> stride{};
  };

  /// Returns true if a step along `outer` equals a step past the end of `inner` in every tensor.
  static bool continues(const Axis& outer, const Axis& inner) {
    for (std::size_t i = 0; i < K; ++i)
      if (outer.stride[i] != inner.size * inner.stride[i]) return false;
    return true;
  }

  Index elements_;
  std::array<Axis, Shape::max_rank> axes_{};
  std::size_t rank_ = 0;
};

/// Returns the additions for an operand that is used twice, as in x * x: its two gradients are added.
template <class T>
Counts repeated_counts(Tape<T>& tape, Var<T> a, Var<T> b) {
  return {.add = a == b && tape.wanted(a) ? a.size() : 0};
}

/// Returns term(begin) + ... + term(end - 1) by pairwise summation: n terms take n - 1 additions, with an error that
/// grows with log n.
template <class T, class Term>
T pairwise_sum(Index begin, Index end, const Term& term) {
  constexpr Index few = 16;
  if (end - begin > few) {
    const Index middle = begin + (end - begin) / 2;
    return pairwise_sum<T>(begin, middle, term) + pairwise_sum<T>(middle, end, term);
  }
  T sum = term(begin);
  for (Index i = begin + 1; i < end; ++i) sum += term(i);
  return sum;
}

/// Adds term(run, j), for each element j of each run, to the gradient of the loop's tensor `which`, whose elements may
/// be visited several times. Update::assign assigns the first term of each element; N terms for n elements then take
/// N - n additions.
template <class T, std::size_t K, class Term>
void add_terms(const StridedLoop<K>& loop, std::size_t which, Index size, Update update, T* gradient,
               const Term& term) {
  if (loop.elements() == 0 && update == Update::assign) std::fill(gradient, gradient + size, T(0));
  const auto add_run = [&](const auto& run) {
    const Update first = run.first[which] ? update : Update::accumulate;
    if (run.stride(which) == 0 && run.count > 1)
      write(first, gradient[run.start[which]], pairwise_sum<T>(0, run.count, [&](Index j) { return term(run, j); }));
    else
      for (Index j = 0; j < run.count; ++j) write(first, gradient[run.at(which, j)], term(run, j));
  };
  if (size == loop.elements())
    loop.for_all_runs(add_run);
  else
    loop.for_runs(0, loop.elements(), add_run);
}

/// Returns the number of additions in add_terms() with Update::assign, for `terms` terms and a gradient of `size`.
inline Counts broadcast_sum_counts(Index terms, Index size) { return {.add = std::max<Index>(terms - size, 0)}; }

}  // namespace heed
