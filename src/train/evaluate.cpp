#include "heed/train/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace heed {

template <class T>
Evaluation evaluate(const Model& model, Parameters<T>& parameters, BatchSource<T>& source, Index counts,
                    Index microbatch, const EvaluationPartners<T>& partners) {
  Ranks& ranks = *partners.ranks;
  require(std::has_single_bit(static_cast<unsigned>(ranks.count())),
          "{} processes cannot share an evaluation; expected 1, 2, 4, 8 and so on", ranks.count());
  const Inference<T> inference(model, parameters, microbatch);
  Evaluation result{{}, std::vector<double>(counts)};
  // Counts are integers, so their sum does not depend on the order of threads.
  std::vector<std::vector<double>> of_threads(static_cast<std::size_t>(threads()), result.counts);
  std::vector<Score> scores;
  Index seen = 0;  // number of examples in earlier batches
  const BatchShare share{microbatch, parameters.trainable_size(), ranks.rank(), ranks.count()};
  source.make_only(share);
  source.start(0);
  while (const TaskBatch<T>* batch = source.next()) {
    if (ranks.any(partners.interrupt && *partners.interrupt)) break;
    const Lanes lanes = share.lanes(batch->size());
    const LaneRange own = share.own(lanes);
    scores.assign(static_cast<std::size_t>(lanes.microbatches()), {});
    inference.for_microbatches(lanes.examples_of(own), [&](Tape<T>& tape, ExampleRange p) {
      const Var<T> logits = batch->logits(model, tape, p);
      scores[p.first / microbatch] = batch->judge(logits.value(), p, of_threads[worker()]);
      if (partners.visit) (*partners.visit)(seen + p.first, logits.value());
    });
    const Score sum = lanes.sum(own, scores);
    double sums[] = {sum.terms, sum.loss, sum.correct};
    ranks.sum(sums);
    seen += batch->size();
    result.score = result.score + Score{sums[0], sums[1], sums[2]};
  }
  for (const std::vector<double>& of_thread : of_threads)
    std::transform(of_thread.begin(), of_thread.end(), result.counts.begin(), result.counts.begin(), std::plus<>());
  ranks.sum(result.counts);
  if (!std::isfinite(result.score.loss))
    throw Diverged(fmt::format("the model's outputs are not finite: the loss of {:.0f} examples is {}",
                               result.score.terms, std::fabs(result.score.loss)));  // removes the sign of a NaN
  return result;
}

template <class T>
void require_finite_answers(std::span<const T> answers, const char* kind) {
  const auto found = std::find_if(answers.begin(), answers.end(), [](T x) { return !std::isfinite(x); });
  if (found != answers.end())
    throw Diverged(fmt::format("the model's outputs are not finite: a {} is {}", kind, *found));
}

template void require_finite_answers(std::span<const float>, const char*);
template void require_finite_answers(std::span<const double>, const char*);
template Evaluation evaluate(const Model&, Parameters<float>&, BatchSource<float>&, Index, Index,
                             const EvaluationPartners<float>&);
template Evaluation evaluate(const Model&, Parameters<double>&, BatchSource<double>&, Index, Index,
                             const EvaluationPartners<double>&);

}  // namespace heed
