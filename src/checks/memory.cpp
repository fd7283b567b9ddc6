#include "heed/checks/memory.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>

namespace heed {

namespace {

/// A NaN that no arithmetic makes: results that were made from it are quiet NaNs, which differ from it in a bit.
template <class T>
T signalling() {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(std::uint32_t{0x7fa5a5a5});
  else
    return std::bit_cast<double>(std::uint64_t{0x7ff5a5a5a5a5a5a5});
}

/// Compared as bits: a NaN equals nothing.
template <class T>
bool is_signalling(const T* x) {
  const T value = signalling<T>();
  return std::memcmp(x, &value, sizeof(T)) == 0;
}

/// So many numbers full of it; moved about as bits, for a copy as a number may quieten it.
template <class T>
class Watched {
 public:
  explicit Watched(Index count) : memory_(count) {
    const T value = signalling<T>();
    for (Index i = 0; i < count; ++i) std::memcpy(memory_.data() + i, &value, sizeof(T));
  }
  T* data() { return memory_.data(); }
  const T* data() const { return memory_.data(); }
  Index size() const { return memory_.size(); }

 private:
  Buffer<T> memory_;
};

// Neither is a multiple of a vector.
constexpr Index row_fence = 19;  // beside the rows of heads
constexpr Index fence = 259;     // before, between and behind parts of memory

/// Heads [rows, columns] in one piece of memory, as in a packed projection: beside each row lies a fence.
template <class T>
class WatchedHeads {
 public:
  WatchedHeads(Index heads, Index rows, Index columns)
      : heads_(columns > 0 ? heads : 0),
        rows_(rows),
        columns_(columns),
        stride_(heads * (columns + row_fence)),
        memory_(rows * stride_) {}

  template <class U = T>
  Heads<U> view() {
    if (heads_ == 0) return {};
    return {{memory_.data(), rows_, columns_, stride_}, heads_, columns_ + row_fence};
  }

  /// f(number) for each number of the heads.
  template <class F>
  void each(const F& f) {
    for (Index h = 0; h < heads_; ++h)
      for (Index r = 0; r < rows_; ++r)
        for (Index c = 0; c < columns_; ++c) f(memory_.data() + r * stride_ + h * (columns_ + row_fence) + c);
  }

  bool fences_stand() const {
    for (Index i = 0; i < memory_.size(); ++i)
      if (i % (columns_ + row_fence) >= columns_ && !is_signalling(memory_.data() + i)) return false;
    return true;
  }

 private:
  Index heads_, rows_, columns_, stride_;
  Watched<T> memory_;
};

/// The parts of a mechanism's memory, a fence behind each and one before the first.
template <class T>
class WatchedMemory {
 public:
  /// `fences`: where they begin, counted from the first part.
  WatchedMemory(const char* name, const std::vector<Index>& fences)
      : name_(name), fences_(fences), memory_(fence + (fences.empty() ? 0 : fences.back() + fence)) {}

  AttentionMemory<T> view() { return {memory_.data() + fence, fence}; }
  std::vector<char> bytes() const {
    const char* const first = reinterpret_cast<const char*>(memory_.data());
    return {first, first + memory_.size() * static_cast<Index>(sizeof(T))};
  }
  void fill(T number) {
    Index next = 0;
    for (const Index at : fences_) {
      std::fill(view().data + next, view().data + at, number);
      next = at + fence;
    }
  }
  const char* name() const { return name_; }

  /// The first part that something was written past or before, counted from 1; 0 if there is none.
  std::size_t overrun() const {
    if (!stands(0)) return 1;
    for (std::size_t part = 0; part < fences_.size(); ++part)
      if (!stands(fence + fences_[part])) return part + 1;
    return 0;
  }

 private:
  bool stands(Index at) const {
    for (Index i = 0; i < fence; ++i)
      if (!is_signalling(memory_.data() + at + i)) return false;
    return true;
  }

  const char* name_;
  std::vector<Index> fences_;
  Watched<T> memory_;
};

template <class T>
class MemoryCheck {
 public:
  MemoryCheck(const Mechanism& mechanism, const AttentionLayout& layout, const AttentionShape& shape)
      : m_(mechanism),
        s_(shape),
        fences_(mechanism.fences(shape, fence)),
        prepares_(mechanism.memory(shape).prepared > 0),
        layout_(layout),
        q_(shape.heads, shape.queries, layout.query_width),
        k_(layout.key_heads, shape.keys, layout.key_width),
        v_(layout.key_heads, shape.keys, shape.value_width),
        out_(shape.heads, shape.queries, shape.value_width),
        dout_(shape.heads, shape.queries, shape.value_width),
        prepared_("prepared", fences_.prepared),
        saved_("saved", fences_.saved) {
    draw(q_, "q"), draw(k_, "k"), draw(v_, "v"), draw(dout_, "dout");
    for (const ParameterSpec& spec : mechanism.parameters(shape)) {
      Tensor<T>& values = own_.emplace_back(spec.shape);
      fill_initial(spec.initial, RandomStream(3).derive(spec.name), values.view());
      own_views_.push_back(std::as_const(values).view());
    }
  }

  std::vector<std::string> run() {
    prepare();
    forward();
    if (m_.traits().map) map();
    if (!faults_.empty()) return faults_;  // backward would report them again
    backward();
    return faults_;
  }

 private:
  static void draw(WatchedHeads<T>& heads, const char* name) {
    const RandomStream stream = RandomStream(2).derive(name);
    Index i = 0;
    heads.each([&](T* x) { *x = static_cast<T>(stream.uniform(i++, -1, 1)); });
  }

  template <class... Args>
  void fault(fmt::format_string<Args...> text, Args&&... args) {
    faults_.push_back(fmt::format("[{}] {}", m_.name(), fmt::format(text, std::forward<Args>(args)...)));
  }

  void check_memory(const char* pass, const WatchedMemory<T>& memory) {
    if (const std::size_t part = memory.overrun())
      fault("{} writes outside part {} of its {} memory", pass, part, memory.name());
  }

  /// Were all these numbers written, and made of what was?
  template <class Result>
  void check_result(const char* pass, const char* name, Result& result) {
    Index unwritten = 0, wrong = 0;
    result.each([&](const T* x) {
      unwritten += is_signalling(x);
      wrong += !is_signalling(x) && !std::isfinite(*x);
    });
    if (unwritten > 0) fault("{} leaves {} numbers of {} unwritten", pass, unwritten, name);
    if (wrong > 0) fault("{} makes {} of what it never wrote: {} numbers are not finite", pass, name, wrong);
  }
  void check_heads(const char* pass, const char* name, WatchedHeads<T>& heads) {
    check_result(pass, name, heads);
    if (!heads.fences_stand()) fault("{} writes beside the rows of {}", pass, name);
  }

  AttentionInput<T> input() {
    AttentionInput<T> in{.shape = s_,
                         .q = q_.template view<const T>(),
                         .k = k_.template view<const T>(),
                         .v = v_.template view<const T>()};
    if (!prepares_)
      in.parameters = own_views_;
    else
      in.prepared = {prepared_.view().data, fence};
    return in;
  }

  AttentionPreparation<T> preparation() { return {s_, own_views_, false, {}, prepared_.view()}; }

  void prepare() {
    if (!prepares_) return;
    m_.prepare(preparation());
    check_memory("prepare", prepared_);
  }

  void forward() {
    WatchedMemory<T> scratch("scratch", fences_.scratch);
    m_.forward(AttentionForward<T>{input(), out_.view(), saved_.view(), scratch.view()});
    check_memory("forward", saved_);
    check_memory("forward", scratch);
    check_heads("forward", "out", out_);
    // The largest of a NaN and 0 is 0: what was never written may leave no NaN, so another number lies there now.
    WatchedMemory<T> saved("saved", fences_.saved);
    WatchedHeads<T> again(s_.heads, s_.queries, s_.value_width);
    saved.fill(T(1e3)), scratch.fill(T(1e3));
    m_.forward(AttentionForward<T>{input(), again.view(), saved.view(), scratch.view()});
    check_same("forward", "out", out_, again);
  }

  void check_same(const char* pass, const char* name, WatchedHeads<T>& a, WatchedHeads<T>& b) {
    std::vector<T> numbers;
    a.each([&](const T* x) { numbers.push_back(*x); });
    std::size_t i = 0;
    Index differ = 0;
    b.each([&](const T* x) { differ += std::memcmp(x, &numbers[i++], sizeof(T)) != 0; });
    if (differ > 0 && faults_.empty())
      fault("{} makes {} of what it never wrote: {} numbers differ", pass, name, differ);
  }

  void map() {
    WatchedMemory<T> saved("saved", fences_.saved), scratch("scratch", fences_.scratch);
    const Shape shape = map_shape(m_, s_);
    WatchedHeads<T> map(shape[0], shape[1], shape[2]);
    m_.map(AttentionMap<T>{input(), map.view(), saved.view(), scratch.view()});
    check_memory("map", saved);
    check_memory("map", scratch);
    check_heads("map", "the map", map);
  }

  struct Gradients {
    WatchedHeads<T> q, k, v;
    WatchedMemory<T> prepared;
    std::vector<Tensor<T>> own;
  };

  /// The gradients, assigned, or added to `start`, a number of each element.
  Gradients gradients(Update update, const RandomStream& start) {
    Gradients g{{s_.heads, s_.queries, layout_.query_width},
                {layout_.key_heads, s_.keys, layout_.key_width},
                {layout_.key_heads, s_.keys, s_.value_width},
                {"prepared gradient", fences_.prepared},
                {}};
    if (update == Update::accumulate)
      for (WatchedHeads<T>* heads : {&g.q, &g.k, &g.v}) {
        Index i = 0;
        heads->each([&](T* x) { *x = static_cast<T>(start.uniform(i++, 1, 2)); });
      }
    g.prepared.fill(T(0));
    std::vector<View<T>> views;
    for (const Tensor<T>& tensor : own_) g.own.emplace_back(tensor.shape());
    for (Tensor<T>& tensor : g.own) views.push_back(tensor.view());
    AttentionGradient<T> gradient{update, g.q.view(), g.k.view(), g.v.view()};
    if (!prepares_)
      gradient.parameters = views;
    else
      gradient.prepared = g.prepared.view();
    WatchedMemory<T> scratch("scratch", fences_.scratch);
    m_.backward(AttentionBackward<T>{input(), out_.template view<const T>(), dout_.template view<const T>(),
                                     saved_.view(), scratch.view(), gradient});
    check_memory("backward", scratch);
    check_memory("backward", g.prepared);
    if (prepares_) m_.prepare_backward({AttentionPreparationBackward<T>{preparation(), g.prepared.view(), views}});
    return g;
  }

  void backward() {
    const RandomStream start(4);
    const std::vector<char> before = saved_.bytes();
    Gradients assigned = gradients(Update::assign, start);
    check_memory("backward", saved_);
    if (saved_.bytes() != before) fault("backward changes what forward saved");
    check_heads("backward", "the gradient of q", assigned.q);
    check_heads("backward", "the gradient of k", assigned.k);
    check_heads("backward", "the gradient of v", assigned.v);
    if (!faults_.empty()) return;
    Gradients added = gradients(Update::accumulate, start);
    check_added("q", assigned.q, added.q, start);
    check_added("k", assigned.k, added.k, start);
    check_added("v", assigned.v, added.v, start);
    for (std::size_t i = 0; i < own_.size(); ++i)
      for (Index j = 0; j < own_[i].size(); ++j)
        if (!std::isfinite(assigned.own[i][j])) {
          fault("backward makes the gradient of its tensor {} of what it never wrote", i + 1);
          break;
        }
  }

  /// Is `added` start + assigned? Both are about 1; the sum is rounded.
  void check_added(const char* name, WatchedHeads<T>& assigned, WatchedHeads<T>& added, const RandomStream& start) {
    std::vector<double> gradient;
    assigned.each([&](const T* x) { gradient.push_back(static_cast<double>(*x)); });
    const double tolerance = 1e4 * static_cast<double>(std::numeric_limits<T>::epsilon());
    std::size_t i = 0;
    Index wrong = 0;
    added.each([&](const T* x) {
      const double expected = start.uniform(static_cast<Index>(i), 1, 2) + gradient[i];
      wrong += !(std::abs(static_cast<double>(*x) - expected) <= tolerance * std::max(1.0, std::abs(expected)));
      ++i;
    });
    if (wrong > 0) fault("backward ignores `update`: {} numbers of the gradient of {} were not added", wrong, name);
    if (!added.fences_stand()) fault("backward writes beside the rows of the gradient of {}", name);
  }

  const Mechanism& m_;
  AttentionShape s_;
  AttentionFences fences_;
  bool prepares_;
  AttentionLayout layout_;
  WatchedHeads<T> q_, k_, v_, out_, dout_;
  WatchedMemory<T> prepared_, saved_;
  std::deque<Tensor<T>> own_;
  std::vector<View<const T>> own_views_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> memory_faults(const Mechanism& mechanism, const AttentionLayout& layout,
                                       const AttentionShape& shape) {
  std::vector<std::string> faults = MemoryCheck<double>(mechanism, layout, shape).run();
  if (faults.empty()) faults = MemoryCheck<float>(mechanism, layout, shape).run();
  return faults;
}

}  // namespace heed
