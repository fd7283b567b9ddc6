#include "heed/ops/elementary/reductions.h"

#include "strided.h"

#include "heed/cost/for_each_number.h"

#include <cmath>

namespace heed {

namespace {

/// The reduction of a shape over axes.
struct Reduction {
  Shape kept, result;   ///< kept: reduced axes have size 1; result: the shape of y
  StridedLoop<2> loop;  ///< over x and y

  Reduction(const char* operation, const Shape& x, const Axes& axes, bool keep_axes)
      : Reduction(x, reduced_axes(operation, x, axes), keep_axes) {}

  /// Returns the number of elements of x per element of y.
  Index terms() const { return loop.elements() / std::max<Index>(kept.elements(), 1); }

  /// Throws Error if a result would be computed from no elements.
  void require_terms(const char* operation, const Shape& x) const {
    require(terms() > 0 || result.elements() == 0,
            "[{}] shape {} has no elements along these axes; at least one is needed", operation, x);
  }

 private:
  using Flags = std::array<bool, Shape::max_rank>;

  Reduction(const Shape& x, const Flags& reduced, bool keep_axes)
      : kept(without(x, reduced, true)),
        result(keep_axes ? kept : without(x, reduced, false)),
        loop(x, {strides_of(x), broadcast_strides(kept, x)}) {}

  static Flags reduced_axes(const char* operation, const Shape& x, const Axes& axes) {
    Flags reduced{};
    if (axes.size() == 0) reduced.fill(true);
    for (const int axis : axes) {
      bool& at = reduced[axis_of(operation, x, axis)];
      require(!at, "[{}] axis {} is given twice", operation, axis);
      at = true;
    }
    return reduced;
  }

  static Shape without(const Shape& x, const Flags& reduced, bool keep) {
    std::array<Index, Shape::max_rank> sizes{};
    int rank = 0;
    for (int axis = 0; axis < x.rank(); ++axis)
      if (const bool drop = reduced[static_cast<std::size_t>(axis)]; !drop || keep)
        sizes[static_cast<std::size_t>(rank++)] = drop ? 1 : x[axis];
    return {sizes.data(), rank};
  }
};

/// Records sum(), or with `averaged` mean().
template <class T>
Var<T> add_up(const char* operation, Var<T> x, const Reduction& reduction, bool averaged) {
  Tape<T>& tape = tape_of(operation, x);
  const StridedLoop<2>& loop = reduction.loop;
  const Index count = reduction.result.elements();
  const T n(static_cast<double>(reduction.terms()));
  Cost cost;
  cost.forward = broadcast_sum_counts(x.size(), count) + Counts{.div = averaged ? count : 0};
  cost.backward = {.div = averaged ? x.size() : 0};
  return tape.record(
      {operation, cost}, reduction.result, {x},
      [=](T* y) {
        add_terms(loop, 1, count, Update::assign, y,
                  [px = x.data()](const auto& run, Index j) { return px[run.at(0, j)]; });
        for (Index i = 0; averaged && i < count; ++i) y[i] /= n;
      },
      [=, &tape](const Adjoint<T>& dy) {
        if (const auto dx = tape.target(x))
          add_terms(loop, 0, x.size(), dx.update, dx.data, [=, pdy = dy.data()](const auto& run, Index j) {
            return averaged ? pdy[run.at(1, j)] / n : pdy[run.at(1, j)];
          });
      });
}

}  // namespace

template <class T>
Var<T> sum(Var<T> x, const Axes& axes, bool keep_axes) {
  return add_up("sum", x, Reduction("sum", x.shape(), axes, keep_axes), false);
}

template <class T>
Var<T> mean(Var<T> x, const Axes& axes, bool keep_axes) {
  const Reduction reduction("mean", x.shape(), axes, keep_axes);
  reduction.require_terms("mean", x.shape());
  return add_up("mean", x, reduction, true);
}

template <class T>
Var<T> max(Var<T> x, const Axes& axes, bool keep_axes) {
  Tape<T>& tape = tape_of("max", x);
  const Reduction reduction("max", x.shape(), axes, keep_axes);
  reduction.require_terms("max", x.shape());
  const StridedLoop<2>& loop = reduction.loop;
  const Index n = x.size(), count = reduction.result.elements();
  Cost cost;
  cost.forward = {.cmp = n - count};
  cost.backward = {.div = count, .cmp = 2 * n};
  return tape.record(
      {"max", cost}, reduction.result, {x},
      [=](T* y) {
        loop.for_runs(0, n, [=, px = x.data()](const auto& run) {
          for (Index j = 0; j < run.count; ++j) {
            const T value = px[run.at(0, j)];
            T& largest = y[run.at(1, j)];
            if (run.visits_first(1, j) || (!(value <= largest) && !std::isnan(static_cast<double>(largest))))
              largest = value;
          }
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const auto dx = tape.target(x);
        if (!dx) return;
        // y is the maximum, so an element that is not less than y equals y. If y is NaN, all elements count as equal.
        const auto equal = [px = x.data(), py = dy.value()](const auto& run, Index j) {
          return !(px[run.at(0, j)] < py[run.at(1, j)]);
        };
        const typename Tape<T>::Scratch share(tape, count);
        const std::span<Index> ties = tape.template list<Index>(static_cast<std::size_t>(count));
        loop.for_runs(0, n, [=](const auto& run) {
          for (Index j = 0; j < run.count; ++j) ties[static_cast<std::size_t>(run.at(1, j))] += equal(run, j);
        });
        for (Index i = 0; i < count; ++i)
          share.data()[i] = dy.data()[i] / T(static_cast<double>(ties[static_cast<std::size_t>(i)]));
        add_terms(loop, 0, n, dx.update, dx.data, [=, pshare = share.data()](const auto& run, Index j) {
          return equal(run, j) ? pshare[run.at(1, j)] : T(0);
        });
      });
}

#define INSTANTIATE(T)                             \
  template Var<T> sum(Var<T>, const Axes&, bool);  \
  template Var<T> mean(Var<T>, const Axes&, bool); \
  template Var<T> max(Var<T>, const Axes&, bool);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
