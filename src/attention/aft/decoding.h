// Part of AFT (aft.cpp): causal full, local and simple decode a sequence token by token.
//
// The state holds the keys and values of the last `window` tokens, since exp(w[t, s]) is not a product of a function of
// t and a function of s. If queries also see the tokens before these, it holds sums over them of exp(k - c) and
// exp(k - c) v, where c is their largest k, channel by channel.
#pragma once

#include "src/attention/shared/decoding.h"

#include "heed/kernels/elements/gate.h"
#include "heed/kernels/rows/rows.h"

namespace heed {

class AftDecoding {
 public:
  AftDecoding(bool full, Index window, bool masked, bool query, Index rank, const AttentionShape& shape)
      : sums_(!masked && !full), query_(query), rank_(rank), D_(shape.width), room_(std::min(window, shape.longest)) {}

  AttentionStateSize size(Index tokens) const {
    return {.state = (sums_ ? 3 * D_ : 0) + 2 * std::min(tokens, room_) * D_, .scratch = room_ + 3 * D_};
  }

  template <class T>
  void run(const AttentionDecoding<T>& call) const {
    const auto& [in, t, out, state, unused, scratch] = call;
    MemoryLayout<T> layout(state), scratch_layout(scratch);
    const Sums<T> before{layout.numbers(sums_ ? D_ : 0), layout.numbers(sums_ ? D_ : 0),
                         layout.numbers(sums_ ? D_ : 0)};
    const Heads<T> k = kept_rows(1, room_, D_, layout), v = kept_rows(1, room_, D_, layout);
    T* const w = scratch_layout.numbers(room_);
    const Sums<T> all{scratch_layout.numbers(D_), scratch_layout.numbers(D_), scratch_layout.numbers(D_)};
    // 1. Adds the token that leaves the window to the sums; without a window, adds token t.
    const Index left = t - room_;  // the last token before the window
    if (sums_ && left >= 0)
      add(left == 0, room_ > 0 ? k[0][t % room_] : in.k[0][0], room_ > 0 ? v[0][t % room_] : in.v[0][0], before);
    if (room_ > 0) keep_row(in.k, t, k), keep_row(in.v, t, v);
    // 2. Finds the largest exponent of each channel, then computes the sums over all tokens that t sees.
    const Index first = std::max<Index>(left + 1, 0);
    const bool any = sums_ && left >= 0;
    for (Index c = 0; c < D_; ++c)
      all.largest[c] = any ? before.largest[c] : k[0](first % room_, c) + bias(in, t, first);
    for (Index s = first; s <= t && room_ > 0; ++s) {
      const T* const key = k[0][s % room_];
      const T b = w[s - first] = bias(in, t, s);
      for (Index c = 0; c < D_; ++c) all.largest[c] = std::max(all.largest[c], key[c] + b);
    }
    for (Index c = 0; c < D_; ++c) {
      const T scale = any ? exp_of(before.largest[c] - all.largest[c]) : T(0);
      all.mass[c] = any ? scale * before.mass[c] : T(0);
      all.value[c] = any ? scale * before.value[c] : T(0);
    }
    for (Index s = first; s <= t && room_ > 0; ++s) {
      const T *const key = k[0][s % room_], *const value = v[0][s % room_];
      const T b = w[s - first];
      for (Index c = 0; c < D_; ++c) {
        const T e = exp_of(key[c] + b - all.largest[c]);
        all.mass[c] += e;
        all.value[c] += e * value[c];
      }
    }
    // 3. out = sigma(q) value / mass
    for (Index c = 0; c < D_; ++c) {
      const T y = all.value[c] / all.mass[c];
      out[0](0, c) = query_ ? kernels::logistic(in.q[0](0, c)) * y : y;
    }
  }

 private:
  /// Sums of exp(x - largest) and exp(x - largest) v over tokens, for each channel.
  template <class T>
  struct Sums {
    T *largest, *mass, *value;
  };

  template <class T>
  static T exp_of(T x) {
    using kernels::exp;
    return exp(x);
  }

  template <class T>
  void add(bool first, const T* k, const T* v, const Sums<T>& sums) const {
    for (Index c = 0; c < D_; ++c) {
      const T largest = first ? k[c] : std::max(sums.largest[c], k[c]);
      const T scale = first ? T(0) : exp_of(sums.largest[c] - largest), e = exp_of(k[c] - largest);
      sums.mass[c] = first ? e : scale * sums.mass[c] + e;
      sums.value[c] = first ? e * v[c] : scale * sums.value[c] + e * v[c];
      sums.largest[c] = largest;
    }
  }

  /// Returns w[t, s].
  template <class T>
  T bias(const AttentionInput<T>& in, Index t, Index s) const {
    const auto row = [](const View<const T>& tensor, Index r) { return tensor.data() + r * tensor.shape()[1]; };
    if (rank_ == 0) return row(in.parameters[0], t)[s];
    const T *const u = row(in.parameters[0], t), *const p = row(in.parameters[1], s);
    T sum;
    kernels::row_dots(Matrix<const T>(u, 1, rank_), Matrix<const T>(p, 1, rank_), &sum);
    return sum;
  }

  bool sums_;  ///< true if queries also see the keys before the window
  bool query_;
  Index rank_, D_, room_;
};

}  // namespace heed
