#include "heed/ops/layer_norm_parts.h"

#include "heed/cost/for_each_number.h"
#include "heed/kernels/rows/layer_norm.h"
#include "heed/ops/rows.h"

#include <array>

namespace heed {

template <class T>
Var<T> layer_norm_parts(Var<T> x, std::span<const NormPart<T>> list, Var<T> residual, double eps) {
  constexpr std::size_t most = 3;
  require(!list.empty() && list.size() <= most, "[layer_norm_parts] {} parts; expected 1 to {}", list.size(), most);
  Tape<T>& tape = tape_of("layer_norm_parts", x, residual);
  const Index count = static_cast<Index>(list.size()), rows = x.shape().rows(), n = x.shape().row_size();
  require_shape("layer_norm_parts", "the residual", residual, x.shape());
  std::array<NormPart<T>, most> parts{};
  std::copy(list.begin(), list.end(), parts.begin());
  std::array<Index, most + 1> first{};
  Cost cost;
  for (std::size_t p = 0; p < list.size(); ++p) {
    const Index width = parts[p].gamma.size();
    require(parts[p].gamma.shape() == Shape{width} && parts[p].beta.shape() == Shape{width},
            "[layer_norm_parts] gamma has shape {}, beta {}; expected two vectors of equal length",
            parts[p].gamma.shape(), parts[p].beta.shape());
    first[p + 1] = first[p] + width;
    cost.forward += kernels::layer_norm_forward_counts(rows, width, static_cast<bool>(residual));
    cost.backward +=
        kernels::layer_norm_backward_counts(rows, width) + kernels::layer_norm_parameter_counts(rows, width);
  }
  require(first[list.size()] == n, "[layer_norm_parts] x has rows of {}, the parts add up to {}; they must match", n,
          first[list.size()]);

  const Matrix<T> all_statistics(tape.memory(2 * count * rows), rows, 2 * count);  // mean and 1 / deviation per part
  // Calls f(part, statistics, channels) for each part; channels(m) returns the part's columns of m.
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
        const Matrix<T> sums(tape.memory(2 * n), 2, n);  // rows: dgamma, dbeta of all parts
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

#define INSTANTIATE(T) template Var<T> layer_norm_parts(Var<T>, std::span<const NormPart<T>>, Var<T>, double);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
