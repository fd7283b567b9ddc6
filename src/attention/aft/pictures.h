// Part of AFT (aft.cpp): pictures of its weights. They differ between channels, so AFT has no attention map. The
// pictures are means over groups of channels; the keys of conv have one channel per head, so each head is a group:
//
//   weights   mean_c exp(k[s,c] + w[t,s]) / sum_s exp(k[s,c] + w[t,s])     relative weight of key s for query t
//   keys      mean_c exp(k[s,c] - max_s k[s,c])                            shifting a channel has no effect
#pragma once

#include "heed/attention/capabilities/pictures.h"
#include "heed/base/math.h"

#include <algorithm>
#include <limits>

namespace heed {

struct AftPictures {
  const Heads<const float>& k;

  /// Returns the descriptions of the pictures that every variant has; `part` is "head" or "group".
  static std::vector<PictureInfo> infos(const char* part) {
    return {{"weights", "AFT's relative weights exp(k + w)", PictureAxes::pairs, part},
            {"keys", "AFT's keys, exp(k) relative to the largest of all tokens", PictureAxes::tokens, part}};
  }

  /// Returns the biases with -inf, for masked pairs, replaced by 0.
  static Tensor<float> without_infinities(Tensor<float> biases) {
    std::replace(biases.begin(), biases.end(), -std::numeric_limits<float>::infinity(), 0.0f);
    return biases;
  }

  /// Returns the weights [parts, N, M], from the biases of all pairs [heads, N, M].
  Tensor<float> weights(const Tensor<float>& biases) const {
    const Index N = biases.shape()[1], M = biases.shape()[2];
    Tensor<float> weights(Shape{parts(), N, M});
    std::vector<float> row(static_cast<std::size_t>(M));
    for (Index part = 0; part < parts(); ++part) {
      const Matrix<const float> x = keys_of(part);
      for (Index t = 0; t < N; ++t)
        for (Index c = 0; c < x.columns; ++c) {
          const float* const w = biases.data() + ((k.count > 1 ? part : 0) * N + t) * M;
          for (Index s = 0; s < M; ++s) row[static_cast<std::size_t>(s)] = x(s, c) + w[s];
          add_exponentials(row, true, x.columns, weights.data() + (part * N + t) * M);
        }
    }
    return weights;
  }

  /// Returns the keys [parts, M].
  Tensor<float> keys() const {
    const Index M = k.first.rows;
    Tensor<float> keys(Shape{parts(), M});
    std::vector<float> column(static_cast<std::size_t>(M));
    for (Index part = 0; part < parts(); ++part) {
      const Matrix<const float> x = keys_of(part);
      for (Index c = 0; c < x.columns; ++c) {
        for (Index s = 0; s < M; ++s) column[static_cast<std::size_t>(s)] = x(s, c);
        add_exponentials(column, false, x.columns, keys.data() + part * M);
      }
    }
    return keys;
  }

 private:
  /// Returns the number of heads or, for a single head, of channel groups: the largest divisor of the channel count
  /// that is at most 8.
  Index parts() const {
    if (k.count > 1 || k.first.columns == 1) return k.count;
    Index groups = std::min<Index>(k.first.columns, 8);
    while (k.first.columns % groups != 0) --groups;
    return groups;
  }
  Matrix<const float> keys_of(Index part) const {
    if (k.count > 1) return k[part];
    const Index channels = k.first.columns / parts();
    return k[0].middle_columns(part * channels, channels);
  }

  /// Adds to `to` exp(x - max x), or softmax(x) if `relative`, divided by `channels`, the number of channels in the
  /// mean.
  static void add_exponentials(const std::vector<float>& x, bool relative, Index channels, float* to) {
    const float largest = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (const float exponent : x) sum += math::exp(exponent - largest);
    const auto factor = static_cast<float>(1 / (static_cast<double>(channels) * (relative ? sum : 1)));
    for (const float exponent : x) *to++ += factor * math::exp(exponent - largest);
  }
};

}  // namespace heed
