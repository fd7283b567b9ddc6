#include "heed/ops/elementary/shapes.h"

#include "strided.h"

#include "heed/cost/for_each_number.h"

#include <numeric>
#include <vector>

namespace heed {

namespace {

Strides sizes_of(const Shape& x) {
  Strides sizes{};
  std::copy(x.begin(), x.end(), sizes.begin());
  return sizes;
}

Shape with_size(const Shape& x, std::size_t axis, Index size) {
  Strides sizes = sizes_of(x);
  sizes[axis] = size;
  return {sizes.data(), x.rank()};
}

/// Writes the elements of `from` to those of `to`, by assignment or addition, in the order of a loop over (from, to).
template <class T>
void copy_elements(const StridedLoop<2>& loop, const T* from, Update update, T* to) {
  loop.for_all_runs([=](const auto& run) {
    for (Index j = 0; j < run.count; ++j) write(update, to[run.at(1, j)], from[run.at(0, j)]);
  });
}

}  // namespace

template <class T>
Var<T> reshape(Var<T> x, const Shape& shape) {
  Tape<T>& tape = tape_of("reshape", x);
  require(shape.elements() == x.size(), "[reshape] shape {} has {} elements, {} has {}; they must match", x.shape(),
          x.size(), shape, shape.elements());
  return tape.record(
      {"reshape", {}}, shape, {x}, [=](T* y) { std::copy_n(x.data(), x.size(), y); },
      [=](const Adjoint<T>& dy) { dy.give_to(x); });
}

template <class T>
Var<T> reshape(Var<T> x, std::initializer_list<Index> sizes) {
  require(sizes.size() <= Shape::max_rank, "[reshape] {} axes; at most {} are supported", sizes.size(),
          Shape::max_rank);
  require(std::count(sizes.begin(), sizes.end(), -1) <= 1, "[reshape] -1 is given twice; one size can be inferred");
  Strides all{};
  std::copy(sizes.begin(), sizes.end(), all.begin());
  const Index known = std::accumulate(sizes.begin(), sizes.end(), Index{1},
                                      [](Index product, Index size) { return size == -1 ? product : product * size; });
  for (Index& size : all)
    if (size == -1) size = known == 0 ? 0 : x.size() / known;
  return reshape(x, Shape(all.data(), static_cast<int>(sizes.size())));
}

template <class T>
Var<T> transpose(Var<T> x, const Axes& axes) {
  Tape<T>& tape = tape_of("transpose", x);
  const Shape from = x.shape();
  const Strides strides = strides_of(from);
  require(static_cast<int>(axes.size()) == from.rank(), "[transpose] {} axes are given for shape {}; expected {}",
          axes.size(), from, from.rank());
  Strides sizes{}, moved{};  // sizes of y, and strides of x in the order of y's axes
  std::array<bool, Shape::max_rank> seen{};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t source = axis_of("transpose", from, axes[i]);
    require(!seen[source], "[transpose] axis {} is given twice", axes[i]);
    seen[source] = true;
    sizes[i] = from[static_cast<int>(source)], moved[i] = strides[source];
  }
  const Shape shape(sizes.data(), from.rank());
  const StridedLoop<2> forward(shape, {moved, strides_of(shape)}), back(shape, {strides_of(shape), moved});
  return tape.record(
      {"transpose", {}}, shape, {x}, [=](T* y) { copy_elements(forward, x.data(), Update::assign, y); },
      [=, &tape](const Adjoint<T>& dy) {
        if (const auto dx = tape.target(x)) copy_elements(back, dy.data(), dx.update, dx.data);
      });
}

template <class T>
Var<T> swap_axes(Var<T> x, int axis, int other) {
  const Shape& from = x.shape();
  std::array<int, Shape::max_rank> axes{};
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axis_of("swap_axes", from, axis)], axes[axis_of("swap_axes", from, other)]);
  return transpose(x, Axes(std::span(axes.data(), static_cast<std::size_t>(from.rank()))));
}

template <class T>
Var<T> slice(Var<T> x, int axis, Index begin, Index end) {
  Tape<T>& tape = tape_of("slice", x);
  const Shape& from = x.shape();
  const std::size_t at = axis_of("slice", from, axis);
  require(0 <= begin && begin <= end && end <= from[axis],
          "[slice] indices {} to {} of axis {}; the axis has {} elements", begin, end, axis, from[axis]);
  const Shape shape = with_size(from, at, end - begin);
  const Index offset = begin * strides_of(from)[at];
  // Loop over the part [begin, end) of x and over y.
  const StridedLoop<2> forward(shape, {strides_of(from), strides_of(shape)});
  const StridedLoop<2> back(shape, {strides_of(shape), strides_of(from)});
  Cost cost;
  cost.joins = shape.elements();
  return tape.record(
      {"slice", cost}, shape, {x}, [=](T* y) { copy_elements(forward, x.data() + offset, Update::assign, y); },
      [=, &tape](const Adjoint<T>& dy) {
        const auto dx = tape.target(x);
        if (!dx) return;
        if (dx.update == Update::assign) std::fill_n(dx.data, x.size(), T(0));
        copy_elements(back, dy.data(), dx.update, dx.data + offset);
      });
}

template <class T>
Var<T> join(std::span<const Var<T>> parts, int axis) {
  require(!parts.empty(), "[join] no tensors are given; at least one is needed");
  Tape<T>& tape = parts[0].tape();
  const Shape& first = parts[0].shape();
  const std::size_t at = axis_of("join", first, axis);
  Index size = 0;
  for (const Var<T>& part : parts) {
    tape_of("join", parts[0], part);
    require(part.shape().rank() == first.rank() && with_size(part.shape(), at, first[axis]) == first,
            "[join] shapes {} and {} differ in an axis other than {}", first, part.shape(), axis);
    size += part.shape()[axis];
  }
  const Shape shape = with_size(first, at, size);
  const std::span<Var<T>> all = tape.template list<Var<T>>(parts.size());
  std::copy(parts.begin(), parts.end(), all.begin());
  Cost cost;
  for (auto part = all.begin(); part != all.end(); ++part)
    if (std::find(all.begin(), part, *part) != part) cost.backward += repeated_counts(tape, *part, *part);
  // Calls f(part, strides of y, offset of the part in y) for each part.
  const auto for_parts = [=](const auto& f) {
    const Strides strides = strides_of(shape);
    Index offset = 0;
    for (const Var<T>& part : all) {
      f(part, strides, offset);
      offset += part.shape()[static_cast<int>(at)] * strides[at];
    }
  };
  return tape.record(
      {"join", cost}, shape, parts,
      [=](T* y) {
        for_parts([=](Var<T> part, const Strides& strides, Index offset) {
          copy_elements(StridedLoop<2>(part.shape(), {strides_of(part.shape()), strides}), part.data(), Update::assign,
                        y + offset);
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        for_parts([&](Var<T> part, const Strides& strides, Index offset) {
          if (const auto d = tape.target(part))
            copy_elements(StridedLoop<2>(part.shape(), {strides, strides_of(part.shape())}), dy.data() + offset,
                          d.update, d.data);
        });
      });
}

template <class T>
Var<T> stack(std::span<const Var<T>> parts, int axis) {
  require(!parts.empty(), "[stack] no tensors are given; at least one is needed");
  const Shape one = parts[0].shape();
  require(axis >= -one.rank() - 1 && axis <= one.rank(), "[stack] tensors of shape {} cannot be stacked along axis {}",
          one, axis);
  require(one.rank() < Shape::max_rank, "[stack] tensors of shape {} already have {} axes, the maximum", one,
          Shape::max_rank);
  const int at = axis < 0 ? axis + one.rank() + 1 : axis;
  std::array<Index, Shape::max_rank> sizes{};
  std::copy(one.begin(), one.begin() + at, sizes.begin());
  sizes[static_cast<std::size_t>(at)] = 1;
  std::copy(one.begin() + at, one.end(), sizes.begin() + at + 1);
  const Shape wider(sizes.data(), one.rank() + 1);
  std::vector<Var<T>> all;
  for (const Var<T>& part : parts) {
    require(part.shape() == one, "[stack] shapes {} and {} differ", one, part.shape());
    all.push_back(reshape(part, wider));
  }
  return join(std::span<const Var<T>>(all), at);
}

template <class T>
Var<T> gather_rows(Var<T> x, std::span<const Index> rows) {
  Tape<T>& tape = tape_of("gather_rows", x);
  const Shape& from = x.shape();
  require(from.rank() >= 1, "[gather_rows] a scalar has no rows");
  for (const Index row : rows)
    require(row >= 0 && row < from[0], "[gather_rows] index {}; expected 0 to {} for shape {}", row, from[0] - 1, from);
  const Shape shape = with_size(from, 0, static_cast<Index>(rows.size()));
  const Index width = from[0] == 0 ? 0 : x.size() / from[0];
  const std::span<Index> all = tape.template list<Index>(rows.size());
  std::copy(rows.begin(), rows.end(), all.begin());
  Cost cost;
  cost.backward = {.add = shape.elements()};
  cost.joins = 0;  // rows are added to dx, which is zeroed first if unassigned
  return tape.record(
      {"gather_rows", cost}, shape, {x},
      [=](T* y) {
        for (std::size_t i = 0; i < all.size(); ++i)
          std::copy_n(x.data() + all[i] * width, width, y + static_cast<Index>(i) * width);
      },
      [=, &tape](const Adjoint<T>& dy) {
        const auto dx = tape.target(x);
        if (!dx) return;
        if (dx.update == Update::assign) std::fill_n(dx.data, x.size(), T(0));
        for (std::size_t i = 0; i < all.size(); ++i)
          write_all(Update::accumulate, width, dy.data() + static_cast<Index>(i) * width, dx.data + all[i] * width);
      });
}

#define INSTANTIATE(T)                                           \
  template Var<T> reshape(Var<T>, std::initializer_list<Index>); \
  template Var<T> reshape(Var<T>, const Shape&);                 \
  template Var<T> transpose(Var<T>, const Axes&);                \
  template Var<T> swap_axes(Var<T>, int, int);                   \
  template Var<T> slice(Var<T>, int, Index, Index);              \
  template Var<T> join(std::span<const Var<T>>, int);            \
  template Var<T> stack(std::span<const Var<T>>, int);           \
  template Var<T> gather_rows(Var<T>, std::span<const Index>);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
