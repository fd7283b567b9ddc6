#include "heed/ops/attention.h"

#include "mechanism_parameters.h"

#include "heed/attention/steps.h"
#include "heed/cost/for_each_number.h"
#include "heed/ops/prepared_attention.h"
#include "heed/ops/rows.h"

namespace heed {

namespace {

/// Maximum number of partial sums, computed in parallel, of the gradients of the shared tensors (AttentionWork).
constexpr Index attention_pieces = 8;

/// A mechanism's passes over a batch. `shared` holds the tensors common to all images: the prepared tensor, or the
/// parameters if nothing is prepared.
template <class T>
struct AttentionWork {
  const Mechanism* mechanism;
  AttentionLayout layout;
  AttentionShape shape;      ///< shape of all images or, if they differ, of the first
  AttentionMemorySize size;  ///< sufficient for any call
  Index images;
  Index calls = 1;  ///< calls per image: one, or one per head
  AttentionOperands<T> of;
  HeadsPlace out_place;
  std::span<const Var<T>> shared;
  std::span<const View<const T>> shared_values;
  Products products;
  T* saved;                             ///< saved memory of all calls; null without a backward pass
  std::span<const Index> saved_starts;  ///< offset of each image's saved memory, if shapes differ

  bool prepared() const { return size.prepared > 0; }
  Index shared_size() const {
    Index sum = 0;
    for (const View<const T>& values : shared_values) sum += values.size();
    return sum;
  }
  Index pieces() const { return std::min(images, attention_pieces); }

  AttentionShape shape_of(Index image) const {
    AttentionShape one = of.segments() ? of.shape(layout, shape, image) : shape;
    one.heads /= calls;
    return one;
  }
  AttentionMemory<T> saved_of(Index call) const {
    return {saved + (saved_starts.empty() ? call * size.saved : saved_starts[static_cast<std::size_t>(call)])};
  }
  /// Returns the heads of a call, out of all heads of its image.
  template <class U>
  Heads<U> of_call(const Heads<U>& all, Index call) const {
    return calls == 1 || all.count == 0 ? all : Heads<U>{all[call % calls], 1, all.distance};
  }

  AttentionInput<T> input(Index call) const {
    const Index image = call / calls;
    AttentionInput<T> in{.shape = shape_of(image),
                         .q = of_call(of.heads(0, image), call),
                         .k = of_call(of.heads(1, image), call),
                         .v = of_call(of.heads(2, image), call),
                         .products = products};
    if (prepared())
      in.prepared = {shared_values[0].data()};
    else
      in.parameters = shared_values;
    return in;
  }

  void forward(T* out) const {
    parallel_for(images * calls, [=, *this](Index call) {
      const AttentionMemory<T> scratch{thread_memory<T>(size.scratch + (saved ? 0 : size.saved))};
      mechanism->forward(AttentionForward<T>{input(call), of_call(out_place.template of<T>(out, call / calls), call),
                                             saved ? saved_of(call) : AttentionMemory<T>{scratch.data + size.scratch},
                                             scratch});
    });
  }

  void backward(Tape<T>& tape, const Adjoint<T>& dout) const {
    Update update = Update::assign;
    const std::array<T*, 3> dqkv = operand_gradients(tape, update);
    const Index numbers = shared_size(), shares_count = numbers == 0 ? images * calls : pieces();
    const typename Tape<T>::Target only = only_share(tape);
    T* const shares = only ? only.data : tape.memory(numbers == 0 ? 0 : shares_count * numbers);
    std::fill_n(shares, numbers == 0 ? 0 : shares_count * numbers, T(0));
    const auto gradients = tape.template list<View<T>>(static_cast<std::size_t>(shares_count) * shared.size());

    parallel_for(shares_count, [=, *this](Index piece) {
      AttentionGradient<T> gradient{.update = update};
      T* const share = shares + piece * numbers;
      if (prepared())
        gradient.prepared = {share};
      else
        gradient.parameters = divide(share, gradients.subspan(static_cast<std::size_t>(piece) * shared.size()));
      const Index all = images * calls;
      for (Index call = all * piece / shares_count; call < all * (piece + 1) / shares_count; ++call) {
        const Index image = call / calls;
        gradient.q = of_call(of.places[0].template of<T>(dqkv[0], image), call);
        gradient.k = of_call(of.places[1].template of<T>(dqkv[1], image), call);
        gradient.v = of_call(of.places[2].template of<T>(dqkv[2], image), call);
        mechanism->backward(
            AttentionBackward<T>{input(call), of_call(out_place.template of<const T>(dout.value(), image), call),
                                 of_call(out_place.template of<const T>(dout.data(), image), call), saved_of(call),
                                 AttentionMemory<T>{thread_memory<T>(size.scratch)}, gradient});
      }
    });
    if (!only) add_shares(tape, shares, shares_count);
  }

 private:
  /// Returns the gradients of q, k and v, and sets their common update. Operands in the same variable share its
  /// gradient; if they overlap, their gradients are accumulated. An unwanted gradient is written to memory that is not
  /// read.
  std::array<T*, 3> operand_gradients(Tape<T>& tape, Update& update) const {
    const auto& qkv = of.qkv;
    std::array<typename Tape<T>::Target, 3> targets;
    for (std::size_t i = 0; i < 3; ++i) {
      if (!qkv[i]) continue;
      for (std::size_t j = 0; j < i; ++j) {
        if (qkv[j] != qkv[i]) continue;
        targets[i] = targets[j];
        if (of.places[j].offset == of.places[i].offset) update = Update::accumulate;
      }
      if (!targets[i]) targets[i] = tape.target(qkv[i]);
      if (!targets[i]) targets[i] = {tape.memory(qkv[i].size()), Update::assign};
      if (targets[i].update == Update::accumulate) update = Update::accumulate;
    }
    for (std::size_t i = 0; i < 3; ++i)
      if (targets[i] && targets[i].update != update) std::fill_n(targets[i].data, qkv[i].size(), T(0));
    return {targets[0].data, targets[1].data, targets[2].data};
  }

  /// Returns the target of the shared tensor's gradient if there is exactly one shared tensor, its gradient is a single
  /// partial sum, and the target is to be assigned; otherwise none.
  typename Tape<T>::Target only_share(Tape<T>& tape) const {
    if (shared.size() != 1 || pieces() != 1) return {};
    const auto target = tape.target(shared[0]);
    return target.update == Update::assign ? target : typename Tape<T>::Target{};
  }

  /// Returns views of a partial sum, one per tensor.
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
            write_all(term_update(piece, target.update), end - begin, shares + piece * numbers + offset + begin,
                      target.data + begin);
        });
      offset += tensor.size();
    }
  }
};

/// A mechanism's parameters and noise, and the tensor prepared from both, empty if there is none yet.
template <class T>
struct MechanismTensors {
  std::span<const Var<T>> parameters{};
  View<const T> noise{};
  Var<T> prepared{};
};

/// Cost and saved memory of all images.
struct AttentionSum {
  Cost cost;
  Index saved = 0;
};

/// Sets the memory sizes and the number of calls per image. Checks the shapes of the images if they differ.
template <class T>
AttentionSum measure(Tape<T>& tape, AttentionWork<T>& work, bool parameters) {
  const Mechanism& mechanism = *work.mechanism;
  if (!work.of.segments()) {
    const Cost cost = mechanism.cost(work.shape);
    work.size = mechanism.memory(work.shape);
    // Independent heads without shared tensors are separate calls if one head's forward pass is enough work for a
    // thread. An observed call has all heads, since steps (attention/steps.h) are reported with their head's index.
    const Index heads = work.shape.heads;
    if (mechanism.traits().independent_heads && !parameters && !work.prepared() && !StepObserver::current() &&
        (cost.forward.mul + cost.forward.add) / heads >= parallel_grain) {
      work.calls = heads;
      work.size = mechanism.memory(work.shape_of(0));
    }
    return {work.images * cost, work.images * work.calls * work.size.saved};
  }
  AttentionSum sum;
  const std::span<Index> starts = tape.template list<Index>(static_cast<std::size_t>(work.images));
  for (Index image = 0; image < work.images; ++image) {
    const AttentionShape shape = work.shape_of(image);
    mechanism.check(shape);
    const AttentionMemorySize size = mechanism.memory(shape);
    starts[static_cast<std::size_t>(image)] = sum.saved;
    sum.saved += (size.saved + 15) / 16 * 16;  // aligned to cache lines
    work.size.prepared = size.prepared;
    work.size.saved = std::max(work.size.saved, size.saved);
    work.size.scratch = std::max(work.size.scratch, size.scratch);
    sum.cost += mechanism.cost(shape);
  }
  work.saved_starts = starts;
  return sum;
}

/// Records the operation for both overloads of attention().
template <class T>
Var<T> run_attention(const Mechanism& mechanism, AttentionWork<T> work, const Shape& out, MechanismTensors<T> given) {
  const auto& qkv = work.of.qkv;
  Tape<T>& tape = tape_of(mechanism.name(), qkv[2], qkv[0], qkv[1]);
  work.mechanism = &mechanism;
  work.products = tape.pass().execution.products;
  const AttentionSum sum = measure(tape, work, !given.parameters.empty());
  if (work.prepared()) {
    if (!given.prepared) given.prepared = prepare(mechanism, work.shape, given.parameters, given.noise);
    given.parameters = {&given.prepared, 1};
  }
  work.shared = copied_handles(tape, given.parameters);
  work.shared_values = values_of(tape, work.shared);

  Cost cost = sum.cost;
  const auto operands = tape.template list<Var<T>>(3 + work.shared.size());
  std::copy(qkv.begin(), qkv.end(), operands.begin());
  std::copy(work.shared.begin(), work.shared.end(), operands.begin() + 3);
  const auto undone = [&](Var<T> x) { return x && tape.wanted(x); };
  work.saved = std::any_of(operands.begin(), operands.end(), undone) ? tape.memory(sum.saved) : nullptr;
  for (const Var<T>& tensor : work.shared)
    if (tape.wanted(tensor)) cost.backward.add += (work.pieces() - 1) * tensor.size();
  return tape.record(
      {mechanism.name(), cost}, out, operands, [=](T* y) { work.forward(y); },
      [=, &tape](const Adjoint<T>& dout) { work.backward(tape, dout); });
}

}  // namespace

template <class T>
AttentionOperands<T> packed_operands(Var<T> x, const AttentionLayout& layout) {
  const Index tokens = x.shape().rank() == 3 ? x.shape()[1] : 0;
  require(tokens > 0 && x.shape()[2] == layout.total(), "[attention] x has shape {}; expected [B, N, {}]", x.shape(),
          layout.total());
  const Segments* const segments = x.tape().pass().examples.segments;
  require(!segments || (x.shape()[0] == 1 && tokens == segments->rows()),
          "[attention] x has shape {}; expected the rows of {} sequences, [1, {}, {}]", x.shape(),
          segments ? segments->count() : 0, segments ? segments->rows() : 0, layout.total());
  const std::array<Index, 3> widths{layout.query_width, layout.key_width, layout.value_width};
  const std::array<Index, 3> heads{layout.heads, layout.key_heads, layout.key_heads};
  AttentionOperands<T> of;
  Index offset = 0;
  for (std::size_t i = 0; i < 3; offset += heads[i] * widths[i], ++i) {
    if (widths[i] == 0) continue;
    of.qkv[i] = x;
    of.places[i] = {offset, tokens * layout.total(), heads[i], widths[i], tokens, widths[i], layout.total(), segments};
  }
  return of;
}

template <class T>
AttentionOperands<T> operands_apart(Var<T> q, Var<T> k, Var<T> v, const AttentionLayout& layout) {
  const std::array<Index, 3> widths{layout.query_width, layout.key_width, layout.value_width};
  const std::array<Index, 3> heads{layout.heads, layout.key_heads, layout.key_heads};
  AttentionOperands<T> of{{q, k, v}, {}};
  for (std::size_t i = 0; i < 3; ++i) {
    const Var<T> x = of.qkv[i];
    const Index width = heads[i] * widths[i];
    HEED_ASSERT(static_cast<bool>(x) == (width > 0));
    if (!x) continue;
    const Shape& s = x.shape();
    const bool one_token = s.rank() == 2;
    require((one_token || s.rank() == 3) && s[-1] == width, "[attention] {} has shape {}; expected [B, tokens, {}]",
            "qkv"[i], s, width);
    const Index tokens = one_token ? 1 : s[1];
    of.places[i] = {0, tokens * width, heads[i], widths[i], tokens, widths[i], width};
  }
  require(!k || of.places[1].rows == of.keys(), "[attention] k has {} tokens, v has {}; they must match",
          of.places[1].rows, of.keys());
  return of;
}

template <class T>
Var<T> attention(const Mechanism& mechanism, const AttentionOperands<T>& of, const AttentionLayout& layout,
                 AttentionShape shape, std::span<const Var<T>> parameters, ViewFor<T> noise, Var<T> prepared) {
  const Index tokens = of.queries(), heads = layout.heads, width = heads * layout.value_width;
  AttentionWork<T> work{};
  work.layout = layout;
  work.shape = of.first_shape(layout, shape);
  work.images = of.images();
  for (Index image = 0; image < (work.shape.whole ? 1 : work.images); ++image)
    mechanism.check(of.shape(layout, work.shape, image));
  work.of = of;
  work.out_place = {0, tokens * width, heads, layout.value_width, tokens, layout.value_width, width, of.segments()};
  return run_attention<T>(mechanism, work, Shape{of.segments() ? 1 : work.images, tokens, width},
                          {parameters, noise, prepared});
}

template <class T>
Var<T> attention(const Mechanism& mechanism, Var<T> q, Var<T> k, Var<T> v, AttentionShape shape,
                 std::span<const Var<T>> parameters, ViewFor<T> noise) {
  AttentionWork<T> work{};
  work.of.qkv = {q, k, v};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!work.of.qkv[i]) continue;
    const Shape& s = work.of.qkv[i].shape();
    require(s.rank() == 4 && s[0] == v.shape()[0],
            "[{}] an operand has shape {}, v has {}; expected [B, H, tokens, channels] with the same B",
            mechanism.name(), s, v.shape());
    work.of.places[i] = {0, s[1] * s[2] * s[3], s[1], s[2] * s[3], s[2], s[3], s[3]};
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
  const AttentionLayout layout = mechanism.layout(shape.heads * vs[3], shape.heads);
  const std::array<Index, 2> channels{layout.query_width > 0 ? shape.width : 0, layout.key_channels(shape.width)};
  for (std::size_t i = 0; i < 2; ++i) {
    const Index given = work.of.qkv[i] ? work.of.qkv[i].shape()[3] : 0;
    require(given == channels[i], "[{}] {} has {} channels; expected {} (0: omitted)", mechanism.name(), "qk"[i], given,
            channels[i]);
  }
  const Index key_heads = layout.key_heads;
  require(vs[1] == key_heads && (!k || k.shape()[1] == key_heads),
          "[{}] k has {} heads, v has {}; expected {} for the {} heads of q", mechanism.name(), k ? k.shape()[1] : 0,
          vs[1], key_heads, shape.heads);
  const Index head = shape.queries * vs[3];
  work.shape = shape;
  work.images = vs[0];
  work.out_place = {0, shape.heads * head, shape.heads, head, shape.queries, vs[3], vs[3]};
  return run_attention<T>(mechanism, work, Shape{vs[0], shape.heads, shape.queries, vs[3]}, {parameters, noise});
}

#define INSTANTIATE(T)                                                                                             \
  template AttentionOperands<T> packed_operands(Var<T>, const AttentionLayout&);                                   \
  template AttentionOperands<T> operands_apart(Var<T>, Var<T>, Var<T>, const AttentionLayout&);                    \
  template Var<T> attention(const Mechanism&, const AttentionOperands<T>&, const AttentionLayout&, AttentionShape, \
                            std::span<const Var<T>>, View<const T>, Var<T>);                                       \
  template Var<T> attention(const Mechanism&, Var<T>, Var<T>, Var<T>, AttentionShape, std::span<const Var<T>>,     \
                            View<const T>);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
