#include "heed/train/step.h"

#include "heed/kernels/gemm_buffers.h"
#include "heed/nn/adder.h"
#include "heed/tape/preparation.h"

namespace heed {

namespace {

Products products_of(const TrainConfig& train) {
  if (train.dtype != "bf16") return Products::exact;
  const char* const obstacle = kernels::bf16_obstacle();
  require(obstacle == nullptr, "[train] dtype = \"bf16\": {}; f32 works everywhere", obstacle ? obstacle : "");
  return Products::bf16;
}

/// Is the gradient of each lane added up as soon as it is made, not kept? By size: if eight gradients would take more
/// than 2^26 numbers.
bool streams(LaneMemory memory, Index weights) {
  return memory == LaneMemory::by_size ? weights > Index{1} << 23 : memory == LaneMemory::streamed;
}

}  // namespace

template <class T>
Tapes<T>::Tapes() {
  for (int i = 0; i < threads(); ++i) tapes_.push_back(std::make_unique<Tape<T>>());
}

template <class T>
void Tapes<T>::even_out(bool with_inner) {
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
  if (with_inner) even_out([](Tape<T>& tape) -> Tape<T>& { return tape.inner(); });
}

template <class T>
BatchGradient<T>::BatchGradient(const Model& model, Parameters<T>& parameters, Index batch, const TrainConfig& train,
                                Ranks& ranks, LaneMemory memory)
    : model_(model),
      parameters_(parameters),
      ranks_(ranks),
      piece_(std::max(train.piece, model.examples_together(batch))),
      recompute_(train.recompute),
      streams_(streams(memory, parameters.trainable_size())),
      products_(products_of(train)) {
  // Products of floats are heed's own.
  if constexpr (std::is_same_v<T, double>) kernels::reserve_gemm_buffers(threads());
  const Lanes lanes = lanes_of(batch, piece_, parameters.trainable_size());
  require(lanes.count >= ranks.count(), "[train] batch = {} has {} pieces of {}; {} processes need one each at least",
          batch, lanes.pieces(), piece_, ranks.count());
  const LaneRange own = lanes.of_process(ranks.rank(), ranks.count());
  const Index count = own.last - own.first;
  scores_.resize(static_cast<std::size_t>(lanes.pieces()));
  for (Index i = 0; i < (streams_ ? sums_at_once(count) : count); ++i) sums_.emplace_back(parameters);
}

template <class T>
BatchResult BatchGradient<T>::run(const TaskBatch<T>& batch, const RandomStream& random) {
  double sizes[] = {static_cast<double>(batch.size()), static_cast<double>(batch.terms())};
  ranks_.sum(sizes);
  const Lanes lanes = lanes_of(static_cast<Index>(sizes[0]), piece_, parameters_.trainable_size());
  const LaneRange own = lanes.of_process(ranks_.rank(), ranks_.count());
  HEED_ASSERT(lanes.pieces() <= static_cast<Index>(scores_.size()));
  step_ = {&batch, random, lanes, lanes.first_piece(own.first) * piece_, static_cast<Index>(sizes[1])};

  // What a step prepares from the weights alone.
  packed_.pack(products_, parameters_, true);
  prepare(PreparationPass<T>{&parameters_, nullptr, true, random});

  if (streams_)
    sum_streamed(own);
  else
    sum_kept(own);
  ranks_.sum(std::span(gradients().data(), static_cast<std::size_t>(gradients().size())));

  // What is done to the gradient of the whole batch, once.
  prepare_backward(PreparationPass<T>{&parameters_, &gradients(), true, random});
  scale_adaptively(parameters_.list(), gradients());

  const Score score = lanes.sum(own, scores_);
  double totals[] = {score.loss, score.correct};
  ranks_.sum(totals);
  return {totals[0], totals[1], sizes[1]};
}

template <class T>
void BatchGradient<T>::sum_kept(LaneRange lanes) {
  const auto sum_of = [&](Index lane) -> Gradients<T>& { return sums_[static_cast<std::size_t>(lane - lanes.first)]; };
  parallel_for(lanes.last - lanes.first, [&](Index i) { run_lane(lanes.first + i, sum_of(lanes.first + i)); });
  if (lanes.last - lanes.first > 1) tapes_.even_out(recompute_);  // a single lane is always on the same thread
  // Block by block, all levels of the tree while a block of each lane is in cache.
  constexpr Index block = Index{1} << 12;
  const Index size = gradients().size();
  parallel_ranges((size + block - 1) / block, 2, [&](Index begin, Index end) {
    for (Index at = begin * block; at < std::min(size, end * block); at += block) {
      const Index count = std::min(block, size - at);
      tree_sum(
          lanes, [&](Index lane) { return sum_of(lane).data() + at; },
          [=](T* a, const T* b) {
            write_all(Update::accumulate, count, b, a);
            return a;
          });
    }
  });
}

template <class T>
void BatchGradient<T>::sum_streamed(LaneRange lanes) {
  // Sums are made and used up as on a stack: the later of two neighbours is the last one made.
  Index made = 0;
  tree_sum(
      lanes,
      [&](Index lane) {
        Gradients<T>& sum = sums_[static_cast<std::size_t>(made++)];
        run_lane(lane, sum);
        return sum.data();
      },
      [&](T* a, const T* b) {
        --made;
        parallel_ranges(gradients().size(), 1 << 13, [=](Index begin, Index end) {
          write_all(Update::accumulate, end - begin, b + begin, a + begin);
        });
        return a;
      });
}

template <class T>
void BatchGradient<T>::run_lane(Index lane, Gradients<T>& gradients) {
  gradients.reset();
  for (Index piece = step_.lanes.first_piece(lane); piece < step_.lanes.first_piece(lane + 1); ++piece)
    run_piece(piece, gradients);
  gradients.complete();
}

template <class T>
std::string BatchGradient<T>::first_non_finite() {
  NonFinite found;
  const ParameterList& list = parameters_.list();
  const auto show_tensors = [&](const char* what, auto& tensors, bool trained) {
    for (ParameterId id = 0; id < list.size(); ++id)
      if (list[id].trainable || !trained)
        found.look(tensors[id].data(), tensors[id].size(), [&] { return what + list[id].name; });
  };
  show_tensors("the tensor ", parameters_, false);
  const LaneRange own = step_.lanes.of_process(ranks_.rank(), ranks_.count());
  for (Index lane = own.first; lane < own.last && found.where().empty(); ++lane) {
    gradients().reset();
    for (Index piece = step_.lanes.first_piece(lane); piece < step_.lanes.first_piece(lane + 1); ++piece)
      run_piece(piece, gradients(), &found);
    gradients().complete();
    show_tensors("the gradient by ", gradients(), true);
  }
  return found.where().empty() ? "a sum over the batch" : found.where();
}

template <class T>
void BatchGradient<T>::run_piece(Index number, Gradients<T>& gradients, NonFinite* non_finite) {
  const Piece whole = step_.lanes.piece_at(number), piece{whole.first - step_.first, whole.count};
  Pass<T> pass;
  pass.parameters = &parameters_;
  pass.packed = &packed_;
  pass.prepared = true;
  pass.gradients = &gradients;
  pass.training = true;
  pass.recompute = recompute_ && !non_finite;
  pass.non_finite = non_finite;
  pass.products = products_;
  pass.random = step_.random;
  pass.first_image = whole.first;
  if (!profiles_.empty()) pass.profile = &profiles_[static_cast<std::size_t>(worker())];
  Tape<T>& tape = tapes_.begin(pass);
  const Var<T> logits = step_.batch->logits(model_, tape, piece);
  Var<T> loss = step_.batch->loss(logits, piece, step_.terms);
  if (whole.first == 0)
    if (const Var<T> penalty = model_.penalty(tape)) loss = add(loss, penalty);
  Score& score = scores_[static_cast<std::size_t>(number)];
  score.loss = static_cast<double>(*loss.data());
  score.correct = static_cast<double>(step_.batch->correct(logits.value(), piece));
  tape.backward(loss);
}

template <class T>
Profile BatchGradient<T>::profile() const {
  Profile sum;
  for (const Profile& profile : profiles_) sum += profile;
  return sum;
}

template <class T>
Inference<T>::Inference(const Model& model, Parameters<T>& parameters, Index piece)
    : model_(model), parameters_(parameters), piece_(piece) {
  // What is prepared from the weights alone.
  packed_.pack(Products::exact, parameters, false);
  prepare(PreparationPass<T>{&parameters});
}

template <class T>
Tape<T>& Inference<T>::begin() const {
  Pass<T> pass;
  pass.parameters = &parameters_;
  pass.packed = &packed_;
  pass.prepared = true;
  return tapes_.begin(pass);
}

template <class T>
void Inference<T>::run(const ModelInput<T>& examples, T* logits) const {
  for_pieces(examples.count(), [&](Tape<T>& tape, Piece piece) {
    const Var<T> result = model_.logits(tape, examples.part(piece.first, piece.count));
    std::copy(result.data(), result.data() + result.size(), logits + piece.first * (result.size() / piece.count));
  });
}

template class Tapes<float>;
template class Tapes<double>;
template class BatchGradient<float>;
template class BatchGradient<double>;
template class Inference<float>;
template class Inference<double>;

}  // namespace heed
