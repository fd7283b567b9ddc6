#include "heed/ops/attention.h"

#include "heed/cost/for_each_number.h"
#include "heed/ops/rows.h"

namespace heed {

namespace {

/// Gradients of a mechanism's own tensors are summed over so many pieces of the batch side by side.
constexpr Index attention_pieces = 8;

/// Scratch memory of the calling thread, kept between calls.
template <class T>
AttentionMemory<T> thread_scratch(Index count) {
  thread_local Buffer<T> buffer;
  if (buffer.size() < count) buffer = Buffer<T>(count);
  return {buffer.data()};
}

/// The values of some tensors, as long as the pass.
template <class T>
std::span<const View<const T>> values_of(Tape<T>& tape, std::span<const Var<T>> tensors) {
  const auto values = tape.template list<View<const T>>(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) values[i] = tensors[i].value();
  return values;
}

/// A copy of some handles that lives as long as the pass.
template <class T>
std::span<const Var<T>> kept_handles(Tape<T>& tape, std::span<const Var<T>> handles) {
  const auto kept = tape.template list<Var<T>>(handles.size());
  std::copy(handles.begin(), handles.end(), kept.begin());
  return kept;
}

/// Where gradients of these tensors may be added: cleared where nothing is there yet, and a place that nobody looks at
/// where no gradient is wanted.
template <class T>
std::span<const View<T>> gradients_to_add_to(Tape<T>& tape, std::span<const Var<T>> tensors) {
  const auto gradients = tape.template list<View<T>>(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto target = tape.target(tensors[i]);
    if (!target) target = {tape.memory(tensors[i].size()), Update::assign};
    if (target.update == Update::assign) std::fill_n(target.data, tensors[i].size(), T(0));
    gradients[i] = {target.data, tensors[i].shape()};
  }
  return gradients;
}

/// A mechanism at work on a batch. `shared` are the tensors that all images share: what the mechanism has prepared, or
/// where it prepares nothing its own tensors.
template <class T>
struct AttentionWork {
  const Mechanism* mechanism;
  detail::AttentionShapes shapes;
  AttentionMemorySize size;  ///< for any image
  Index images;
  std::array<Var<T>, 3> qkv;  ///< three tensors, or one three times; those that it does not use are left out
  std::array<detail::HeadsPlace, 3> places;
  detail::HeadsPlace out_place;
  std::span<const Var<T>> shared;
  std::span<const View<const T>> shared_values;
  Products products;
  T* saved;
  std::span<const Index> saved_starts;  ///< where that of each image begins, if they are not all alike

  bool prepared() const { return size.prepared > 0; }
  Index shared_size() const {
    Index sum = 0;
    for (const View<const T>& values : shared_values) sum += values.size();
    return sum;
  }
  Index pieces() const { return std::min(images, attention_pieces); }

  AttentionMemory<T> saved_of(Index image) const {
    return {saved + (saved_starts.empty() ? image * size.saved : saved_starts[static_cast<std::size_t>(image)])};
  }

  AttentionInput<T> input(Index image) const {
    const auto heads = [&](std::size_t i) {
      return places[i].template of<const T>(qkv[i] ? qkv[i].data() : nullptr, image);
    };
    AttentionInput<T> in{.shape = shapes.of(image), .q = heads(0), .k = heads(1), .v = heads(2), .products = products};
    if (prepared())
      in.prepared = {shared_values[0].data()};
    else
      in.parameters = shared_values;
    return in;
  }

  void forward(T* out) const {
    parallel_for(images, [=, *this](Index image) {
      mechanism->forward(AttentionForward<T>{input(image), out_place.template of<T>(out, image), saved_of(image),
                                             thread_scratch<T>(size.scratch)});
    });
  }

  void backward(Tape<T>& tape, const Adjoint<T>& dout) const {
    Update update = Update::assign;
    const std::array<T*, 3> dqkv = operand_gradients(tape, update);
    const Index numbers = shared_size(), shares_count = numbers == 0 ? images : pieces();
    T* const shares = tape.memory(numbers == 0 ? 0 : shares_count * numbers);
    std::fill_n(shares, numbers == 0 ? 0 : shares_count * numbers, T(0));
    const auto gradients = tape.template list<View<T>>(static_cast<std::size_t>(shares_count) * shared.size());

    parallel_for(shares_count, [=, *this](Index piece) {
      AttentionGradient<T> gradient{.update = update};
      T* const share = shares + piece * numbers;
      if (prepared())
        gradient.prepared = {share};
      else
        gradient.parameters = divide(share, gradients.subspan(static_cast<std::size_t>(piece) * shared.size()));
      for (Index image = images * piece / shares_count; image < images * (piece + 1) / shares_count; ++image) {
        gradient.q = places[0].template of<T>(dqkv[0], image);
        gradient.k = places[1].template of<T>(dqkv[1], image);
        gradient.v = places[2].template of<T>(dqkv[2], image);
        mechanism->backward(AttentionBackward<T>{input(image), out_place.template of<const T>(dout.value(), image),
                                                 out_place.template of<const T>(dout.data(), image), saved_of(image),
                                                 thread_scratch<T>(size.scratch), gradient});
      }
    });
    add_shares(tape, shares, shares_count);
  }

 private:
  /// Where the gradients of q, k and v go, and how all three are written. Operands that are one tensor share one
  /// gradient; one that nobody wants goes to a place of its own.
  std::array<T*, 3> operand_gradients(Tape<T>& tape, Update& update) const {
    std::array<typename Tape<T>::Target, 3> targets;
    for (std::size_t i = 0; i < 3; ++i) {
      if (!qkv[i]) continue;
      for (std::size_t j = 0; j < i && !targets[i]; ++j)
        if (qkv[j] && qkv[j].data() == qkv[i].data()) targets[i] = targets[j];
      if (!targets[i]) targets[i] = tape.target(qkv[i]);
      if (!targets[i]) targets[i] = {tape.memory(qkv[i].size()), Update::assign};
      if (targets[i].update == Update::accumulate) update = Update::accumulate;
    }
    for (std::size_t i = 0; i < 3; ++i)
      if (targets[i] && targets[i].update != update) std::fill_n(targets[i].data, qkv[i].size(), T(0));
    return {targets[0].data, targets[1].data, targets[2].data};
  }

  /// A piece's share of the gradients, tensor by tensor.
  std::span<const View<T>> divide(T* share, std::span<View<T>> gradients) const {
    for (std::size_t i = 0; i < shared.size(); share += shared_values[i].size(), ++i)
      gradients[i] = {share, shared_values[i].shape()};
    return gradients.first(shared.size());
  }

  void add_shares(Tape<T>& tape, const T* shares, Index count) const {
    const Index numbers = shared_size();
    Index offset = 0;
    for (const Var<T>& tensor : shared) {
      if (const auto target = tape.target(tensor))
        for_row_ranges(tensor.size(), count, [=](Index begin, Index end) {
          for (Index piece = 0; piece < count; ++piece)
            write_all(piece == 0 ? target.update : Update::accumulate, end - begin,
                      shares + piece * numbers + offset + begin, target.data + begin);
        });
      offset += tensor.size();
    }
  }
};

/// A mechanism's own tensors, the noise that it asked for, and what it has prepared of both where that is known.
template <class T>
struct OwnTensors {
  std::span<const Var<T>> parameters{};
  View<const T> noise{};
  Var<T> prepared{};
};

/// What all images cost and save together.
struct AttentionSum {
  Cost cost;
  Index saved = 0;
};

/// Sizes of the work; checks the shapes of images that are not all alike.
template <class T>
AttentionSum measure(Tape<T>& tape, AttentionWork<T>& work) {
  const Mechanism& mechanism = *work.mechanism;
  if (!work.shapes.segments) {
    work.size = mechanism.memory(work.shapes.common);
    return {work.images * mechanism.cost(work.shapes.common), work.images * work.size.saved};
  }
  AttentionSum sum;
  const std::span<Index> starts = tape.template list<Index>(static_cast<std::size_t>(work.images));
  for (Index image = 0; image < work.images; ++image) {
    const AttentionShape shape = work.shapes.of(image);
    mechanism.check(shape);
    const AttentionMemorySize size = mechanism.memory(shape);
    starts[static_cast<std::size_t>(image)] = sum.saved;
    sum.saved += (size.saved + 15) / 16 * 16;  // each begins on a cache line
    work.size.prepared = size.prepared;
    work.size.scratch = std::max(work.size.scratch, size.scratch);
    sum.cost += mechanism.cost(shape);
  }
  work.saved_starts = starts;
  return sum;
}

/// The operation behind both forms below.
template <class T>
Var<T> run_attention(const Mechanism& mechanism, AttentionWork<T> work, const Shape& out, OwnTensors<T> own) {
  const Var<T> any = work.qkv[0] ? work.qkv[0] : work.qkv[2];
  Tape<T>& tape = tape_of(mechanism.name(), any, work.qkv[0], work.qkv[1], work.qkv[2]);
  work.mechanism = &mechanism;
  work.products = tape.pass().products;
  const AttentionSum sum = measure(tape, work);
  if (work.prepared()) {
    if (!own.prepared) own.prepared = prepare(mechanism, work.shapes.common, own.parameters, own.noise);
    own.parameters = {&own.prepared, 1};
  }
  work.shared = kept_handles(tape, own.parameters);
  work.shared_values = values_of(tape, work.shared);
  work.saved = tape.memory(sum.saved);

  Cost cost = sum.cost;
  const auto operands = tape.template list<Var<T>>(3 + work.shared.size());
  std::copy(work.qkv.begin(), work.qkv.end(), operands.begin());
  std::copy(work.shared.begin(), work.shared.end(), operands.begin() + 3);
  for (const Var<T>& tensor : work.shared)
    if (tape.wanted(tensor)) cost.backward.add += (work.pieces() - 1) * tensor.size();
  return tape.record(
      {mechanism.name(), cost}, out, operands, [=](T* y) { work.forward(y); },
      [=, &tape](const Adjoint<T>& dout) { work.backward(tape, dout); });
}

}  // namespace

detail::AttentionShapes::AttentionShapes(const AttentionLayout& layout, const AttentionShape& shape, const Shape& input,
                                         const Segments* segments)
    : layout(layout), common(layout.among(input[1], shape)), images(input[0]), segments(segments) {
  if (segments) {
    images = segments->count();
    for (Index i = 0; i < images; ++i) common.whole = common.whole && segments->length(i) == common.longest;
    if (images > 0) common = layout.among(segments->length(0), common);
  } else {
    common.whole = !common.sequence() || input[1] == common.longest;
  }
}

std::array<detail::HeadsPlace, 3> detail::packed_places(const AttentionLayout& layout, Index tokens,
                                                        const Segments* segments) {
  const std::array<Index, 3> widths{layout.query_width, layout.key_width, layout.value_width};
  const std::array<Index, 3> heads{layout.heads, layout.key_heads, layout.key_heads};
  std::array<HeadsPlace, 3> places;
  Index offset = 0;
  for (std::size_t i = 0; i < 3; offset += heads[i] * widths[i], ++i)
    places[i] = {offset, tokens * layout.total(), heads[i], widths[i], tokens, widths[i], layout.total(), segments};
  return places;
}

template <class T>
Var<T> prepare(const Mechanism& mechanism, const AttentionShape& shape, std::span<const Var<T>> parameters,
               View<const T> noise) {
  Tape<T>& tape = parameters[0].tape();
  const auto own = kept_handles(tape, parameters);
  const auto values = values_of(tape, own);
  const Mechanism* const m = &mechanism;
  const bool training = tape.training();
  const auto preparation = [=](T* prepared) {
    return AttentionPreparation<T>{shape, values, training, noise, {prepared}};
  };
  return tape.record(
      {m->name(), m->preparation_cost(shape)}, Shape{m->memory(shape).prepared}, own,
      [=](T* prepared) { m->prepare(preparation(prepared)); },
      [=, &tape](const Adjoint<T>& dprepared) {
        m->prepare_backward(AttentionPreparationBackward<T>{preparation(const_cast<T*>(dprepared.value())),
                                                            {const_cast<T*>(dprepared.data())},
                                                            gradients_to_add_to(tape, own)});
      });
}

template <class T>
Var<T> attention(const Mechanism& mechanism, Var<T> x, const AttentionLayout& layout, AttentionShape shape,
                 std::span<const Var<T>> parameters, View<const T> noise, Var<T> prepared) {
  const Shape& xs = x.shape();
  require(xs.rank() == 3 && xs[2] == layout.total(), "[{}] x has shape {}; expected [B, N, {}]", mechanism.name(), xs,
          layout.total());
  const Index tokens = xs[1], heads = layout.heads, width = heads * layout.value_width;
  const Segments* const segments = x.tape().pass().segments;
  require(!segments || (xs[0] == 1 && tokens == segments->rows()),
          "[{}] x has shape {}; expected the rows of {} sequences, [1, {}, {}]", mechanism.name(), xs,
          segments ? segments->count() : 0, segments ? segments->rows() : 0, layout.total());
  AttentionWork<T> work{};
  work.shapes = detail::AttentionShapes(layout, shape, xs, segments);
  if (!segments) mechanism.check(work.shapes.common);
  work.images = work.shapes.images;
  work.qkv = {layout.query_width > 0 ? x : Var<T>{}, layout.key_width > 0 ? x : Var<T>{}, x};
  work.places = detail::packed_places(layout, tokens, segments);
  work.out_place = {0, tokens * width, heads, layout.value_width, tokens, layout.value_width, width, segments};
  return run_attention<T>(mechanism, work, Shape{xs[0], tokens, width}, {parameters, noise, prepared});
}

template <class T>
Var<T> attention(const Mechanism& mechanism, Var<T> q, Var<T> k, Var<T> v, AttentionShape shape,
                 std::span<const Var<T>> parameters, View<const T> noise) {
  AttentionWork<T> work{};
  work.qkv = {q, k, v};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!work.qkv[i]) continue;
    const Shape& s = work.qkv[i].shape();
    require(s.rank() == 4 && s[0] == v.shape()[0],
            "[{}] an operand has shape {}, v has {}; expected [B, H, tokens, channels] with the same B",
            mechanism.name(), s, v.shape());
    work.places[i] = {0, s[1] * s[2] * s[3], s[1], s[2] * s[3], s[2], s[3], s[3]};
  }
  const Shape& vs = v.shape();
  shape.heads = q ? q.shape()[1] : vs[1];
  shape.keys = vs[2];
  shape.value_width = vs[3];
  shape.queries = q ? q.shape()[2] : vs[2];
  shape.width = q ? q.shape()[3] : vs[3];
  require(!k || (k.shape()[2] == vs[2]), "[{}] k has {} tokens, v has {}; they must match", mechanism.name(),
          k ? k.shape()[2] : 0, vs[2]);
  mechanism.check(shape);
  const Index key_heads = mechanism.layout(shape.heads * vs[3], shape.heads).key_heads;
  require(vs[1] == key_heads && (!k || k.shape()[1] == key_heads),
          "[{}] k has {} heads, v has {}; expected {} beside {} of q", mechanism.name(), k ? k.shape()[1] : 0, vs[1],
          key_heads, shape.heads);
  const Index head = shape.queries * vs[3];
  work.shapes.common = shape;
  work.images = vs[0];
  work.out_place = {0, shape.heads * head, shape.heads, head, shape.queries, vs[3], vs[3]};
  return run_attention<T>(mechanism, work, Shape{vs[0], shape.heads, shape.queries, vs[3]}, {parameters, noise});
}

template <class T>
Var<T> attention_step(const Mechanism& mechanism, Var<T> x, const AttentionLayout& layout, const AttentionShape& shape,
                      std::span<const Var<T>> parameters) {
  const Index width = layout.heads * layout.value_width;
  Tape<T>& tape = x.tape();
  DecodingStep<T>* const step = tape.pass().decoding;
  require(step && x.shape() == Shape{1, 1, layout.total()}, "[{}] x has shape {}; expected a token that is decoded",
          mechanism.name(), x.shape());
  if constexpr (std::is_same_v<T, Counted>) {
    fail("[{}] decoding is not counted", mechanism.name());
  } else {
    AttentionDecoding<T> call;
    call.in.shape = layout.among(1, shape);
    call.in.shape.whole = false;
    call.position = step->position;
    call.state = step->state;
    const AttentionStateSize size = mechanism.state_size(call.in.shape, shape.longest);
    step->state += size.state;
    const std::array<detail::HeadsPlace, 3> places = detail::packed_places(layout, 1, nullptr);
    call.in.q = places[0].template of<const T>(x.data(), 0);
    call.in.k = places[1].template of<const T>(x.data(), 0);
    call.in.v = places[2].template of<const T>(x.data(), 0);
    call.in.parameters = values_of(tape, parameters);
    call.scratch = thread_scratch<T>(size.scratch).data;
    return tape.record(
        {mechanism.name(), {}}, Shape{1, 1, width}, {x},
        [&](T* y) {
          call.out = {{y, 1, layout.value_width}, layout.heads, layout.value_width};
          mechanism.decode(call);
        },
        [](const Adjoint<T>&) {});
  }
}

template <class T>
void make_map(const Mechanism& mechanism, const AttentionInput<T>& in, T* map) {
  const Shape shape = map_shape(mechanism, in.shape);
  const AttentionMemorySize size = mechanism.memory(in.shape);
  Buffer<T> saved(size.saved), scratch(size.scratch);
  mechanism.map(AttentionMap<T>{
      in, {{map, shape[1], shape[2]}, shape[0], shape[1] * shape[2]}, {saved.data()}, {scratch.data()}});
}

template <class T>
Var<T> penalty(const Mechanism& mechanism, const AttentionShape& shape, std::span<const Var<T>> parameters) {
  HEED_ASSERT(mechanism.traits().penalty && !parameters.empty());
  Tape<T>& tape = parameters[0].tape();
  const auto own = kept_handles(tape, parameters);
  const auto values = values_of(tape, own);
  const Mechanism* const m = &mechanism;
  return tape.record(
      {"penalty", mechanism.penalty_cost(shape)}, Shape{}, own,
      [=](T* y) {
        m->penalty(AttentionPenalty<T>{shape, values, T(1), {}, y});
      },
      [=, &tape](const Adjoint<T>& dy) {
        T unused;
        m->penalty(AttentionPenalty<T>{shape, values, *dy.data(), gradients_to_add_to(tape, own), &unused});
      });
}

#define INSTANTIATE(T)                                                                                                 \
  template Var<T> prepare(const Mechanism&, const AttentionShape&, std::span<const Var<T>>, View<const T>);            \
  template Var<T> attention(const Mechanism&, Var<T>, const AttentionLayout&, AttentionShape, std::span<const Var<T>>, \
                            View<const T>, Var<T>);                                                                    \
  template Var<T> attention(const Mechanism&, Var<T>, Var<T>, Var<T>, AttentionShape, std::span<const Var<T>>,         \
                            View<const T>);                                                                            \
  template Var<T> attention_step(const Mechanism&, Var<T>, const AttentionLayout&, const AttentionShape&,              \
                                 std::span<const Var<T>>);                                                             \
  template void make_map(const Mechanism&, const AttentionInput<T>&, T*);                                              \
  template Var<T> penalty(const Mechanism&, const AttentionShape&, std::span<const Var<T>>);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
