// Trainable tensors and buffers of a model. Layers declare them in a ParameterList while they are built;
// Parameters holds their values and Gradients their gradients, each in one contiguous buffer, so that the
// optimiser, the norm and the sum over pieces of a batch are single passes.
#pragma once

#include "heed/base/random.h"
#include "heed/base/tensor.h"

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace heed {

/// How a tensor is filled before training.
struct Initial {
  enum class Kind { constant, normal, truncated_normal, uniform, distinct, orthogonal } kind = Kind::constant;
  double value = 0;  ///< the constant; the standard deviation; half the width of the uniform range; the first integer
  Index count = 0;   ///< how many integers there are to choose from

  static Initial constant(double value) { return {Kind::constant, value}; }
  static Initial normal(double deviation) { return {Kind::normal, deviation}; }
  /// Normal, values beyond two standard deviations drawn anew.
  static Initial truncated_normal(double deviation) { return {Kind::truncated_normal, deviation}; }
  /// U(-bound, bound)
  static Initial uniform(double bound) { return {Kind::uniform, bound}; }
  /// Integers from first to first + count - 1, drawn without replacement, for at most `count` elements.
  static Initial distinct(Index first, Index count) { return {Kind::distinct, static_cast<double>(first), count}; }
  /// Of a matrix: rows in blocks of as many as there are columns (the last may have fewer), orthogonal to each other
  /// within a block, each as long as a row of independent standard normal numbers.
  static Initial orthogonal() { return {Kind::orthogonal}; }

  bool operator==(const Initial&) const = default;
};

/// Fills a tensor so, from a stream of its own.
template <class T>
void fill_initial(const Initial& initial, const RandomStream& stream, View<T> values);

/// Rows of a tensor that belong together.
struct RowPart {
  std::string name;
  Index rows;
};

/// Declaration of one tensor of a model, under its name in weight files.
struct ParameterSpec {
  std::string name;
  Shape shape;
  Initial initial;
  bool decay = true;                 ///< does weight decay apply?
  bool trainable = true;             ///< false: a buffer, kept with the weights but without a gradient
  bool prepared = false;             ///< made of others once per step (tape/preparation.h); in no file, not trainable
  bool multiplied = false;           ///< the weight of a linear layer: worth arranging once for many products
  bool running = false;              ///< a buffer that passes in training move
  bool nonnegative = false;          ///< a variance: below 0 it is none, and is not read from a file
  bool training_only = false;        ///< of a head that training alone has: in no file of weights
  std::vector<Index> scaled_rows{};  ///< groups of rows whose gradients are scaled adaptively, one after the other
  std::vector<RowPart> parts{};      ///< of a layer that makes several things at once, such as q, k and v
};

/// Is a tensor of this name a position embedding, which can be interpolated: pos_embed, or of a stage pos_embedT?
bool is_position_embedding(const std::string& name);

/// Position of a tensor in its ParameterList.
using ParameterId = int;

class Preparation;

/// The tensors a model declares, in the order in which they are stored.
class ParameterList {
 public:
  /// Throws Error if the name is taken.
  ParameterId add(ParameterSpec spec);

  const ParameterSpec& operator[](ParameterId id) const { return specs_.at(static_cast<std::size_t>(id)); }
  int size() const { return static_cast<int>(specs_.size()); }
  auto begin() const { return specs_.begin(); }
  auto end() const { return specs_.end(); }

  /// Says what the rows of a tensor belong to.
  void divide(const std::string& name, const std::vector<RowPart>& parts) {
    specs_.at(static_cast<std::size_t>(find(name))).parts = parts;
  }

  /// Says that all tensors from `first` on are for training only.
  void for_training_only(ParameterId first) {
    for (std::size_t id = static_cast<std::size_t>(first); id < specs_.size(); ++id) specs_[id].training_only = true;
  }

  /// Id of the tensor called `name`, -1 if there is none.
  ParameterId find(const std::string& name) const;

  /// Number of trainable scalars.
  Index trainable_elements() const;

  /// What makes the prepared tensors.
  void prepare_by(std::shared_ptr<const Preparation> preparation) { preparations_.push_back(std::move(preparation)); }
  const std::vector<std::shared_ptr<const Preparation>>& preparations() const { return preparations_; }

 private:
  std::vector<ParameterSpec> specs_;
  std::unordered_map<std::string, ParameterId> ids_;  // by name
  std::vector<std::shared_ptr<const Preparation>> preparations_;
};

/// Values of all tensors of a model. T is float, double or Counted.
template <class T>
class Parameters {
 public:
  explicit Parameters(ParameterList list);

  /// Tensors with shapes and no values, for a pass that computes nothing (tape/tape.h).
  static Parameters shapes_of(ParameterList list);

  /// Fills every tensor by its declaration; the numbers depend on the seed and the tensor's name only, and
  /// are the same for every T up to rounding.
  void initialise(std::uint64_t seed);

  const ParameterList& list() const { return list_; }
  View<T> operator[](ParameterId id) { return {values_.data() + offset(id), list_[id].shape}; }
  View<const T> operator[](ParameterId id) const { return {values_.data() + offset(id), list_[id].shape}; }

  /// All trainable tensors lie in [0, trainable_size()) of one buffer, in order, each aligned; the gaps and
  /// everything else start as zero. The prepared ones follow, up to gradient_size(), then the buffers, up to size().
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

/// Gradients of all trainable and prepared tensors of a model, laid out as the values are.
template <class T>
class Gradients {
 public:
  explicit Gradients(const Parameters<T>& parameters);

  /// Forgets all gradients. Nothing is written: whoever writes a gradient first overwrites it.
  void reset();

  /// Zeroes the tensors that nothing was written to since reset().
  void complete();

  View<T> operator[](ParameterId id) {
    return {values_.data() + parameters_->offset(id), parameters_->list()[id].shape};
  }
  View<const T> operator[](ParameterId id) const {
    return {values_.data() + parameters_->offset(id), parameters_->list()[id].shape};
  }

  /// Has nothing been written to this tensor since reset()? The first writer clears it.
  bool& fresh(ParameterId id) { return fresh_[static_cast<std::size_t>(id)].value; }

  T* data() { return values_.data(); }
  const T* data() const { return values_.data(); }
  Index size() const { return values_.size(); }
  Index trainable_size() const { return parameters_->trainable_size(); }
  const ParameterList& list() const { return parameters_->list(); }

 private:
  struct Flag {
    bool value = true;
  };
  const Parameters<T>* parameters_;
  std::vector<Flag> fresh_;
  Tensor<T> values_;
};

// ---- Implementation ----

namespace detail {

/// Tensors start on cache lines of their own, for every number type.
inline Index whole_cache_lines(Index elements) { return (elements + 15) / 16 * 16; }

/// Element i of a tensor whose elements are drawn one by one, and all elements of an orthogonal one.
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
