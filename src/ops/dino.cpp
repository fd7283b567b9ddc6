#include "heed/ops/dino.h"

#include "heed/base/math.h"
#include "heed/cost/for_each_number.h"
#include "heed/kernels/rows/softmax.h"
#include "heed/kernels/rows/unit_rows.h"
#include "heed/ops/rows.h"

namespace heed {

template <class T>
Var<T> unit_rows(Var<T> x) {
  Tape<T>& tape = tape_of("unit_rows", x);
  const Index rows = x.shape().rows(), n = x.shape().row_size();
  T* const divisors = tape.memory(rows);
  Cost cost;
  cost.forward = kernels::unit_rows_counts(rows, n);
  cost.backward = kernels::unit_rows_backward_counts(rows, n);
  return tape.record(
      {"unit_rows", cost}, x.shape(), {x},
      [=](T* y) { kernels::unit_rows(x.matrix(), divisors, Matrix<T>(y, rows, n)); },
      [=, &tape](const Adjoint<T>& dy) {
        if (const auto dx = tape.target(x))
          kernels::unit_rows_backward({dy.value(), rows, n}, divisors, dy.matrix(), dx.update, tape.memory(rows),
                                      dx.matrix(rows, n));
      });
}

template <class T>
Var<T> join_rows(Var<T> a, Var<T> b) {
  Tape<T>& tape = tape_of("join_rows", a, b);
  require(a.shape().rank() == 2 && b.shape().rank() == 2 && a.shape()[1] == b.shape()[1],
          "[join_rows] a has shape {}, b {}; expected [m, D] and [n, D]", a.shape(), b.shape());
  const Index first = a.size(), rest = b.size();
  return tape.record(
      {"join_rows", {}}, Shape{a.shape()[0] + b.shape()[0], a.shape()[1]}, {a, b},
      [=](T* y) { std::copy_n(b.data(), rest, std::copy_n(a.data(), first, y)); },
      [=, &tape](const Adjoint<T>& dy) {
        if (const auto da = tape.target(a)) write_all(da.update, first, dy.data(), da.data);
        if (const auto db = tape.target(b)) write_all(db.update, rest, dy.data() + first, db.data);
      });
}

namespace {

/// A row of logits and its targets: one or two rows of q, from `target` on.
struct StudentView {
  Index row, target, pairs;
};

/// Calls f(view) for the `views` views of one of B images.
template <class F>
void for_views(Index image, Index B, Index views, const F& f) {
  for (Index j = 0; j < 2; ++j) f(StudentView{2 * image + j, 2 * image + 1 - j, 1});
  for (Index j = 0; j < views - 2; ++j) f(StudentView{2 * B + (views - 2) * image + j, 2 * image, 2});
}

}  // namespace

template <class T>
Var<T> dino_loss(Var<T> logits, ViewFor<T> q, double temperature, Index divisor) {
  Tape<T>& tape = tape_of("dino_loss", logits);
  const Shape &ls = logits.shape(), &qs = q.shape();
  require(ls.rank() == 2 && qs.rank() == 3 && qs[1] == 2 && ls[1] == qs[2] && ls[0] >= 2 * qs[0] &&
              (qs[0] == 0 || ls[0] % qs[0] == 0),
          "[dino_loss] logits have shape {}, q {}; expected [V B, K] and [B, 2, K]", ls, qs);
  require(temperature > 0 && divisor >= 1,
          "[dino_loss] temperature {}, divisor {}; expected a temperature above 0, a divisor of at least 1",
          temperature, divisor);
  const Index B = qs[0], K = qs[2], rows = ls[0], views = B == 0 ? 2 : rows / B, pairs = B * (2 * views - 2);
  const T inverse(1 / temperature);
  Cost cost;
  cost.forward = kernels::softmax_counts(rows, rows * K) + kernels::row_dots_counts(pairs, K) +
                 rows * Counts{.mul = K + 1, .add = 1, .log = 1} + Counts{.add = pairs, .div = 1} +
                 kernels::column_sums_counts(rows, 1);
  cost.backward = {.mul = 2 * rows * K, .add = pairs * K, .div = 1};
  const Matrix<T> p(tape.memory(rows * K), rows, K), kept(tape.memory(2 * rows), rows, 2);
  T* const losses = tape.memory(rows);
  const Index work = views * K * 8;
  return tape.record(
      {"dino_loss", cost}, Shape{}, {logits},
      [=](T* loss) {
        using math::log;
        const Matrix<const T> from = logits.matrix();
        for_row_ranges(B, work, [=](Index begin, Index end) {
          for (Index image = begin; image < end; ++image)
            for_views(image, B, views, [=](const StudentView& view) {
              const Index r = view.row;
              T dots[2];
              for (Index k = 0; k < K; ++k) p(r, k) = inverse * from(r, k);
              for (Index i = 0; i < view.pairs; ++i)
                kernels::row_dots<T>(p.middle_rows(r, 1), {q.data() + (view.target + i) * K, 1, K}, dots + i);
              kernels::softmax_rows(p.middle_rows(r, 1), kept.middle_rows(r, 1));
              losses[r] = T(static_cast<double>(view.pairs)) * (kept(r, 0) + log(kept(r, 1)));
              for (Index i = 0; i < view.pairs; ++i) losses[r] -= dots[i];
            });
        });
        kernels::column_sums(Matrix<const T>(losses, rows, 1), Update::assign, loss);
        *loss = *loss / T(static_cast<double>(divisor));
      },
      [=, &tape](const Adjoint<T>& dloss) {
        const auto target = tape.target(logits);
        if (!target) return;
        const Matrix<T> dlogits = target.matrix(rows, K);
        const T factor = *dloss.data() / T(static_cast<double>(divisor) * temperature);
        for_row_ranges(B, work, [=](Index begin, Index end) {
          for (Index image = begin; image < end; ++image)
            for_views(image, B, views, [=](const StudentView& view) {
              const T n(static_cast<double>(view.pairs));
              const T *const first = q.data() + view.target * K, *const second = first + K, *const pr = p[view.row];
              T* const to = dlogits[view.row];
              if (view.pairs == 1)
                for (Index k = 0; k < K; ++k) write(target.update, to[k], factor * (n * pr[k] - first[k]));
              else
                for (Index k = 0; k < K; ++k) write(target.update, to[k], factor * (n * pr[k] - first[k] - second[k]));
            });
        });
      });
}

#define INSTANTIATE(T)                       \
  template Var<T> unit_rows(Var<T>);         \
  template Var<T> join_rows(Var<T>, Var<T>); \
  template Var<T> dino_loss(Var<T>, View<const T>, double, Index);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
