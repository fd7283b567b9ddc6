#include "heed/ops/batch_norm.h"

#include "heed/cost/for_each_number.h"
#include "heed/kernels/rows.h"
#include "heed/ops/rows.h"

#include <cmath>

namespace heed {

namespace {

/// sum[c] = sum over rows of term(row of x, row of y, c), rows cut into ranges as sums over rows are.
template <class T, class Term>
void sum_of_terms(Tape<T>& tape, Matrix<const T> x, Matrix<const T> y, Update update, T* sum, const Term& term) {
  sum_over_row_ranges(tape, x.rows, 4 * x.columns, x.columns, update, sum,
                      [=](Index begin, Index end, Update range_update, T* share) {
                        for (Index r = begin; r < end; ++r) {
                          const Update row_update = r == begin ? range_update : Update::accumulate;
                          const T *const a = x[r], *const b = y[r];
                          for (Index c = 0; c < x.columns; ++c) write(row_update, share[c], term(a, b, c));
                        }
                      });
}

}  // namespace

template <class T>
Var<T> batch_norm(Var<T> x, Var<T> gamma, Var<T> beta, View<T> running_mean, View<T> running_variance,
                  const BatchNormOptions& options) {
  using std::sqrt;
  Tape<T>& tape = tape_of("batch_norm", x, gamma, beta);
  const Shape& xs = x.shape();
  require(xs.rank() >= 2, "[batch_norm] x has shape {}; expected [B, ..., C]", xs);
  const bool training = tape.training(), update_running = training && !tape.pass().again;
  const Index channels = xs[-1], images = xs[0];
  // What only counts looks at single images, whatever a step's groups are.
  const bool grouped = training && options.group > 0 && tape.pass().compute;
  const Index group = grouped ? options.group : images;
  require(group > 0 && images % group == 0, "[batch_norm] groups of {} images do not divide a batch of {}", group,
          images);
  const Index groups = images / group, rows = xs.rows(), count = rows / groups;
  for (const Shape& shape : {gamma.shape(), beta.shape(), running_mean.shape(), running_variance.shape()})
    require(shape == Shape{channels}, "[batch_norm] a parameter has shape {}; expected [{}]", shape, channels);
  require(!training || count > 1 || !tape.pass().compute,
          "[batch_norm] a single value per channel has no variance to train with");

  Cost cost;
  cost.forward = channels * Counts{.mul = rows + groups, .add = 2 * rows + groups, .div = groups, .sqrt = groups};
  if (training) cost.forward += groups * channels * Counts{.mul = count + 4, .add = 3 * count, .div = 3};
  cost.backward = channels * (Counts{.mul = 2 * rows, .add = rows} + groups * 2 * sum_counts(count) +
                              2 * Counts{.add = groups - 1});
  cost.backward += channels * (training ? Counts{.mul = 3 * rows + groups, .add = 3 * rows, .div = 2 * groups}
                                        : Counts{.mul = rows + groups});
  const Matrix<T> means(tape.memory(groups * channels), groups, channels);
  const Matrix<T> scales(tape.memory(groups * channels), groups, channels);
  const auto group_of = [=](auto m, Index g) { return m.middle_rows(g * count, count); };

  return tape.record(
      {"batch_norm", cost}, xs, {x, gamma, beta},
      [=, &tape](T* y) {
        const T n(static_cast<double>(count));
        const typename Tape<T>::Scratch scratch(tape, 2 * channels);
        T *const variance = scratch.data(), *const factor = variance + channels;
        for (Index g = 0; g < groups; ++g) {
          const Matrix<const T> xg = group_of(x.matrix(), g);
          T *const mean = means[g], *const scale = scales[g];
          std::copy_n(running_mean.data(), channels, mean);
          std::copy_n(running_variance.data(), channels, variance);
          if (training) {
            sum_of_terms(tape, xg, xg, Update::assign, mean, [](const T* a, const T*, Index c) { return a[c]; });
            for (Index c = 0; c < channels; ++c) mean[c] = mean[c] / n;
            sum_of_terms(tape, xg, xg, Update::assign, variance, [mean](const T* a, const T*, Index c) {
              const T centred = a[c] - mean[c];
              return centred * centred;
            });
          }
          for (Index c = 0; c < channels; ++c) {
            if (update_running) {
              running_mean[c] = T(1 - options.momentum) * running_mean[c] + T(options.momentum) * mean[c];
              running_variance[c] = T(1 - options.momentum) * running_variance[c] +
                                    T(options.momentum) * (variance[c] / T(static_cast<double>(count - 1)));
            }
            if (training) variance[c] = variance[c] / n;
            scale[c] = T(1) / sqrt(variance[c] + T(options.eps));
            factor[c] = scale[c] * gamma.data()[c];
          }
          for_row_ranges(
              count, 3 * channels,
              [=, my = group_of(Matrix<T>(y, rows, channels), g), shift = beta.data()](Index begin, Index end) {
                for (Index r = begin; r < end; ++r)
                  for (Index c = 0; c < channels; ++c) my(r, c) = (xg(r, c) - mean[c]) * factor[c] + shift[c];
              });
        }
      },
      [=, &tape](const Adjoint<T>& dy) {
        const auto dgamma = tape.target(gamma), dbeta = tape.target(beta), dx = tape.target(x);
        const T n(static_cast<double>(count));
        const typename Tape<T>::Scratch scratch(tape, 3 * channels);
        const Matrix<T> sums(scratch.data(), 3, channels);
        for (Index g = 0; g < groups; ++g) {
          const Matrix<const T> xg = group_of(x.matrix(), g), dyg = group_of(dy.matrix(), g);
          const T *const mean = means[g], *const scale = scales[g];
          T *const sum = sums[0], *const product_sum = sums[1], *const factor = sums[2];
          sum_of_terms(tape, xg, dyg, Update::assign, sum, [](const T*, const T* b, Index c) { return b[c]; });
          sum_of_terms(tape, xg, dyg, Update::assign, product_sum,
                       [=](const T* a, const T* b, Index c) { return b[c] * ((a[c] - mean[c]) * scale[c]); });
          const auto later = [g](Update update) { return g == 0 ? update : Update::accumulate; };
          if (dgamma) write_all(later(dgamma.update), channels, product_sum, dgamma.data);
          if (dbeta) write_all(later(dbeta.update), channels, sum, dbeta.data);
          if (!dx) continue;
          for (Index c = 0; c < channels; ++c) {
            factor[c] = gamma.data()[c] * scale[c];
            if (training) sum[c] = sum[c] / n, product_sum[c] = product_sum[c] / n;
          }
          for_row_ranges(
              count, 6 * channels, [=, mdx = group_of(dx.matrix(rows, channels), g)](Index begin, Index end) {
                for (Index r = begin; r < end; ++r)
                  for (Index c = 0; c < channels; ++c) {
                    const T d =
                        training ? dyg(r, c) - sum[c] - (xg(r, c) - mean[c]) * scale[c] * product_sum[c] : dyg(r, c);
                    write(dx.update, mdx(r, c), factor[c] * d);
                  }
              });
        }
      });
}

#define INSTANTIATE(T) template Var<T> batch_norm(Var<T>, Var<T>, Var<T>, View<T>, View<T>, const BatchNormOptions&);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
