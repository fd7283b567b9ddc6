#include "heed/ops/scale_channels.h"

#include "heed/cost/for_each_number.h"
#include "heed/ops/rows.h"

namespace heed {

template <class T>
Var<T> scale_channels(Var<T> x, Var<T> gamma, Var<T> residual) {
  Tape<T>& tape = tape_of("scale_channels", x, gamma, residual);
  const Index n = x.size(), width = x.shape().row_size(), rows = x.shape().rows();
  require_shape("scale_channels", "gamma", gamma, {width});
  require_shape("scale_channels", "the residual", residual, x.shape());
  Cost cost;
  cost.forward = {.mul = n, .add = residual ? n : 0};
  cost.backward = Counts{.mul = n} + product_counts(1, width, rows);
  return tape.record(
      {"scale_channels", cost}, x.shape(), {x, gamma, residual},
      [=](T* y) {
        const Matrix<const T> mx = x.matrix(), mr = residual ? residual.matrix() : Matrix<const T>{};
        for_row_ranges(rows, width, [=, factor = gamma.data(), my = Matrix<T>(y, rows, width)](Index begin, Index end) {
          for (Index r = begin; r < end; ++r)
            for (Index c = 0; c < width; ++c) my(r, c) = mr ? mr(r, c) + factor[c] * mx(r, c) : factor[c] * mx(r, c);
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const Matrix<const T> mx = x.matrix(), mdy = dy.matrix();
        if (const auto dgamma = tape.target(gamma))
          sum_over_row_ranges(tape, rows, width, width, dgamma.update, dgamma.data,
                              [=](Index begin, Index end, Update update, T* sum) {
                                for (Index r = begin; r < end; ++r)
                                  for (Index c = 0; c < width; ++c)
                                    write(term_update(r - begin, update), sum[c], mx(r, c) * mdy(r, c));
                              });
        if (const auto dx = tape.target(x))
          for_row_ranges(rows, width, [=, factor = gamma.data(), mdx = dx.matrix(rows, width)](Index begin, Index end) {
            for (Index r = begin; r < end; ++r)
              for (Index c = 0; c < width; ++c) write(dx.update, mdx(r, c), factor[c] * mdy(r, c));
          });
        if (residual) dy.give_to(residual);
      });
}

#define INSTANTIATE(T) template Var<T> scale_channels(Var<T>, Var<T>, Var<T>);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
