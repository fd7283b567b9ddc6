#include "heed/ops/head_norm.h"

#include "heed/cost/for_each_number.h"
#include "heed/kernels/rows/layer_norm.h"
#include "heed/ops/rows.h"

#include <array>

namespace heed {

template <class T>
Var<T> head_norm(Var<T> x, const AttentionLayout& layout, const std::type_identity_t<NormPart<T>>& q,
                 const std::type_identity_t<NormPart<T>>& k, double eps) {
  Tape<T>& tape = tape_of("head_norm", x, q.gamma, q.beta, k.gamma, k.beta);
  const std::size_t parts_count = k.gamma ? 2 : 1;
  const Index rows = x.shape().rows(), n = layout.total();
  require(x.shape().row_size() == n, "[head_norm] x has rows of {}; expected {}", x.shape().row_size(), n);
  const std::array<Var<T>, 2> gamma{q.gamma, k.gamma}, beta{q.beta, k.beta};
  const std::array<Index, 2> heads{layout.heads, layout.key_heads}, width{layout.query_width, layout.key_width};
  const std::array<Index, 2> first{0, heads[0] * width[0]};
  const Index v_first = first[1] + heads[1] * width[1];
  Cost cost;
  std::array<Matrix<T>, 2> statistics;  // of q and of k: one row per head of each row of x
  for (std::size_t i = 0; i < parts_count; ++i) {
    require(gamma[i].shape() == Shape{width[i]} && beta[i].shape() == Shape{width[i]},
            "[head_norm] gamma of {} has shape {}, beta {}; expected [{}]", i == 0 ? "q" : "k", gamma[i].shape(),
            beta[i].shape(), width[i]);
    const Index parts = rows * heads[i], w = width[i];
    cost.forward += kernels::layer_norm_forward_counts(parts, w);
    cost.backward += kernels::layer_norm_backward_counts(parts, w) + kernels::layer_norm_parameter_counts(parts, w);
    statistics[i] = {tape.memory(2 * parts), parts, 2};
  }
  // Return the heads of q (i = 0) or k (i = 1) in a row, and the statistics of these heads in row r.
  const auto parts_of = [=](auto* row, std::size_t i) { return Matrix(row + first[i], heads[i], width[i]); };
  const auto statistics_of = [=](Index r, std::size_t i) { return statistics[i].middle_rows(r * heads[i], heads[i]); };
  return tape.record(
      {"head_norm", cost}, x.shape(), {x, q.gamma, q.beta, k.gamma, k.beta},
      [=](T* y) {
        const Matrix<const T> mx = x.matrix();
        for_row_ranges(rows, 4 * n, [=, my = Matrix<T>(y, rows, n)](Index begin, Index end) {
          for (Index r = begin; r < end; ++r) {
            for (std::size_t i = 0; i < parts_count; ++i)
              kernels::layer_norm_forward({gamma[i].data(), beta[i].data(), eps}, parts_of(mx[r], i), {},
                                          parts_of(my[r], i), statistics_of(r, i));
            std::copy(mx[r] + v_first, mx[r] + n, my[r] + v_first);
          }
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const Matrix<const T> mx = x.matrix(), mdy = dy.matrix();
        for (std::size_t i = 0; i < parts_count; ++i) {
          const auto dgamma = tape.target(gamma[i]), dbeta = tape.target(beta[i]);
          const Index w = width[i];
          if (!dgamma && !dbeta) continue;
          const Matrix<T> sums(tape.memory(2 * w), 2, w);
          sum_over_row_ranges(tape, rows, 2 * heads[i] * w, 2 * w, Update::assign, sums.data,
                              [=](Index begin, Index end, Update update, T* share) {
                                for (Index r = begin; r < end; ++r)
                                  kernels::layer_norm_parameter_gradients(
                                      parts_of(mx[r], i), statistics_of(r, i), parts_of(mdy[r], i),
                                      term_update(r - begin, update), Matrix<T>(share, 2, w));
                              });
          if (dgamma) write_all(dgamma.update, w, sums[0], dgamma.data);
          if (dbeta) write_all(dbeta.update, w, sums[1], dbeta.data);
        }
        if (const auto dx = tape.target(x))
          for_row_ranges(rows, 6 * n, [=, mdx = dx.matrix(rows, n)](Index begin, Index end) {
            for (Index r = begin; r < end; ++r) {
              for (std::size_t i = 0; i < parts_count; ++i)
                kernels::layer_norm_backward(gamma[i].data(), parts_of(mx[r], i), statistics_of(r, i),
                                             parts_of(mdy[r], i), dx.update, parts_of(mdx[r], i));
              for (Index j = v_first; j < n; ++j) write(dx.update, mdx(r, j), mdy(r, j));
            }
          });
      });
}

#define INSTANTIATE(T) \
  template Var<T> head_norm(Var<T>, const AttentionLayout&, const NormPart<T>&, const NormPart<T>&, double);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
