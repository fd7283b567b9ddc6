// The tape: records operations as they run and undoes them in reverse.
//
// A value on the tape is a Var, a small handle. An operation (ops/) computes its result and, in the same
// call, leaves a function that turns the gradient of the result into gradients of the operands:
//
//   Var<T> scale(Var<T> x, T factor) {
//     Tape<T>& tape = tape_of("scale", x);
//     return tape.record({"scale", cost}, x.shape(), {x},
//         [=](T* y)                  { y = factor x },
//         [=](const Adjoint<T>& dy)  { dx += factor dy });
//   }
//
// Gradients are named d + the name of the tensor. A tape belongs to one thread; its memory is reused by the
// next pass after clear().
#pragma once

#include "heed/base/matrix.h"
#include "heed/tape/arena.h"
#include "heed/cost/counts.h"
#include "heed/kernels/products/gemm_bf16.h"
#include "heed/kernels/shared/update.h"
#include "heed/tape/non_finite.h"
#include "heed/tape/packed_weights.h"
#include "heed/base/parameters.h"
#include "heed/tape/profile.h"
#include "heed/tape/segments.h"
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

/// Outlives its tape, so that a handle can tell whether the pass it came from is still there.
struct TapeSlot {
  std::uint64_t generation = 0;  ///< changes when the tape is cleared or destroyed
  void* tape = nullptr;
};
TapeSlot* acquire_tape_slot(void* tape);
void release_tape_slot(TapeSlot* slot);

}  // namespace detail

/// Handle of a value on a tape. Using it after the tape was cleared or destroyed throws Error.
template <class T>
class Var {
 public:
  Var() = default;

  /// False for a default-constructed handle: an optional operand left out.
  explicit operator bool() const { return slot_ != nullptr; }

  Tape<T>& tape() const;
  const Shape& shape() const { return tape().node(*this).shape; }
  Index size() const { return shape().elements(); }
  const T* data() const { return tape().node(*this).value; }
  View<const T> value() const { return {data(), shape()}; }

  /// The value as rows of its last axis.
  Matrix<const T> matrix() const { return {data(), shape().rows(), shape().row_size()}; }

 private:
  friend class Tape<T>;
  detail::TapeSlot* slot_ = nullptr;
  std::uint64_t generation_ = 0;
  std::uint32_t index_ = 0;
};

/// A token that is decoded: where it stands in its sequence, and the state of the attention layers, of which each takes
/// the next part in turn.
template <class T>
struct DecodingStep {
  Index position = 0;
  T* state = nullptr;
  double* sums = nullptr;
};

/// What a pass over a model is given. Without `gradients` nothing is recorded for a backward pass.
template <class T>
struct Pass {
  Parameters<T>* parameters = nullptr;
  const PackedWeights<T>* packed = nullptr;  ///< of the parameters, if somebody has arranged them
  Gradients<T>* gradients = nullptr;
  bool prepared = false;                     ///< are the parameters' prepared tensors up to date (tape/preparation.h)?
  bool training = false;                     ///< dropout active, batch statistics used and updated
  bool still = false;                        ///< nothing is left to chance, even in training
  bool recompute = false;                    ///< blocks keep only their input, and are computed again to go back
  bool again = false;                        ///< these results were computed before: buffers are up to date
  Products products = Products::exact;       ///< of linear layers, patches, and mechanisms that take them
  DecodingStep<T>* decoding = nullptr;       ///< rows are a single token, which attends to state
  bool compute = true;                       ///< false: shapes and costs only, as if all gradients were wanted
  RandomStream random{};                     ///< for dropout and the like; one per step
  Index first_image = 0;                     ///< number of the pass's first image in the batch; see count_images_from
  WholeBatch<T>* whole = nullptr;            ///< of which this is a piece, where images depend on each other
  const Segments* segments = nullptr;        ///< of sequences of different lengths, from Tape::divide_rows
  std::vector<TraceEntry>* trace = nullptr;  ///< collects the operations that ran
  bool as_run = false;                       ///< traced or not, with the shortcuts of a pass that nobody traces
  Profile* profile = nullptr;                ///< collects the time they take
  NonFinite* non_finite = nullptr;           ///< is shown all results and gradients
};

/// Name and cost of an operation.
struct Operation {
  const char* name;
  Cost cost;
};

template <class T>
class Tape {
 public:
  explicit Tape(const Pass<T>& pass = {});
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Forgets all values and starts over; keeps the memory. Handles of before become invalid.
  void clear() { clear(pass_); }
  void clear(const Pass<T>& pass);

  /// The memory a tape has taken for its passes so far.
  struct Capacity {
    std::size_t nodes = 0, steps = 0, buffers = 0;
    Index bytes = 0;
  };
  Capacity capacity() const { return {nodes_.capacity(), steps_.capacity(), free_.capacity(), arena_.reserved()}; }

  /// clear(), and takes so much memory ahead of the next pass.
  void clear_and_reserve(const Capacity& capacity);

  /// A value without a gradient. Its memory belongs to the caller and must outlive the pass.
  Var<T> constant(View<const T> value);

  /// A value whose gradient is wanted: read it with gradient() after backward().
  Var<T> input(View<const T> value);

  /// A tensor of the model's. Its gradient accumulates in the pass's Gradients; a buffer gets none.
  Var<T> parameter(ParameterId id);

  /// The arranged copies of a weight; null where there are none.
  const LinearWeight* packed(Var<T> weight) {
    const ParameterId id = node(weight).parameter;
    return pass_.packed && id >= 0 ? pass_.packed->find(id) : nullptr;
  }

  /// A buffer of the model's, which the operations that own it may change.
  View<T> buffer(ParameterId id) { return (*pass_.parameters)[id]; }

  /// f(x), a part of the model of which nothing is kept but x: on the way back it is computed once more
  /// ("checkpointing"; Chen et al., "Training deep nets with sublinear memory cost", arXiv:1604.06174). f is called
  /// with handles of the inner tape; everything else it uses are the model's tensors. The results are those of f(x),
  /// bit by bit. f is copied and called again in backward(): what it captures must outlive the pass, and operations
  /// that change buffers must not where pass().again. A profile counts both calls as forward.
  template <class F>
  Var<T> recompute(Var<T> x, const F& f);

  /// The tape of what is computed once more. It holds one such part at a time.
  Tape& inner();

  /// Runs back from `y` with the gradient d(loss)/dy = `cotangent`, or 1 for a scalar loss. Once per pass.
  void backward(Var<T> y, View<const T> cotangent);

  /// Its two halves: makes the cotangent the gradient of y; goes back from there.
  void start_backward(Var<T> y, View<const T> cotangent);
  void finish_backward();

  void backward(Var<T> loss);

  /// Gradient of an input() after backward(); zero if nothing depended on it.
  View<const T> gradient(Var<T> x);

  /// Bytes of memory that the tape and its inner tape hold for values, what operations keep, and gradients.
  Index reserved() const { return arena_.reserved() + (inner_ ? inner_->reserved() : 0); }

  /// From here on in this pass, tensors [1, rows, D] hold sequences of different lengths.
  void divide_rows(const Segments& segments);

  /// From here on in this pass, tensors [B, ...] hold images whose first one has the number `first_image`, and chance
  /// draws from `random`: views of the images of the pass, say.
  void count_images_from(Index first_image, const RandomStream& random) {
    pass_.first_image = first_image;
    pass_.random = random;
  }

  /// Writes the operations of the pass, a line each (tape/trace.h). Throws Error without Pass::trace.
  void dump(std::ostream& out) const;

  /// Writes them as a graph in Graphviz's language. Throws Error without Pass::trace.
  void dot(std::ostream& out) const;

  const Pass<T>& pass() const { return pass_; }
  bool training() const { return pass_.training; }

  /// Is it one in which dropout and the like draw random numbers?
  bool draws() const { return pass_.training && !pass_.still; }

  // ---- For operations ----

  /// Computes and records an operation. `forward(T* y)` fills the result; `backward(const Adjoint<T>& dy)`
  /// adds to the gradients of the operands and may capture only trivially destructible things: handles,
  /// numbers, pointers to memory().
  template <class Forward, class Backward>
  Var<T> record(const Operation& operation, const Shape& shape, std::span<const Var<T>> operands,
                const Forward& forward, const Backward& backward);
  template <class Forward, class Backward>
  Var<T> record(const Operation& operation, const Shape& shape, std::initializer_list<Var<T>> operands,
                const Forward& forward, const Backward& backward) {
    return record(operation, shape, std::span(operands.begin(), operands.size()), forward, backward);
  }

  /// Uninitialised memory that lives as long as the pass.
  T* memory(Index count) {
    taken_ += count;
    return pass_.compute ? arena_.allocate<T>(count) : nullptr;
  }

  /// A list that lives as long as the pass, for what backward functions capture: handles, views.
  template <class X>
  std::span<X> list(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<X>);
    X* const first = static_cast<X*>(arena_.allocate_bytes(count * sizeof(X)));
    std::uninitialized_value_construct_n(first, count);
    return {first, count};
  }

  /// Uninitialised memory for the length of a computation, not of the pass: afterwards it serves others that need as
  /// many numbers, gradients among them.
  class Scratch {
   public:
    Scratch(Tape& tape, Index count)
        : tape_(tape), size_(count), data_(count > 0 ? tape.take_buffer(count) : nullptr) {}
    ~Scratch() {
      if (data_) tape_.give_back_buffer(size_, data_);
    }
    Scratch(const Scratch&) = delete;
    T* data() const { return data_; }
    Index size() const { return size_; }

   private:
    Tape& tape_;
    Index size_;
    T* data_;
  };

  /// Where to write a contribution to the gradient of `x`, and how. Ask right before writing: the first
  /// contribution assigns all of it, later ones accumulate. Not wanted at all if false.
  struct Target {
    T* data = nullptr;
    Update update = Update::assign;
    explicit operator bool() const { return data != nullptr; }

    /// The place as a matrix of so many rows.
    Matrix<T> matrix(Index rows, Index columns) const { return {data, rows, columns}; }
  };
  Target target(Var<T> x);

  /// Is a gradient of `x` wanted?
  bool wanted(Var<T> x) { return node(x).wanted; }

  /// Names the operations recorded until the returned object is destroyed.
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

  struct Node {
    const T* value = nullptr;
    T* gradient = nullptr;
    Shape shape;
    ParameterId parameter = -1;
    bool wanted = false;
    bool input = false;
  };
  struct Step {
    std::uint32_t result;
    void (*run)(const void* closure, const Adjoint<T>& dy);
    const void* closure;
    const char* operation;  ///< null: its time is that of other operations
    const std::string* layer;
  };
  struct FreeBuffer {
    Index size;
    T* data;
  };

  Node& node(Var<T> x);
  Var<T> append(const Node& node);
  Var<T> append(const Operation& operation, const Shape& shape, std::span<const Var<T>> operands, const T* y,
                Index kept);
  TraceEntry::Value traced(Var<T> x);
  std::span<const TraceEntry> traced() const;
  void show(const char* what, const char* operation, const std::string* layer, const T* numbers, Index count) const;
  void trace(const Operation& operation, Var<T> result, std::span<const Var<T>> operands, Index kept);
  T* take_buffer(Index size);
  void give_back_buffer(Index size, T* data);

  /// Has `closure` called on the way back.
  template <class Closure>
  void push_step(Var<T> result, const char* operation, const Closure& closure);
  /// Takes memory for a closure that `run` calls.
  void* push_step(Var<T> result, const char* operation, decltype(Step::run) run, std::size_t closure_bytes);

  Pass<T> pass_;
  std::unique_ptr<Tape> inner_;
  Arena arena_;
  std::vector<Node> nodes_;
  std::vector<Step> steps_;
  std::vector<FreeBuffer> free_;
  bool backward_done_ = false;
  Index taken_ = 0;  ///< numbers that memory() was asked for since the last operation was recorded
  const std::string* layer_ = nullptr;
  detail::TapeSlot* slot_;
};

/// The gradient of a result, as the backward function of its operation sees it.
template <class T>
class Adjoint {
 public:
  const T* data() const { return tape_->nodes_[index_].gradient; }
  Index size() const { return tape_->nodes_[index_].shape.elements(); }

  /// The gradient as rows of its last axis.
  Matrix<const T> matrix() const {
    const Shape& shape = tape_->nodes_[index_].shape;
    return {data(), shape.rows(), shape.row_size()};
  }

  /// The result itself, y.
  const T* value() const { return tape_->nodes_[index_].value; }

  /// dx += dy
  void add_to(Var<T> x) const;

  /// dx += dy as the last use of dy: if dx is empty it takes the memory of dy over.
  void give_to(Var<T> x) const;

 private:
  friend class Tape<T>;
  Adjoint(Tape<T>* tape, std::uint32_t index) : tape_(tape), index_(index) {}
  Tape<T>* tape_;
  std::uint32_t index_;
};

/// The tape of an operation's operands; those left out are skipped. Throws Error where they differ.
template <class T, class... Rest>
Tape<T>& tape_of(const char* operation, Var<T> first, const Rest&... rest) {
  Tape<T>& tape = first.tape();
  [[maybe_unused]] const auto same = [&](Var<T> x) {
    if (x) require(&x.tape() == &tape, "[{}] the operands belong to different tapes", operation);
  };
  (same(rest), ...);
  return tape;
}

// ---- Implementation: what each operation makes anew. The rest is in src/tape/tape.cpp, for all number types. ----

template <class T>
template <class Forward, class Backward>
Var<T> Tape<T>::record(const Operation& operation, const Shape& shape, std::span<const Var<T>> operands,
                       const Forward& forward, const Backward& backward) {
  const Index kept = std::exchange(taken_, 0);
  T* const y = pass_.compute ? arena_.allocate<T>(shape.elements()) : nullptr;
  if (pass_.compute) {
    const Profile::Clock::time_point start = pass_.profile ? Profile::Clock::now() : Profile::Clock::time_point{};
    forward(y);
    if (pass_.profile) pass_.profile->add_forward(operation.name, layer_, start);
  }
  const Var<T> result = append(operation, shape, operands, y, kept);
  if (wanted(result) && pass_.compute) push_step(result, operation.name, backward);
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
  if (!pass_.compute || pass_.trace || !pass_.gradients) return f(x);
  Pass<T> forward = pass_;
  forward.gradients = nullptr;
  inner().clear(forward);
  const Var<T> once = f(inner().constant(x.value()));
  T* const y = arena_.allocate<T>(once.size());
  std::copy(once.data(), once.data() + once.size(), y);

  Node node;
  node.value = y;
  node.shape = once.shape();
  node.wanted = true;
  const Var<T> result = append(node);
  push_step(result, nullptr, [this, x, f, images = forward.first_image, random = forward.random](const Adjoint<T>& dy) {
    Pass<T> pass = pass_;
    pass.again = true;
    pass.first_image = images;
    pass.random = random;
    inner().clear(pass);
    const Var<T> input = inner().input(x.value()), output = f(input);
    inner().backward(output, {dy.data(), output.shape()});
    const View<const T> gradient = inner().gradient(input);
    if (const auto dx = target(x)) write_all(dx.update, gradient.size(), gradient.data(), dx.data);
  });
  return result;
}

}  // namespace heed
