// Exponential sums that neither overflow nor vanish. A sum over keys s, for each channel,
//
//   sum_s exp(x_s) (mass_s, value_s)   is stored as   exp(scale) (mass, value),
//
// where scale is the largest x of the keys up to rounding. So the largest weight is 1 up to that rounding, and the
// largest term never vanishes. Every exponent is relative to the rounded scale, and large values are subtracted first,
// (x - scale) + bias, so an offset of 1000 in every x costs no accuracy.
//
// Results are finite for finite x whose sums with the biases are finite, unless a sum of masses or of values overflows.
// For a sum of positive terms the relative error is a few eps per addition plus eps max |bias|, whatever the range of
// x. A bias is rounded like the scale only if the scale is coarse (is_coarse()). If an x is NaN or +inf, or all x are
// -inf, mass and value are NaN; if some x is finite, an x of -inf has weight zero.
//
// Outputs must not overlap inputs. The loops declare this to the compiler (ivdep), since run-time aliasing checks would
// compare too many pointers.
#pragma once

#include "heed/base/memory_layout.h"
#include "heed/cost/counts.h"
#include "heed/kernels/shared/exp.h"
#include "heed/kernels/shared/update.h"

#include <cmath>
#include <limits>

namespace heed::kernels {

/// Rows of exponential sums or of their terms, exp(scale) (mass, value): value [rows, n]; scale and mass likewise, or
/// [rows, 1] if all channels share them. Terms without a mass have mass 1.
template <class T>
struct ExpSums {
  Matrix<T> scale, mass, value;

  operator ExpSums<const T>() const requires(!std::is_const_v<T>) { return {scale, mass, value}; }

  ExpSums middle_rows(Index first, Index count) const {
    return {scale.middle_rows(first, count), mass.middle_rows(first, count), value.middle_rows(first, count)};
  }
  ExpSums row(Index r) const { return middle_rows(r, 1); }
};
/// Parameter type from which T is not deduced.
template <class T>
using ExpSumsFor = ExpSums<const std::type_identity_t<T>>;

/// Lays out `rows` sums of n channels with `scales` scales each; `scales` is n or 1.
template <class T>
ExpSums<T> lay_out_exp_sums(Index rows, Index scales, Index n, MemoryLayout<T>& layout) {
  return {layout.matrix(rows, scales), layout.matrix(rows, scales), layout.matrix(rows, n)};
}

/// Keys and values, or the gradients of both: [keys, n] each.
template <class T>
struct KeysAndValues {
  Matrix<T> k, v;

  KeysAndValues middle_rows(Index first, Index count) const {
    return {k.middle_rows(first, count), v.middle_rows(first, count)};
  }
  KeysAndValues row(Index r) const { return middle_rows(r, 1); }
};
/// Parameter type from which T is not deduced.
template <class T>
using KeysAndValuesFor = KeysAndValues<const std::type_identity_t<T>>;

/// Operands of the gradients of sums: their scale, the weighted means y = value / mass, and G = dy / mass. y and G are
/// [rows, n]; scale has the shape that it has in ExpSums.
template <class T>
struct WeightedMeans {
  Matrix<const T> scale, y, G;

  WeightedMeans middle_rows(Index first, Index count) const {
    return {scale.middle_rows(first, count), y.middle_rows(first, count), G.middle_rows(first, count)};
  }
  WeightedMeans row(Index r) const { return middle_rows(r, 1); }
};

/// Returns an origin [n] for values and means in gradients, which depend only on their differences: the last of the
/// means. If one key has nearly all the weight, its value and the means are close to this origin, and sums over values
/// and means do not cancel; what remains is the rounding error of a mean itself. Returns nullptr (zeros) for Counted,
/// since textbook formulas have no origin.
template <class T>
const T* value_origin(Matrix<const T> means) {
  if constexpr (std::is_floating_point_v<T>) return means[means.rows - 1];
  return nullptr;
}

/// The smallest coarse scale, 2^29 in float and 2^58 in double. Smaller values have a rounding error of at most 16.
template <class T>
inline constexpr T coarse = 64 / std::numeric_limits<T>::epsilon();

/// Returns true if |x| >= coarse or x is NaN; false for Counted.
template <class T>
[[gnu::always_inline]] inline bool is_coarse(T x) {
  if constexpr (std::is_floating_point_v<T>) return !(std::abs(x) < coarse<T>);
  return false;
}

/// Returns the exponent k + bias relative to `scale`, the rounded maximum of all k + bias. (k - scale) + bias keeps the
/// digits that k + bias loses; for the largest k + bias, the exponent equals the rounding error of the scale, at most
/// 16. If the scale is coarse, this error could overflow exp; then k + bias is rounded like the scale, and the largest
/// exponent is 0.
template <class T>
[[gnu::always_inline]] inline T relative_exponent(T k, T bias, T scale, bool coarse) {
  return coarse ? (k + bias) - scale : (k - scale) + bias;
}
template <class T>
[[gnu::always_inline]] inline T relative_exponent(T k, T bias, T scale) {
  return relative_exponent(k, bias, scale, is_coarse(scale));
}

inline namespace reference {

/// Computes sums = sum over the keys of exp(k[s,c] + bias[s]) (1, v[s,c]) for at least one key, in two passes: maximum,
/// then sum. bias [keys], or nullptr for zeros; sums: one row. Fast float: error at most 4e-7 + 1.2e-7 keys, plus
/// 1.2e-7 max |bias| with a bias, relative to mass and to the sum of e |v|.
template <class T>
void exp_sums_of(KeysAndValuesFor<T> keys, const std::type_identity_t<T>* bias, ExpSums<T> sums) {
  const Index n = keys.k.columns;
  T *const scale = sums.scale.data, *const mass = sums.mass.data, *const value = sums.value.data;
  for (Index s = 0; s < keys.k.rows; ++s) {
    const T* const k = keys.k[s];
    for (Index c = 0; c < n; ++c) {
      const T x = bias ? k[c] + bias[s] : k[c];
      scale[c] = s == 0 || x > scale[c] ? x : scale[c];
    }
  }
  for (Index s = 0; s < keys.k.rows; ++s) {
    const Update update = term_update(s);
    const T *const k = keys.k[s], *const v = keys.v[s], b = bias ? bias[s] : T(0);
#pragma GCC ivdep
    for (Index c = 0; c < n; ++c) {
      const T e = exp(bias ? relative_exponent(k[c], b, scale[c]) : k[c] - scale[c]);
      write(update, mass[c], e);
      write(update, value[c], e * v[c]);
    }
  }
}

/// Returns the counts for `keys` keys with n channels.
inline Counts exp_sums_of_counts(Index keys, Index n, bool biased) {
  return n * Counts{.mul = keys, .add = (biased ? 5 : 3) * keys - 2, .exp = keys, .cmp = keys - 1};
}

/// Returns the contractions, as counted in papers: a product and a sum for each value, and a sum for each mass.
inline Counts exp_sums_contractions(Index terms, Index n) { return terms * n * Counts{.mul = 1, .add = 2}; }

/// Computes sums += added; both have one row. `added` holds either sums or a single key, with scale = k, value = v and
/// no mass.
template <class T>
void exp_sums_add(ExpSumsFor<T> added, ExpSums<T> sums) {
  const T *const x = added.scale.data, *const added_mass = added.mass.data, *const added_value = added.value.data;
  T *const scale = sums.scale.data, *const mass = sums.mass.data, *const value = sums.value.data;
  const auto add = [=, n = sums.value.columns](const auto& times_mass) {
#pragma GCC ivdep
    for (Index c = 0; c < n; ++c) {
      const T difference = x[c] - scale[c];
      const bool grows = difference > T(0);
      const T smaller = exp(grows ? -difference : difference);  // ratio of the smaller exp(scale) to the larger
      const T before = grows ? smaller : T(1), now = grows ? T(1) : smaller;
      scale[c] = grows ? x[c] : scale[c];
      mass[c] = mass[c] * before + times_mass(now, c);
      value[c] = value[c] * before + now * added_value[c];
    }
  };
  // Two loops: in a single loop the compiler would load a missing mass with all lanes masked off, and a masked load
  // from an invalid address takes a hundred cycles.
  if (added_mass)
    add([=](T now, Index c) { return now * added_mass[c]; });
  else
    add([](T now, Index) { return now; });
}

/// Returns the counts for n channels.
inline Counts exp_sums_add_counts(Index n, bool has_mass) {
  return n * Counts{.mul = 3 + has_mass, .add = 3, .exp = 1, .cmp = 1};
}

/// Computes the gradients of one key and its value from sums over the queries, exp(scale) (mass, value):
///   e = exp(k + scale),   dv (+)= e mass,   dk (+)= e ((v - origin) mass - value).
/// All operands are single rows; origin [n], or nullptr for zeros. Fast float: error at most 5e-7 + 6.5e-8 |k + scale|
/// relative to e (|v - origin| |mass| + |value|); if e underflows, 6e-38 times the factor of e.
template <class T>
void exp_sums_at_key(KeysAndValuesFor<T> key, ExpSumsFor<T> queries, Update update, KeysAndValues<T> gradient,
                     const std::type_identity_t<T>* origin = nullptr) {
  const T *const k = key.k.data, *const v = key.v.data;
  const T *const scale = queries.scale.data, *const mass = queries.mass.data, *const value = queries.value.data;
  T *const dk = gradient.k.data, *const dv = gradient.v.data;
#pragma GCC ivdep
  for (Index c = 0; c < gradient.k.columns; ++c) {
    const T e = exp(k[c] + scale[c]);
    write(update, dv[c], e * mass[c]);
    write(update, dk[c], e * ((origin ? v[c] - origin[c] : v[c]) * mass[c] - value[c]));
  }
}

/// Returns the counts if there is no origin.
inline Counts exp_sums_at_key_counts(Index n, Update update) {
  return n * Counts{.mul = 3, .add = update == Update::assign ? 2 : 4, .exp = 1};
}
inline Counts exp_sums_at_key_contractions(Index keys, Index n) { return keys * n * Counts{.mul = 2, .add = 2}; }

/// Computes the gradient of one mean y = sum_s p_s v_s, p_s = exp(k[s] + bias[s] - scale) / mass, at some keys:
///   h = exp(k + bias - scale) G,   dv (+)= h,   dk (+)= h (v - y),   dbias[s] += sum over channels of h (v - y).
/// bias, dbias [keys].
template <class T>
void exp_sums_backward(KeysAndValuesFor<T> keys, const std::type_identity_t<T>* bias,
                       const std::type_identity_t<WeightedMeans<T>>& mean, Update update, KeysAndValues<T> gradient,
                       std::type_identity_t<T>* dbias) {
  const T *const scale = mean.scale.data, *const y = mean.y.data, *const G = mean.G.data;
  for (Index s = 0; s < keys.k.rows; ++s) {
    const T *const k = keys.k[s], *const v = keys.v[s];
    T *const dk = gradient.k[s], *const dv = gradient.v[s];
    T sum{};
    for (Index c = 0; c < keys.k.columns; ++c) {
      const T h = exp(relative_exponent(k[c], bias[s], scale[c])) * G[c];
      const T dx = h * (v[c] - y[c]);
      write(update, dv[c], h);
      write(update, dk[c], dx);
      write(term_update(c), sum, dx);
    }
    dbias[s] += sum;
  }
}

/// Return the counts, and the contractions as counted in papers, for `keys` keys with n channels.
inline Counts exp_sums_backward_counts(Index keys, Index n, Update update) {
  return keys * n * Counts{.mul = 2, .add = update == Update::assign ? 4 : 6, .exp = 1};
}
inline Counts exp_sums_backward_contractions(Index keys, Index n) { return keys * n * Counts{.mul = 2, .add = 3}; }

/// Computes e = exp(x - max x) for the columns [first, last) of a row x [1, n], last > first, and 0 in the other
/// columns; returns the maximum. e may be x. Fast float: relative error of e at most 3e-7 + 6.5e-8 |x - max x|, or
/// 6e-38 if e underflows. e is NaN where x is; the maximum, and so the rest of the row, is then unspecified.
template <class T>
T exp_of_row(MatrixFor<T> x, Index first, Index last, Matrix<T> e) {
  const T* const from = x.data;
  T* const to = e.data;
  T maximum = from[first];
  for (Index s = first + 1; s < last; ++s) maximum = from[s] > maximum ? from[s] : maximum;
  std::fill(to, to + first, T(0));
  for (Index s = first; s < last; ++s) to[s] = exp(from[s] - maximum);
  std::fill(to + last, to + e.columns, T(0));
  return maximum;
}

/// Returns the counts for `columns` = last - first.
inline Counts exp_of_row_counts(Index columns) { return {.add = columns, .exp = columns, .cmp = columns - 1}; }

/// Computes f[s] = (e, e (v[s] - origin)) for e = exp(k[s] - max k), with the maximum over the keys of each column,
/// which is written to `maximum` [n]. f [keys, 2 n]; at least one key; origin [n], or nullptr for zeros. Fast float:
/// error at most 3e-7 + 6.5e-8 |k - max k| relative to e and to e |v - origin|, or 6e-38 if these underflow. f is NaN
/// where a key is; the maximum, and so the rest of that column, is then unspecified.
template <class T>
void exp_of_columns(KeysAndValuesFor<T> keys, T* maximum, Matrix<T> f,
                    const std::type_identity_t<T>* origin = nullptr) {
  const Index n = keys.k.columns;
  for (Index c = 0; c < n; ++c) maximum[c] = keys.k(0, c);
  for (Index s = 1; s < keys.k.rows; ++s) {
    const T* const k = keys.k[s];
    for (Index c = 0; c < n; ++c) maximum[c] = k[c] > maximum[c] ? k[c] : maximum[c];
  }
  for (Index s = 0; s < keys.k.rows; ++s) {
    const T *const k = keys.k[s], *const v = keys.v[s];
    T *const e = f[s], *const ev = e + n;
    for (Index c = 0; c < n; ++c) {
      e[c] = exp(k[c] - maximum[c]);
      ev[c] = e[c] * (origin ? v[c] - origin[c] : v[c]);
    }
  }
}

/// Returns the counts if there is no origin.
inline Counts exp_of_columns_counts(Index keys, Index n) {
  return n * Counts{.mul = keys, .add = keys, .exp = keys, .cmp = keys - 1};
}

}  // namespace reference

#ifndef HEED_NO_SIMD
/// Fast versions for float.
float exp_of_row(Matrix<const float> x, Index first, Index last, Matrix<float> e);
void exp_sums_of(KeysAndValues<const float> keys, const float* bias, ExpSums<float> sums);
void exp_sums_at_key(KeysAndValues<const float> key, ExpSums<const float> queries, Update update,
                     KeysAndValues<float> gradient, const float* origin = nullptr);
void exp_of_columns(KeysAndValues<const float> keys, float* maximum, Matrix<float> f, const float* origin = nullptr);
#endif

}  // namespace heed::kernels
