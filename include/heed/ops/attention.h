// Runs an attention mechanism on the tape: cuts the batch into images, hands their heads to the mechanism as
// views, and adds up the gradients of tensors that all images share, in order.
#pragma once

#include "heed/attention/mechanism.h"
#include "heed/ops/rows.h"

namespace heed {

namespace detail {

/// Where the heads of one image lie in a tensor: a view of image 0 and the distance between images.
struct HeadsPlace {
  Index offset = 0, image_stride = 0, count = 0, rows = 0, columns = 0, row_stride = 0, stride = 0;

  template <class T>
  Heads<T> of(T* data, Index image) const {
    if (columns == 0) return {};
    return {data + offset + image * image_stride, count, rows, columns, row_stride, stride};
  }
};

/// Gradients of a mechanism's own tensors are summed over so many pieces of the batch side by side.
inline constexpr Index attention_pieces = 8;

/// Tensors that a mechanism may have of its own.
inline constexpr std::size_t most_attention_parameters = 4;

/// Scratch memory of the calling thread, kept between calls.
template <class T>
T* thread_scratch(Index count) {
  thread_local Buffer<T> buffer;
  if (buffer.size() < count) buffer = Buffer<T>(count);
  return buffer.data();
}

/// The operation behind both forms below. q, k, v may be three tensors or one.
template <class T>
Var<T> run_attention(const Mechanism& mechanism, const AttentionShape& shape, Index images, std::array<Var<T>, 3> qkv,
                     std::array<HeadsPlace, 3> places, const Shape& out_shape, HeadsPlace out_place,
                     std::span<const Var<T>> parameters, View<const T> noise) {
  Tape<T>& tape = tape_of(mechanism.name(), qkv[0] ? qkv[0] : qkv[2], qkv[0], qkv[1], qkv[2]);
  mechanism.check(shape);
  constexpr std::size_t most_parameters = most_attention_parameters;
  require(parameters.size() <= most_parameters, "[{}] has {} tensors of its own; at most {} are supported",
          mechanism.name(), parameters.size(), most_parameters);
  std::array<Var<T>, most_parameters> own{};
  std::copy(parameters.begin(), parameters.end(), own.begin());
  const std::size_t own_count = parameters.size();

  const Index saved = mechanism.saved(shape);
  T* const saved_memory = tape.memory(images * saved);
  const Mechanism* const m = &mechanism;

  const bool training = tape.training();
  const Products products = tape.pass().products;
  const auto input_of = [=](Index image, std::span<View<const T>, most_parameters> views) {
    for (std::size_t i = 0; i < own_count; ++i) views[i] = own[i].value();
    return AttentionInput<T>{shape,
                             places[0].template of<const T>(qkv[0] ? qkv[0].data() : nullptr, image),
                             places[1].template of<const T>(qkv[1] ? qkv[1].data() : nullptr, image),
                             places[2].template of<const T>(qkv[2] ? qkv[2].data() : nullptr, image),
                             std::span<const View<const T>>(views.data(), own_count),
                             training,
                             noise,
                             products};
  };

  Cost cost = images * mechanism.cost(shape);
  const Index pieces = std::min(images, attention_pieces);
  for (std::size_t i = 0; i < own_count; ++i)
    if (tape.wanted(own[i])) cost.backward.add += (pieces - 1) * own[i].size();

  return tape.record(
      {mechanism.name(), cost}, out_shape, {qkv[0], qkv[1], qkv[2], own[0], own[1], own[2], own[3]},
      [=](T* out) {
        parallel_for(images, [=](Index image) {
          std::array<View<const T>, most_parameters> views;
          m->forward(input_of(image, views), out_place.template of<T>(out, image), saved_memory + image * saved,
                     thread_scratch<T>(m->scratch(shape)));
        });
      },
      [=, &tape](const Adjoint<T>& dout) {
        // Operands that are one tensor share one gradient; one that nobody wants goes to a place of its own.
        std::array<typename Tape<T>::Target, 3> targets;
        Update update = Update::assign;
        for (std::size_t i = 0; i < 3; ++i) {
          if (!qkv[i]) continue;
          for (std::size_t j = 0; j < i && !targets[i]; ++j)
            if (qkv[j] && qkv[j].data() == qkv[i].data()) targets[i] = targets[j];
          if (!targets[i]) targets[i] = tape.target(qkv[i]);
          if (!targets[i]) targets[i] = {tape.memory(qkv[i].size()), Update::assign};
          if (targets[i].update == Update::accumulate) update = Update::accumulate;
        }
        for (std::size_t i = 0; i < 3; ++i)
          if (targets[i] && targets[i].update != update)
            std::fill(targets[i].data, targets[i].data + qkv[i].size(), T(0));

        Index own_size = 0;
        for (std::size_t i = 0; i < own_count; ++i) own_size += own[i].size();
        const Index pieces = own_size == 0 ? images : std::min(images, attention_pieces);
        T* const shares = own_size == 0 ? nullptr : tape.memory(pieces * own_size);
        if (own_size > 0) std::fill(shares, shares + pieces * own_size, T(0));

        parallel_for(pieces, [=](Index piece) {
          std::array<View<const T>, most_parameters> views;
          std::array<View<T>, most_parameters> share_views;
          T* share = shares + piece * own_size;
          for (std::size_t i = 0; i < own_count; share += own[i].size(), ++i) share_views[i] = {share, own[i].shape()};
          for (Index image = images * piece / pieces; image < images * (piece + 1) / pieces; ++image) {
            const AttentionGradient<T> gradient{update, places[0].template of<T>(targets[0].data, image),
                                                places[1].template of<T>(targets[1].data, image),
                                                places[2].template of<T>(targets[2].data, image),
                                                std::span<const View<T>>(share_views.data(), own_count)};
            m->backward(input_of(image, views),
                        out_place.template of<const T>(static_cast<const T*>(dout.value()), image),
                        out_place.template of<const T>(dout.data(), image), saved_memory + image * saved,
                        thread_scratch<T>(m->scratch(shape)), gradient);
          }
        });
        Index offset = 0;
        for (std::size_t i = 0; i < own_count; ++i) {
          const Index size = own[i].size();
          if (const auto target = tape.target(own[i]))
            for_row_ranges(size, pieces, [=](Index begin, Index end) {
              for (Index piece = 0; piece < pieces; ++piece)
                write_all(piece == 0 ? target.update : Update::accumulate, end - begin,
                          shares + piece * own_size + offset + begin, target.data + begin);
            });
          offset += size;
        }
      });
}

/// Where q, k and v lie in the rows of a qkv projection.
inline std::array<HeadsPlace, 3> packed_places(const AttentionLayout& layout, Index tokens) {
  const std::array<Index, 3> widths{layout.query_width, layout.key_width, layout.value_width};
  std::array<HeadsPlace, 3> places;
  Index offset = 0;
  for (std::size_t i = 0; i < 3; offset += layout.heads * widths[i], ++i)
    places[i] = {offset, tokens * layout.total(), layout.heads, tokens, widths[i], layout.total(), widths[i]};
  return places;
}

}  // namespace detail

/// Attention on the output of a qkv projection: x [B, N, layout.total()], each row q, then k, then v, each of
/// `layout.heads` parts; out [B, N, heads * value width]. `shape` gives the grid; its other sizes are filled in.
/// The mechanism must outlive the pass, and so must `noise`, for mechanisms that take some.
template <class T>
Var<T> attention(const Mechanism& mechanism, Var<T> x, const AttentionLayout& layout, AttentionShape shape,
                 std::span<const Var<T>> parameters = {}, View<const T> noise = {}) {
  const Shape& xs = x.shape();
  require(xs.rank() == 3 && xs[2] == layout.total(), "[{}] x has shape {}; expected [B, N, {}]", mechanism.name(), xs,
          layout.total());
  const Index images = xs[0], tokens = xs[1], heads = layout.heads;
  shape = layout.among(tokens, shape);

  const std::array<Var<T>, 3> operands{layout.query_width > 0 ? x : Var<T>{}, layout.key_width > 0 ? x : Var<T>{}, x};
  const Index width = heads * layout.value_width;
  return detail::run_attention<T>(
      mechanism, shape, images, operands, detail::packed_places(layout, tokens), Shape{images, tokens, width},
      {0, tokens * width, heads, tokens, layout.value_width, width, layout.value_width}, parameters, noise);
}

/// Attention on separate tensors: q [B, H, N, d], k [B, H, M, d'], v [B, H, M, e], out [B, H, N, e]. Operands
/// that the mechanism does not use are left out.
template <class T>
Var<T> attention(const Mechanism& mechanism, Var<T> q, Var<T> k, Var<T> v, AttentionShape shape,
                 std::span<const Var<T>> parameters = {}, View<const T> noise = {}) {
  std::array<detail::HeadsPlace, 3> places;
  const std::array<Var<T>, 3> operands{q, k, v};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!operands[i]) continue;
    const Shape& s = operands[i].shape();
    require(s.rank() == 4 && s[0] == v.shape()[0] && s[1] == v.shape()[1],
            "[{}] an operand has shape {}, v has {}; expected [B, H, tokens, channels] with the same B and H",
            mechanism.name(), s, v.shape());
    places[i] = {0, s[1] * s[2] * s[3], s[1], s[2], s[3], s[3], s[2] * s[3]};
  }
  const Shape& vs = v.shape();
  shape.heads = vs[1];
  shape.keys = vs[2];
  shape.value_width = vs[3];
  shape.queries = q ? q.shape()[2] : vs[2];
  shape.width = q ? q.shape()[3] : vs[3];
  require(!k || (k.shape()[2] == vs[2]), "[{}] k has {} tokens, v has {}; they must match", mechanism.name(),
          k ? k.shape()[2] : 0, vs[2]);
  const Index head = shape.queries * vs[3];
  return detail::run_attention<T>(mechanism, shape, vs[0], operands, places, Shape{vs[0], vs[1], shape.queries, vs[3]},
                                  {0, vs[1] * head, vs[1], shape.queries, vs[3], vs[3], head}, parameters, noise);
}

/// The term that a mechanism with a penalty adds to the training loss, a scalar, as a function of its own tensors
/// for this shape. The mechanism must outlive the pass.
template <class T>
Var<T> penalty(const Mechanism& mechanism, const AttentionShape& shape, std::span<const Var<T>> parameters) {
  HEED_ASSERT(mechanism.has_penalty() && !parameters.empty());
  std::array<Var<T>, detail::most_attention_parameters> own{};
  HEED_ASSERT(parameters.size() <= own.size());
  std::copy(parameters.begin(), parameters.end(), own.begin());
  const std::size_t count = parameters.size();
  Tape<T>& tape = own[0].tape();
  const Mechanism* const m = &mechanism;
  const auto values = [=] {
    std::array<View<const T>, detail::most_attention_parameters> views;
    for (std::size_t i = 0; i < count; ++i) views[i] = own[i].value();
    return views;
  };
  return tape.record(
      {"penalty", mechanism.penalty_cost(shape)}, Shape{}, {own[0], own[1], own[2], own[3]},
      [=](T* y) {
        const auto views = values();
        *y = m->penalty(shape, std::span(views.data(), count), T(1), {}, detail::thread_scratch<T>(m->scratch(shape)));
      },
      [=, &tape](const Adjoint<T>& dy) {
        const auto views = values();
        std::array<View<T>, detail::most_attention_parameters> gradients;
        for (std::size_t i = 0; i < count; ++i) {
          auto target = tape.target(own[i]);
          if (!target) target = {tape.memory(own[i].size()), Update::assign};
          if (target.update == Update::assign) std::fill(target.data, target.data + own[i].size(), T(0));
          gradients[i] = {target.data, own[i].shape()};
        }
        m->penalty(shape, std::span(views.data(), count), *dy.data(), std::span<const View<T>>(gradients.data(), count),
                   detail::thread_scratch<T>(m->scratch(shape)));
      });
}

}  // namespace heed
