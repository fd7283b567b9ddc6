#include "heed/train/step.h"

#include "heed/kernels/products/gemm_buffers.h"
#include "heed/nn/adder.h"
#include "heed/tape/preparation.h"
#include "heed/train/lane_memory.h"
#include "lanes_in_lockstep.h"

#include <optional>

namespace heed {

namespace {

Products products_of(const TrainConfig& train) {
  if (train.dtype != "bf16") return Products::exact;
  const char* const obstacle = kernels::bf16_obstacle();
  require(obstacle == nullptr, "[train] dtype = \"bf16\": {}; f32 works everywhere", obstacle ? obstacle : "");
  return Products::bf16;
}

bool streams(LaneMemory memory, Index weights, Index lanes) {
  return memory == LaneMemory::by_size ? lanes_take_turns(weights, lanes, threads()) : memory == LaneMemory::streamed;
}

}  // namespace

template <class T>
Tapes<T>::Tapes(Index count) {
  for (Index i = 0; i < count; ++i) tapes_.push_back(std::make_unique<Tape<T>>());
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
      share_{train.piece, parameters.trainable_size(), ranks.rank(), ranks.count(), model.examples_depend(batch)},
      recompute_(train.recompute),
      streams_(!share_.together && streams(memory, parameters.trainable_size(), share_.lanes(batch).count)),
      products_(products_of(train)),
      tapes_(share_.together ? share_.lanes(batch).count : threads()) {
  // Products of floats are heed's own.
  if constexpr (std::is_same_v<T, double>) kernels::reserve_gemm_buffers(threads());
  const Lanes lanes = share_.lanes(batch);
  require_shareable(lanes, ranks.count());
  const LaneRange own = share_.own(lanes);
  const Index count = own.last - own.first;
  if (share_.together) {
    require(count == 1 || Lockstep::has_stacks(),
            "[model] batch norm in training: this build has no stacks for {} lanes; [train] piece = {}, the whole "
            "batch, makes one",
            count, batch);
    lockstep_ = std::make_unique<LanesInLockstep<T>>(ranks, count);
  }
  scores_.resize(static_cast<std::size_t>(lanes.pieces()));
  // On the threads that will fill them where each lane has one: of several sockets, memory belongs to the one whose
  // core writes to it first.
  std::vector<std::optional<Gradients<T>>> sums(static_cast<std::size_t>(streams_ ? sums_at_once(count) : count));
  parallel_for(static_cast<Index>(sums.size()),
               [&](Index i) { sums[static_cast<std::size_t>(i)].emplace(parameters); });
  for (std::optional<Gradients<T>>& sum : sums) sums_.push_back(std::move(*sum));
}

template <class T>
BatchGradient<T>::~BatchGradient() = default;

template <class T>
Index BatchGradient<T>::sums_over_batch() const {
  return lockstep_ ? lockstep_->sums() : 0;
}

template <class T>
BatchResult BatchGradient<T>::run(const TaskBatch<T>& batch, const RandomStream& random) {
  const Lanes lanes = share_.lanes(batch.size());
  HEED_ASSERT(lanes.pieces() <= static_cast<Index>(scores_.size()));
  step_ = {&batch, random, lanes};

  // What a step prepares from the weights alone.
  packed_.pack(products_, parameters_, true);
  prepare(PreparationPass<T>{&parameters_, nullptr, true, random});

  const LaneRange own = share_.own(lanes);
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
  return {totals[0], totals[1], static_cast<double>(batch.terms())};
}

template <class T>
void BatchGradient<T>::sum_kept(LaneRange lanes) {
  const auto sum_of = [&](Index lane) -> Gradients<T>& { return sums_[static_cast<std::size_t>(lane - lanes.first)]; };
  if (lockstep_) {
    run_in_lockstep(lanes);
  } else {
    parallel_for(lanes.last - lanes.first, [&](Index i) { run_lane(lanes.first + i, sum_of(lanes.first + i)); });
    if (lanes.last - lanes.first > 1) tapes_.even_out(recompute_);  // a single lane is always on the same thread
  }
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
void BatchGradient<T>::run_lane(Index lane, Gradients<T>& gradients, NonFinite* non_finite) {
  gradients.reset();
  for (Index piece = step_.lanes.first_piece(lane); piece < step_.lanes.first_piece(lane + 1); ++piece)
    run_piece({.piece = piece, .gradients = &gradients, .non_finite = non_finite});
  gradients.complete();
}

template <class T>
void BatchGradient<T>::run_in_lockstep(LaneRange lanes, std::vector<NonFinite>* found) {
  lockstep_->run(step_.lanes, lanes, [&](Index lane, WholeBatch<T>& whole) {
    const auto place = static_cast<std::size_t>(lane - lanes.first);
    sums_[place].reset();
    run_piece({.piece = lane,
               .gradients = &sums_[place],
               .whole = &whole,
               .non_finite = found ? &(*found)[place] : nullptr,
               .place = lane - lanes.first});
    sums_[place].complete();
  });
}

template <class T>
void BatchGradient<T>::run_piece(const PiecePass& given) {
  const Piece piece = step_.lanes.piece_at(given.piece);
  Pass<T> pass;
  pass.parameters = &parameters_;
  pass.packed = &packed_;
  pass.prepared = true;
  pass.gradients = given.gradients;
  pass.training = true;
  pass.recompute = recompute_ && !given.non_finite;
  pass.non_finite = given.non_finite;
  pass.whole = given.whole;
  pass.products = products_;
  pass.random = step_.random;
  pass.first_image = piece.first;
  if (!profiles_.empty()) pass.profile = &profiles_[static_cast<std::size_t>(given.place)];
  Tape<T>& tape = tapes_.begin(pass, given.place);
  const Var<T> logits = step_.batch->logits(model_, tape, piece);
  Var<T> loss = step_.batch->loss(logits, piece, step_.batch->terms());
  // Who looks for numbers that are not finite compares lanes by how much they have made: none may make the penalty
  // before the others have ended.
  const bool penalised = piece.first == 0, penalty_last = given.non_finite != nullptr;
  if (penalised && !penalty_last)
    if (const Var<T> penalty = model_.penalty(tape)) loss = add(loss, penalty);
  Score& score = scores_[static_cast<std::size_t>(given.piece)];
  score.loss = static_cast<double>(*loss.data());
  score.correct = static_cast<double>(step_.batch->correct(logits.value(), piece));
  tape.backward(loss);
  if (!penalised || !penalty_last) return;
  tape.clear();
  if (const Var<T> penalty = model_.penalty(tape)) tape.backward(penalty);
}

template <class T>
Inference<T>::Inference(const Model& model, Parameters<T>& parameters, Index piece, Statistics statistics)
    : model_(model), parameters_(parameters), piece_(piece), statistics_(statistics) {
  renew();
}

/// What is prepared from the weights alone.
template <class T>
void Inference<T>::renew() {
  packed_.pack(Products::exact, parameters_, false);
  prepare(PreparationPass<T>{&parameters_});
}

template <class T>
Tape<T>& Inference<T>::begin() const {
  Pass<T> pass;
  pass.parameters = &parameters_;
  pass.packed = &packed_;
  pass.prepared = true;
  pass.training = statistics_ == Statistics::of_pass;
  pass.still = true;
  if (!profiles_.empty()) pass.profile = &profiles_[static_cast<std::size_t>(worker())];
  return tapes_.begin(pass);
}

template <class T>
void Inference<T>::run(const ModelInput<T>& examples, T* logits) const {
  for_pieces({0, examples.count()}, [&](Tape<T>& tape, Piece piece) {
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
