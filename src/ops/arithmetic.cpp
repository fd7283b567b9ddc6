#include "heed/ops/arithmetic.h"

#include "heed/cost/for_each_number.h"
#include "heed/ops/rows.h"

namespace heed {

template <class T>
Var<T> add(Var<T> a, Var<T> b) {
  Tape<T>& tape = tape_of("add", a, b);
  require(a.shape() == b.shape(), "[add] a has shape {}, b has {}; they must match", a.shape(), b.shape());
  const Index n = a.size();
  Cost cost;
  cost.forward = {.add = n};
  return tape.record(
      {"add", cost}, a.shape(), {a, b},
      [=](T* y) {
        const T *pa = a.data(), *pb = b.data();
        for_row_ranges(n, 1, [=](Index begin, Index end) {
          for (Index i = begin; i < end; ++i) y[i] = pa[i] + pb[i];
        });
      },
      [=](const Adjoint<T>& dy) {
        dy.add_to(b);
        dy.give_to(a);
      });
}

template <class T>
Var<T> mul(Var<T> a, Var<T> b) {
  Tape<T>& tape = tape_of("mul", a, b);
  require(a.shape() == b.shape(), "[mul] a has shape {}, b has {}; they must match", a.shape(), b.shape());
  const Index n = a.size();
  Cost cost;
  cost.forward = {.mul = n};
  cost.backward = {.mul = 2 * n};
  const auto times = [](Index count, const T* x, const T* dy, const typename Tape<T>::Target& d) {
    for_row_ranges(count, 1, [=](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) write(d.update, d.data[i], x[i] * dy[i]);
    });
  };
  return tape.record(
      {"mul", cost}, a.shape(), {a, b},
      [=](T* y) {
        times(n, a.data(), b.data(), {y, Update::assign});
      },
      [=, &tape](const Adjoint<T>& dy) {
        if (const auto da = tape.target(a)) times(n, b.data(), dy.data(), da);
        if (const auto db = tape.target(b)) times(n, a.data(), dy.data(), db);
      });
}

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

template <class T>
Var<T> scale(Var<T> x, double factor) {
  Tape<T>& tape = tape_of("scale", x);
  const Index n = x.size();
  Cost cost;
  cost.forward = cost.backward = {.mul = n};
  return tape.record(
      {"scale", cost}, x.shape(), {x},
      [=](T* y) {
        const T* const px = x.data();
        for (Index i = 0; i < n; ++i) y[i] = T(factor) * px[i];
      },
      [=, &tape](const Adjoint<T>& dy) {
        if (const auto dx = tape.target(x))
          for (Index i = 0; i < n; ++i) write(dx.update, dx.data[i], T(factor) * dy.data()[i]);
      });
}

#define INSTANTIATE(T)                                    \
  template Var<T> add(Var<T>, Var<T>);                    \
  template Var<T> mul(Var<T>, Var<T>);                    \
  template Var<T> scale_channels(Var<T>, Var<T>, Var<T>); \
  template Var<T> scale(Var<T>, double);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
