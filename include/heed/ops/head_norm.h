// Layer norm of the queries and keys of each head, in place between a qkv projection and attention.
#pragma once

#include "heed/attention/mechanism.h"
#include "heed/kernels/layer_norm.h"
#include "heed/ops/rows.h"

#include <array>

namespace heed {

/// x [..., layout.total()], each row q, then k, then v of `layout.heads` parts: each part of q becomes
/// gamma (x - mean) / sqrt(variance + eps) + beta with q's gamma and beta [query width], which all heads share, k with
/// its own, and v stays. Saved: mean and 1 / sqrt(variance + eps) of each part.
///
///   dgamma += sum over rows and heads of dy xn,  dbeta likewise of dy,  dx: see kernels/layer_norm.h;  dv += dv
template <class T>
Var<T> head_norm(Var<T> x, const AttentionLayout& layout, Var<T> q_gamma, Var<T> q_beta, Var<T> k_gamma, Var<T> k_beta,
                 double eps = 1e-6) {
  Tape<T>& tape = tape_of("head_norm", x, q_gamma, q_beta, k_gamma, k_beta);
  const Index rows = x.shape().rows(), n = layout.total(), heads = layout.heads;
  require(x.shape().row_size() == n, "[head_norm] x has rows of {}; expected {}", x.shape().row_size(), n);
  const std::array<Var<T>, 2> gamma{q_gamma, k_gamma}, beta{q_beta, k_beta};
  const std::array<Index, 2> width{layout.query_width, layout.key_width}, first{0, heads * width[0]};
  const Index v_first = first[1] + heads * width[1];
  Cost cost;
  std::array<Matrix<T>, 2> statistics;  // of q and of k: a row for each of its parts
  for (std::size_t i = 0; i < 2; ++i) {
    require(gamma[i].shape() == Shape{width[i]} && beta[i].shape() == Shape{width[i]},
            "[head_norm] gamma of {} has shape {}, beta {}; expected [{}]", i == 0 ? "q" : "k", gamma[i].shape(),
            beta[i].shape(), width[i]);
    const Index parts = rows * heads, w = width[i];
    cost.forward += kernels::layer_norm_forward_counts(parts, w);
    cost.backward += kernels::layer_norm_backward_counts(parts, w) + kernels::layer_norm_parameter_counts(parts, w);
    statistics[i] = {tape.memory(2 * parts), parts, 2};
  }
  // Row r's parts of q or of k, in a matrix shaped as x, and their statistics.
  const auto parts_of = [=](auto* row, std::size_t i) { return Matrix(row + first[i], heads, width[i]); };
  const auto statistics_of = [=](Index r, std::size_t i) { return statistics[i].middle_rows(r * heads, heads); };
  return tape.record(
      {"head_norm", cost}, x.shape(), {x, q_gamma, q_beta, k_gamma, k_beta},
      [=](T* y) {
        const Matrix<const T> mx = x.matrix();
        for_row_ranges(rows, 4 * n, [=, my = Matrix<T>(y, rows, n)](Index begin, Index end) {
          for (Index r = begin; r < end; ++r) {
            for (std::size_t i = 0; i < 2; ++i)
              kernels::layer_norm_forward({gamma[i].data(), beta[i].data(), eps}, parts_of(mx[r], i), {},
                                          parts_of(my[r], i), statistics_of(r, i));
            std::copy(mx[r] + v_first, mx[r] + n, my[r] + v_first);
          }
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const Matrix<const T> mx = x.matrix(), mdy = dy.matrix();
        for (std::size_t i = 0; i < 2; ++i) {
          const auto dgamma = tape.target(gamma[i]), dbeta = tape.target(beta[i]);
          const Index w = width[i];
          if (!dgamma && !dbeta) continue;
          const Matrix<T> sums(tape.memory(2 * w), 2, w);
          sum_over_row_ranges(tape, rows, 2 * heads * w, 2 * w, Update::assign, sums.data,
                              [=](Index begin, Index end, Update update, T* share) {
                                for (Index r = begin; r < end; ++r)
                                  kernels::layer_norm_parameter_gradients(
                                      parts_of(mx[r], i), statistics_of(r, i), parts_of(mdy[r], i),
                                      r == begin ? update : Update::accumulate, Matrix<T>(share, 2, w));
                              });
          if (dgamma) write_all(dgamma.update, w, sums[0], dgamma.data);
          if (dbeta) write_all(dbeta.update, w, sums[1], dbeta.data);
        }
        if (const auto dx = tape.target(x))
          for_row_ranges(rows, 6 * n, [=, mdx = dx.matrix(rows, n)](Index begin, Index end) {
            for (Index r = begin; r < end; ++r) {
              for (std::size_t i = 0; i < 2; ++i)
                kernels::layer_norm_backward(gamma[i].data(), parts_of(mx[r], i), statistics_of(r, i),
                                             parts_of(mdy[r], i), dx.update, parts_of(mdx[r], i));
              for (Index j = v_first; j < n; ++j) write(dx.update, mdx(r, j), mdy(r, j));
            }
          });
      });
}

}  // namespace heed
