// If the exponents are close together, all cells share one scale. exp is then computed once per term and once per
// window position; the remaining work is weighted sums over windows and running sums outside them. The whole grid
// is processed for a few vectors of channels at a time, in steps of four cells. Otherwise, the reference kernel is
// called.
#include "heed/kernels/grids/neighbourhood.h"

#ifndef HEED_NO_SIMD

#include "src/kernels/shared/channel_blocks.h"

namespace heed::kernels {

using namespace simd;

namespace {

using Memory = OneScale<float>;
static_assert(channel_vectors * lanes <= Memory::channels);

/// The weights of the terms, the weights of the window positions, and the common weight of all cells outside the
/// window.
struct Weights {
  const Neighbourhood& g;
  const float* of_terms;
  const float* of_places;
  float of_outside;
};

/// Loads and stores of a single channel, the mass.
struct OneLane {
  Vector load(const float* from) const { return set(*from); }
  void store(Vector v, float* to) const { *to = hn::GetLane(v); }
};

/// Computation of the sums for `count` vectors of channels. The rows of `memory` have `channels` elements.
template <int count, class Lanes>
class Block {
 public:
  Block(const Weights& weights, const Memory& memory, Index channels, Lanes use)
      : weights_(weights), g_(weights.g), memory_(memory), channels_(channels), use_(use) {}

  /// Computes the sums of value [N, channels]; if value is empty, sums the weights alone.
  void compute(Matrix<const float> value, Matrix<float> sums) const {
    weigh(value);
    for (Index y = 0; y < g_.height; ++y) {
      if (g_.outside) sum_columns(y);
      Vectors left = all(0);
      Index x = 0;
      for (; x + 4 <= g_.width; x += 4) windows<4>(y, x, left, sums);
      for (; x < g_.width; ++x) windows<1>(y, x, left, sums);
    }
  }

 private:
  struct Vectors {
    Vector v[count];
  };
  HWY_INLINE Vectors all(float x) const {
    Vectors vectors;
    for (Vector& v : vectors.v) v = set(x);
    return vectors;
  }
  HWY_INLINE Vectors load(const float* from) const {
    Vectors vectors;
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) vectors.v[i] = use_.load(from + i * lanes);
    return vectors;
  }
  HWY_INLINE void store(const Vectors& vectors, float* to) const {
    for (int i = 0; i < count; ++i) use_.store(vectors.v[i], to + i * lanes);
  }
  HWY_INLINE void add(const Vectors& a, Vectors& sum) const {
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) sum.v[i] = hn::Add(sum.v[i], a.v[i]);
  }
  HWY_INLINE void add_product(Vector weight, const Vectors& a, Vectors& sum) const {
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) sum.v[i] = hn::MulAdd(weight, a.v[i], sum.v[i]);
  }

  float* row(const Matrix<float>& m, Index r) const { return m.data + r * channels_; }
  float* cell(Index y, Index x) const {
    return row(memory_.weighted, y * (g_.width + 2 * Memory::margin) + Memory::margin + x);
  }

  /// Computes the weighted terms, and running sums of whole rows from the top and from the bottom.
  void weigh(Matrix<const float> value) const {
    const Vectors zero = all(0);
    Vectors total = zero;
    for (Index y = 0; y < g_.height; ++y) {
      for (Index i = 1; i <= Memory::margin; ++i) store(zero, cell(y, -i)), store(zero, cell(y, g_.width - 1 + i));
      Vectors sum = zero;
      for (Index x = 0; x < g_.width; ++x) {
        const Index s = y * g_.width + x;
        Vectors term = all(weights_.of_terms[s]);
        for (int i = 0; i < count && value; ++i) term.v[i] = hn::Mul(term.v[i], use_.load(value[s] + i * lanes));
        store(term, cell(y, x));
        add(term, sum);
      }
      store(sum, row(memory_.below, y));
      add(sum, total);
      store(total, row(memory_.above, y));
    }
    total = zero;
    for (Index y = g_.height - 1; y >= 0; --y) {
      add(load(row(memory_.below, y)), total);
      store(total, row(memory_.below, y));
    }
  }

  /// Sums each column over the rows of the windows around row y, and computes running sums of the results from the
  /// right.
  void sum_columns(Index y) const {
    const auto window = g_.around(y, 0);
    Vectors total = all(0);
    for (Index x = g_.width - 1; x >= 0; --x) {
      Vectors column = load(cell(window.top, x));
      for (Index r = window.top + 1; r < window.bottom; ++r) add(load(cell(r, x)), column);
      store(column, row(memory_.column, x));
      add(column, total);
      store(total, row(memory_.right_of, x));
    }
  }

  /// Computes the sums of cells x, x + 1, ... of row y. `left`: the sum of the columns left of the previous cell's
  /// window.
  template <int cells>
  HWY_INLINE void windows(Index y, Index x, Vectors& left, Matrix<float> out) const {
    Vectors sums[cells];
#pragma GCC unroll 4
    for (int i = 0; i < cells; ++i) sums[i] = g_.outside ? outside(g_.around(y, x + i), left) : all(0);
    const auto rows = g_.around(y, x);
    const Index first = std::max(-g_.reach_x, -(x + cells - 1)), last = std::min(g_.reach_x, g_.width - 1 - x);
    for (Index r = rows.top; r < rows.bottom; ++r)
      for (Index dx = first; dx <= last; ++dx) {
        const Vector weight = set(weights_.of_places[g_.place(r - y, dx)]);
        const float* const from = cell(r, x + dx);
#pragma GCC unroll 4
        for (int i = 0; i < cells; ++i) add_product(weight, load(from + i * channels_), sums[i]);
      }
#pragma GCC unroll 4
    for (int i = 0; i < cells; ++i) store(sums[i], out[y * g_.width + x + i]);
  }

  /// Returns the weighted sum of all cells outside a window, and extends `left` to all columns left of this window.
  HWY_INLINE Vectors outside(const Neighbourhood::Window& window, Vectors& left) const {
    if (window.left > 0) add(load(row(memory_.column, window.left - 1)), left);
    Vectors sum = left;
    if (window.right < g_.width) add(load(row(memory_.right_of, window.right)), sum);
    if (window.top > 0) add(load(row(memory_.above, window.top - 1)), sum);
    if (window.bottom < g_.height) add(load(row(memory_.below, window.bottom)), sum);
    for (Vector& v : sum.v) v = hn::Mul(v, set(weights_.of_outside));
    return sum;
  }

  const Weights& weights_;
  const Neighbourhood& g_;
  const Memory& memory_;
  const Index channels_;
  const Lanes use_;
};

/// The range of a column of values.
struct Range {
  float smallest, largest;
  bool finite = true;

  explicit Range(Matrix<const float> x) : smallest(x(0, 0)), largest(x(0, 0)) {
    for (Index i = 0; i < x.rows; ++i) {
      smallest = std::min(smallest, x(i, 0)), largest = std::max(largest, x(i, 0));
      finite &= std::isfinite(x(i, 0));
    }
  }
  float width() const { return finite ? largest - smallest : HUGE_VALF; }
};

}  // namespace

void neighbourhood_sums(const Neighbourhood& g, ExpSums<const float> terms, const float* bias, bool mirrored,
                        const NeighbourhoodScratch<float>& scratch, ExpSums<float> sums) {
  const Index places = g.places();
  const Range x(terms.scale);
  Range b({bias, places, 1});
  if (g.outside) b.smallest = std::min(b.smallest, 0.0f), b.largest = std::max(b.largest, 0.0f);
  const float scale = x.largest + b.largest;
  if (!(x.width() + b.width() <= Memory::most) || is_coarse(scale))
    return reference::neighbourhood_sums<float>(g, terms, bias, mirrored, scratch, sums);

  const Memory& memory = scratch.one;
  float *const of_terms = memory.of_terms.data, *const of_places = memory.of_places.data;
  for (Index s = 0; s < g.cells(); ++s) of_terms[s] = terms.scale(s, 0) - x.largest;
  const float beside_scale = x.largest - scale;  // -b.largest, rounded like the scale
  for (Index p = 0; p < places; ++p) of_places[p] = beside_scale + bias[mirrored ? places - 1 - p : p];
  const auto exponentiate = [](Index n, float* numbers) {
    const Exp exp;
    for_each_vector(n, [&](Index i, auto use) { use.store(exp.below_88(use.load(numbers + i)), numbers + i); });
  };
  exponentiate(g.cells(), of_terms);
  exponentiate(places, of_places);

  const Weights weights{g, of_terms, of_places, exp(beside_scale)};
  for_each_block(sums.value.columns, [&](Index c, auto count, auto use) {
    const Index channels = std::min(count * lanes, sums.value.columns - c);
    Block<count, decltype(use)>(weights, memory, channels, use)
        .compute(terms.value.middle_columns(c, channels), sums.value.middle_columns(c, channels));
  });
  Block<1, OneLane>(weights, memory, 1, {}).compute(terms.mass, sums.mass);
  fill(sums.scale, scale);
}

}  // namespace heed::kernels

#endif
