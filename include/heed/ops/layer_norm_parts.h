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

/// y = norm(x) + r: layer norm of the first gamma_0.size() channels of each row of x [..., n], of the gamma_1.size()
/// after them, and so on; the parts, at most three, make up the whole row. residual r [..., n] or left out. As
/// layer_norm (ops/layer_norm.h), part by part; dr += dy.
template <class T>
Var<T> layer_norm_parts(Var<T> x, std::span<const NormPart<T>> list, Var<T> residual = {}, double eps = 1e-6) {
  constexpr std::size_t most = 3;
  require(!list.empty() && list.size() <= most, "[layer_norm_parts] {} parts; expected 1 to {}", list.size(), most);
  Tape<T>& tape = tape_of("layer_norm_parts", x, residual);
  const Index count = static_cast<Index>(list.size()), rows = x.shape().rows(), n = x.shape().row_size();
  require(!residual || residual.shape() == x.shape(), "[layer_norm_parts] the residual has shape {}; expected {}",
          residual ? residual.shape() : Shape{}, x.shape());
  std::array<NormPart<T>, most> parts{};
  std::copy(list.begin(), list.end(), parts.begin());
  std::array<Index, most + 1> first{};
  Cost cost;
  cost.forward.add = residual ? rows * n : 0;
  for (std::size_t p = 0; p < list.size(); ++p) {
    const Index width = parts[p].gamma.size();
    require(parts[p].gamma.shape() == Shape{width} && parts[p].beta.shape() == Shape{width},
            "[layer_norm_parts] gamma has shape {}, beta {}; expected two vectors of one length",
            parts[p].gamma.shape(), parts[p].beta.shape());
    first[p + 1] = first[p] + width;
    cost.forward += kernels::layer_norm_forward_counts(rows, width);
    cost.backward +=
        kernels::layer_norm_backward_counts(rows, width) + kernels::layer_norm_parameter_counts(rows, width);
  }
  require(first[list.size()] == n, "[layer_norm_parts] x has rows of {}, the parts make up {}; they must match", n,
          first[list.size()]);

  T* const mean = tape.memory(count * rows);
  T* const scale = tape.memory(count * rows);
  // Calls f(part, its first channel, its width, where its means and scales are) for each part.
  const auto for_parts = [=](const auto& f) {
    for (std::size_t p = 0; p < static_cast<std::size_t>(count); ++p)
      f(parts[p], first[p], first[p + 1] - first[p], static_cast<Index>(p) * rows);
  };
  return tape.record(
      {"layer_norm_parts", cost}, x.shape(),
      {x, parts[0].gamma, parts[0].beta, parts[1].gamma, parts[1].beta, parts[2].gamma, parts[2].beta, residual},
      [=](T* y) {
        const T *const px = x.data(), *const pr = residual ? residual.data() : nullptr;
        for_row_ranges(rows, 4 * n, [=](Index begin, Index end) {
          for_parts([=](const NormPart<T>& part, Index channel, Index width, Index statistics) {
            const Index at = begin * n + channel;
            kernels::layer_norm_forward(end - begin, width, n, px + at, part.gamma.data(), part.beta.data(), eps,
                                        pr ? pr + at : nullptr, y + at, mean + statistics + begin,
                                        scale + statistics + begin);
          });
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const T *const px = x.data(), *const pdy = dy.data();
        T* const sums = tape.memory(2 * n);  // dgamma of all parts, then dbeta
        sum_over_row_ranges(
            tape, rows, 2 * n, 2 * n, Update::assign, sums, [=](Index begin, Index end, Update update, T* sum) {
              for_parts([=](const NormPart<T>&, Index channel, Index width, Index statistics) {
                const Index at = begin * n + channel;
                kernels::layer_norm_parameter_gradients(end - begin, width, n, px + at, mean + statistics + begin,
                                                        scale + statistics + begin, pdy + at, update, sum + channel,
                                                        sum + n + channel);
              });
            });
        for_parts([=, &tape](const NormPart<T>& part, Index channel, Index width, Index) {
          if (const auto dgamma = tape.target(part.gamma)) write_all(dgamma.update, width, sums + channel, dgamma.data);
          if (const auto dbeta = tape.target(part.beta)) write_all(dbeta.update, width, sums + n + channel, dbeta.data);
        });
        if (const auto dx = tape.target(x))
          for_row_ranges(rows, 6 * n, [=](Index begin, Index end) {
            for_parts([=](const NormPart<T>& part, Index channel, Index width, Index statistics) {
              const Index at = begin * n + channel;
              kernels::layer_norm_backward(end - begin, width, n, px + at, part.gamma.data(), mean + statistics + begin,
                                           scale + statistics + begin, pdy + at, dx.update, dx.data + at);
            });
          });
        if (residual) dy.give_to(residual);
      });
}

}  // namespace heed
