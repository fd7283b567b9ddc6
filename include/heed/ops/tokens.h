// From patches to tokens and back: class token, position embedding, and the pooling that ends a model.
#pragma once

#include "heed/kernels/rows.h"
#include "heed/ops/rows.h"

namespace heed {

/// y[b] = [class_token; x[b]] + position: x [B, P, D], class_token [1, 1, D] or left out, position [1, N, D]
/// or left out, y [B, N, D] with N = P + 1 where there is a class token, else P. arXiv:2010.11929v2, Eq. 1.
///
///   dx += dy of its rows;  dposition += sum over images of dy;  dclass_token += the same of the first rows
template <class T>
Var<T> embed_tokens(Var<T> x, Var<T> class_token, Var<T> position) {
  Tape<T>& tape = tape_of("embed_tokens", x, class_token, position);
  const Shape& xs = x.shape();
  require(xs.rank() == 3, "[embed_tokens] x has shape {}; expected [B, P, D]", xs);
  const Index images = xs[0], patches = xs[1], width = xs[2], first = class_token ? 1 : 0, tokens = patches + first;
  require(!class_token || class_token.shape() == Shape{1, 1, width},
          "[embed_tokens] class_token has shape {}; expected [1, 1, {}]", class_token ? class_token.shape() : Shape{},
          width);
  require(!position || position.shape() == Shape{1, tokens, width},
          "[embed_tokens] position has shape {}; expected [1, {}, {}]", position ? position.shape() : Shape{}, tokens,
          width);
  const Index row = tokens * width;
  Cost cost;
  cost.forward = {.add = position ? images * row : 0};
  cost.backward = kernels::column_sums_counts(images, (position ? row : 0) + first * width);
  return tape.record(
      {"embed_tokens", cost}, Shape{images, tokens, width}, {x, class_token, position},
      [=](T* y) {
        for (Index image = 0; image < images; ++image) {
          T* const out = y + image * row;
          if (class_token) std::copy(class_token.data(), class_token.data() + width, out);
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
        if (const auto dclass = tape.target(class_token))
          for (Index image = 0; image < images; ++image)
            write_all(image == 0 ? dclass.update : Update::accumulate, width, by_image[image], dclass.data);
        if (const auto dx = tape.target(x))
          for (Index image = 0; image < images; ++image)
            write_all(dx.update, patches * width, by_image[image] + first * width, dx.data + image * patches * width);
      });
}

/// y[b] = x[b, token]: x [B, N, D], y [B, D]. dx gets dy in that row and zero in the others.
template <class T>
Var<T> select_token(Var<T> x, Index token) {
  Tape<T>& tape = tape_of("select_token", x);
  const Shape& xs = x.shape();
  require(xs.rank() == 3 && token >= 0 && token < xs[1], "[select_token] x has shape {}; it has no token {}", xs,
          token);
  const Index images = xs[0], width = xs[2], row = xs[1] * width;
  return tape.record(
      {"select_token", {}}, Shape{images, width}, {x},
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

/// y[b] = mean over tokens of x[b]: x [B, N, D], y [B, D]. dx[b, n] += dy[b] / N.
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

}  // namespace heed
