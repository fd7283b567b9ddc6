#include "heed/base/parameters.h"

#include "heed/cost/counted.h"

#include <numeric>

namespace heed {

namespace {

/// Tensors start on cache lines of their own, for every number type.
Index aligned(Index elements) { return (elements + 15) / 16 * 16; }

/// Element i of a random order of 0..count - 1: the first i + 1 exchanges of a Fisher-Yates shuffle.
Index draw_distinct(Index count, const RandomStream& stream, Index i) {
  std::vector<Index> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), Index{0});
  for (Index k = 0; k <= i; ++k)
    std::swap(order.at(static_cast<std::size_t>(k)),
              order.at(static_cast<std::size_t>(k + stream.below(k, count - k))));
  return order[static_cast<std::size_t>(i)];
}

}  // namespace

double draw_initial(const Initial& initial, const RandomStream& stream, Index i) {
  switch (initial.kind) {
    case Initial::Kind::constant:
      return initial.value;
    case Initial::Kind::normal:
      return initial.value * stream.normal(i);
    case Initial::Kind::uniform:
      return stream.uniform(i, -initial.value, initial.value);
    case Initial::Kind::distinct:
      return initial.value + static_cast<double>(draw_distinct(initial.count, stream, i));
    case Initial::Kind::truncated_normal:
      for (std::uint64_t attempt = 0;; ++attempt) {
        const double z = stream.derive(attempt).normal(i);
        if (std::abs(z) <= 2) return initial.value * z;
      }
  }
  HEED_ASSERT(false);
}

ParameterId ParameterList::add(ParameterSpec spec) {
  require(find(spec.name) < 0, "[parameters] two tensors are called '{}'", spec.name);
  specs_.push_back(std::move(spec));
  return size() - 1;
}

ParameterId ParameterList::find(const std::string& name) const {
  for (int id = 0; id < size(); ++id)
    if ((*this)[id].name == name) return id;
  return -1;
}

Index ParameterList::trainable_elements() const {
  Index sum = 0;
  for (const ParameterSpec& spec : specs_)
    if (spec.trainable) sum += spec.shape.elements();
  return sum;
}

template <class T>
Parameters<T>::Parameters(ParameterList list)
    : list_(std::move(list)), offsets_(static_cast<std::size_t>(list_.size())) {
  Index total = 0;
  for (const bool trainable : {true, false}) {
    for (int id = 0; id < list_.size(); ++id) {
      if (list_[id].trainable != trainable) continue;
      offsets_[static_cast<std::size_t>(id)] = total;
      total += aligned(list_[id].shape.elements());
    }
    if (trainable) trainable_size_ = total;
  }
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
    const View<T> values = (*this)[id];
    for (Index i = 0; i < values.size(); ++i) values[i] = static_cast<T>(draw_initial(spec.initial, stream, i));
  }
}

template <class T>
Gradients<T>::Gradients(const Parameters<T>& parameters)
    : parameters_(&parameters),
      fresh_(static_cast<std::size_t>(parameters.list().size())),
      values_(Shape{parameters.trainable_size()}) {}

template <class T>
void Gradients<T>::reset() {
  std::fill(fresh_.begin(), fresh_.end(), Flag{});
}

template <class T>
void Gradients<T>::complete() {
  for (int id = 0; id < parameters_->list().size(); ++id) {
    if (!parameters_->list()[id].trainable || !fresh(id)) continue;
    std::fill((*this)[id].begin(), (*this)[id].end(), T(0));
    fresh(id) = false;
  }
}

template class Parameters<float>;
template class Parameters<double>;
template class Parameters<Counted>;
template class Gradients<float>;
template class Gradients<double>;
template class Gradients<Counted>;

}  // namespace heed
