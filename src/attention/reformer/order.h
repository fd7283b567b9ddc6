// Part of Reformer (reformer.cpp): tokens in the order of their buckets. Indices and buckets are integers, stored in
// the number type of all other memory; float represents them exactly up to 2^24.
#pragma once

#include "heed/attention/mechanism_base.h"

namespace heed {

/// Sorts the tokens by bucket, stably: order[p] is the token at position p. buckets and order [N]; starts
/// [bucket_count] is scratch memory. A counting sort: values of type T are neither compared nor added, so Counted
/// counts nothing.
template <class T>
void sort_by_bucket(Index tokens, const T* buckets, Index bucket_count, T* starts, T* order) {
  const auto number = [](Index i) { return T(static_cast<double>(i)); };
  const auto start_of = [&](Index token) -> T& { return starts[as_index(buckets[token])]; };
  const auto increment = [&](T& count) { count = number(as_index(count) + 1); };
  std::fill_n(starts, bucket_count, T(0));
  for (Index i = 0; i < tokens; ++i) increment(start_of(i));
  Index before = 0;
  for (Index b = 0; b < bucket_count; ++b) {
    const Index count = as_index(starts[b]);
    starts[b] = number(before);
    before += count;
  }
  for (Index i = 0; i < tokens; ++i) {
    T& next = start_of(i);
    order[as_index(next)] = number(i);
    increment(next);
  }
}

/// Computes to[p] = from[order[p]], row by row.
template <class T>
void gather_rows(const T* order, Matrix<const T> from, Matrix<T> to) {
  for (Index p = 0; p < to.rows; ++p) std::copy_n(from[as_index(order[p])], to.columns, to[p]);
}

/// Computes to[order[p]] (+)= from[p], row by row.
template <class T>
void scatter_rows(const T* order, Matrix<T> from, Update update, Matrix<T> to) {
  for (Index p = 0; p < from.rows; ++p) write_all(update, from.columns, from[p], to[as_index(order[p])]);
}

}  // namespace heed
