#include "heed/train/step.h"

#include "heed/kernels/products/gemm_buffers.h"
#include "heed/nn/adder.h"
#include "heed/tape/preparation.h"
#include "lanes_in_lockstep.h"

#include <optional>

namespace heed {

namespace {

Products products_of(const TrainConfig& train) {
  if (train.dtype != "bf16") return Products::exact;
  if (const char* const obstacle = kernels::bf16_obstacle())
    fail("[train] dtype = \"bf16\" {}; f32 works everywhere", obstacle);
  return Products::bf16;
}

bool streams(LaneMemory memory, Index weights, Index lanes) {
  return memory == LaneMemory::by_size ? streams_lanes(weights, lanes) : memory == LaneMemory::streamed;
}

}  // namespace

template <class T>
BatchGradient<T>::BatchGradient(const Model& model, Parameters<T>& parameters, Index batch, const TrainConfig& train,
                                Ranks& ranks, LaneMemory memory)
    : model_(model),
      parameters_(parameters),
      ranks_(ranks),
      share_{microbatch_of(train, batch), parameters.trainable_size(), ranks.rank(), ranks.count(),
             model.examples_depend(batch)},
      recompute_(train.recompute),
      streams_(!share_.dependent && streams(memory, parameters.trainable_size(), share_.lanes(batch).count)),
      products_(products_of(train)),
      // In lockstep all lanes run at once, each on its own tape.
      tapes_(std::min(share_.lanes(batch).count, share_.dependent ? batch : threads())) {
  // Products in float are computed without BLAS, so they need no BLAS buffers.
  if constexpr (std::is_same_v<T, double>) kernels::reserve_gemm_buffers(threads());
  const Lanes lanes = share_.lanes(batch);
  require_shareable(lanes, ranks.count());
  const Index count = share_.own(lanes).count();
  if (share_.dependent) {
    require(count == 1 || Lockstep::has_stacks(),
            "[model] batch norm in training: this build does not support {} lanes; set [train] microbatch = {}, the "
            "whole batch, for one lane",
            count, batch);
    lockstep_ = std::make_unique<LanesInLockstep<T>>(ranks, count);
  }
  scores_.resize(lanes.microbatches());
  // Each gradient is constructed on a thread that will probably fill it: memory is allocated on the socket of the
  // thread that writes it first.
  std::vector<std::optional<Gradients<T>>> sums(streams_ ? sums_at_once(count) : count);
  parallel_for(static_cast<Index>(sums.size()), [&](Index i) { sums[i].emplace(parameters); });
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
  HEED_ASSERT(lanes.microbatches() <= static_cast<Index>(scores_.size()));
  step_ = {&batch, random, lanes};

  // Tensors that depend on the weights alone.
  packed_.pack(products_, parameters_, true);
  prepare(PreparationPass<T>{&parameters_, nullptr, true, random});

  // Sums over the examples of this process, then over processes.
  const LaneRange own = share_.own(lanes);
  if (streams_)
    sum_streamed(own);
  else
    sum_per_lane(own);
  ranks_.sum(std::span(gradients().data(), static_cast<std::size_t>(gradients().size())));

  // Steps that need the gradient of the whole batch.
  prepare_backward(PreparationPass<T>{&parameters_, &gradients(), true, random});
  scale_adaptively(parameters_.list(), gradients());

  const Score score = lanes.sum(own, scores_);
  double totals[] = {score.loss, score.correct};
  ranks_.sum(totals);
  return {totals[0], totals[1], static_cast<double>(batch.terms())};
}

template <class T>
void BatchGradient<T>::sum_per_lane(LaneRange lanes) {
  const auto sum_of = [&](Index lane) -> Gradients<T>& { return sums_[lane - lanes.first]; };
  if (lockstep_) {
    run_in_lockstep(lanes);
  } else {
    parallel_for(lanes.count(),
                 [&](Index i) { run_lane(lanes.first + i, sum_of(lanes.first + i), tapes_.index(i, lanes.count())); });
    if (lanes.count() > 1) tapes_.even_out(recompute_);  // a single lane always runs on the same thread
  }
  // Adds block by block through all levels of the tree, while the lanes' blocks are in cache.
  constexpr Index block = Index{1} << 12;
  const Index size = gradients().size();
  parallel_ranges((size + block - 1) / block, 1, [&](Index begin, Index end) {
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
  // sums_ is a stack: of two neighbours in the tree, the right one is on top.
  Index size = 0;
  tree_sum(
      lanes,
      [&](Index lane) {
        Gradients<T>& sum = sums_[size++];
        run_lane(lane, sum);
        return sum.data();
      },
      [&](T* a, const T* b) {
        --size;
        parallel_ranges(gradients().size(), 1 << 13, [=](Index begin, Index end) {
          write_all(Update::accumulate, end - begin, b + begin, a + begin);
        });
        return a;
      });
}

template <class T>
void BatchGradient<T>::run_lane(Index lane, Gradients<T>& gradients, Index tape, NonFinite<T>* non_finite) {
  gradients.reset();
  for (Index i = step_.lanes.first_microbatch(lane); i < step_.lanes.first_microbatch(lane + 1); ++i)
    run_microbatch({.index = i, .gradients = &gradients, .non_finite = non_finite, .tape = tape});
  gradients.complete();
}

template <class T>
void BatchGradient<T>::run_in_lockstep(LaneRange lanes, std::vector<NonFinite<T>>* found) {
  lockstep_->run(step_.lanes, lanes, [&](Index lane, WholeBatch<T>& batch) {
    const Index i = lane - lanes.first;
    sums_[i].reset();
    run_microbatch({.index = lane,
                    .gradients = &sums_[i],
                    .batch = &batch,
                    .non_finite = found ? &(*found)[i] : nullptr,
                    .tape = i});
    sums_[i].complete();
  });
}

template <class T>
void BatchGradient<T>::run_microbatch(const MicrobatchPass& microbatch) {
  const ExampleRange examples = step_.lanes.microbatch_at(microbatch.index);
  NonFinite<T>* const non_finite = microbatch.non_finite;
  TensorObserver<T>* const observer = microbatch.index == 0 ? observer_ : nullptr;
  Tape<T>& tape = tapes_.begin({.parameters = &parameters_,
                                .packed = &packed_,
                                .gradients = microbatch.gradients,
                                .prepared = true,
                                .training = true,
                                .random = step_.random,
                                .execution = {.recompute = recompute_ && !non_finite, .products = products_},
                                .examples = {.first = examples.first, .batch = microbatch.batch},
                                .observers = {.tensors = non_finite ? non_finite : observer}},
                               microbatch.tape);
  const Var<T> logits = step_.batch->logits(model_, tape, examples);
  Var<T> loss = step_.batch->loss(logits, examples, step_.batch->terms());
  // The penalty is added to the first microbatch. The search for non-finite values compares the progress of lanes, so
  // the penalty then has a separate pass after the microbatch's.
  const bool penalised = examples.first == 0, penalty_last = non_finite != nullptr;
  if (penalised && !penalty_last)
    if (const Var<T> penalty = model_.penalty(tape)) loss = add(loss, penalty);
  Score& score = scores_[microbatch.index];
  score.loss = static_cast<double>(*loss.data());
  score.correct = static_cast<double>(step_.batch->correct(logits.value(), examples));
  tape.backward(loss);
  if (!penalised || !penalty_last) return;
  tape.clear();
  if (const Var<T> penalty = model_.penalty(tape)) tape.backward(penalty);
}

template class BatchGradient<float>;
template class BatchGradient<double>;

}  // namespace heed
