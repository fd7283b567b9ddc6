#include "heed/ops/tokens.h"

#include "heed/base/parallel.h"
#include "heed/cost/for_each_number.h"
#include "heed/kernels/grids/bicubic.h"
#include "heed/kernels/sums/normalize.h"
#include "heed/kernels/rows/rows.h"

namespace heed {

template <class T>
Var<T> embed_tokens(Var<T> x, Var<T> prefix, Var<T> position) {
  Tape<T>& tape = tape_of("embed_tokens", x, prefix, position);
  const Shape& xs = x.shape();
  require(xs.rank() == 3, "[embed_tokens] x has shape {}; expected [B, P, D]", xs);
  const Index images = xs[0], patches = xs[1], width = xs[2];
  const Index first = prefix && prefix.shape().rank() == 3 ? prefix.shape()[1] : 0, tokens = patches + first;
  require_shape("embed_tokens", "prefix", prefix, {1, first, width});
  require_shape("embed_tokens", "position", position, {1, tokens, width});
  const Index row = tokens * width;
  Cost cost;
  cost.forward = {.add = position ? images * row : 0};
  cost.backward = kernels::column_sums_counts(images, (position ? row : 0) + first * width);
  return tape.record(
      {"embed_tokens", cost}, Shape{images, tokens, width}, {x, prefix, position},
      [=](T* y) {
        for (Index image = 0; image < images; ++image) {
          T* const out = y + image * row;
          if (prefix) std::copy_n(prefix.data(), first * width, out);
          const T* const from = x.data() + image * patches * width;
          std::copy(from, from + patches * width, out + first * width);
          const T* const added = position ? position.data() : nullptr;
          for (Index i = 0; i < row && added; ++i) out[i] += added[i];
        }
      },
      [=, &tape](const Adjoint<T>& dy) {
        const Matrix<const T> by_image(dy.data(), images, row);
        if (const auto dposition = tape.target(position))
          kernels::column_sums(by_image, dposition.update, dposition.data);
        if (const auto dprefix = tape.target(prefix))
          for (Index image = 0; image < images; ++image)
            write_all(term_update(image, dprefix.update), first * width, by_image[image], dprefix.data);
        if (const auto dx = tape.target(x))
          for (Index image = 0; image < images; ++image)
            write_all(dx.update, patches * width, by_image[image] + first * width, dx.data + image * patches * width);
      });
}

template <class T>
Var<T> interpolate_positions(Var<T> x, Index skip, Index from, Index to) {
  Tape<T>& tape = tape_of("interpolate_positions", x);
  const Shape& xs = x.shape();
  require(xs.rank() == 3 && xs[0] == 1 && xs[1] == skip + from * from && to >= 1,
          "[interpolate_positions] x has shape {}; expected [1, {}, D], a grid of {} x {}", xs, skip + from * from,
          from, from);
  const Index width = xs[2], front = skip * width;
  const kernels::Grid grid{from, from}, new_grid{to, to};
  using Taps = kernels::GridTaps<kernels::CubicTaps>;
  Cost cost;
  cost.forward = kernels::bicubic_counts(to * to * width);
  cost.backward = kernels::bicubic_backward_counts(to * to * width);
  return tape.record(
      {"interpolate_positions", cost}, Shape{1, skip + to * to, width}, {x},
      [=](T* y) {
        std::copy_n(x.data(), front, y);
        const T* const rows = x.data() + front;
        kernels::for_each_cell<kernels::CubicTaps>(grid, new_grid, [=](Index cell, const Taps& taps) {
          T* const out = y + front + cell * width;
          for (std::size_t k = 0; k < taps.count; ++k) {
            const T weight(taps.weight[k]);
            const T* const in = rows + taps.cell[k] * width;
            for (Index d = 0; d < width; ++d)
              write(k == 0 ? Update::assign : Update::accumulate, out[d], weight * in[d]);
          }
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const auto dx = tape.target(x);
        if (!dx) return;
        write_all(dx.update, front, dy.data(), dx.data);
        T* const drows = dx.data + front;
        if (dx.update == Update::assign) std::fill_n(drows, from * from * width, T(0));
        kernels::for_each_cell<kernels::CubicTaps>(grid, new_grid, [=](Index cell, const Taps& taps) {
          const T* const in = dy.data() + front + cell * width;
          for (std::size_t k = 0; k < taps.count; ++k) {
            const T weight(taps.weight[k]);
            T* const out = drows + taps.cell[k] * width;
            for (Index d = 0; d < width; ++d) out[d] += weight * in[d];
          }
        });
      });
}

template <class T>
Var<T> select_token(Var<T> x, Index token) {
  Tape<T>& tape = tape_of("select_token", x);
  const Shape& xs = x.shape();
  require(xs.rank() == 3 && token >= 0 && token < xs[1], "[select_token] x has shape {}; it has no token {}", xs,
          token);
  const Index images = xs[0], width = xs[2], row = xs[1] * width;
  Cost cost;
  cost.joins = images * width;
  return tape.record(
      {"select_token", cost}, Shape{images, width}, {x},
      [=](T* y) {
        for (Index image = 0; image < images; ++image) {
          const T* const from = x.data() + image * row + token * width;
          std::copy(from, from + width, y + image * width);
        }
      },
      [=, &tape](const Adjoint<T>& dy) {
        const auto dx = tape.target(x);
        if (dx && dx.update == Update::assign) std::fill(dx.data, dx.data + images * row, T(0));
        for (Index image = 0; image < images && dx; ++image)
          for (Index i = 0; i < width; ++i)
            write(dx.update, dx.data[image * row + token * width + i], dy.data()[image * width + i]);
      });
}

template <class T>
Var<T> skip_tokens(Var<T> x, Index count) {
  Tape<T>& tape = tape_of("skip_tokens", x);
  const Shape& xs = x.shape();
  require(xs.rank() == 3 && count >= 0 && count <= xs[1], "[skip_tokens] x has shape {}; cannot skip {} tokens", xs,
          count);
  const Index images = xs[0], from = xs[1] * xs[2], to = (xs[1] - count) * xs[2];
  Cost cost;
  cost.joins = images * to;
  return tape.record(
      {"skip_tokens", cost}, Shape{images, xs[1] - count, xs[2]}, {x},
      [=](T* y) {
        for (Index image = 0; image < images; ++image)
          std::copy_n(x.data() + (image + 1) * from - to, to, y + image * to);
      },
      [=, &tape](const Adjoint<T>& dy) {
        const auto dx = tape.target(x);
        for (Index image = 0; image < images && dx; ++image) {
          T* const row = dx.data + image * from;
          if (dx.update == Update::assign) std::fill_n(row, from - to, T(0));
          write_all(dx.update, to, dy.data() + image * to, row + from - to);
        }
      });
}

template <class T>
Var<T> join_tokens(Var<T> first, Var<T> rest) {
  Tape<T>& tape = tape_of("join_tokens", first, rest);
  const Shape& s = rest.shape();
  require(s.rank() == 3 && first.size() == s[0] * s[2], "[join_tokens] first has shape {}, rest {}; expected [B, 1, D]",
          first.shape(), s);
  const Index images = s[0], width = s[2], size = s[1] * s[2];
  return tape.record(
      {"join_tokens", {}}, Shape{images, s[1] + 1, width}, {first, rest},
      [=](T* y) {
        for (Index image = 0; image < images; ++image, y += size + width) {
          std::copy_n(first.data() + image * width, width, y);
          std::copy_n(rest.data() + image * size, size, y + width);
        }
      },
      [=, &tape](const Adjoint<T>& dy) {
        const auto dfirst = tape.target(first), drest = tape.target(rest);
        for (Index image = 0; image < images; ++image) {
          const T* const row = dy.data() + image * (size + width);
          if (dfirst) write_all(dfirst.update, width, row, dfirst.data + image * width);
          if (drest) write_all(drest.update, size, row + width, drest.data + image * size);
        }
      });
}

template <class T>
Var<T> l1_normalize_tokens(Var<T> x, double least) {
  Tape<T>& tape = tape_of("l1_normalize_tokens", x);
  const Shape& xs = x.shape();
  require(xs.rank() == 3 && xs[1] >= 1, "[l1_normalize_tokens] x has shape {}; expected [B, N, D]", xs);
  const Index images = xs[0], tokens = xs[1], width = xs[2];
  T* const norms = tape.memory(images * width);
  Cost cost;
  cost.forward = images * kernels::normalize_channels_counts(ChannelNorm::l1, tokens, width);
  cost.backward = images * kernels::normalize_channels_backward_counts(ChannelNorm::l1, tokens, width);
  const auto image_of = [=](auto* all, Index image) { return Matrix(all + image * tokens * width, tokens, width); };
  return tape.record(
      {"l1_normalize_tokens", cost}, xs, {x},
      [=](T* y) {
        parallel_for(images, [=](Index i) {
          kernels::normalize_channels(ChannelNorm::l1, image_of(x.data(), i), image_of(y, i), norms + i * width, least);
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        if (const auto dx = tape.target(x))
          parallel_for(images, [=](Index i) {
            kernels::normalize_channels_backward(ChannelNorm::l1,
                                                 {image_of(x.data(), i), image_of(dy.value(), i), norms + i * width},
                                                 image_of(dy.data(), i), dx.update, image_of(dx.data, i), least);
          });
      });
}

template <class T>
Var<T> mean_tokens(Var<T> x) {
  Tape<T>& tape = tape_of("mean_tokens", x);
  const Shape& xs = x.shape();
  require(xs.rank() == 3 && xs[1] >= 1, "[mean_tokens] x has shape {}; expected [B, N, D]", xs);
  const Index images = xs[0], tokens = xs[1], width = xs[2];
  Cost cost;
  cost.forward = images * (kernels::column_sums_counts(tokens, width) + Counts{.div = width});
  cost.backward = images * width * Counts{.div = 1};
  return tape.record(
      {"mean_tokens", cost}, Shape{images, width}, {x},
      [=](T* y) {
        for (Index image = 0; image < images; ++image) {
          T* const out = y + image * width;
          kernels::column_sums(Matrix<const T>(x.data() + image * tokens * width, tokens, width), Update::assign, out);
          for (Index i = 0; i < width; ++i) out[i] = out[i] / T(static_cast<double>(tokens));
        }
      },
      [=, &tape](const Adjoint<T>& dy) {
        const auto dx = tape.target(x);
        for (Index image = 0; image < images && dx; ++image)
          for (Index i = 0; i < width; ++i) {
            const T share = dy.data()[image * width + i] / T(static_cast<double>(tokens));
            for (Index n = 0; n < tokens; ++n) write(dx.update, dx.data[(image * tokens + n) * width + i], share);
          }
      });
}

#define INSTANTIATE(T)                                                \
  template Var<T> embed_tokens(Var<T>, Var<T>, Var<T>);               \
  template Var<T> interpolate_positions(Var<T>, Index, Index, Index); \
  template Var<T> select_token(Var<T>, Index);                        \
  template Var<T> skip_tokens(Var<T>, Index);                         \
  template Var<T> join_tokens(Var<T>, Var<T>);                        \
  template Var<T> l1_normalize_tokens(Var<T>, double);                \
  template Var<T> mean_tokens(Var<T>);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
