// The tape: records operations as they run, and runs their backward functions in reverse order.
//
// A value on the tape is a Var, a small handle. An operation (ops/) computes its result and records, in the same call,
// a function that computes the gradients of the operands from the gradient of the result:
//
//   Var<T> scale(Var<T> x, T factor) {
//     Tape<T>& tape = tape_of("scale", x);
//     return tape.record({"scale", cost}, x.shape(), {x},
//         [=](T* y)                  { y = factor x },
//         [=](const Adjoint<T>& dy)  { dx += factor dy });
//   }
//
// Gradients are named d + the name of the tensor. A tape belongs to one thread; clear() reuses its memory for the next
// pass.
#pragma once

#include "heed/base/matrix.h"
#include "heed/tape/arena.h"
#include "heed/cost/counts.h"
#include "heed/kernels/products/gemm_bf16.h"
#include "heed/kernels/shared/update.h"
#include "heed/tape/packed_weights.h"
#include "heed/base/parameters.h"
#include "heed/tape/profile.h"
#include "heed/tape/segments.h"
#include "heed/tape/tensor_observer.h"
#include "heed/tape/trace.h"
#include "heed/tape/whole_batch.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace heed {

template <class T>
class Tape;
template <class T>
class Adjoint;

namespace detail {

/// Record that outlives its tape: a handle compares generations to detect that its pass has ended.
struct TapeSlot {
  std::uint64_t generation = 0;  ///< incremented when the tape is cleared or destroyed
  void* tape = nullptr;
};

/// Take a slot for a tape, and return it to the free slots.
TapeSlot* acquire_tape_slot(void* tape);
void release_tape_slot(TapeSlot* slot);

}  // namespace detail

/// Handle of a value on a tape. Using it after the tape was cleared or destroyed throws Error.
template <class T>
class Var {
 public:
  Var() = default;

  /// Returns false for a default-constructed handle: an omitted optional operand.
  explicit operator bool() const { return slot_ != nullptr; }

  /// Returns true if both are handles of the same value.
  bool operator==(const Var&) const = default;

  Tape<T>& tape() const;
  const Shape& shape() const { return tape().node(*this).shape; }
  Index size() const { return shape().elements(); }
  const T* data() const { return tape().node(*this).value; }
  View<const T> value() const { return {data(), shape()}; }

  /// Returns the value as a matrix: the last axis gives the columns, all others together the rows.
  Matrix<const T> matrix() const { return {data(), shape().rows(), shape().row_size()}; }

 private:
  friend class Tape<T>;
  detail::TapeSlot* slot_ = nullptr;
  std::uint64_t generation_ = 0;
  std::uint32_t index_ = 0;
};

/// A token to decode: its position in the sequence, and the state of the attention layers. Each layer advances the
/// pointers past its own state.
template <class T>
struct DecodingStep {
  Index position = 0;
  T* state = nullptr;
  double* sums = nullptr;
};

/// Execution mode of a pass.
struct Execution {
  bool recompute = false;               ///< blocks save only their input and run forward again in the backward pass
  bool recomputing = false;             ///< this pass repeats another one, which has updated the running statistics
  bool deterministic = false;           ///< nothing is random, even in training
  bool dry_run = false;                 ///< records shapes and costs, as if all gradients were wanted; computes nothing
  Products products = Products::exact;  ///< operand rounding in linear layers, patch embeddings and some mechanisms
};

/// The examples of a pass: their position in the batch and their division into sequences.
template <class T>
struct PassExamples {
  Index first = 0;                      ///< index of the first example in the batch; see Tape::count_images_from
  WholeBatch<T>* batch = nullptr;       ///< the whole batch, if its examples depend on each other
  const Segments* segments = nullptr;   ///< sequences of different lengths; see Tape::divide_rows
  DecodingStep<T>* decoding = nullptr;  ///< the token of the pass in incremental decoding, otherwise null
};

/// Observers of a pass.
template <class T>
struct Observers {
  std::vector<TraceEntry>* trace = nullptr;  ///< collects the recorded operations
  bool trace_fused = false;                  ///< lets the traced pass fuse operations as an untraced one does
  Profile* profile = nullptr;                ///< collects the time of operations
  TensorObserver<T>* tensors = nullptr;      ///< receives all results and gradients
};

/// A pass over a model: computation, execution mode, examples and observers. Without `gradients`, parameters have no
/// gradients: a backward pass is recorded only for the gradients of inputs.
template <class T>
struct Pass {
  Parameters<T>* parameters = nullptr;
  const PackedWeights<T>* packed = nullptr;  ///< packed copies of the weights; optional
  Gradients<T>* gradients = nullptr;
  bool prepared = false;  ///< the prepared tensors are up to date (tape/preparation.h)
  bool training = false;  ///< dropout is active; batch statistics are used and updated
  RandomStream random{};  ///< random stream of the step, for dropout and similar operations

  Execution execution{};
  PassExamples<T> examples{};
  Observers<T> observers{};
};

/// Name and cost of an operation.
struct Operation {
  const char* name;
  Cost cost;
};

/// Record of the operations of one pass. Computes their values and runs the backward pass: reverse-mode automatic
/// differentiation. Values and memory last until the next clear() or begin().
template <class T>
class Tape {
 public:
  /// `memory` is owned by the caller and must outlive the tape. It is used until more memory is needed.
  explicit Tape(const Pass<T>& pass = {}, std::span<T> memory = {});
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Starts another pass in the same memory; without an argument, with the settings last given. Invalidates existing
  /// handles.
  void clear() { clear(start_); }
  void clear(const Pass<T>& pass);

  /// Starts a training step in a manual loop: clears the tape and discards the previous step's gradients. backward()
  /// then completes the gradients of all weights, with 0 for weights that the loss does not depend on.
  void begin(Parameters<T>& weights, Gradients<T>& gradients);

  /// Starts a pass without gradients of the weights.
  void begin(Parameters<T>& weights);

  /// Capacities of the lists so far, and the size in bytes of the largest pass so far.
  struct Capacity {
    std::size_t nodes = 0, backward_steps = 0, buffers = 0;
    Index bytes = 0;
  };
  Capacity capacity() const {
    return {nodes_.capacity(), backward_steps_.capacity(), free_buffers_.capacity(), arena_.largest()};
  }

  /// Clears the tape and reserves memory for the next pass.
  void clear_and_reserve(const Capacity& capacity);

  /// Returns a value without a gradient. Its memory belongs to the caller and must outlive the pass.
  Var<T> constant(View<const T> value);

  /// Returns a value without a gradient, owned by the tape, whose element i is rule(i), for example a mask.
  template <class F>
  Var<T> constant(const Shape& shape, const F& rule) {
    const std::span<T> values = list<T>(static_cast<std::size_t>(shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = T(rule(static_cast<Index>(i)));
    return constant({values.data(), shape});
  }

  /// Returns a scalar without a gradient.
  Var<T> constant(double value);

  /// Returns a value whose gradient() can be read after backward().
  Var<T> input(View<const T> value);

  /// Returns a parameter of the model. Its gradient accumulates in the pass's Gradients; buffers have none.
  Var<T> parameter(ParameterId id);

  /// Returns the packed copies of a weight; null if it has none.
  const LinearWeight* packed(Var<T> weight) {
    const ParameterId id = node(weight).parameter;
    return pass_.packed && id >= 0 ? pass_.packed->find(id) : nullptr;
  }

  /// Returns a buffer of the model, to be changed only by the operations that own it.
  View<T> buffer(ParameterId id) { return (*pass_.parameters)[id]; }

  /// Returns f(x) and saves only x: a backward pass calls f once more ("checkpointing"; Chen et al., "Training deep
  /// nets with sublinear memory cost", arXiv:1604.06174). f runs on the inner tape, or on this one in dry runs and
  /// traced passes; besides x, it may use only parameters of the model. Results are bitwise equal to those of f(x). f
  /// is copied: its captures must outlive the pass. Operations must not change buffers if execution.recomputing is set.
  /// A profile counts both calls as forward.
  template <class F>
  Var<T> recompute(Var<T> x, const F& f);

  /// Returns the inner tape, on which recomputed parts run.
  Tape& inner();

  /// Runs the backward pass from y with d(loss)/dy = `cotangent`, or from a scalar loss with gradient 1. May be called
  /// once per pass.
  void backward(Var<T> y, View<const T> cotangent);
  void backward(Var<T> loss);

  /// The two halves of backward(): start_backward() sets the gradient of y to the cotangent, finish_backward() runs the
  /// recorded backward functions.
  void start_backward(Var<T> y, View<const T> cotangent);
  void finish_backward();

  /// Returns the gradient of an input() after backward(); zero if the result does not depend on it.
  View<const T> gradient(Var<T> x);

  /// Returns the size in bytes of the memory of the tape and its inner tape, for values, saved memory and gradients.
  Index reserved() const { return arena_.reserved() + (inner_ ? inner_->reserved() : 0); }

  /// Divides the rows of all tensors [1, rows, D] computed after this call into sequences of different lengths.
  void divide_rows(const Segments& segments);

  /// Sets the index of the first image, and the stream of random numbers, for tensors [B, ...] computed after this
  /// call, for example for several views of each image.
  void count_images_from(Index first_image, const RandomStream& random) {
    pass_.examples.first = first_image;
    pass_.random = random;
  }

  /// Writes the operations of the pass, one per line (tape/trace.h). Throws Error without Observers::trace.
  void dump(std::ostream& out) const;

  /// Writes the operations as a Graphviz graph. Throws Error without Observers::trace.
  void dot(std::ostream& out) const;

  /// Return the current pass, and whether it is a training pass.
  const Pass<T>& pass() const { return pass_; }
  bool training() const { return pass_.training; }

  /// Returns true if dropout and similar operations draw random numbers.
  bool draws() const { return pass_.training && !pass_.execution.deterministic; }

  // ---- For operations ----

  /// Computes and records an operation. `forward(T* y)` fills the result; `backward(const Adjoint<T>& dy)` adds to the
  /// gradients of the operands and may capture only trivially destructible values: handles, numbers, pointers to
  /// memory().
  template <class Forward, class Backward>
  Var<T> record(const Operation& operation, const Shape& shape, std::span<const Var<T>> operands,
                const Forward& forward, const Backward& backward);
  template <class Forward, class Backward>
  Var<T> record(const Operation& operation, const Shape& shape, std::initializer_list<Var<T>> operands,
                const Forward& forward, const Backward& backward) {
    return record(operation, shape, std::span(operands.begin(), operands.size()), forward, backward);
  }

  /// Returns uninitialised memory that lasts until the end of the pass.
  T* memory(Index count) {
    saved_ += count;
    return !pass_.execution.dry_run ? arena_.allocate<T>(count) : nullptr;
  }

  /// Returns a list that lasts until the end of the pass, for captures of backward functions: handles, views.
  template <class X>
  std::span<X> list(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<X>);
    X* const first = static_cast<X*>(arena_.allocate_bytes(count * sizeof(X)));
    std::uninitialized_value_construct_n(first, count);
    return {first, count};
  }

  /// Uninitialised memory for the duration of a computation, recycled for scratch and gradients of the same size.
  class Scratch {
   public:
    Scratch(Tape& tape, Index count)
        : tape_(tape), size_(count), data_(count > 0 ? tape.acquire_buffer(count) : nullptr) {}
    ~Scratch() {
      if (data_) tape_.release_buffer(size_, data_);
    }
    Scratch(const Scratch&) = delete;
    T* data() const { return data_; }
    Index size() const { return size_; }

   private:
    Tape& tape_;
    Index size_;
    T* data_;
  };

  /// Destination of a contribution to a gradient: the first contribution assigns all elements, later ones accumulate.
  /// Converts to false if the gradient is not required.
  struct Target {
    T* data = nullptr;
    Update update = Update::assign;
    explicit operator bool() const { return data != nullptr; }

    /// Returns the destination as a matrix.
    Matrix<T> matrix(Index rows, Index columns) const { return {data, rows, columns}; }
  };
  /// Returns the destination for the gradient of `x`. The caller must write to it before the next call of target() for
  /// the same tensor.
  Target target(Var<T> x);

  /// Returns true if the gradient of `x` is required.
  bool wanted(Var<T> x) { return node(x).wanted; }

  /// Layer name of the operations recorded during the scope's lifetime.
  class Scope {
   public:
    Scope(Tape& tape, const std::string& layer) : tape_(tape), outer_(tape.layer_) { tape_.layer_ = &layer; }
    ~Scope() { tape_.layer_ = outer_; }
    Scope(const Scope&) = delete;

   private:
    Tape& tape_;
    const std::string* outer_;
  };

 private:
  friend class Var<T>;
  friend class Adjoint<T>;

  /// A value on the tape, and its gradient once one exists.
  struct Node {
    const T* value = nullptr;
    T* gradient = nullptr;
    Shape shape{};
    ParameterId parameter = -1;
    bool wanted = false;
    bool input = false;
  };
  /// A recorded backward function.
  struct BackwardStep {
    std::uint32_t result, index;  ///< index of the result's node, and the result's index among the results of the pass
    void (*run)(const void* closure, const Adjoint<T>& dy);
    const void* closure;
    const char* operation;  ///< null for a recomputed part, whose operations are timed and observed individually
    const std::string* layer;
  };
  /// Memory of an ended Scratch or of a propagated gradient, for reuse.
  struct FreeBuffer {
    Index size;
    T* data;
  };

  Node& node(Var<T> x);
  Var<T> append(const Node& node);
  Var<T> append(const Operation& operation, const Shape& shape, std::span<const Var<T>> operands, const T* y,
                Index saved);
  TraceEntry::Value traced(Var<T> x);
  std::span<const TraceEntry> traced() const;
  /// Passes the tensor to the observer, if there is one.
  void observe(const ObservedResult& result, bool gradient, View<const T> values) const;
  void trace(const Operation& operation, Var<T> result, std::span<const Var<T>> operands, Index saved);
  T* acquire_buffer(Index size);
  void release_buffer(Index size, T* data);

  /// Adds `closure` to the backward pass.
  template <class Closure>
  void push_step(Var<T> result, const char* operation, const Closure& closure);
  /// Adds a step and returns memory for the closure that `run` calls.
  void* push_step(Var<T> result, const char* operation, decltype(BackwardStep::run) run, std::size_t closure_bytes);

  Pass<T> start_;  ///< the pass as given, without the changes by divide_rows() and count_images_from()
  Pass<T> pass_;
  std::unique_ptr<Tape> inner_;
  Arena arena_;
  std::vector<Node> nodes_;
  std::vector<BackwardStep> backward_steps_;
  std::vector<FreeBuffer> free_buffers_;
  bool backward_done_ = false;
  bool completes_ = false;     ///< true if backward() completes the gradients of the pass
  Index saved_ = 0;            ///< elements allocated by memory() since the last recorded operation
  std::uint32_t results_ = 0;  ///< number of results so far, including those of recomputed parts
  const std::string* layer_ = nullptr;
  detail::TapeSlot* slot_;
};

/// The gradient of a result, passed to the backward function of its operation.
template <class T>
class Adjoint {
 public:
  const T* data() const { return tape_->nodes_[index_].gradient; }
  Index size() const { return tape_->nodes_[index_].shape.elements(); }

  /// Returns the gradient as a matrix: the last axis gives the columns, all others together the rows.
  Matrix<const T> matrix() const {
    const Shape& shape = tape_->nodes_[index_].shape;
    return {data(), shape.rows(), shape.row_size()};
  }

  /// Returns the result y.
  const T* value() const { return tape_->nodes_[index_].value; }

  /// Computes dx += dy.
  void add_to(Var<T> x) const;

  /// Computes dx += dy as the last use of dy: if dx has no memory yet, it takes over that of dy.
  void give_to(Var<T> x) const;

 private:
  friend class Tape<T>;
  Adjoint(Tape<T>* tape, std::uint32_t index) : tape_(tape), index_(index) {}
  Tape<T>* tape_;
  std::uint32_t index_;
};

/// Returns the tape of an operation's operands; all but the first may be omitted. Throws Error if their tapes differ.
template <class T, class... Rest>
Tape<T>& tape_of(const char* operation, Var<T> first, const Rest&... rest) {
  Tape<T>& tape = first.tape();
  [[maybe_unused]] const auto same = [&](Var<T> x) {
    if (x) require(&x.tape() == &tape, "[{}] the operands belong to different tapes", operation);
  };
  (same(rest), ...);
  return tape;
}

/// Throws Error unless an operand has this shape or is omitted.
template <class T>
void require_shape(const char* operation, const char* name, Var<T> x, const Shape& expected) {
  if (x) require(x.shape() == expected, "[{}] {} has shape {}; expected {}", operation, name, x.shape(), expected);
}

// ---- Definitions of the templates that take an operation's functions. The rest is in src/tape/tape.cpp. ----

template <class T>
template <class Forward, class Backward>
Var<T> Tape<T>::record(const Operation& operation, const Shape& shape, std::span<const Var<T>> operands,
                       const Forward& forward, const Backward& backward) {
  const Index saved = std::exchange(saved_, 0);
  const bool compute = !pass_.execution.dry_run;
  T* const y = compute ? arena_.allocate<T>(shape.elements()) : nullptr;
  if (compute) {
    Profile* const profile = pass_.observers.profile;
    const Profile::Clock::time_point start = profile ? Profile::Clock::now() : Profile::Clock::time_point{};
    forward(y);
    if (profile) profile->add_forward(operation.name, layer_, start);
  }
  const Var<T> result = append(operation, shape, operands, y, saved);
  if (wanted(result) && compute) push_step(result, operation.name, backward);
  return result;
}

template <class T>
template <class Closure>
void Tape<T>::push_step(Var<T> result, const char* operation, const Closure& closure) {
  static_assert(std::is_trivially_destructible_v<Closure>, "the tape drops closures without destroying them");
  const auto run = [](const void* f, const Adjoint<T>& dy) { (*static_cast<const Closure*>(f))(dy); };
  new (push_step(result, operation, run, sizeof(Closure))) Closure(closure);
}

template <class T>
template <class F>
Var<T> Tape<T>::recompute(Var<T> x, const F& f) {
  if (pass_.execution.dry_run || pass_.observers.trace) return f(x);
  Pass<T> forward = pass_;
  forward.gradients = nullptr;
  inner().clear(forward);
  const std::uint32_t first_result = inner().results_ = results_;
  const Var<T> once = f(inner().constant(x.value()));
  T* const y = arena_.allocate<T>(once.size());
  std::copy(once.data(), once.data() + once.size(), y);
  results_ = inner().results_;

  const Var<T> result = append({.value = y, .shape = once.shape(), .wanted = pass_.gradients || wanted(x)});
  if (!wanted(result)) return result;
  push_step(result, nullptr,
            [this, x, f, first_result, first = forward.examples.first, random = forward.random](const Adjoint<T>& dy) {
              Pass<T> pass = pass_;
              pass.execution.recomputing = true;
              pass.examples.first = first;
              pass.random = random;
              inner().clear(pass);
              inner().results_ = first_result;
              const Var<T> input = inner().input(x.value()), output = f(input);
              inner().backward(output, {dy.data(), output.shape()});
              const View<const T> gradient = inner().gradient(input);
              if (const auto dx = target(x)) write_all(dx.update, gradient.size(), gradient.data(), dx.data);
            });
  return result;
}

}  // namespace heed
