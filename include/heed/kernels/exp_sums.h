// Exponential sums, kept so that they neither overflow nor vanish. A sum over keys s, channel by channel,
//
//   sum_s exp(x_s) (mass_s, value_s)   is kept as   exp(scale) (mass, value),
//
// where scale is the largest x of its own keys up to rounding, so no term is larger than its weight and the largest
// is not lost. Every exponent is taken relative to the rounded scale, and large numbers are subtracted first,
// (x - scale) + bias, so that x + 1000 gives what x gives.
//
// All numbers are finite; where the true sum is a sum of positive terms its relative error is a few eps for each
// addition, whatever the range of x.
//
// What is written overlaps nothing that is read: the compiler is told so (ivdep), for it would have to compare too many
// pointers to see it.
#pragma once

#include "heed/kernels/exp.h"
#include "heed/kernels/update.h"
#include "heed/base/tensor.h"

#include <cmath>

namespace heed::kernels {

/// A row of n exponential sums, one per channel.
template <class T>
struct ExpSums {
  T *scale, *mass, *value;

  /// The row `offset` numbers further on.
  ExpSums at(Index offset) const { return {scale + offset, mass + offset, value + offset}; }
};

/// sums = the sum over `keys` >= 1 keys of exp(k[s,c] + bias[s]) (1, v[s,c]), in two passes: maximum, then sum.
/// k, v [keys, n], rows k_stride and v_stride apart; bias [keys], or nullptr for zeros.
/// Counts per channel: keys - 1 cmp, keys exp, keys mul, 3 keys - 2 add; with a bias 2 keys add more.
template <class T>
void exp_sums_of(Index keys, Index n, const T* k, Index k_stride, const T* v, Index v_stride, const T* bias,
                 ExpSums<T> sums) {
  for (Index s = 0; s < keys; ++s)
    for (Index c = 0; c < n; ++c) {
      const T x = bias ? k[s * k_stride + c] + bias[s] : k[s * k_stride + c];
      if (s == 0)
        sums.scale[c] = x;
      else
        sums.scale[c] = x > sums.scale[c] ? x : sums.scale[c];
    }
  for (Index s = 0; s < keys; ++s) {
    const Update update = s == 0 ? Update::assign : Update::accumulate;
    const T b = bias ? bias[s] : T(0);
#pragma GCC ivdep
    for (Index c = 0; c < n; ++c) {
      const T distance = k[s * k_stride + c] - sums.scale[c];
      const T e = exp(bias ? distance + b : distance);
      write(update, sums.mass[c], e);
      write(update, sums.value[c], e * v[s * v_stride + c]);
    }
  }
}

/// sums += exp(x) (mass, value), channel by channel; mass may be nullptr for ones. A key x = k, value = v is added so,
/// and another row of sums. Counts per channel: 1 cmp, 1 exp, 3 add, 3 mul, 1 mul more with a mass.
template <class T>
void exp_sums_add(Index n, const T* x, const T* mass, const T* value, ExpSums<T> sums) {
#pragma GCC ivdep
  for (Index c = 0; c < n; ++c) {
    const T difference = x[c] - sums.scale[c];
    const bool grows = difference > T(0);
    const T smaller = exp(grows ? -difference : difference);  // the smaller part relative to the larger
    const T before = grows ? smaller : T(1), added = grows ? T(1) : smaller;
    sums.scale[c] = grows ? x[c] : sums.scale[c];
    sums.mass[c] = sums.mass[c] * before + (mass ? added * mass[c] : added);
    sums.value[c] = sums.value[c] * before + added * value[c];
  }
}

/// The gradient of sums over queries at one key: with the queries' sums exp(scale) (mass, value),
///   e = exp(k + scale),   dv (+)= e mass,   dk (+)= e (v mass - value).
/// Counts per channel: 1 exp, 2 add, 3 mul; 2 add more to accumulate.
template <class T>
void exp_sums_at_key(Index n, const T* k, const T* v, ExpSums<T> queries, Update update, T* dk, T* dv) {
#pragma GCC ivdep
  for (Index c = 0; c < n; ++c) {
    const T e = exp(k[c] + queries.scale[c]);
    write(update, dv[c], e * queries.mass[c]);
    write(update, dk[c], e * (v[c] * queries.mass[c] - queries.value[c]));
  }
}

/// The gradient of one query's weighted mean y = sum_s p_s v_s, p_s = exp(k[s] + bias[s] - scale) / mass, at `keys`
/// keys, given dy / mass:
///   h = exp(k + bias - scale) dy / mass,   dv (+)= h,   dk (+)= h (v - y),   dbias[s] = sum over channels of h (v -
///   y).
/// All arrays as in exp_sums_of; dk, dv have strides of their own.
/// Counts per key and channel: 1 exp, 3 add, 2 mul, 2 add more to accumulate; per key n - 1 add.
template <class T>
void exp_sums_backward(Index keys, Index n, const T* k, Index k_stride, const T* v, Index v_stride, const T* bias,
                       const T* scale, const T* dy_by_mass, const T* y, Update update, T* dk, Index dk_stride, T* dv,
                       Index dv_stride, T* dbias) {
  for (Index s = 0; s < keys; ++s)
    for (Index c = 0; c < n; ++c) {
      const T h = exp((k[s * k_stride + c] - scale[c]) + bias[s]) * dy_by_mass[c];
      const T dx = h * (v[s * v_stride + c] - y[c]);
      write(update, dv[s * dv_stride + c], h);
      write(update, dk[s * dk_stride + c], dx);
      write(c == 0 ? Update::assign : Update::accumulate, dbias[s], dx);
    }
}

/// e = exp(x - max x) for x[first..last) and 0 in the rest of [0, n); returns the maximum. e may be x. last > first.
/// Counts for m = last - first: m - 1 cmp, m add, m exp.
template <class T>
T exp_of_row(Index n, Index first, Index last, const T* x, T* e) {
  T maximum = x[first];
  for (Index s = first + 1; s < last; ++s) maximum = x[s] > maximum ? x[s] : maximum;
  for (Index s = 0; s < first; ++s) e[s] = T(0);
  for (Index s = first; s < last; ++s) e[s] = exp(x[s] - maximum);
  for (Index s = last; s < n; ++s) e[s] = T(0);
  return maximum;
}

/// f[s] = (exp(k[s] - max k), exp(k[s] - max k) v[s]) with the maximum over the rows of each column, kept in `maximum`
/// [n]. k, v [keys, n], rows k_stride and v_stride apart; f [keys, 2 n]. keys >= 1.
/// Counts per channel: keys - 1 cmp, keys add, keys exp, keys mul.
template <class T>
void exp_of_columns(Index keys, Index n, const T* k, Index k_stride, const T* v, Index v_stride, T* maximum, T* f) {
  for (Index c = 0; c < n; ++c) maximum[c] = k[c];
  for (Index s = 1; s < keys; ++s)
    for (Index c = 0; c < n; ++c) maximum[c] = k[s * k_stride + c] > maximum[c] ? k[s * k_stride + c] : maximum[c];
  for (Index s = 0; s < keys; ++s)
    for (Index c = 0; c < n; ++c) {
      f[s * 2 * n + c] = exp(k[s * k_stride + c] - maximum[c]);
      f[s * 2 * n + n + c] = f[s * 2 * n + c] * v[s * v_stride + c];
    }
}

#ifndef HEED_REFERENCE
void exp_sums_of(Index keys, Index n, const float* k, Index k_stride, const float* v, Index v_stride, const float* bias,
                 ExpSums<float> sums);
void exp_of_columns(Index keys, Index n, const float* k, Index k_stride, const float* v, Index v_stride, float* maximum,
                    float* f);
#endif

}  // namespace heed::kernels
