// Part of AFT (aft.cpp): the sums over keys without a position bias, in local and simple.
//
//   exp(scale[t,c]) (mass[t,c], value[t,c]) += sum_s exp(k[s,c]) (1, v[s,c])   over the keys s outside the window of t
//
// The sets of keys before the windows of queries t and t + 1 differ in one key, so running sums serve all queries in
// O(N D); likewise for the keys after the windows.
#pragma once

#include "bias.h"

namespace heed {

struct AftUnbiased {
  AftReach reach;
  Index channels;

  template <class T>
  using ExpSums = kernels::ExpSums<T>;

  /// Return the number of keys before, or after, the window of at least one query.
  Index keys_before() const { return reach(reach.rows() - 1).before; }
  Index keys_after() const { return reach.keys - reach(0).after; }
  /// Returns the number of keys that are before one window and after another.
  Index twice() const { return std::max<Index>(keys_before() + keys_after() - reach.keys, 0); }
  /// Returns the number of keys without a bias for some query.
  Index keys() const { return keys_before() + keys_after() - twice(); }

  /// Adds the unbiased keys to each query's sums, or writes the sums if no key is biased. `running`: one row of sums.
  template <class T>
  void forward(const AttentionInput<T>& in, const ExpSums<T>& sums, const ExpSums<T>& running) const {
    sum_before(in, sums, running);
    sum_after(in, sums, running);
  }

  /// Computes the gradients of the unbiased keys; `queries` holds exp(-scale) (dy / mass, (y - origin) dy / mass) of
  /// each query.
  template <class T>
  void backward(const AttentionInput<T>& in, const ExpSums<T>& queries, const T* origin, const ExpSums<T>& running,
                const AttentionGradient<T>& gradient) const {
    sum_after_backward(in, queries, origin, running, gradient);
    sum_before_backward(in, queries, origin, running, gradient);
  }

  /// Returns the counts of running sums over the keys before and after windows, and of adding them to queries' sums.
  Counts forward_counts() const {
    const Counts add_key = kernels::exp_sums_add_counts(channels, false);
    Counts counts;
    if (keys_before() > 0) {
      Index first = 0;
      for (Index t = 0; first == 0; ++t) first = reach(t).before;
      counts += kernels::exp_sums_of_counts(first, channels, false) + (keys_before() - first) * add_key;
    }
    if (keys_after() > 0) counts += kernels::exp_sums_of_counts(1, channels, false) + (keys_after() - 1) * add_key;
    if (reach.window > 0) counts += (queries_after_some() + queries_before_some()) * join_counts();
    return counts;
  }

  /// Returns the counts of the running sums over queries, and of the gradients of keys before or after windows.
  Counts backward_counts() const {
    Counts counts;
    if (keys_after() > 0) counts += (queries_before_some() - 1) * join_counts();
    if (keys_before() > 0) counts += (queries_after_some() - 1) * join_counts();
    return counts + keys() * kernels::exp_sums_at_key_counts(channels, Update::assign) +
           twice() * kernels::exp_sums_at_key_counts(channels, Update::accumulate);
  }

 private:
  Counts join_counts() const { return kernels::exp_sums_add_counts(channels, true); }
  /// Return the number of queries with keys before, or after, their window.
  Index queries_after_some() const {
    Index count = 0;
    for (Index t = 0; t < reach.rows(); ++t) count += reach(t).before > 0;
    return count;
  }
  Index queries_before_some() const {
    Index count = 0;
    for (Index t = 0; t < reach.rows(); ++t) count += reach(t).after < reach.keys;
    return count;
  }

  template <class T>
  static kernels::KeysAndValues<const T> some_keys(const AttentionInput<T>& in, Index first, Index count) {
    return {in.k[0].middle_rows(first, count), in.v[0].middle_rows(first, count)};
  }

  template <class T>
  void sum_before(const AttentionInput<T>& in, const ExpSums<T>& sums, const ExpSums<T>& running) const {
    Index seen = 0;
    for (Index t = 0; t < reach.rows(); ++t) {
      const Index before = reach(t).before;
      if (before == 0) continue;
      if (seen == 0) {
        kernels::exp_sums_of(some_keys(in, 0, before), nullptr, running);
        seen = before;
      }
      for (; seen < before; ++seen) add_key(in, seen, running);
      join(t, running, sums);
    }
  }

  template <class T>
  void sum_after(const AttentionInput<T>& in, const ExpSums<T>& sums, const ExpSums<T>& running) const {
    Index seen = reach.keys;
    for (Index t = reach.rows() - 1; t >= 0; --t) {
      const Index after = reach(t).after;
      if (after == reach.keys) continue;
      if (seen == reach.keys) {
        kernels::exp_sums_of(some_keys(in, after, reach.keys - after), nullptr, running);
        seen = after;
      }
      while (seen > after) add_key(in, --seen, running);
      join(t, running, sums);
    }
  }

  template <class T>
  static void add_key(const AttentionInput<T>& in, Index s, const ExpSums<T>& running) {
    kernels::exp_sums_add({in.k[0].middle_rows(s, 1), {}, in.v[0].middle_rows(s, 1)}, running);
  }

  /// Adds the running sums to those of query t, or copies them if no key is biased.
  template <class T>
  void join(Index t, const ExpSums<T>& running, const ExpSums<T>& sums) const {
    if (reach.window == 0)
      copy(running, sums.row(t));
    else
      kernels::exp_sums_add(running, sums.row(t));
  }

  template <class T>
  static void copy(const ExpSums<T>& from, const ExpSums<T>& to) {
    const auto copy_row = [](Matrix<T> row, Matrix<T> to) { std::copy_n(row.data, row.columns, to.data); };
    copy_row(from.scale, to.scale), copy_row(from.mass, to.mass), copy_row(from.value, to.value);
  }

  /// Computes the gradients of keys after windows, in order of increasing s: key s is after the windows of the queries
  /// t with after(t) <= s, whose number grows with s.
  template <class T>
  void sum_after_backward(const AttentionInput<T>& in, const ExpSums<T>& queries, const T* origin,
                          const ExpSums<T>& running, const AttentionGradient<T>& gradient) const {
    Index t = 0;
    for (Index s = reach(0).after; s < reach.keys; ++s) {
      for (; t < reach.rows() && reach(t).after <= s; ++t) add_query(t, t == 0, queries, running);
      at_key(in, s, running, origin, gradient.update, gradient);
    }
  }

  /// Computes the gradients of keys before windows, in order of decreasing s: key s is before the windows of the
  /// queries t with before(t) > s, whose number grows as s falls.
  template <class T>
  void sum_before_backward(const AttentionInput<T>& in, const ExpSums<T>& queries, const T* origin,
                           const ExpSums<T>& running, const AttentionGradient<T>& gradient) const {
    const Index after = reach(0).after;
    Index t = reach.rows() - 1;
    for (Index s = reach(t).before - 1; s >= 0; --s) {
      for (; t >= 0 && reach(t).before > s; --t) add_query(t, t == reach.rows() - 1, queries, running);
      at_key(in, s, running, origin, s >= after ? Update::accumulate : gradient.update, gradient);
    }
  }

  template <class T>
  static void add_query(Index t, bool first, const ExpSums<T>& queries, const ExpSums<T>& running) {
    if (first)
      copy(queries.row(t), running);
    else
      kernels::exp_sums_add(queries.row(t), running);
  }

  template <class T>
  static void at_key(const AttentionInput<T>& in, Index s, const ExpSums<T>& running, const T* origin, Update update,
                     const AttentionGradient<T>& gradient) {
    const kernels::KeysAndValues<T> dkey{gradient.k[0].middle_rows(s, 1), gradient.v[0].middle_rows(s, 1)};
    kernels::exp_sums_at_key(some_keys(in, s, 1), running, update, dkey, origin);
  }
};

}  // namespace heed
