#include "heed/ops/layer_norm.h"
#include "heed/ops/head_norm.h"
#include "heed/ops/layer_norm_parts.h"

#include "row_functions.h"
#include "heed/cost/for_each_number.h"
#include "heed/kernels/rows/layer_norm.h"

#include <array>

namespace heed {

namespace {

/// gamma xn + beta as a function of rows of n (kernels/rows/layer_norm.h). Saved: mean and 1 / sqrt(variance + eps) of
/// each row.
template <class T>
struct LayerNormRows {
  static constexpr const char *name = "layer_norm", *linear_name = "layer_norm_linear";
  std::array<Var<T>, 2> parameters;  ///< gamma, beta
  double eps;
  Index n;
  Matrix<T> statistics;  ///< [rows, 2]

  /// For x [..., n]. Throws Error in the name of `operation` if gamma and beta are not [n].
  LayerNormRows(const char* operation, Var<T> x, Var<T> gamma, Var<T> beta, double epsilon)
      : parameters{gamma, beta}, eps(epsilon), n(x.shape().row_size()) {
    require(gamma.shape() == Shape{n} && beta.shape() == Shape{n},
            "[{}] x has rows of {}, gamma has shape {}, beta {}; expected [{}]", operation, n, gamma.shape(),
            beta.shape(), n);
    const Index rows = x.shape().rows();
    statistics = {x.tape().memory(2 * rows), rows, 2};
  }

  Index work() const { return 6 * n; }
  Counts forward_counts(Index rows) const { return kernels::layer_norm_forward_counts(rows, n); }
  Counts again_counts(Index rows) const { return kernels::layer_norm_again_counts(rows, n); }
  Counts backward_counts(Index rows) const { return kernels::layer_norm_backward_counts(rows, n); }
  Counts sums_counts(Index rows) const { return kernels::layer_norm_parameter_counts(rows, n); }

  void forward(Index first, Matrix<const T> x, Matrix<T> y) const {
    kernels::layer_norm_forward(norm(), x, {}, y, of(first, x));
  }
  void backward(Index first, Matrix<const T> x, Matrix<const T> df, Update update, Matrix<T> dx,
                Matrix<T> again) const {
    if (again) kernels::layer_norm_again(norm(), x, of(first, x), again);
    kernels::layer_norm_backward(parameters[0].data(), x, of(first, x), df, update, dx);
  }

  Index sums(Tape<T>& tape) const { return tape.wanted(parameters[0]) || tape.wanted(parameters[1]) ? 2 * n : 0; }
  void add_sums(Tape<T>& tape, Index first, Matrix<const T> x, Matrix<const T> df, Update update, T* sums) const {
    sum_over_row_ranges(tape, x.rows, 2 * n, 2 * n, update, sums, [=, this](Index begin, Index end, Update u, T* sum) {
      const auto range = [=](auto m) { return m.middle_rows(begin, end - begin); };
      kernels::layer_norm_parameter_gradients(range(x), range(of(first, x)), range(df), u, Matrix<T>(sum, 2, n));
    });
  }
  void give_sums(Tape<T>& tape, const T* sums) const {
    for (std::size_t p = 0; p < 2; ++p)
      if (const auto target = tape.target(parameters[p]))
        write_all(target.update, n, sums + static_cast<Index>(p) * n, target.data);
  }

 private:
  kernels::RowNorm<T> norm() const { return {parameters[0].data(), parameters[1].data(), eps}; }

  /// The statistics of x, rows from row `first` on.
  Matrix<T> of(Index first, Matrix<const T> x) const { return statistics.middle_rows(first, x.rows); }
};

}  // namespace

template <class T>
Var<T> layer_norm(Var<T> x, Var<T> gamma, Var<T> beta, double eps) {
  using Rows = LayerNormRows<T>;
  return rows_of(Rows(Rows::name, x, gamma, beta, eps), x);
}

template <class T>
Var<T> layer_norm_linear(Var<T> x, Var<T> gamma, Var<T> beta, Var<T> weight, Var<T> bias, Var<T> residual, double eps) {
  using Rows = LayerNormRows<T>;
  return linear_of(Rows(Rows::linear_name, x, gamma, beta, eps), x, weight, bias, residual);
}

template <class T>
Var<T> layer_norm_parts(Var<T> x, std::span<const NormPart<T>> list, Var<T> residual, double eps) {
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
  for (std::size_t p = 0; p < list.size(); ++p) {
    const Index width = parts[p].gamma.size();
    require(parts[p].gamma.shape() == Shape{width} && parts[p].beta.shape() == Shape{width},
            "[layer_norm_parts] gamma has shape {}, beta {}; expected two vectors of one length",
            parts[p].gamma.shape(), parts[p].beta.shape());
    first[p + 1] = first[p] + width;
    cost.forward += kernels::layer_norm_forward_counts(rows, width, static_cast<bool>(residual));
    cost.backward +=
        kernels::layer_norm_backward_counts(rows, width) + kernels::layer_norm_parameter_counts(rows, width);
  }
  require(first[list.size()] == n, "[layer_norm_parts] x has rows of {}, the parts make up {}; they must match", n,
          first[list.size()]);

  const Matrix<T> all_statistics(tape.memory(2 * count * rows), rows, 2 * count);  // a pair for each part of a row
  // Calls f(part, its statistics, channels) for each part; channels(m) are the part's of a matrix with all of them.
  const auto for_parts = [=](const auto& f) {
    for (std::size_t p = 0; p < static_cast<std::size_t>(count); ++p)
      f(parts[p], all_statistics.middle_columns(2 * static_cast<Index>(p), 2),
        [begin = first[p], width = first[p + 1] - first[p]](auto m) { return m.middle_columns(begin, width); });
  };
  return tape.record(
      {"layer_norm_parts", cost}, x.shape(),
      {x, parts[0].gamma, parts[0].beta, parts[1].gamma, parts[1].beta, parts[2].gamma, parts[2].beta, residual},
      [=](T* y) {
        const Matrix<const T> mx = x.matrix(), mr = residual ? residual.matrix() : Matrix<const T>{};
        const Matrix<T> my(y, rows, n);
        for_row_ranges(rows, 4 * n, [=](Index begin, Index end) {
          const auto range = [=](auto m) { return m.middle_rows(begin, end - begin); };
          for_parts([=](const NormPart<T>& part, Matrix<T> statistics, const auto& channels) {
            kernels::layer_norm_forward({part.gamma.data(), part.beta.data(), eps}, range(channels(mx)),
                                        mr ? range(channels(mr)) : mr, range(channels(my)), range(statistics));
          });
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const Matrix<const T> mx = x.matrix(), mdy = dy.matrix();
        const Matrix<T> sums(tape.memory(2 * n), 2, n);  // dgamma of all parts, dbeta
        sum_over_row_ranges(
            tape, rows, 2 * n, 2 * n, Update::assign, sums.data, [=](Index begin, Index end, Update update, T* share) {
              const auto range = [=](auto m) { return m.middle_rows(begin, end - begin); };
              for_parts([=](const NormPart<T>&, Matrix<T> statistics, const auto& channels) {
                kernels::layer_norm_parameter_gradients(range(channels(mx)), range(statistics), range(channels(mdy)),
                                                        update, channels(Matrix<T>(share, 2, n)));
              });
            });
        for_parts([=, &tape](const NormPart<T>& part, Matrix<T>, const auto& channels) {
          const Matrix<T> of_part = channels(sums);
          if (const auto dgamma = tape.target(part.gamma))
            write_all(dgamma.update, of_part.columns, of_part[0], dgamma.data);
          if (const auto dbeta = tape.target(part.beta))
            write_all(dbeta.update, of_part.columns, of_part[1], dbeta.data);
        });
        if (const auto dx = tape.target(x))
          for_row_ranges(rows, 6 * n, [=, mdx = dx.matrix(rows, n)](Index begin, Index end) {
            const auto range = [=](auto m) { return m.middle_rows(begin, end - begin); };
            for_parts([=](const NormPart<T>& part, Matrix<T> statistics, const auto& channels) {
              kernels::layer_norm_backward(part.gamma.data(), range(channels(mx)), range(statistics),
                                           range(channels(mdy)), dx.update, range(channels(mdx)));
            });
          });
        if (residual) dy.give_to(residual);
      });
}

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
  std::array<Matrix<T>, 2> statistics;  // of q and of k: a row for each of its parts
  for (std::size_t i = 0; i < parts_count; ++i) {
    require(gamma[i].shape() == Shape{width[i]} && beta[i].shape() == Shape{width[i]},
            "[head_norm] gamma of {} has shape {}, beta {}; expected [{}]", i == 0 ? "q" : "k", gamma[i].shape(),
            beta[i].shape(), width[i]);
    const Index parts = rows * heads[i], w = width[i];
    cost.forward += kernels::layer_norm_forward_counts(parts, w);
    cost.backward += kernels::layer_norm_backward_counts(parts, w) + kernels::layer_norm_parameter_counts(parts, w);
    statistics[i] = {tape.memory(2 * parts), parts, 2};
  }
  // Row r's parts of q or of k, in a matrix shaped as x, and their statistics.
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
                                      r == begin ? update : Update::accumulate, Matrix<T>(share, 2, w));
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

#define INSTANTIATE(T)                                                                       \
  template Var<T> layer_norm(Var<T>, Var<T>, Var<T>, double);                                \
  template Var<T> layer_norm_linear(Var<T>, Var<T>, Var<T>, Var<T>, Var<T>, Var<T>, double); \
  template Var<T> layer_norm_parts(Var<T>, std::span<const NormPart<T>>, Var<T>, double);    \
  template Var<T> head_norm(Var<T>, const AttentionLayout&, const NormPart<T>&, const NormPart<T>&, double);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
