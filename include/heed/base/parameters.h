// Trainable tensors and buffers of a model. Layers declare them in a ParameterList during construction. Parameters
// holds the values and Gradients the gradients, each in one contiguous buffer, so that the optimiser, the gradient norm
// and the sum over microbatches are single passes.
#pragma once

#include "heed/base/random.h"
#include "heed/base/tensor.h"

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace heed {

/// The distribution of a tensor's initial values.
struct Initial {
  enum class Kind { constant, normal, truncated_normal, uniform, distinct, orthogonal } kind = Kind::constant;
  double value = 0;  ///< by kind: the constant, the standard deviation, the bound of uniform values, the first integer
  Index count = 0;   ///< number of integers to draw from

  static Initial constant(double value) { return {Kind::constant, value}; }
  static Initial normal(double deviation) { return {Kind::normal, deviation}; }
  /// Normal, with values beyond two standard deviations redrawn.
  static Initial truncated_normal(double deviation) { return {Kind::truncated_normal, deviation}; }
  /// Uniform from -bound to bound.
  static Initial uniform(double bound) { return {Kind::uniform, bound}; }
  /// Integers from first to first + count - 1, drawn without replacement, for at most `count` elements.
  static Initial distinct(Index first, Index count) { return {Kind::distinct, static_cast<double>(first), count}; }
  /// Orthogonal rows, for a matrix. Rows are orthogonal within square blocks (the last may have fewer rows), and each
  /// has the length of a row of independent standard normal values.
  static Initial orthogonal() { return {Kind::orthogonal}; }

  bool operator==(const Initial&) const = default;
};

/// Fills a tensor with initial values drawn from `stream`.
template <class T>
void fill_initial(const Initial& initial, const RandomStream& stream, View<T> values);

/// A named group of rows of a tensor.
struct RowPart {
  std::string name;
  Index rows;
};

/// The rows of a position embedding [1, front + height width, D]: those of tokens before the grid, then the grid's.
struct PositionRows {
  Index front = 0, height = 0, width = 0;

  bool operator==(const PositionRows&) const = default;
};

/// Kind of product for which a weight is packed once per step (tape/packed_weights.h).
enum class Multiplied {
  no,
  linear,               ///< [out, in]
  convolution,          ///< [O, C, K, K]
  centred_convolution,  ///< [O, C, K, K], one window centred on each pixel
};

/// Declaration of one tensor of a model, named as in weight files.
struct ParameterSpec {
  std::string name{};
  Shape shape{};
  Initial initial{};
  bool decay = true;      ///< true if weight decay applies
  bool trainable = true;  ///< false for a buffer, which is stored with the weights but has no gradient
  bool prepared = false;  ///< computed once per step from other tensors (tape/preparation.h); never trained or stored
  Multiplied multiplied = Multiplied::no;
  bool running = false;              ///< a buffer updated by training passes
  bool nonnegative = false;          ///< a variance: a negative value in a file is an error
  bool training_only = false;        ///< belongs to a head used in training only; not in weight files
  std::vector<Index> scaled_rows{};  ///< sizes of row groups, each with an adaptive gradient scale
  std::vector<RowPart> parts{};      ///< row groups of a fused layer, such as q, k and v
  PositionRows positions{};          ///< rows of a position embedding, for interpolation to another grid
};

/// Index of a tensor in its ParameterList.
using ParameterId = int;

class Preparation;

/// The tensors that a model declares, in storage order.
class ParameterList {
 public:
  /// Throws Error if the name is taken.
  ParameterId add(ParameterSpec spec);

  const ParameterSpec& operator[](ParameterId id) const { return specs_.at(static_cast<std::size_t>(id)); }
  int size() const { return static_cast<int>(specs_.size()); }
  auto begin() const { return specs_.begin(); }
  auto end() const { return specs_.end(); }

  /// Names the row groups of a tensor.
  void divide(const std::string& name, const std::vector<RowPart>& parts) {
    specs_.at(static_cast<std::size_t>(find(name))).parts = parts;
  }

  /// Marks all tensors from `first` on as used in training only.
  void for_training_only(ParameterId first) {
    for (std::size_t id = static_cast<std::size_t>(first); id < specs_.size(); ++id) specs_[id].training_only = true;
  }

  /// Returns the id of the tensor called `name`, -1 if there is none.
  ParameterId find(const std::string& name) const;

  /// Returns the number of trainable elements.
  Index trainable_elements() const;

  /// Add a computation of prepared tensors, and return all such computations.
  void prepare_by(std::shared_ptr<const Preparation> preparation) { preparations_.push_back(std::move(preparation)); }
  const std::vector<std::shared_ptr<const Preparation>>& preparations() const { return preparations_; }

 private:
  std::vector<ParameterSpec> specs_;
  std::unordered_map<std::string, ParameterId> ids_;  // by name
  std::vector<std::shared_ptr<const Preparation>> preparations_;
};

/// The values of all tensors of a model. T is float, double or Counted.
template <class T>
class Parameters {
 public:
  explicit Parameters(ParameterList list);

  /// Returns tensors with shapes and no values, for a dry run (tape/tape.h).
  static Parameters shapes_of(ParameterList list);

  /// Fills every tensor as declared. Values depend only on the seed and the tensor's name, and are the same for every T
  /// up to rounding.
  void initialise(std::uint64_t seed);

  const ParameterList& list() const { return list_; }
  View<T> operator[](ParameterId id) { return {values_.data() + offset(id), list_[id].shape}; }
  View<const T> operator[](ParameterId id) const { return {values_.data() + offset(id), list_[id].shape}; }

  /// Return the memory of all tensors, each aligned; gaps and values start as zero. [0, trainable_size()) holds the
  /// trainable tensors in order, [trainable_size(), gradient_size()) the prepared ones, and [gradient_size(), size())
  /// the buffers.
  T* data() { return values_.data(); }
  const T* data() const { return values_.data(); }
  Index size() const { return values_.size(); }
  Index trainable_size() const { return trainable_size_; }
  Index gradient_size() const { return gradient_size_; }
  Index offset(ParameterId id) const { return offsets_[static_cast<std::size_t>(id)]; }

 private:
  Parameters() = default;

  ParameterList list_;
  std::vector<Index> offsets_;
  Index trainable_size_ = 0, gradient_size_ = 0;
  Tensor<T> values_;
};

/// The gradients of all trainable and prepared tensors of a model, in the layout of the values.
template <class T>
class Gradients {
 public:
  explicit Gradients(const Parameters<T>& parameters);

  /// Discards all gradients without writing: the first write of a gradient assigns it.
  void reset();

  /// Zeroes the gradients not written since reset().
  void complete();

  View<T> operator[](ParameterId id) {
    return {values_.data() + parameters_->offset(id), parameters_->list()[id].shape};
  }
  View<const T> operator[](ParameterId id) const {
    return {values_.data() + parameters_->offset(id), parameters_->list()[id].shape};
  }

  /// Returns a flag that is true if this gradient has not been written since reset(). The first writer clears it.
  bool& fresh(ParameterId id) { return fresh_[static_cast<std::size_t>(id)].value; }

  T* data() { return values_.data(); }
  const T* data() const { return values_.data(); }
  Index size() const { return values_.size(); }
  Index trainable_size() const { return parameters_->trainable_size(); }
  const ParameterList& list() const { return parameters_->list(); }

 private:
  /// A flag in a separate byte, unlike in std::vector<bool>, so that threads may write different flags.
  struct Flag {
    bool value = true;
  };
  const Parameters<T>* parameters_;
  std::vector<Flag> fresh_;
  Tensor<T> values_;
};

// ---- Implementation ----

namespace detail {

/// Rounds a size up, so that each tensor starts on a cache line for every number type.
inline Index whole_cache_lines(Index elements) { return (elements + 15) / 16 * 16; }

/// Return initial values: element i of a tensor with independent elements, and all elements of an orthogonal matrix.
double draw_initial(const Initial& initial, const RandomStream& stream, Index i);
std::vector<double> draw_orthogonal(const RandomStream& stream, Index rows, Index columns);

}  // namespace detail

template <class T>
void fill_initial(const Initial& initial, const RandomStream& stream, View<T> values) {
  std::vector<double> drawn;
  if (initial.kind == Initial::Kind::orthogonal)
    drawn = detail::draw_orthogonal(stream, values.shape()[0], values.shape()[1]);
  for (Index i = 0; i < values.size(); ++i)
    values[i] =
        static_cast<T>(drawn.empty() ? detail::draw_initial(initial, stream, i) : drawn[static_cast<std::size_t>(i)]);
}

template <class T>
Parameters<T>::Parameters(ParameterList list)
    : list_(std::move(list)), offsets_(static_cast<std::size_t>(list_.size())) {
  Index total = 0;
  const auto place = [&](const auto& chosen) {
    for (int id = 0; id < list_.size(); ++id) {
      if (!chosen(list_[id])) continue;
      offsets_[static_cast<std::size_t>(id)] = total;
      total += detail::whole_cache_lines(list_[id].shape.elements());
    }
    return total;
  };
  trainable_size_ = place([](const ParameterSpec& spec) { return spec.trainable; });
  gradient_size_ = place([](const ParameterSpec& spec) { return spec.prepared; });
  place([](const ParameterSpec& spec) { return !spec.trainable && !spec.prepared; });
  values_ = Tensor<T>(Shape{total});
}

template <class T>
Parameters<T> Parameters<T>::shapes_of(ParameterList list) {
  Parameters parameters;
  parameters.offsets_.resize(static_cast<std::size_t>(list.size()));
  parameters.list_ = std::move(list);
  return parameters;
}

template <class T>
void Parameters<T>::initialise(std::uint64_t seed) {
  for (int id = 0; id < list_.size(); ++id) {
    const ParameterSpec& spec = list_[id];
    const RandomStream stream = RandomStream(seed).derive("initial").derive(spec.name);
    fill_initial(spec.initial, stream, (*this)[id]);
  }
}

template <class T>
Gradients<T>::Gradients(const Parameters<T>& parameters)
    : parameters_(&parameters),
      fresh_(static_cast<std::size_t>(parameters.list().size())),
      values_(Shape{parameters.gradient_size()}) {}

template <class T>
void Gradients<T>::reset() {
  std::fill(fresh_.begin(), fresh_.end(), Flag{});
}

template <class T>
void Gradients<T>::complete() {
  for (int id = 0; id < parameters_->list().size(); ++id) {
    if (!(parameters_->list()[id].trainable || parameters_->list()[id].prepared) || !fresh(id)) continue;
    std::fill((*this)[id].begin(), (*this)[id].end(), T(0));
    fresh(id) = false;
  }
}

}  // namespace heed
