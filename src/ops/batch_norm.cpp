#include "heed/ops/batch_norm.h"

#include "heed/cost/for_each_number.h"
#include "heed/kernels/rows/rows.h"
#include "heed/ops/rows.h"

#include <cmath>

namespace heed {

namespace {

/// Computes sum[c] (+)= sum over rows of term(row of x, row of y, c).
template <class T, class Term>
void sum_of_terms(Tape<T>& tape, Matrix<const T> x, Matrix<const T> y, Update update, T* sum, const Term& term) {
  sum_over_row_ranges(tape, x.rows, 4 * x.columns, x.columns, update, sum,
                      [=](Index begin, Index end, Update range_update, T* share) {
                        for (Index r = begin; r < end; ++r) {
                          const Update row_update = term_update(r - begin, range_update);
                          const T *const a = x[r], *const b = y[r];
                          for (Index c = 0; c < x.columns; ++c) write(row_update, share[c], term(a, b, c));
                        }
                      });
}

/// The pass's images in one group: rows [first, first + count) of x.
struct GroupHere {
  Index number, first, count;

  template <class M>
  M of(M m) const {
    return m.middle_rows(first, count);
  }
};

/// The groups of a batch. A pass over a microbatch may have some images of a group, or none.
struct Groups {
  Index count;   ///< groups in the whole batch
  Index images;  ///< images per group
  Index rows_per_image;
  Index first, here;  ///< images of this pass: index of the first in the whole batch, and count

  Index rows() const { return images * rows_per_image; }

  /// Calls f(group) for the groups of this pass.
  template <class F>
  void for_each_here(const F& f) const {
    for (Index g = first / images; g * images < first + here; ++g) {
      const Index begin = std::max(first, g * images) - first, end = std::min(first + here, (g + 1) * images) - first;
      f(GroupHere{g, begin * rows_per_image, (end - begin) * rows_per_image});
    }
  }
};

/// Returns the groups of x. Each view of an image counts as one image (Tape::count_images_from).
template <class T>
Groups groups_of(const Tape<T>& tape, const Shape& x, Index group) {
  Groups groups{.count = 1, .images = x[0], .rows_per_image = x.rows() / x[0], .first = 0, .here = x[0]};
  if (const WholeBatch<T>* const whole = tape.pass().examples.batch) {
    groups.images = x[0] / whole->images_here * whole->images;
    groups.first = tape.pass().examples.first;
    HEED_ASSERT(groups.first + groups.here <= groups.images);
  }
  // A dry run has a single image, but a group may have more.
  if (group == 0 || !tape.training() || tape.pass().execution.dry_run) return groups;
  require(groups.images % group == 0, "[batch_norm] groups of {} images do not divide a batch of {}", group,
          groups.images);
  groups.count = groups.images / group;
  groups.images = group;
  return groups;
}

/// Computes sums [groups, C] over the whole batch; add(group, sum) assigns the pass's partial sum of a group.
template <class T, class Add>
void sum_groups(Tape<T>& tape, const Groups& groups, Matrix<T> sums, const Add& add) {
  std::fill_n(sums.data, sums.size(), T(0));
  groups.for_each_here([&](const GroupHere& group) { add(group, sums[group.number]); });
  const Pass<T>& pass = tape.pass();
  if (!pass.examples.batch) return;
  const Profile::Clock::time_point start = Profile::Clock::now();
  pass.examples.batch->sum({sums.data, static_cast<std::size_t>(sums.size())});
  if (pass.observers.profile) pass.observers.profile->exclude_wait(start);
}

}  // namespace

template <class T>
Var<T> batch_norm(Var<T> x, Var<T> gamma, Var<T> beta, View<T> running_mean, View<T> running_variance,
                  const BatchNormOptions& options) {
  using std::sqrt;
  Tape<T>& tape = tape_of("batch_norm", x, gamma, beta);
  const Shape& xs = x.shape();
  require(xs.rank() >= 2 && xs[0] > 0, "[batch_norm] x has shape {}; expected [B, ..., C] with at least 1 image", xs);
  const bool training = tape.training(),
             first_in_process = !tape.pass().examples.batch || tape.pass().examples.batch->first;
  const bool update_running = training && !tape.pass().execution.recomputing && first_in_process;
  const Index channels = xs[-1], rows = xs.rows();
  const Groups groups = groups_of(tape, xs, options.group);
  const Index count = groups.count;
  for (const Shape& shape : {gamma.shape(), beta.shape(), running_mean.shape(), running_variance.shape()})
    require(shape == Shape{channels}, "[batch_norm] a parameter has shape {}; expected [{}]", shape, channels);
  require(!training || groups.rows() > 1 || tape.pass().execution.dry_run,
          "[batch_norm] training needs at least two values per channel");

  Cost cost;
  cost.forward = channels * Counts{.mul = rows + count, .add = 2 * rows + count, .div = count, .sqrt = count};
  if (training) cost.forward += channels * Counts{.mul = rows + 4 * count, .add = 3 * rows, .div = 3 * count};
  cost.backward = channels * (Counts{.mul = 2 * rows, .add = rows} + 2 * count * sum_counts(groups.rows()) +
                              2 * Counts{.add = count - 1});
  cost.backward += channels * (training ? Counts{.mul = 3 * rows + count, .add = 3 * rows, .div = 2 * count}
                                        : Counts{.mul = rows + count});
  const Matrix<T> means(tape.memory(count * channels), count, channels);
  const Matrix<T> scales(tape.memory(count * channels), count, channels);

  return tape.record(
      {"batch_norm", cost}, xs, {x, gamma, beta},
      [=, &tape](T* y) {
        const T n(static_cast<double>(groups.rows()));
        const typename Tape<T>::Scratch scratch(tape, count * channels);
        const Matrix<T> variances(scratch.data(), count, channels);
        if (training) {
          sum_groups(tape, groups, means, [&](const GroupHere& group, T* sum) {
            const Matrix<const T> xg = group.of(x.matrix());
            sum_of_terms(tape, xg, xg, Update::assign, sum, [](const T* a, const T*, Index c) { return a[c]; });
          });
          for (Index i = 0; i < count * channels; ++i) means.data[i] = means.data[i] / n;
          sum_groups(tape, groups, variances, [&](const GroupHere& group, T* sum) {
            const Matrix<const T> xg = group.of(x.matrix());
            sum_of_terms(tape, xg, xg, Update::assign, sum,
                         [mean = means[group.number]](const T* a, const T*, Index c) {
                           const T centred = a[c] - mean[c];
                           return centred * centred;
                         });
          });
        } else {
          std::copy_n(running_mean.data(), channels, means.data);
          std::copy_n(running_variance.data(), channels, variances.data);
        }
        for (Index g = 0; g < count; ++g)
          for (Index c = 0; c < channels; ++c) {
            T& variance = variances(g, c);
            if (update_running) {
              const T old_part(1 - options.momentum), new_part(options.momentum);
              running_mean[c] = old_part * running_mean[c] + new_part * means(g, c);
              running_variance[c] =
                  old_part * running_variance[c] + new_part * (variance / T(static_cast<double>(groups.rows() - 1)));
            }
            if (training) variance = variance / n;
            scales(g, c) = T(1) / sqrt(variance + T(options.eps));
          }
        // Reuses the memory of the variances.
        const Matrix<T> factors = variances;
        const T* const of_channel = gamma.data();
        for (Index g = 0; g < count; ++g)
          for (Index c = 0; c < channels; ++c) factors(g, c) = scales(g, c) * of_channel[c];
        groups.for_each_here([&](const GroupHere& group) {
          const T *const mean = means[group.number], *const factor = factors[group.number], *const shift = beta.data();
          for_row_ranges(
              group.count, 3 * channels,
              [=, xg = group.of(x.matrix()), my = group.of(Matrix<T>(y, rows, channels))](Index begin, Index end) {
                for (Index r = begin; r < end; ++r)
                  for (Index c = 0; c < channels; ++c) my(r, c) = (xg(r, c) - mean[c]) * factor[c] + shift[c];
              });
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const auto dgamma = tape.target(gamma), dbeta = tape.target(beta), dx = tape.target(x);
        const T n(static_cast<double>(groups.rows()));
        // A row per group: per channel the sum of dy, then the sum of dy times the normalised x.
        const typename Tape<T>::Scratch scratch(tape, 2 * count * channels);
        const Matrix<T> sums(scratch.data(), count, 2 * channels);
        sum_groups(tape, groups, sums, [&](const GroupHere& group, T* sum) {
          const Matrix<const T> xg = group.of(x.matrix()), dyg = group.of(dy.matrix());
          const T *const mean = means[group.number], *const scale = scales[group.number];
          sum_of_terms(tape, xg, dyg, Update::assign, sum, [](const T*, const T* b, Index c) { return b[c]; });
          sum_of_terms(tape, xg, dyg, Update::assign, sum + channels,
                       [=](const T* a, const T* b, Index c) { return b[c] * ((a[c] - mean[c]) * scale[c]); });
          // dgamma and dbeta are sums over the images of the pass.
          if (dbeta) write_all(term_update(group.first, dbeta.update), channels, sum, dbeta.data);
          if (dgamma) write_all(term_update(group.first, dgamma.update), channels, sum + channels, dgamma.data);
        });
        if (!dx) return;
        if (training)
          for (Index i = 0; i < 2 * count * channels; ++i) sums.data[i] = sums.data[i] / n;
        const typename Tape<T>::Scratch factor_of_group(tape, channels);
        groups.for_each_here([&](const GroupHere& group) {
          const T *const mean = means[group.number], *const scale = scales[group.number];
          const T *const sum = sums[group.number], *const product_sum = sum + channels;
          T* const factor = factor_of_group.data();
          const T* const of_channel = gamma.data();
          for (Index c = 0; c < channels; ++c) factor[c] = of_channel[c] * scale[c];
          for_row_ranges(group.count, 6 * channels,
                         [=, xg = group.of(x.matrix()), dyg = group.of(dy.matrix()),
                          mdx = group.of(dx.matrix(rows, channels))](Index begin, Index end) {
                           for (Index r = begin; r < end; ++r)
                             for (Index c = 0; c < channels; ++c) {
                               const T d = training
                                               ? dyg(r, c) - sum[c] - (xg(r, c) - mean[c]) * scale[c] * product_sum[c]
                                               : dyg(r, c);
                               write(dx.update, mdx(r, c), factor[c] * d);
                             }
                         });
        });
      });
}

template <class T>
Index values_together(const Tape<T>& tape, const Shape& x, const BatchNormOptions& options) {
  return groups_of(tape, x, options.group).rows();
}

#define INSTANTIATE(T)                                                                           \
  template Var<T> batch_norm(Var<T>, Var<T>, Var<T>, View<T>, View<T>, const BatchNormOptions&); \
  template Index values_together(const Tape<T>&, const Shape&, const BatchNormOptions&);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
