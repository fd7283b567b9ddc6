// Layer normalisation of parts of rows, each by itself: the queries, keys and values in the output of one projection.
#pragma once

#include "heed/kernels/layer_norm.h"
#include "heed/ops/rows.h"

#include <array>
#include <span>

namespace heed {

/// Consecutive channels that are normalised together: as many as gamma and beta have.
template <class T>
struct NormPart {
  Var<T> gamma, beta;
};

/// Layer norm of the first gamma_0.size() channels of each row of x [..., n], of the gamma_1.size() after them, and
/// so on; the parts, at most three, make up the whole row. As layer_norm (ops/layer_norm.h), part by part.
template <class T>
Var<T> layer_norm_parts(Var<T> x, std::span<const NormPart<T>> list, double eps = 1e-6) {
  constexpr std::size_t most = 3;
  require(!list.empty() && list.size() <= most, "[layer_norm_parts] {} parts; expected 1 to {}", list.size(), most);
  Tape<T>& tape = tape_of("layer_norm_parts", x);
  const std::size_t count = list.size();
  const Index rows = x.shape().rows(), n = x.shape().row_size();
  std::array<NormPart<T>, most> parts{};
  std::copy(list.begin(), list.end(), parts.begin());
  std::array<Index, most + 1> first{};
  Cost cost;
  for (std::size_t p = 0; p < count; ++p) {
    const Index width = parts[p].gamma.size();
    require(parts[p].gamma.shape() == Shape{width} && parts[p].beta.shape() == Shape{width},
            "[layer_norm_parts] gamma has shape {}, beta {}; expected two vectors of one length",
            parts[p].gamma.shape(), parts[p].beta.shape());
    first[p + 1] = first[p] + width;
    cost.forward += rows * Counts{.mul = 3 * width, .add = 5 * width - 1, .div = 3, .sqrt = 1};
    cost.backward += rows * Counts{.mul = 7 * width, .add = 6 * width - 2, .div = 2} +
                     Counts{.mul = 2 * rows * width, .add = rows * width + 2 * (rows - 1) * width};
  }
  require(first[count] == n, "[layer_norm_parts] x has rows of {}, the parts make up {}; they must match", n,
          first[count]);

  T* const mean = tape.memory(rows * static_cast<Index>(count));
  T* const scale = tape.memory(rows * static_cast<Index>(count));
  // Calls f(p, position of part p in x, position of its mean and scale, width) for the parts of each row.
  const auto for_parts = [=](Index begin, Index end, const auto& f) {
    for (Index r = begin; r < end; ++r)
      for (std::size_t p = 0; p < count; ++p)
        f(p, r * n + first[p], r * static_cast<Index>(count) + static_cast<Index>(p), first[p + 1] - first[p]);
  };
  return tape.record(
      {"layer_norm_parts", cost}, x.shape(),
      {x, parts[0].gamma, parts[0].beta, parts[1].gamma, parts[1].beta, parts[2].gamma, parts[2].beta},
      [=](T* y) {
        const T* const px = x.data();
        for_row_ranges(rows, 4 * n, [=](Index begin, Index end) {
          for_parts(begin, end, [=](std::size_t p, Index at, Index statistic, Index width) {
            kernels::layer_norm_forward(1, width, px + at, parts[p].gamma.data(), parts[p].beta.data(), eps, y + at,
                                        mean + statistic, scale + statistic);
          });
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const T *px = x.data(), *pdy = dy.data();
        T* const sums = tape.memory(2 * n);  // dgamma of all parts, then dbeta
        sum_over_row_ranges(
            tape, rows, 2 * n, 2 * n, Update::assign, sums, [=](Index begin, Index end, Update update, T* sum) {
              for_parts(begin, end, [=](std::size_t p, Index at, Index statistic, Index width) {
                const bool starts = at - first[p] == begin * n;
                kernels::layer_norm_parameter_gradients(1, width, px + at, mean + statistic, scale + statistic,
                                                        pdy + at, starts ? update : Update::accumulate, sum + first[p],
                                                        sum + n + first[p]);
              });
            });
        for (std::size_t p = 0; p < count; ++p) {
          const auto dgamma = tape.target(parts[p].gamma), dbeta = tape.target(parts[p].beta);
          for (Index i = first[p]; i < first[p + 1]; ++i) {
            if (dgamma) write(dgamma.update, dgamma.data[i - first[p]], sums[i]);
            if (dbeta) write(dbeta.update, dbeta.data[i - first[p]], sums[n + i]);
          }
        }
        if (const auto dx = tape.target(x))
          for_row_ranges(rows, 6 * n, [=](Index begin, Index end) {
            for_parts(begin, end, [=](std::size_t p, Index at, Index statistic, Index width) {
              kernels::layer_norm_backward(1, width, px + at, parts[p].gamma.data(), mean + statistic,
                                           scale + statistic, pdy + at, dx.update, dx.data + at);
            });
          });
      });
}

}  // namespace heed
