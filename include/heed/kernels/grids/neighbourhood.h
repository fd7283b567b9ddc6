// Exponential sums over all cells of a grid, in which cells near each other have a bias that depends on their relative
// position: a convolution with global reach.
#pragma once

#include "heed/kernels/sums/exp_sums.h"
#include "heed/kernels/rows/rows.h"

namespace heed::kernels {

/// A grid of height x width cells, row-major, and around each cell a window of the cells at most reach_y rows and
/// reach_x columns away. The position (dy, dx) in a window has the index (dy + reach_y) (2 reach_x + 1) + dx + reach_x.
struct Neighbourhood {
  Index height, width, reach_y, reach_x;
  bool outside = true;  ///< include cells outside the window, with bias 0

  Index cells() const { return height * width; }
  Index places() const { return (2 * reach_y + 1) * (2 * reach_x + 1); }
  Index place(Index dy, Index dx) const { return (dy + reach_y) * (2 * reach_x + 1) + dx + reach_x; }

  /// The part of the window around (y, x) that is inside the grid: rows [top, bottom), columns [left, right).
  struct Window {
    Index top, bottom, left, right;
  };
  Window around(Index y, Index x) const {
    return {std::max<Index>(y - reach_y, 0), std::min(y + reach_y + 1, height), std::max<Index>(x - reach_x, 0),
            std::min(x + reach_x + 1, width)};
  }
};

namespace detail {

/// A term exp(x) (mass, value[n]) of a sum; if `mass` is nullptr, the mass is 1.
template <class T>
struct Part {
  T x;
  const T *mass, *value;
};

/// Returns row i of exponential sums with one scale per row.
template <class T>
[[gnu::always_inline]] inline Part<std::remove_const_t<T>> part_of(const ExpSums<T>& sums, Index i) {
  return {sums.scale(i, 0), sums.mass ? &sums.mass(i, 0) : nullptr, sums.value[i]};
}

/// A batch of terms exp(x) (mass, value[n]) of one sum: the exps are computed in a loop without branches, and the sum
/// stays in registers.
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
  /// Returns the sum of exp(x) mass.
  T mass() const {
    const auto of = [this](Index i) { return masses[i] ? weights[i] * *masses[i] : weights[i]; };
    T sum = of(0);
    for (Index i = 1; i < count; ++i) sum += of(i);
    return sum;
  }
};

/// Sets row i of the sums to the term.
template <class T>
void start_sum(const ExpSums<T>& sums, Index i, const Part<T>& term) {
  sums.scale(i, 0) = term.x;
  sums.mass(i, 0) = term.mass ? *term.mass : T(1);
  std::copy_n(term.value, sums.value.columns, sums.value[i]);
}

/// Sets row i of the sums to row `from` plus the term; `from` must not be i.
template <class T>
void extend_sum(const ExpSums<T>& sums, Index i, Index from, const Part<T>& term) {
  const Part<T> before = part_of(sums, from);
  const T difference = term.x - before.x;
  const bool grows = difference > T(0);
  const T smaller = exp(grows ? -difference : difference);
  const T of_before = grows ? smaller : T(1), of_term = grows ? T(1) : smaller;
  sums.scale(i, 0) = grows ? term.x : before.x;
  sums.mass(i, 0) = *before.mass * of_before + (term.mass ? *term.mass * of_term : of_term);
  T* const value = sums.value[i];
#pragma GCC ivdep
  for (Index c = 0; c < sums.value.columns; ++c) value[c] = before.value[c] * of_before + term.value[c] * of_term;
}

/// Returns the counts of extend_sum() for n channels.
inline Counts extend_sum_counts(Index n, bool has_mass) {
  return {.mul = 2 * n + 1 + has_mass, .add = n + 2, .exp = 1, .cmp = 1};
}

}  // namespace detail

/// Running sums from which the sums outside windows are composed. left[y, x]: cells of row y up to x; right[y, x]: from
/// x on; above[y]: rows up to y; below[y]: rows from y on; each includes cell x or row y.
template <class T>
struct RunningSums {
  ExpSums<T> left, right, above, below;
};
/// Lays out the sums of n channels; none if !g.outside.
template <class T>
RunningSums<T> lay_out_running_sums(const Neighbourhood& g, Index n, MemoryLayout<T>& layout) {
  if (!g.outside) return {};
  return {lay_out_exp_sums(g.cells(), 1, n, layout), lay_out_exp_sums(g.cells(), 1, n, layout),
          lay_out_exp_sums(g.height, 1, n, layout), lay_out_exp_sums(g.height, 1, n, layout)};
}

/// Memory of the fast float kernel when all cells share one scale: weights of terms and of window positions; for a
/// block of channels, the weighted terms, with a margin of zeros around each grid row, and the sums outside windows.
template <class T>
struct OneScale {
  static constexpr Index margin = 3;     ///< cells on each side of a grid row
  static constexpr Index channels = 64;  ///< maximum per block
  static constexpr double most = 32;     ///< maximum range of the exponents, so no weight is below 1e-14

  Matrix<T> of_terms, of_places;             ///< [N, 1], [places, 1]
  Matrix<T> weighted;                        ///< [height (width + 2 margin), channels]
  Matrix<T> column, right_of, above, below;  ///< two [width, channels], two [height, channels]
};

/// Scratch memory of neighbourhood_sums().
template <class T>
struct NeighbourhoodScratch {
  RunningSums<T> running;
  OneScale<T> one;
};
/// Lays out the scratch memory for n channels.
template <class T>
NeighbourhoodScratch<T> lay_out_neighbourhood(const Neighbourhood& g, Index n, MemoryLayout<T>& layout) {
  const Index channels = std::clamp<Index>(n, 1, OneScale<T>::channels), padded = g.width + 2 * OneScale<T>::margin;
  const auto rows = [&](Index count) { return layout.matrix(count, channels); };
  return {lay_out_running_sums(g, n, layout),
          {layout.matrix(g.cells(), 1), layout.matrix(g.places(), 1), rows(g.height * padded), rows(g.width),
           rows(g.width), rows(g.height), rows(g.height)}};
}

namespace detail {

/// Computes the running sums of all cells' terms.
template <class T>
void compute_running_sums(const Neighbourhood& g, const ExpSums<const T>& terms, const RunningSums<T>& running) {
  const auto row_sum = [&](Index y) { return part_of(running.left, (y + 1) * g.width - 1); };
  for (Index y = 0; y < g.height; ++y) {
    const Index first = y * g.width, last = first + g.width - 1;
    start_sum(running.left, first, part_of(terms, first));
    for (Index s = first + 1; s <= last; ++s) extend_sum(running.left, s, s - 1, part_of(terms, s));
    start_sum(running.right, last, part_of(terms, last));
    for (Index s = last - 1; s >= first; --s) extend_sum(running.right, s, s + 1, part_of(terms, s));
    if (y == 0)
      start_sum(running.above, y, row_sum(y));
    else
      extend_sum(running.above, y, y - 1, row_sum(y));
  }
  for (Index y = g.height - 1; y >= 0; --y) {
    if (y == g.height - 1)
      start_sum(running.below, y, row_sum(y));
    else
      extend_sum(running.below, y, y + 1, row_sum(y));
  }
}

/// Calls f(term, bias or nullptr) for all terms of the sum of cell t. Always inlined, as f does less work than a call.
template <class T, class F>
[[gnu::always_inline]] inline void for_each_part(const Neighbourhood& g, Index t, const ExpSums<const T>& terms,
                                                 const T* bias, bool mirrored, const RunningSums<T>& running,
                                                 const F& f) {
  const Index ty = t / g.width, tx = t % g.width;
  const auto window = g.around(ty, tx);
  for (Index y = window.top; y < window.bottom; ++y)
    for (Index x = window.left; x < window.right; ++x)
      f(part_of(terms, y * g.width + x), bias + (mirrored ? g.place(ty - y, tx - x) : g.place(y - ty, x - tx)));
  if (!g.outside) return;
  const T* const none = nullptr;
  for (Index y = window.top; y < window.bottom; ++y) {
    if (window.left > 0) f(part_of(running.left, y * g.width + window.left - 1), none);
    if (window.right < g.width) f(part_of(running.right, y * g.width + window.right), none);
  }
  if (window.top > 0) f(part_of(running.above, window.top - 1), none);
  if (window.bottom < g.height) f(part_of(running.below, window.bottom), none);
}

}  // namespace detail

inline namespace reference {

/// Computes, for each cell t, the sum over all cells s
///   exp(scale[t]) (mass[t], value[t]) = sum_s exp(x[s] + bias[position of s relative to t]) (mass[s], value[s]),
/// with bias 0 outside the window around t; if !g.outside, only over the cells of the window. x is the terms' scale;
/// bias [places]. `mirrored` uses the position of t relative to s instead, as gradients require. terms, sums [N, n],
/// each with one scale for all n elements of a value. The result must not overlap anything.
///
/// The outside of a window is four disjoint parts: the rows above and below it and, in each of its rows, the cells to
/// the left and to the right. All are running sums, computed once. Nothing is subtracted from a sum, so sums of
/// positive terms keep full precision, and the scale of cell t is the maximum over the terms of t only. Time: O(N
/// (window + 2 window rows) n).
///
/// Fast float: every cell has the scale max x + max bias if that is not coarse and the ranges of x and of the biases,
/// including 0 for the outside, add up to at most 32. The error is then at most 7e-7 + 6e-8 (height + width + places)
/// relative to the weighted sums of |mass| and |value|.
template <class T>
void neighbourhood_sums(const Neighbourhood& g, ExpSumsFor<T> terms, const std::type_identity_t<T>* bias, bool mirrored,
                        const std::type_identity_t<NeighbourhoodScratch<T>>& scratch, ExpSums<T> sums) {
  using Part = detail::Part<T>;
  const Index n = sums.value.columns;
  const RunningSums<T>& running = scratch.running;
  if (g.outside) detail::compute_running_sums<T>(g, terms, running);

  for (Index t = 0; t < g.cells(); ++t) {
    T scale{}, mass{};
    bool first = true;
    detail::for_each_part<T>(g, t, terms, bias, mirrored, running, [&](const Part& part, const T* b) {
      const T x = b ? part.x + *b : part.x;
      if (first || x > scale) scale = x;
      first = false;
    });
    const bool coarse = is_coarse(scale);
    detail::Batch<T> parts;
    Update update = Update::assign;
    const auto add_batch = [&] {
      parts.exponentiate();
      write(update, mass, parts.mass());
      weighted_rows(parts.count, n, parts.weights, parts.rows, update, sums.value[t]);
      update = Update::accumulate, parts.count = 0;
    };
    detail::for_each_part<T>(g, t, terms, bias, mirrored, running, [&](const Part& part, const T* b) {
      const T distance = part.x - scale;
      T exponent = b ? distance + *b : distance;
      if (coarse && b) [[unlikely]]
        exponent = relative_exponent(part.x, *b, scale, true);
      parts.add(exponent, part.mass, part.value);
      if (parts.full()) add_batch();
    });
    if (parts.count > 0) add_batch();
    sums.scale(t, 0) = scale;
    sums.mass(t, 0) = mass;
  }
}

}  // namespace reference

#ifndef HEED_NO_SIMD
/// Fast version for float.
void neighbourhood_sums(const Neighbourhood& g, ExpSums<const float> terms, const float* bias, bool mirrored,
                        const NeighbourhoodScratch<float>& scratch, ExpSums<float> sums);
#endif

/// Numbers of pairs of a cell and a cell in its window, and of a cell and a running sum outside its window.
struct NeighbourPairs {
  Index inside = 0, outside = 0;
};
/// Returns the numbers of pairs for a grid.
inline NeighbourPairs neighbour_pairs(const Neighbourhood& g) {
  NeighbourPairs pairs;
  for (Index y = 0; y < g.height; ++y)
    for (Index x = 0; x < g.width; ++x) {
      const auto w = g.around(y, x);
      pairs.inside += (w.bottom - w.top) * (w.right - w.left);
      if (g.outside)
        pairs.outside +=
            (w.bottom - w.top) * ((w.left > 0) + (w.right < g.width)) + (w.top > 0) + (w.bottom < g.height);
    }
  return pairs;
}

/// Returns the counts for terms with or without a mass: the running sums; for each term of a cell's sum, x - scale,
/// exp, n products and, except for the first, n + 1 additions and a comparison; plus the counts of the bias and the
/// mass.
inline Counts neighbourhood_sums_counts(const Neighbourhood& g, Index n, bool has_mass) {
  const NeighbourPairs pairs = neighbour_pairs(g);
  const Index parts = pairs.inside + pairs.outside, N = g.cells();
  Counts counts = parts * Counts{.mul = n, .add = n + 2, .exp = 1, .cmp = 1} + N * Counts{.add = -(n + 1), .cmp = -1} +
                  pairs.inside * Counts{.mul = has_mass, .add = 2} + Counts{.mul = pairs.outside};
  if (g.outside)
    counts += 2 * (g.height * (g.width - 1)) * detail::extend_sum_counts(n, has_mass) +
              2 * (g.height - 1) * detail::extend_sum_counts(n, true);
  return counts;
}

/// Returns the contractions, as counted in papers: n products (n + 1 with a mass) and n + 1 sums for each pair of a
/// cell and a cell of its window, and, if any cell has an outside, the same number for the outside of each cell.
inline Counts neighbourhood_sums_contractions(const Neighbourhood& g, Index n, bool has_mass) {
  const NeighbourPairs pairs = neighbour_pairs(g);
  const Index terms = pairs.inside + (pairs.outside > 0 ? g.cells() : 0);
  return terms * Counts{.mul = n + has_mass, .add = n + 1};
}

/// Adds the gradient of the biases, with weights p[t,s] = exp(x[s] + bias[position] - scale[t]):
///   dbias[position] += sum over pairs (t, s) with that position of  p[t,s] <G[t], value[s] - y[t]>.
/// terms, means [N, n], each with one scale for all n elements of a value; the masses of the terms are not used. bias,
/// dbias [places]; dbias is not written for positions that no pair of cells has. value[s] - y[t] is computed first: if
/// one cell has all the weight, y[t] = value[s] and the gradient is exactly 0.
template <class T>
void neighbourhood_bias_gradient(const Neighbourhood& g, const ExpSumsFor<T>& terms,
                                 const std::type_identity_t<T>* bias,
                                 const std::type_identity_t<WeightedMeans<T>>& means, T* dbias) {
  const Matrix<const T> x = terms.scale, scale = means.scale, value = terms.value, y = means.y, G = means.G;
  constexpr Index most = detail::Batch<T>::most;
  // Processes a few rows of cells at a time for all positions, so that their operands stay in the cache.
  const Index rows_at_once = std::max<Index>(1, most / g.width);
  for (Index top = 0; top < g.height; top += rows_at_once)
    for (Index dy = -g.reach_y; dy <= g.reach_y; ++dy)
      for (Index dx = -g.reach_x; dx <= g.reach_x; ++dx) {
        const Index place = g.place(dy, dx);
        const Index left = std::max<Index>(0, -dx), right = std::min(g.width, g.width - dx);
        const Index bottom = std::min({top + rows_at_once, g.height, g.height - dy});
        T weights[most], dots[most], sum{};
        RowTriple<T> rows[most];
        Index count = 0;
        Update update = Update::assign;
        const auto add_batch = [&] {
          row_dots_of_differences(count, value.columns, rows, dots);
          for (Index i = 0; i < count; ++i) weights[i] = exp(weights[i]);
          for (Index i = 0; i < count; ++i, update = Update::accumulate) write(update, sum, weights[i] * dots[i]);
          count = 0;
        };
        for (Index row = std::max(top, -dy); row < bottom; ++row)
          for (Index column = left; column < right;) {
            const Index some = std::min(right - column, most - count);
            const Index t = row * g.width + column, s = t + dy * g.width + dx;
            RowTriple<T> triple{G[t], value[s], y[t]};
            for (Index i = 0; i < some; ++i) {
              weights[count + i] = relative_exponent(x(s + i, 0), bias[place], scale(t + i, 0));
              rows[count + i] = triple;
              triple.a += G.stride, triple.b += value.stride, triple.c += y.stride;
            }
            column += some, count += some;
            if (count == most) add_batch();
          }
        if (count > 0) add_batch();
        if (update == Update::accumulate) dbias[place] += sum;
      }
}

/// Returns the counts: for each pair inside a window, exp, n + 1 products, n differences and n sums, and two additions
/// for the exponent.
inline Counts neighbourhood_bias_gradient_counts(const Neighbourhood& g, Index n) {
  return neighbour_pairs(g).inside * Counts{.mul = n + 1, .add = 2 * n + 2, .exp = 1};
}
inline Counts neighbourhood_bias_gradient_contractions(const Neighbourhood& g, Index n) {
  return neighbour_pairs(g).inside * Counts{.mul = n, .add = n + 1};
}

}  // namespace heed::kernels
