#include "heed/train/step.h"

#include "heed/kernels/gemm_buffers.h"
#include "heed/ops/cross_entropy.h"
#include "heed/base/parallel.h"

namespace heed {

namespace {

/// Lanes for `pieces` pieces of a model with `size` weights: enough for sixteen cores where their gradients are
/// small; none of its own where eight of them would take more than 2^26 numbers.
Index lane_count(Index pieces, Index size) {
  constexpr Index most = 16, least = 8, memory = Index{1} << 26;
  if (least * size > memory) return 1;
  return std::min({pieces, most, std::max(least, memory / std::max<Index>(size, 1))});
}

Products products_of(const TrainConfig& train) {
  if (train.dtype != "bf16") return Products::exact;
  const char* const obstacle = kernels::bf16_obstacle();
  require(obstacle == nullptr, "[train] dtype = \"bf16\": {}; f32 works everywhere", obstacle ? obstacle : "");
  return Products::bf16;
}

template <class T>
View<const T> images_at(View<const T> batch, Index first, Index count) {
  const Shape& s = batch.shape();
  return {batch.data() + first * (s.elements() / s[0]), Shape{count, s[1], s[2], s[3]}};
}

template <class T>
std::vector<std::unique_ptr<Tape<T>>> tape_per_thread() {
  std::vector<std::unique_ptr<Tape<T>>> tapes;
  for (int i = 0; i < threads(); ++i) tapes.push_back(std::make_unique<Tape<T>>());
  return tapes;
}

template <class T>
Tape<T>& tape_of_worker(std::vector<std::unique_ptr<Tape<T>>>& tapes) {
  return *tapes[static_cast<std::size_t>(worker())];
}

}  // namespace

template <class T>
BatchGradient<T>::BatchGradient(const VisionTransformer& model, Parameters<T>& parameters, Index batch,
                                const TrainConfig& train)
    : model_(model),
      parameters_(parameters),
      piece_(train.piece),
      smoothing_(train.label_smoothing),
      recompute_(train.recompute),
      products_(products_of(train)),
      tapes_(tape_per_thread<T>()) {
  kernels::reserve_gemm_buffers(threads());
  const Index pieces = (batch + piece_ - 1) / piece_;
  pieces_.resize(static_cast<std::size_t>(pieces));
  for (Index i = 0; i < lane_count(pieces, parameters.trainable_size()); ++i) lanes_.emplace_back(parameters);
}

template <class T>
BatchResult BatchGradient<T>::run(View<const T> images, View<const T> targets, const int* labels,
                                  const RandomStream& random) {
  const Index pieces = (images.shape()[0] + piece_ - 1) / piece_;
  HEED_ASSERT(pieces <= static_cast<Index>(pieces_.size()));
  const Index lanes = std::min(pieces, static_cast<Index>(lanes_.size()));
  packed_.pack(products_, parameters_, true);
  parallel_for(lanes, [&](Index i) {
    Gradients<T>& lane = lanes_[static_cast<std::size_t>(i)];
    lane.reset();
    for (Index piece = pieces * i / lanes; piece < pieces * (i + 1) / lanes; ++piece)
      run_piece(piece, lane, images, targets, labels, random);
    lane.complete();
  });
  if (lanes > 1) even_out_tapes();
  add_lanes(lanes);
  scale_adaptively(parameters_.list(), lanes_.front());
  BatchResult result;
  for (Index piece = 0; piece < pieces; ++piece) {
    result.loss += pieces_[static_cast<std::size_t>(piece)].loss;
    result.correct += pieces_[static_cast<std::size_t>(piece)].correct;
  }
  return result;
}

template <class T>
void BatchGradient<T>::run_piece(Index piece, Gradients<T>& lane, View<const T> images, View<const T> targets,
                                 const int* labels, const RandomStream& random) {
  const Index batch = images.shape()[0], first = piece * piece_, count = std::min(piece_, batch - first);
  const Index classes = targets.shape()[1];
  Tape<T>& tape = tape_of_worker(tapes_);
  Pass<T> pass;
  pass.parameters = &parameters_;
  pass.packed = &packed_;
  pass.gradients = &lane;
  pass.training = true;
  pass.recompute = recompute_;
  pass.products = products_;
  pass.random = random;
  pass.first_image = first;
  if (!profiles_.empty()) pass.profile = &profiles_[static_cast<std::size_t>(worker())];
  tape.clear(pass);
  const Var<T> logits = model_(tape.constant(images_at(images, first, count)));
  Var<T> loss = cross_entropy(logits, {targets.data() + first * classes, Shape{count, classes}}, smoothing_, batch);
  if (first == 0)
    if (const Var<T> penalty = model_.penalty(tape)) loss = add(loss, penalty);
  Piece& result = pieces_[static_cast<std::size_t>(piece)];
  result = {static_cast<double>(*loss.data()), 0};
  for (Index i = 0; i < count; ++i)
    result.correct += largest_of(logits.data() + i * classes, classes) == labels[first + i];
  tape.backward(loss);
}

template <class T>
Profile BatchGradient<T>::profile() const {
  Profile sum;
  for (const Profile& profile : profiles_) sum += profile;
  return sum;
}

template <class T>
void BatchGradient<T>::add_lanes(Index used) {
  if (used == 1) return;
  T* const sum = lanes_.front().data();
  parallel_ranges(lanes_.front().size(), 1 << 13, [&](Index begin, Index end) {
    for (Index i = 1; i < used; ++i) {
      const T* const lane = lanes_[static_cast<std::size_t>(i)].data();
      for (Index j = begin; j < end; ++j) sum[j] += lane[j];
    }
  });
}

/// Which threads get pieces, and whether whole ones, is chance. A tape that has not seen a whole piece yet is given
/// the memory for one here, so that no later step has to ask for any. (Memory that is never written costs nothing.)
template <class T>
void BatchGradient<T>::even_out_tapes() {
  const auto even_out = [this](auto&& tape_of) {
    typename Tape<T>::Capacity most;
    for (const auto& tape : tapes_) {
      const auto capacity = tape_of(*tape).capacity();
      most.nodes = std::max(most.nodes, capacity.nodes);
      most.steps = std::max(most.steps, capacity.steps);
      most.buffers = std::max(most.buffers, capacity.buffers);
      most.bytes = std::max(most.bytes, capacity.bytes);
    }
    for (const auto& tape : tapes_) tape_of(*tape).clear_and_reserve(most);
  };
  even_out([](Tape<T>& tape) -> Tape<T>& { return tape; });
  if (recompute_) even_out([](Tape<T>& tape) -> Tape<T>& { return tape.inner(); });
}

template <class T>
Inference<T>::Inference(const VisionTransformer& model, Parameters<T>& parameters, Index piece)
    : model_(model), parameters_(parameters), piece_(piece), tapes_(tape_per_thread<T>()) {
  packed_.pack(Products::exact, parameters, false);
}

template <class T>
void Inference<T>::run(View<const T> images, T* logits) {
  const Index batch = images.shape()[0], classes = model_.config().classes;
  parallel_for((batch + piece_ - 1) / piece_, [&](Index piece) {
    const Index first = piece * piece_, count = std::min(piece_, batch - first);
    Tape<T>& tape = tape_of_worker(tapes_);
    Pass<T> pass;
    pass.parameters = &parameters_;
    pass.packed = &packed_;
    tape.clear(pass);
    const Var<T> result = model_(tape.constant(images_at(images, first, count)));
    std::copy(result.data(), result.data() + count * classes, logits + first * classes);
  });
}

template class BatchGradient<float>;
template class BatchGradient<double>;
template class Inference<float>;
template class Inference<double>;

}  // namespace heed
