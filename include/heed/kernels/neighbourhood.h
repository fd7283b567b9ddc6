// Exponential sums over all cells of a grid, in which the cells near each cell have a bias that depends on where they
// lie: a convolution with global reach.
#pragma once

#include "heed/cost/counts.h"
#include "heed/kernels/exp.h"
#include "heed/kernels/rows.h"
#include "heed/kernels/update.h"

#include <cmath>

namespace heed::kernels {

/// A grid of height x width cells, row-major, and around each cell the window of those at most reach_y rows and reach_x
/// columns away. A place in the window is numbered row-major too: (dy + reach_y) (2 reach_x + 1) + dx + reach_x.
struct Neighbourhood {
  Index height, width, reach_y, reach_x;

  Index cells() const { return height * width; }
  Index places() const { return (2 * reach_y + 1) * (2 * reach_x + 1); }
  Index place(Index dy, Index dx) const { return (dy + reach_y) * (2 * reach_x + 1) + dx + reach_x; }

  /// The part of the window around (y, x) that lies on the grid: rows [top, bottom), columns [left, right).
  struct Window {
    Index top, bottom, left, right;
  };
  Window around(Index y, Index x) const {
    return {std::max<Index>(y - reach_y, 0), std::min(y + reach_y + 1, height), std::max<Index>(x - reach_x, 0),
            std::min(x + reach_x + 1, width)};
  }
};

/// What is summed, one entry per cell: exp(x) (mass, value), value of n numbers. x [N] x_stride apart, mass [N] or
/// nullptr for ones, value [N, n] rows value_stride apart.
template <class T>
struct NeighbourTerms {
  Index n;
  const T* x;
  Index x_stride;
  const T* mass;
  const T* value;
  Index value_stride;
};

/// Sums like those of exp_sums.h, with one scale for all n numbers of a value: exp(scale) (mass, value).
/// scale [N], mass [N], value [N, n].
template <class T>
struct NeighbourSums {
  T *scale, *mass, *value;
};

namespace detail {

/// One summand: exp(x) (mass, value[n]), mass nullptr for one.
template <class T>
struct Part {
  T x;
  const T *mass, *value;
};

/// sum = a + b, where sum may be a. Counts 1 exp, 1 cmp, 2 n + 2 mul (2 n + 1 where b has no mass), n + 2 add.
template <class T>
void add_parts(Index n, const Part<T>& a, const Part<T>& b, T* scale, T* mass, T* value) {
  const T difference = b.x - a.x;
  const bool grows = difference > T(0);
  const T smaller = exp(grows ? -difference : difference);
  const T of_a = grows ? smaller : T(1), of_b = grows ? T(1) : smaller;
  *scale = grows ? b.x : a.x;
  *mass = *a.mass * of_a + (b.mass ? *b.mass * of_b : of_b);
  for (Index c = 0; c < n; ++c) value[c] = a.value[c] * of_a + b.value[c] * of_b;
}

/// Some summands exp(x) (mass, value[n]) of one sum, which are added up together: their exponentials then are a loop
/// without branches, and their sum stays in registers.
template <class T>
struct Batch {
  static constexpr Index most = 64;
  T weights[most];  ///< x, later exp(x)
  const T *masses[most], *rows[most];
  Index count = 0;

  bool full() const { return count == most; }
  void add(T x, const T* mass, const T* value) {
    weights[count] = x, masses[count] = mass, rows[count] = value;
    ++count;
  }
  void exponentiate() {
    for (Index i = 0; i < count; ++i) weights[i] = exp(weights[i]);
  }
  /// Sum of exp(x) mass.
  T mass() const {
    const auto of = [this](Index i) { return masses[i] ? weights[i] * *masses[i] : weights[i]; };
    T sum = of(0);
    for (Index i = 1; i < count; ++i) sum += of(i);
    return sum;
  }
};

/// Running sums along a line of cells or of lines: entry i is entry i - 1 plus the i-th term.
template <class T>
struct RunningSums {
  Index n;
  T *scale, *mass, *value;

  Part<T> operator[](Index i) const { return {scale[i], mass + i, value + i * n}; }
  void start(Index i, const Part<T>& term) const {
    scale[i] = term.x;
    mass[i] = term.mass ? *term.mass : T(1);
    std::copy(term.value, term.value + n, value + i * n);
  }
  void extend(Index i, Index from, const Part<T>& term) const {
    add_parts(n, (*this)[from], term, scale + i, mass + i, value + i * n);
  }
};

}  // namespace detail

/// Numbers of T that neighbourhood_sums needs: nothing if the outside is left out.
inline Index neighbourhood_scratch(const Neighbourhood& g, Index n, bool outside) {
  return outside ? 2 * (g.cells() + g.height) * (n + 2) : 0;
}

/// For every cell t the sum over all cells s
///   exp(scale[t]) (mass[t], value[t]) = sum_s exp(x[s] + bias[place of s seen from t]) (mass[s], value[s]),
/// bias 0 outside the window around t, or, without `outside`, over the window only. bias [places]. `mirrored`: the
/// place of t seen from s instead, which makes this the sum that gradients need.
///
/// What lies outside a window is four disjoint parts: the rows above and below it, and, row by row, the cells left and
/// right of it. All are running sums, made once; nothing is ever subtracted from a sum, so positive sums keep full
/// precision, and the scale of cell t is the maximum over what is summed for t alone. O(N (window + 2 rows of it) n).
/// scratch: neighbourhood_scratch numbers. The result overlaps nothing. Counts: neighbourhood_counts.
template <class T>
void neighbourhood_sums(const Neighbourhood& g, const NeighbourTerms<T>& terms, const T* bias, bool mirrored,
                        bool outside, NeighbourSums<T> sums, T* scratch) {
  using Part = detail::Part<T>;
  const Index n = terms.n, N = g.cells(), entry = n + 2;
  const auto running = [&](Index first, Index count) {
    T* const start = scratch + first * entry;
    return detail::RunningSums<T>{n, start, start + count, start + 2 * count};
  };
  const auto cell = [&](Index s) {
    return Part{terms.x[s * terms.x_stride], terms.mass ? terms.mass + s : nullptr,
                terms.value + s * terms.value_stride};
  };
  // left[y, x]: cells of row y up to x; right[y, x]: from x on; above[y]: rows up to y; below[y]: rows from y on.
  const auto left = running(0, N), right = running(N, N), above = running(2 * N, g.height),
             below = running(2 * N + g.height, g.height);
  if (outside) {
    for (Index y = 0; y < g.height; ++y) {
      const Index row = y * g.width, last = row + g.width - 1;
      left.start(row, cell(row));
      for (Index s = row + 1; s <= last; ++s) left.extend(s, s - 1, cell(s));
      right.start(last, cell(last));
      for (Index s = last - 1; s >= row; --s) right.extend(s, s + 1, cell(s));
      if (y == 0)
        above.start(y, left[last]);
      else
        above.extend(y, y - 1, left[last]);
    }
    for (Index y = g.height - 1; y >= 0; --y) {
      if (y == g.height - 1)
        below.start(y, left[(y + 1) * g.width - 1]);
      else
        below.extend(y, y + 1, left[(y + 1) * g.width - 1]);
    }
  }

  for (Index t = 0; t < N; ++t) {
    const Index ty = t / g.width, tx = t % g.width;
    const auto window = g.around(ty, tx);
    // Calls f(part, bias or nullptr) for all parts of the sum.
    const auto for_each_part = [&](const auto& f) {
      for (Index y = window.top; y < window.bottom; ++y)
        for (Index x = window.left; x < window.right; ++x)
          f(cell(y * g.width + x), bias + (mirrored ? g.place(ty - y, tx - x) : g.place(y - ty, x - tx)));
      if (!outside) return;
      const T* const none = nullptr;
      for (Index y = window.top; y < window.bottom; ++y) {
        if (window.left > 0) f(left[y * g.width + window.left - 1], none);
        if (window.right < g.width) f(right[y * g.width + window.right], none);
      }
      if (window.top > 0) f(above[window.top - 1], none);
      if (window.bottom < g.height) f(below[window.bottom], none);
    };
    T scale{}, mass{};
    bool first = true;
    for_each_part([&](const Part& part, const T* b) {
      const T x = b ? part.x + *b : part.x;
      if (first || x > scale) scale = x;
      first = false;
    });
    detail::Batch<T> parts;
    Update update = Update::assign;
    const auto add_batch = [&] {
      parts.exponentiate();
      write(update, mass, parts.mass());
      weighted_rows(parts.count, n, parts.weights, parts.rows, update, sums.value + t * n);
      update = Update::accumulate, parts.count = 0;
    };
    for_each_part([&](const Part& part, const T* b) {
      const T distance = part.x - scale;
      parts.add(b ? distance + *b : distance, part.mass, part.value);
      if (parts.full()) add_batch();
    });
    if (parts.count > 0) add_batch();
    sums.scale[t] = scale;
    sums.mass[t] = mass;
  }
}

/// Pairs of a cell and a cell of its window, and, with `outside`, pairs of a cell and a running sum outside of it.
struct NeighbourPairs {
  Index inside = 0, outside = 0;
};
inline NeighbourPairs neighbour_pairs(const Neighbourhood& g, bool outside) {
  NeighbourPairs pairs;
  for (Index y = 0; y < g.height; ++y)
    for (Index x = 0; x < g.width; ++x) {
      const auto w = g.around(y, x);
      pairs.inside += (w.bottom - w.top) * (w.right - w.left);
      if (outside)
        pairs.outside +=
            (w.bottom - w.top) * ((w.left > 0) + (w.right < g.width)) + (w.top > 0) + (w.bottom < g.height);
    }
  return pairs;
}

/// What neighbourhood_sums executes for terms with or without a mass: running sums; then, for each part of the sum of a
/// cell, x - scale, exp, n products, and for all but one n + 1 additions and a comparison; bias and mass on top.
inline Counts neighbourhood_counts(const Neighbourhood& g, Index n, bool has_mass, bool outside) {
  const NeighbourPairs pairs = neighbour_pairs(g, outside);
  const Index parts = pairs.inside + pairs.outside, N = g.cells();
  Counts counts = parts * Counts{.mul = n, .add = n + 2, .exp = 1, .cmp = 1} + N * Counts{.add = -(n + 1), .cmp = -1} +
                  pairs.inside * Counts{.mul = has_mass, .add = 2} + Counts{.mul = pairs.outside};
  if (outside) {
    const Counts add{.mul = 2 * n + 1, .add = n + 2, .exp = 1, .cmp = 1};
    counts += 2 * (g.height * (g.width - 1)) * (add + Counts{.mul = has_mass}) +
              2 * (g.height - 1) * (add + Counts{.mul = 1});
  }
  return counts;
}

/// The gradient of the biases, given weights p[t,s] = exp(x[s] + bias[place] - scale[t]):
///   dbias[place] (assigned) = sum over t and the s at that place of  p[t,s] <g[t], value[s] - y[t]>.
/// value as in terms (their mass is not used); scale [N]; y, g [N, n]. Places that no cell of the grid has get 0. The
/// difference is taken first: where one cell has all the weight, y = value[s] and the gradient is exactly 0.
/// Counts per pair inside: 1 exp, n + 1 mul, 2 n + 1 add, and 1 add more but for the first of each place.
template <class T>
void neighbourhood_bias_gradient(const Neighbourhood& g, const NeighbourTerms<T>& terms, const T* bias, const T* scale,
                                 const T* y, const T* gradient, T* dbias) {
  const Index n = terms.n;
  std::fill(dbias, dbias + g.places(), T(0));
  for (Index dy = -g.reach_y; dy <= g.reach_y; ++dy)
    for (Index dx = -g.reach_x; dx <= g.reach_x; ++dx) {
      const Index place = g.place(dy, dx);
      const Index left = std::max<Index>(0, -dx), right = std::min(g.width, g.width - dx);
      detail::Batch<T> pairs;
      T dots[detail::Batch<T>::most];
      Update update = Update::assign;
      const auto add_batch = [&] {
        pairs.exponentiate();
        for (Index i = 0; i < pairs.count; ++i, update = Update::accumulate)
          write(update, dbias[place], pairs.weights[i] * dots[i]);
        pairs.count = 0;
      };
      for (Index row = std::max<Index>(0, -dy); row < std::min(g.height, g.height - dy); ++row)
        for (Index column = left; column < right;) {
          const Index t = row * g.width + column, s = (row + dy) * g.width + column + dx;
          const Index some = std::min(right - column, detail::Batch<T>::most - pairs.count);
          row_dots_of_differences(some, n, gradient + t * n, n, terms.value + s * terms.value_stride,
                                  terms.value_stride, y + t * n, n, dots + pairs.count);
          for (Index i = 0; i < some; ++i)
            pairs.add((terms.x[(s + i) * terms.x_stride] - scale[t + i]) + bias[place], nullptr, nullptr);
          if (pairs.full()) add_batch();
          column += some;
        }
      if (pairs.count > 0) add_batch();
    }
}

/// What neighbourhood_bias_gradient executes.
inline Counts neighbourhood_bias_counts(const Neighbourhood& g, Index n) {
  const Index pairs = neighbour_pairs(g, false).inside;
  const Index used = std::min(2 * g.reach_y + 1, 2 * g.height - 1) * std::min(2 * g.reach_x + 1, 2 * g.width - 1);
  return pairs * Counts{.mul = n + 1, .add = 2 * n + 2, .exp = 1} + Counts{.add = -used};
}

}  // namespace heed::kernels
