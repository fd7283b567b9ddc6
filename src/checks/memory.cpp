#include "memory.h"

#include "watched_memory.h"

#include "heed/attention/capabilities/decoding.h"
#include "heed/attention/capabilities/map.h"
#include "heed/attention/capabilities/penalty.h"
#include "heed/attention/capabilities/preparation.h"
#include "heed/checks/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <type_traits>

namespace heed {

namespace {

template <class T>
class MemoryCheck {
 public:
  /// If `training`, prepared tensors are computed as in training, with noise.
  MemoryCheck(const Mechanism& mechanism, const AttentionLayout& layout, const AttentionShape& shape, bool training)
      : m_(mechanism),
        s_(shape),
        training_(training),
        guards_(mechanism.guards(shape, guard)),
        prepares_(mechanism.memory(shape).prepared > 0),
        layout_(layout),
        q_(shape.heads, shape.queries, layout.query_width),
        k_(layout.key_heads, shape.keys, layout.key_width),
        v_(layout.key_heads, shape.keys, shape.value_width),
        out_(shape.heads, shape.queries, shape.value_width),
        dout_(shape.heads, shape.queries, shape.value_width),
        prepared_("prepared", guards_.prepared),
        saved_("saved", guards_.saved),
        saved_again_("saved", guards_.saved),
        specs_(mechanism.parameters(shape)),
        noise_(training ? noise_shape(mechanism, shape) : Shape{0}) {
    draw(q_, "q"), draw(k_, "k"), draw(v_, "v"), draw(dout_, "dout");
    for (Index i = 0; i < noise_.size(); ++i) noise_[i] = static_cast<T>(RandomStream(5).uniform(i, -1, 3));
    for (const ParameterSpec& spec : specs_) {
      Tensor<T>& values = own_.emplace_back(spec.shape);
      fill_initial(spec.initial, RandomStream(3).derive(spec.name), values.view());
      own_views_.push_back(std::as_const(values).view());
    }
  }

  std::vector<std::string> run() {
    prepare();
    forward();
    if (s_.growing) later_tokens();
    if (m_.maps()) map();
    if (m_.decoding() && s_.growing && !training_) decode();
    if (m_.penalty_term()) penalty();
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
    faults_.push_back(fmt::format("[{}] {}{}", m_.name(), fmt::format(text, std::forward<Args>(args)...),
                                  training_ ? ", in training" : ""));
  }

  template <class Number>
  void check_memory(const char* pass, const WatchedMemory<Number>& memory) {
    if (const std::size_t part = memory.overrun())
      fault("{} writes outside part {} of its {} memory", pass, part, memory.name());
  }

  /// Checks that all elements of a result were written and do not depend on uninitialised memory.
  template <class Result>
  void check_result(const char* pass, const std::string& name, Result& result) {
    Index unwritten = 0, wrong = 0;
    result.each([&](const T* x) {
      unwritten += is_signalling(x);
      wrong += !is_signalling(x) && !std::isfinite(*x);
    });
    if (unwritten > 0) fault("{} leaves {} elements of {} unwritten", pass, unwritten, name);
    if (wrong > 0)
      fault("{} computes {} from memory that it never wrote: {} elements are not finite", pass, name, wrong);
  }
  void check_heads(const char* pass, const char* name, WatchedHeads<T>& heads) {
    check_result(pass, name, heads);
    if (!heads.guards_intact()) fault("{} writes outside the rows of {}", pass, name);
  }

  AttentionInput<T> input(WatchedMemory<T>& prepared) {
    AttentionInput<T> in{s_, q_.template view<const T>(), k_.template view<const T>(), v_.template view<const T>()};
    if (!prepares_)
      in.parameters = own_views_;
    else
      in.prepared = {prepared.view().data, guard};
    return in;
  }

  AttentionPreparation<T> preparation(WatchedMemory<T>& prepared) {
    return {s_, own_views_, training_, std::as_const(noise_).view(), prepared.view()};
  }

  void prepare() {
    if (!prepares_) return;
    m_.preparation()->prepare(preparation(prepared_));
    check_memory("prepare", prepared_);
  }

  /// Fill value of the second run of each pass: the maximum of a NaN and 0 may be 0, so NaNs alone do not reveal every
  /// read of uninitialised memory.
  static constexpr T other_number = T(1e3);

  void forward() {
    WatchedMemory<T> scratch("scratch", guards_.scratch);
    m_.forward(AttentionForward<T>{input(prepared_), out_.view(), saved_.view(), scratch.view()});
    check_memory("forward", saved_);
    check_memory("forward", scratch);
    check_heads("forward", "out", out_);
    scratch.fill(other_number), saved_again_.fill(other_number);
    WatchedHeads<T> again(s_.heads, s_.queries, s_.value_width);
    m_.forward(AttentionForward<T>{input(prepared_), again.view(), saved_again_.view(), scratch.view()});
    check_same("forward", "out", out_, again);
    if (!prepares_) return;
    WatchedMemory<T> prepared("prepared", guards_.prepared);
    prepared.fill(other_number);
    WatchedHeads<T> prepared_again = out_of(prepared);
    check_same("prepare", "out", out_, prepared_again);
  }

  /// Returns the output for the current tensors, with `prepared` as the memory of the prepared tensors.
  WatchedHeads<T> out_of(WatchedMemory<T>& prepared) {
    WatchedMemory<T> saved("saved", guards_.saved), scratch("scratch", guards_.scratch);
    WatchedHeads<T> out(s_.heads, s_.queries, s_.value_width);
    if (prepares_) m_.preparation()->prepare(preparation(prepared));
    m_.forward(AttentionForward<T>{input(prepared), out.view(), saved.view(), scratch.view()});
    return out;
  }

  /// Checks that the rows of out do not depend on later tokens, in the shapes of causal variants.
  void later_tokens() {
    for (Index first = s_.queries - 1; first > 0 && faults_.empty(); --first) {
      for (WatchedHeads<T>* const heads : {&q_, &k_, &v_})
        for (Index h = 0; h < heads->view().count; ++h)
          for (T& x : std::span(heads->view()[h][first], heads->view().first.columns)) x += T(1);
      WatchedHeads<T> changed = out_of(prepared_);
      double error = 0;
      for (Index h = 0; h < s_.heads; ++h)
        for (Index i = 0; i < first; ++i)
          for (Index c = 0; c < s_.value_width; ++c)
            error = std::max(error, std::abs(static_cast<double>(changed.view()[h](i, c) - out_.view()[h](i, c))));
      if (error > gradcheck_float_tolerance)
        fault("causal=true, but the first {} tokens of out change by up to {:.2g} with later tokens", first, error);
    }
    draw(q_, "q"), draw(k_, "k"), draw(v_, "v");
  }

  template <class Result>
  void check_same(const char* pass, const std::string& name, Result& a, Result& b) {
    std::vector<T> numbers;
    a.each([&](const T* x) { numbers.push_back(*x); });
    std::size_t i = 0;
    Index differ = 0;
    b.each([&](const T* x) { differ += std::memcmp(x, &numbers[i++], sizeof(T)) != 0; });
    if (differ > 0 && faults_.empty())
      fault("{} computes {} from memory that it never wrote: {} elements differ", pass, name, differ);
  }

  void map() {
    WatchedMemory<T> saved("saved", guards_.saved), scratch("scratch", guards_.scratch);
    const Shape shape = map_shape(m_, s_);
    WatchedHeads<T> map(shape[0], shape[1], shape[2]), again(shape[0], shape[1], shape[2]);
    m_.maps()->map(AttentionMap<T>{input(prepared_), map.view(), saved.view(), scratch.view()});
    check_memory("map", saved);
    check_memory("map", scratch);
    check_heads("map", "the map", map);
    saved.fill(other_number), scratch.fill(other_number);
    m_.maps()->map(AttentionMap<T>{input(prepared_), again.view(), saved.view(), scratch.view()});
    check_same("map", "the map", map, again);
    if constexpr (std::is_same_v<T, double>)
      if (faults_.empty()) check_product(map);
  }

  /// Checks that the map times v is out, unless map_traits() calls the map partial. If there are several key heads but
  /// fewer than query heads, only the mechanism determines which key head a query head uses, so nothing is checked.
  void check_product(WatchedHeads<T>& maps) {
    const MapTraits traits = m_.maps()->map_traits();
    if (traits.partial || (layout_.key_heads > 1 && layout_.key_heads < s_.heads)) return;
    double largest = 1, error = 0;
    for (Index h = 0; h < s_.heads; ++h) {
      const Matrix<T> map = maps.view()[h], v = v_.view()[h % layout_.key_heads], out = out_.view()[h];
      for (Index i = 0; i < s_.queries; ++i)
        for (Index c = 0; c < s_.value_width; ++c) {
          double sum = 0;
          for (Index j = 0; j < map.columns; ++j)
            sum += traits.axes == MapAxes::tokens ? map(i, j) * v(j, c) : map(c, j) * v(i, j);
          largest = std::max(largest, std::abs(out(i, c)));
          error = std::max(error, std::abs(sum - out(i, c)));
        }
    }
    if (error > 1e-6 * largest) fault("the map times v differs from out by up to {:.2g}", error);
  }

  /// Decodes the sequence token by token, and checks that each row equals the row of out, up to rounding. The second
  /// run begins with another fill value of the memory.
  void decode() {
    AttentionShape one = s_;
    one.queries = one.keys = 1, one.whole = false;
    const AttentionStateSize size = m_.decoding()->state_size(one, s_.longest);
    const double tolerance = std::is_same_v<T, double> ? 1e-10 : gradcheck_float_tolerance;
    double largest = 1, error = 0;
    out_.each([&](const T* x) { largest = std::max(largest, std::abs(static_cast<double>(*x))); });
    Index first = -1;
    for (const bool again : {false, true}) {
      WatchedMemory<T> state("state", {size.state}), scratch("scratch", {size.scratch});
      WatchedMemory<double> sums("sums", {size.sums});
      if (again) state.fill(other_number), scratch.fill(other_number), sums.fill(other_number);
      for (Index t = 0; t < s_.queries; ++t) {
        const auto row = [t](WatchedHeads<T>& heads) {
          Heads<const T> of = heads.template view<const T>();
          if (of.count > 0) of.first = {of.first[t], 1, of.first.columns, of.first.stride};
          return of;
        };
        WatchedHeads<T> out(s_.heads, 1, s_.value_width);
        AttentionDecoding<T> call;
        call.in = {.shape = one, .q = row(q_), .k = row(k_), .v = row(v_), .parameters = own_views_};
        call.position = t, call.out = out.view();
        call.state = state.view().data, call.sums = sums.view().data, call.scratch = scratch.view().data;
        m_.decoding()->decode(call);
        if (!out.guards_intact()) return fault("decode writes outside the rows of out");
        for (Index h = 0; h < s_.heads; ++h)
          for (Index c = 0; c < s_.value_width; ++c) {
            const double e =
                std::abs(static_cast<double>(out.view()[h](0, c)) - static_cast<double>(out_.view()[h](t, c)));
            if (e <= tolerance * largest) continue;
            if (first < 0) first = t;
            error = std::isfinite(e) ? std::max(error, e) : std::numeric_limits<double>::infinity();
          }
      }
      check_memory("decode", state), check_memory("decode", scratch), check_memory("decode", sums);
      if (!faults_.empty() || first >= 0) break;
    }
    if (first >= 0)
      fault("decode differs from forward by up to {:.2g}{}, first at token {}", error,
            std::is_same_v<T, float> ? " in float" : "", first);
  }

  /// Returns gradients of the mechanism's parameters, filled with the signalling value: accumulation turns that value
  /// into another NaN, assignment replaces it by a number.
  std::deque<WatchedMemory<T>> own_gradients() const {
    std::deque<WatchedMemory<T>> own;
    for (const Tensor<T>& tensor : own_) own.emplace_back("gradient", std::vector<Index>{tensor.size()});
    return own;
  }
  std::vector<View<T>> views_of(std::deque<WatchedMemory<T>>& own) const {
    std::vector<View<T>> views;
    for (std::size_t i = 0; i < own.size(); ++i) views.push_back({own[i].view().data, specs_[i].shape});
    return views;
  }

  /// Checks that the pass accumulated into the gradient of each parameter element that the result depends on.
  /// `finite()` returns true if the result for the current tensors is finite. Elements whose gradient was not written
  /// are set to NaN; if `finite()` is then false, the result depends on them.
  template <class Finite>
  void check_own(const char* pass, std::deque<WatchedMemory<T>>& own, const Finite& finite) {
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (!specs_[i].trainable) continue;
      const std::string& name = specs_[i].name;
      if (own[i].overrun()) fault("{} writes outside the gradient of its tensor {}", pass, name);
      std::vector<std::pair<Index, T>> unwritten;
      Index overwritten = 0, next = 0;
      own[i].each([&](const T* x) {
        overwritten += !std::isnan(*x);
        if (is_signalling(x)) unwritten.emplace_back(next, own_[i][next]);
        ++next;
      });
      if (overwritten > 0) fault("{} overwrites {} elements of the gradient of its tensor {}", pass, overwritten, name);
      for (const auto& [at, value] : unwritten) own_[i][at] = std::numeric_limits<T>::quiet_NaN();
      if (!unwritten.empty() && !finite())
        fault("{} leaves {} elements of the gradient of its tensor {} unwritten", pass, unwritten.size(), name);
      for (const auto& [at, value] : unwritten) own_[i][at] = value;
    }
  }

  void penalty() {
    const auto value = [&](std::span<const View<T>> gradient) {
      WatchedMemory<T> result("result", {1});
      m_.penalty_term()->penalty(AttentionPenalty<T>{s_, own_views_, T(1), gradient, result.view().data});
      return result;
    };
    WatchedMemory<T> alone = value({});
    check_result("penalty", "its term of the loss", alone);
    std::deque<WatchedMemory<T>> own = own_gradients();
    value(views_of(own));
    check_own("penalty", own, [&] { return std::isfinite(*value({}).view().data); });
  }

  struct Gradients {
    WatchedHeads<T> q, k, v;
    WatchedMemory<T> prepared;
    std::deque<WatchedMemory<T>> own;
  };
  static constexpr std::pair<const char*, WatchedHeads<T> Gradients::*> operand_gradients[] = {
      {"the gradient of q", &Gradients::q}, {"the gradient of k", &Gradients::k}, {"the gradient of v", &Gradients::v}};

  /// Returns the gradients: assigned, or added to random values drawn from `start`. Gradients of prepared tensors and
  /// parameters, which images share, are always accumulated, to 0 or to the signalling value. With `again`, the saved
  /// and scratch memory with the other fill value is used.
  Gradients gradients(Update update, const RandomStream& start, bool again = false) {
    Gradients g{{s_.heads, s_.queries, layout_.query_width},
                {layout_.key_heads, s_.keys, layout_.key_width},
                {layout_.key_heads, s_.keys, s_.value_width},
                {"prepared gradient", guards_.prepared},
                own_gradients()};
    if (update == Update::accumulate) {
      for (const auto& [name, operand] : operand_gradients) {
        Index i = 0;
        (g.*operand).each([&](T* x) { *x = static_cast<T>(start.uniform(i++, 1, 2)); });
      }
    } else {
      g.prepared.fill(T(0));
      for (WatchedMemory<T>& gradient : g.own) gradient.fill(T(0));
    }
    const std::vector<View<T>> views = views_of(g.own);
    AttentionGradient<T> gradient{update, g.q.view(), g.k.view(), g.v.view()};
    if (!prepares_)
      gradient.parameters = views;
    else
      gradient.prepared = g.prepared.view();
    WatchedMemory<T> scratch("scratch", guards_.scratch);
    if (again) scratch.fill(other_number);
    m_.backward(AttentionBackward<T>{input(prepared_), out_.template view<const T>(), dout_.template view<const T>(),
                                     (again ? saved_again_ : saved_).view(), scratch.view(), gradient});
    check_memory("backward", scratch);
    check_memory("backward", g.prepared);
    if (!prepares_) return g;
    if (update == Update::accumulate) {
      Index overwritten = 0;
      g.prepared.each([&](const T* x) { overwritten += !std::isnan(*x); });
      if (overwritten > 0)
        fault("backward overwrites {} elements of the gradient of the prepared tensors", overwritten);
      g.prepared.fill(T(1));  // a NaN would hide assignments to the gradients of parameters
    }
    m_.preparation()->prepare_backward(
        AttentionPreparationBackward<T>{preparation(prepared_), g.prepared.view(), views});
    return g;
  }

  void backward() {
    const RandomStream start(4);
    const std::vector<char> before = saved_.bytes();
    Gradients assigned = gradients(Update::assign, start);
    check_memory("backward", saved_);
    if (saved_.bytes() != before) fault("backward changes the memory saved by forward");
    for (const auto& [name, operand] : operand_gradients) check_heads("backward", name, assigned.*operand);
    for (std::size_t i = 0; i < own_.size(); ++i)
      check_result(own_pass(), "the gradient of its tensor " + specs_[i].name, assigned.own[i]);
    if (!faults_.empty()) return;
    Gradients added = gradients(Update::accumulate, start);
    for (const auto& [name, operand] : operand_gradients) check_added(name, assigned.*operand, added.*operand, start);
    check_own(own_pass(), added.own, [&] {
      WatchedMemory<T> prepared("prepared", guards_.prepared);
      bool finite = true;
      out_of(prepared).each([&](const T* x) { finite &= std::isfinite(*x); });
      return finite;
    });
    Gradients again = gradients(Update::assign, start, true);
    for (const auto& [name, operand] : operand_gradients)
      check_same("backward", name, assigned.*operand, again.*operand);
    for (std::size_t i = 0; i < own_.size(); ++i)
      check_same(own_pass(), "the gradient of its tensor " + specs_[i].name, assigned.own[i], again.own[i]);
  }

  /// Returns the name of the pass that writes the gradients of the mechanism's parameters.
  const char* own_pass() const { return prepares_ ? "prepare_backward" : "backward"; }

  /// Checks that `added` is start + assigned, up to rounding.
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
    if (wrong > 0) fault("backward ignores `update`: {} elements of {} were not added", wrong, name);
    if (!added.guards_intact()) fault("backward writes outside the rows of {}", name);
  }

  const Mechanism& m_;
  AttentionShape s_;
  bool training_;
  AttentionGuards guards_;
  bool prepares_;
  AttentionLayout layout_;
  WatchedHeads<T> q_, k_, v_, out_, dout_;
  WatchedMemory<T> prepared_, saved_, saved_again_;  // saved_again_: computed in memory with a different fill value
  std::vector<ParameterSpec> specs_;
  Tensor<T> noise_;
  std::deque<Tensor<T>> own_;
  std::vector<View<const T>> own_views_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> memory_faults(const Mechanism& mechanism, const AttentionLayout& layout,
                                       const AttentionShape& shape) {
  for (const bool training : {false, true}) {
    if (training && mechanism.memory(shape).prepared == 0) break;  // training only affects prepared tensors
    for (const bool in_double : {true, false}) {
      std::vector<std::string> faults = in_double ? MemoryCheck<double>(mechanism, layout, shape, training).run()
                                                  : MemoryCheck<float>(mechanism, layout, shape, training).run();
      if (!faults.empty()) return faults;
    }
  }
  return {};
}

}  // namespace heed
