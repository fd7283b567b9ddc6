#include "heed/train/tapes.h"

namespace heed {

template <class T>
Tapes<T>::Tapes(Index count) {
  for (Index i = 0; i < count; ++i) tapes_.push_back(std::make_unique<Tape<T>>());
}

template <class T>
Tape<T>& Tapes<T>::begin(Pass<T> pass, Index i) const {
  if (!profiles_.empty()) pass.observers.profile = &profiles_[i];
  Tape<T>& tape = *tapes_[i];
  tape.clear(pass);
  return tape;
}

template <class T>
void Tapes<T>::even_out(bool with_inner) {
  const auto even_out = [this](auto&& tape_of) {
    typename Tape<T>::Capacity most;
    for (const auto& tape : tapes_) {
      const auto capacity = tape_of(*tape).capacity();
      most.nodes = std::max(most.nodes, capacity.nodes);
      most.backward_steps = std::max(most.backward_steps, capacity.backward_steps);
      most.buffers = std::max(most.buffers, capacity.buffers);
      most.bytes = std::max(most.bytes, capacity.bytes);
    }
    for (const auto& tape : tapes_) tape_of(*tape).clear_and_reserve(most);
  };
  even_out([](Tape<T>& tape) -> Tape<T>& { return tape; });
  if (with_inner) even_out([](Tape<T>& tape) -> Tape<T>& { return tape.inner(); });
}

template <class T>
Profile Tapes<T>::profile() const {
  if (profiles_.empty()) return Profile();
  Profile sum = profiles_.front();
  for (std::size_t i = 1; i < profiles_.size(); ++i) sum += profiles_[i];
  return sum;
}

template class Tapes<float>;
template class Tapes<double>;

}  // namespace heed
