#include "heed/tape/tape.h"

#include "heed/cost/for_each_number.h"

#include <deque>
#include <mutex>

namespace heed {

namespace detail {

namespace {

std::mutex mutex;

/// Returns all slots, which are recycled, never freed: a handle may outlive every tape. Deque elements do not move.
std::deque<TapeSlot>& slots() {
  static auto* all = new std::deque<TapeSlot>;
  return *all;
}

std::vector<TapeSlot*>& unused() {
  static auto* list = new std::vector<TapeSlot*>;
  return *list;
}

}  // namespace

TapeSlot* acquire_tape_slot(void* tape) {
  const std::lock_guard lock(mutex);
  if (unused().empty()) unused().push_back(&slots().emplace_back());
  TapeSlot* const slot = unused().back();
  unused().pop_back();
  slot->tape = tape;
  return slot;
}

void release_tape_slot(TapeSlot* slot) {
  const std::lock_guard lock(mutex);
  ++slot->generation;
  slot->tape = nullptr;
  unused().push_back(slot);
}

}  // namespace detail

template <class T>
Tape<T>& Var<T>::tape() const {
  require(slot_ != nullptr, "[tape] the variable has no value; assign one first");
  require(slot_->generation == generation_, "[tape] the variable belongs to a tape that was cleared or destroyed");
  return *static_cast<Tape<T>*>(slot_->tape);
}

template <class T>
Tape<T>::Tape(const Pass<T>& pass, std::span<T> memory)
    : start_(pass), pass_(pass), arena_(std::as_writable_bytes(memory)), slot_(detail::acquire_tape_slot(this)) {}

template <class T>
Tape<T>::~Tape() {
  detail::release_tape_slot(slot_);
}

template <class T>
typename Tape<T>::Node& Tape<T>::node(Var<T> x) {
  HEED_ASSERT(x.index_ < nodes_.size());
  return nodes_[x.index_];
}

template <class T>
Var<T> Tape<T>::append(const Node& node) {
  require(!backward_done_, "[tape] backward has already run; clear the tape before recording another pass");
  Var<T> x;
  x.slot_ = slot_;
  x.generation_ = slot_->generation;
  x.index_ = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back(node);
  return x;
}

template <class T>
Var<T> Tape<T>::append(const Operation& operation, const Shape& shape, std::span<const Var<T>> operands, const T* y,
                       Index saved) {
  Node node{.value = y, .shape = shape};
  for (const Var<T>& x : operands) node.wanted |= x && wanted(x);
  const Var<T> result = append(node);
  if (pass_.observers.trace) trace(operation, result, operands, saved);
  // `shape` may dangle: it is often an operand's, and append() may have moved the operand's node.
  if (y) observe({results_, operation.name, layer_}, false, {y, node.shape});
  ++results_;
  return result;
}

template <class T>
void* Tape<T>::push_step(Var<T> result, const char* operation, decltype(BackwardStep::run) run,
                         std::size_t closure_bytes) {
  void* const closure = arena_.allocate_bytes(closure_bytes);
  backward_steps_.push_back({result.index_, results_ - 1, run, closure, operation, layer_});
  return closure;
}

template <class T>
void Tape<T>::divide_rows(const Segments& segments) {
  const std::span<Index> starts = list<Index>(segments.starts.size());
  std::copy(segments.starts.begin(), segments.starts.end(), starts.begin());
  const std::span<Segments> copy = list<Segments>(1);
  copy[0] = segments;
  copy[0].starts = starts;
  pass_.examples.segments = copy.data();
}

template <class T>
void Tape<T>::clear(const Pass<T>& pass) {
  pass_ = start_ = pass;
  nodes_.clear();
  backward_steps_.clear();
  free_buffers_.clear();
  arena_.clear();
  backward_done_ = completes_ = false;
  saved_ = 0;
  results_ = 0;
  ++slot_->generation;
}

template <class T>
void Tape<T>::begin(Parameters<T>& weights, Gradients<T>& gradients) {
  const auto alike = [](const ParameterSpec& a, const ParameterSpec& b) { return a.shape == b.shape; };
  require(
      std::equal(gradients.list().begin(), gradients.list().end(), weights.list().begin(), weights.list().end(), alike),
      "[tape] begin: the gradients belong to other parameters; create them as Gradients(weights)");
  gradients.reset();
  gradients.complete();  // zeros, in case no backward pass follows
  gradients.reset();
  clear({.parameters = &weights, .gradients = &gradients, .training = true});
  completes_ = true;
}

template <class T>
void Tape<T>::begin(Parameters<T>& weights) {
  clear({.parameters = &weights});
}

template <class T>
void Tape<T>::clear_and_reserve(const Capacity& capacity) {
  clear();
  nodes_.reserve(capacity.nodes);
  backward_steps_.reserve(capacity.backward_steps);
  free_buffers_.reserve(capacity.buffers);
  arena_.reserve(capacity.bytes);
}

template <class T>
Tape<T>& Tape<T>::inner() {
  if (!inner_) inner_ = std::make_unique<Tape>();
  return *inner_;
}

template <class T>
Var<T> Tape<T>::constant(View<const T> value) {
  return append({.value = value.data(), .shape = value.shape()});
}

template <class T>
Var<T> Tape<T>::constant(double value) {
  const std::span<T> memory = list<T>(1);
  memory[0] = T(value);
  return constant({memory.data(), Shape{}});
}

template <class T>
Var<T> Tape<T>::input(View<const T> value) {
  return append({.value = value.data(), .shape = value.shape(), .wanted = true, .input = true});
}

template <class T>
Var<T> Tape<T>::parameter(ParameterId id) {
  require(pass_.parameters, "[tape] parameter {} is used, but the pass has no parameters; start it with begin(weights)",
          id);
  require(id >= 0 && id < pass_.parameters->list().size(),
          "[tape] parameter {} does not exist; the pass has {} parameters, counted from 0", id,
          pass_.parameters->list().size());
  const View<const T> value = std::as_const(*pass_.parameters)[id];
  const ParameterSpec& spec = pass_.parameters->list()[id];
  const bool wanted = (pass_.gradients != nullptr || pass_.execution.dry_run) && (spec.trainable || spec.prepared);
  return append({.value = value.data(), .shape = value.shape(), .parameter = id, .wanted = wanted});
}

template <class T>
TraceEntry::Value Tape<T>::traced(Var<T> x) {
  const Node& n = node(x);
  return {n.parameter >= 0 ? n.parameter : x.index_, n.parameter >= 0, n.wanted, n.shape};
}

template <class T>
void Tape<T>::observe(const ObservedResult& result, bool gradient, View<const T> values) const {
  if (!pass_.observers.tensors) return;
  pass_.observers.tensors->observe({result, gradient, pass_.execution.recomputing && !gradient, values});
}

template <class T>
void Tape<T>::trace(const Operation& operation, Var<T> result, std::span<const Var<T>> operands, Index saved) {
  TraceEntry entry{operation.name, layer_ ? *layer_ : std::string(), operation.cost, traced(result)};
  for (const Var<T>& x : operands) {
    if (!x) continue;
    const TraceEntry::Value value = traced(x);
    const auto same = [&](const TraceEntry::Value& other) { return value.is(other); };
    if (std::none_of(entry.operands.begin(), entry.operands.end(), same)) entry.operands.push_back(value);
  }
  entry.saved = saved;
  pass_.observers.trace->push_back(std::move(entry));
}

template <class T>
std::span<const TraceEntry> Tape<T>::traced() const {
  require(pass_.observers.trace, "[tape] the pass has no trace; set Pass::observers.trace to print it");
  return *pass_.observers.trace;
}

template <class T>
void Tape<T>::dump(std::ostream& out) const {
  write_trace(out, traced(), pass_.parameters ? &pass_.parameters->list() : nullptr);
}

template <class T>
void Tape<T>::dot(std::ostream& out) const {
  write_dot(out, traced(), pass_.parameters ? &pass_.parameters->list() : nullptr);
}

template <class T>
T* Tape<T>::acquire_buffer(Index size) {
  for (auto buffer = free_buffers_.rbegin(); buffer != free_buffers_.rend(); ++buffer) {
    if (buffer->size != size) continue;
    T* const data = buffer->data;
    *buffer = free_buffers_.back();
    free_buffers_.pop_back();
    return data;
  }
  return arena_.allocate<T>(size);
}

template <class T>
void Tape<T>::release_buffer(Index size, T* data) {
  free_buffers_.push_back({size, data});
}

template <class T>
typename Tape<T>::Target Tape<T>::target(Var<T> x) {
  if (!x) return {};
  Node& n = node(x);
  if (!n.wanted) return {};
  if (n.parameter >= 0) {
    Gradients<T>& gradients = *pass_.gradients;
    const Update update = gradients.fresh(n.parameter) ? Update::assign : Update::accumulate;
    gradients.fresh(n.parameter) = false;
    return {gradients[n.parameter].data(), update};
  }
  if (n.gradient) return {n.gradient, Update::accumulate};
  n.gradient = acquire_buffer(n.shape.elements());
  return {n.gradient, Update::assign};
}

template <class T>
void Tape<T>::backward(Var<T> y, View<const T> cotangent) {
  start_backward(y, cotangent);
  finish_backward();
}

template <class T>
void Tape<T>::start_backward(Var<T> y, View<const T> cotangent) {
  require(&y.tape() == this, "[tape] backward: the variable belongs to another tape");
  require(!backward_done_, "[tape] backward has already run; clear the tape and run the forward pass again");
  require(y.shape() == cotangent.shape(),
          "[tape] backward from a variable of shape {} with a cotangent of shape {}; the shapes must match", y.shape(),
          cotangent.shape());
  require(wanted(y), "[tape] backward: the variable depends on no parameter or input with a gradient");
  backward_done_ = true;
  const Target seed = target(y);
  write_all(seed.update, cotangent.size(), cotangent.data(), seed.data);
}

template <class T>
void Tape<T>::finish_backward() {
  Profile* const profile = pass_.observers.profile;
  for (auto step = backward_steps_.rbegin(); step != backward_steps_.rend(); ++step) {
    if (nodes_[step->result].gradient == nullptr) continue;  // y does not depend on this result
    const Node& node = nodes_[step->result];
    if (step->operation) observe({step->index, step->operation, step->layer}, true, {node.gradient, node.shape});
    const Profile::Clock::time_point start = profile ? Profile::Clock::now() : Profile::Clock::time_point{};
    step->run(step->closure, Adjoint<T>(this, step->result));
    if (profile && step->operation) profile->add_backward(step->operation, step->layer, start);
    Node& result = nodes_[step->result];
    if (result.gradient) release_buffer(result.shape.elements(), std::exchange(result.gradient, nullptr));
  }
  if (completes_) pass_.gradients->complete();
}

template <class T>
void Tape<T>::backward(Var<T> loss) {
  require(loss.size() == 1, "[tape] backward starts from a scalar loss, not from shape {}; give a cotangent",
          loss.shape());
  const T one(1);
  backward(loss, View<const T>(&one, loss.shape()));
}

template <class T>
View<const T> Tape<T>::gradient(Var<T> x) {
  require(&x.tape() == this && node(x).input, "[tape] gradients exist for inputs of this tape only");
  require(backward_done_, "[tape] the gradient is read before backward; run backward first");
  Node& n = node(x);
  if (!n.gradient) std::fill_n(target(x).data, x.size(), T(0));
  return {n.gradient, n.shape};
}

template <class T>
void Adjoint<T>::add_to(Var<T> x) const {
  const auto dx = tape_->target(x);
  if (!dx) return;
  const T* const dy = data();
  const Index n = size();
  if (dx.update == Update::assign)
    std::copy(dy, dy + n, dx.data);
  else
    for (Index i = 0; i < n; ++i) dx.data[i] += dy[i];
}

template <class T>
void Adjoint<T>::give_to(Var<T> x) const {
  auto& to = tape_->node(x);
  if (to.wanted && to.parameter < 0 && !to.gradient)
    to.gradient = std::exchange(tape_->nodes_[index_].gradient, nullptr);
  else
    add_to(x);
}

#define INSTANTIATE(T)    \
  template class Var<T>;  \
  template class Tape<T>; \
  template class Adjoint<T>;
HEED_FOR_EACH_NUMBER(INSTANTIATE)
#undef INSTANTIATE

}  // namespace heed
