#include "heed/ops/sequences.h"

#include "heed/base/math.h"
#include "heed/cost/for_each_number.h"
#include "heed/kernels/rows/rows.h"
#include "heed/kernels/rows/softmax.h"
#include "heed/ops/rows.h"

namespace heed {

namespace {

/// Returns the memory of a gradient of n elements for accumulation, zeroed at the first contribution.
template <class T>
T* cleared(const typename Tape<T>::Target& target, Index n) {
  if (target && target.update == Update::assign) std::fill_n(target.data, n, T(0));
  return target.data;
}

/// Returns the number of rows whose probabilities are computed at a time, so that they fit a cache.
Index rows_at_once(Index width) { return std::max<Index>(1, (Index{1} << 13) / width); }

}  // namespace

template <class T>
Var<T> embed_sequences(std::span<const TokenRows> sequences, Var<T> weight, Var<T> front, Var<T> position) {
  Tape<T>& tape = tape_of("embed_sequences", weight, front, position);
  const Index width = weight.shape()[1], skip = front ? 1 : 0, count = static_cast<Index>(sequences.size());
  Index rows = 0, most = 0;
  for (const TokenRows& s : sequences) rows += s.count, most = std::max(most, s.count);
  require_shape("embed_sequences", "front", front, {1, 1, width});
  require(!position || (position.shape().row_size() == width && position.shape().rows() >= most),
          "[embed_sequences] position has shape {}; expected [1, P, {}] with P at least {}",
          position ? position.shape() : Shape{}, width, most);
  const std::span<TokenRows> kept = tape.template list<TokenRows>(sequences.size());
  std::copy(sequences.begin(), sequences.end(), kept.begin());
  const Shape shape = tape.pass().examples.segments ? Shape{1, rows, width} : Shape{count, most, width};
  HEED_ASSERT(shape.elements() == rows * width);
  Cost cost;
  cost.forward = {.add = position ? rows * width : 0};
  cost.backward = {.add = (position ? rows * width : 0) + skip * count * width};
  return tape.record(
      {"embed_sequences", cost}, shape, {weight, front, position},
      [=](T* y) {
        for (const TokenRows& s : kept) {
          T* const out = y + s.first * width;
          if (front && s.count > 0) std::copy_n(front.data(), width, out);
          for (Index t = skip; t < s.count; ++t)
            std::copy_n(weight.data() + s.tokens[t - skip] * width, width, out + t * width);
          if (position) write_all(Update::accumulate, s.count * width, position.data(), out);
        }
      },
      [=, &tape](const Adjoint<T>& dy) {
        if (T* const dposition = cleared<T>(tape.target(position), position ? position.size() : 0))
          for (const TokenRows& s : kept)
            write_all(Update::accumulate, s.count * width, dy.data() + s.first * width, dposition);
        if (T* const dfront = cleared<T>(tape.target(front), width))
          for (const TokenRows& s : kept)
            if (s.count > 0) write_all(Update::accumulate, width, dy.data() + s.first * width, dfront);
        T* const dweight = cleared<T>(tape.target(weight), weight.size());
        if (!dweight) return;
        for (const TokenRows& s : kept)
          for (Index t = skip; t < s.count; ++t)
            write_all(Update::accumulate, width, dy.data() + (s.first + t) * width,
                      dweight + s.tokens[t - skip] * width);
      });
}

template <class T>
Var<T> pool_sequences(Var<T> x, SequencePool pool) {
  Tape<T>& tape = tape_of("pool_sequences", x);
  const Segments* const segments = tape.pass().examples.segments;
  require(segments && x.shape().rank() == 3 && x.shape()[1] == segments->rows(),
          "[pool_sequences] x has shape {}; expected the rows of the pass's sequences", x.shape());
  const Index count = segments->count(), width = x.shape()[2];
  const Matrix<const T> rows = x.matrix();
  Cost cost;
  if (pool != SequencePool::mean)
    cost.joins = count * width;
  else
    for (Index i = 0; i < count; ++i) {
      cost.forward += kernels::column_sums_counts(segments->length(i), width) + Counts{.div = width};
      cost.backward.div += width;
    }
  const auto row_of = [=](Index i) {
    return pool == SequencePool::first ? segments->start(i) : segments->start(i + 1) - 1;
  };
  const auto length_of = [=](Index i) { return T(static_cast<double>(segments->length(i))); };
  return tape.record(
      {"pool_sequences", cost}, Shape{count, width}, {x},
      [=](T* y) {
        for (Index i = 0; i < count; ++i) {
          T* const out = y + i * width;
          if (pool != SequencePool::mean) {
            std::copy_n(rows[row_of(i)], width, out);
            continue;
          }
          kernels::column_sums(rows.middle_rows(segments->start(i), segments->length(i)), Update::assign, out);
          for (Index c = 0; c < width; ++c) out[c] = out[c] / length_of(i);
        }
      },
      [=, &tape](const Adjoint<T>& dy) {
        const auto dx = tape.target(x);
        if (!dx) return;
        const Matrix<T> drows = dx.matrix(rows.rows, width);
        if (pool != SequencePool::mean) {
          cleared<T>(dx, drows.size());
          for (Index i = 0; i < count; ++i) write_all(dx.update, width, dy.data() + i * width, drows[row_of(i)]);
          return;
        }
        T* const share = tape.memory(width);
        for (Index i = 0; i < count; ++i) {
          for (Index c = 0; c < width; ++c) share[c] = dy.data()[i * width + c] / length_of(i);
          for (Index r = segments->start(i); r < segments->start(i + 1); ++r)
            write_all(dx.update, width, share, drows[r]);
        }
      });
}

template <class T>
Var<T> pair_features(Var<T> x, bool products) {
  Tape<T>& tape = tape_of("pair_features", x);
  const Shape& xs = x.shape();
  require(xs.rank() == 2 && xs[0] % 2 == 0, "[pair_features] x has shape {}; expected [2B, D]", xs);
  const Index pairs = xs[0] / 2, width = xs[1], out = (products ? 4 : 2) * width;
  Cost cost;
  if (products) {
    cost.forward = {.mul = pairs * width, .add = pairs * width};
    cost.backward = {.mul = 2 * pairs * width, .add = 4 * pairs * width};
  }
  return tape.record(
      {"pair_features", cost}, Shape{pairs, out}, {x},
      [=](T* y) {
        for (Index b = 0; b < pairs; ++b) {
          const T *const x0 = x.data() + 2 * b * width, *const x1 = x0 + width;
          T* const row = y + b * out;
          std::copy_n(x0, 2 * width, row);
          for (Index c = 0; c < width && products; ++c) {
            row[2 * width + c] = x0[c] * x1[c];
            row[3 * width + c] = x0[c] - x1[c];
          }
        }
      },
      [=, &tape](const Adjoint<T>& dy) {
        const auto dx = tape.target(x);
        for (Index b = 0; b < pairs && dx; ++b) {
          const T *const x0 = x.data() + 2 * b * width, *const x1 = x0 + width;
          const T *const d0 = dy.data() + b * out, *const d1 = d0 + width, *const d2 = d1 + width,
                         *const d3 = d2 + width;
          T *const dx0 = dx.data + 2 * b * width, *const dx1 = dx0 + width;
          for (Index c = 0; c < width; ++c) {
            write(dx.update, dx0[c], products ? d0[c] + x1[c] * d2[c] + d3[c] : d0[c]);
            write(dx.update, dx1[c], products ? d1[c] + x0[c] * d2[c] - d3[c] : d1[c]);
          }
        }
      });
}

template <class T>
Var<T> label_cross_entropy(Var<T> logits, const int* labels, Index divisor) {
  Tape<T>& tape = tape_of("label_cross_entropy", logits);
  const Index rows = logits.shape().rows(), classes = logits.shape().row_size(), step = rows_at_once(classes);
  require(divisor >= 1, "[label_cross_entropy] the divisor is {}; expected at least 1", divisor);
  const T count(static_cast<double>(divisor));
  const Index n = rows * classes;
  Cost cost;
  cost.forward = kernels::softmax_counts(rows, n) + rows * Counts{.add = 3, .log = 1} + Counts{.div = 1};
  cost.backward =
      kernels::attention_softmax_again_counts(n) + n * Counts{.mul = 1} + rows * Counts{.add = 1} + Counts{.div = 1};
  const Matrix<T> kept(tape.memory(2 * rows), rows, 2);
  const Matrix<T> block(tape.memory(step * classes), step, classes);
  return tape.record(
      {"label_cross_entropy", cost}, Shape{}, {logits},
      [=](T* loss) {
        using math::log;
        const Matrix<const T> x(logits.data(), rows, classes);
        *loss = T(0);
        for (Index first = 0; first < rows; first += step) {
          const Index part = std::min(step, rows - first);
          std::copy_n(x[first], part * classes, block.data);
          kernels::softmax_rows(block.top_rows(part), kept.middle_rows(first, part));
          for (Index r = first; r < first + part; ++r)
            if (labels[r] >= 0) *loss += kept(r, 0) + log(kept(r, 1)) - x(r, labels[r]);
        }
        *loss = *loss / count;
      },
      [=, &tape](const Adjoint<T>& dloss) {
        const auto dlogits = tape.target(logits);
        if (!dlogits) return;
        const Matrix<const T> x(logits.data(), rows, classes);
        const T factor = *dloss.data() / count;
        for (Index first = 0; first < rows; first += step) {
          const Index part = std::min(step, rows - first);
          const Matrix<T> p = block.top_rows(part);
          std::copy_n(x[first], part * classes, p.data);
          kernels::attention_softmax_again({1}, p, kept.middle_rows(first, part));
          for (Index r = 0; r < part; ++r) {
            const int label = labels[first + r];
            T* const to = dlogits.data + (first + r) * classes;
            if (label >= 0) p(r, label) -= T(1);
            const T share = label >= 0 ? factor : T(0);
            for (Index c = 0; c < classes; ++c) write(dlogits.update, to[c], share * p(r, c));
          }
        }
      });
}

#define INSTANTIATE(T)                                                                 \
  template Var<T> embed_sequences(std::span<const TokenRows>, Var<T>, Var<T>, Var<T>); \
  template Var<T> pool_sequences(Var<T>, SequencePool);                                \
  template Var<T> pair_features(Var<T>, bool);                                         \
  template Var<T> label_cross_entropy(Var<T>, const int*, Index);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
