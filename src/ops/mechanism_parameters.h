// The parameters of a mechanism as operands of a recorded operation.
#pragma once

#include "heed/tape/tape.h"

#include <algorithm>
#include <span>

namespace heed {

/// Returns a list of the tensors' values, which lives as long as the pass.
template <class T>
std::span<const View<const T>> values_of(Tape<T>& tape, std::span<const Var<T>> tensors) {
  const auto values = tape.template list<View<const T>>(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) values[i] = tensors[i].value();
  return values;
}

/// Copies handles to memory that lives as long as the pass.
template <class T>
std::span<const Var<T>> copied_handles(Tape<T>& tape, std::span<const Var<T>> handles) {
  const auto copies = tape.template list<Var<T>>(handles.size());
  std::copy(handles.begin(), handles.end(), copies.begin());
  return copies;
}

/// Returns the gradients of these tensors, ready for accumulation: they are zeroed if not yet written. An unwanted
/// gradient is in memory that is not read.
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

}  // namespace heed
