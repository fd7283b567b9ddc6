// Training, evaluation and costs of a model and a task outside of heed (support/tagger.h).
#include "support/processes.h"
#include "support/tagger.h"
#include "support/training.h"

#include "heed/analysis/model_cost.h"
#include "heed/io/safetensors.h"

#include <cmath>
#include <mutex>

using namespace heed;
using namespace heed::test;

namespace {

constexpr Index vocabulary = 7, width = 4, tags = 3, length = 5;

struct Foreign {
  Tagger model{vocabulary, width, tags, length};
  Parameters<double> parameters{model.parameters()};
  Sentences sentences{11, length, vocabulary, tags, 4};

  Foreign() { parameters.initialise(2); }

  /// Returns the logits of token t of sentence b, by the definition.
  std::vector<double> logits(Index b, Index t) const {
    const View<const double> E = parameters[0], W = parameters[1], c = parameters[2];
    const Index L = sentences.lengths[b];
    std::vector<double> y(c.begin(), c.end());
    for (Index k = 0; k < tags; ++k)
      for (Index i = 0; i < width; ++i) {
        double x = E[sentences.tokens[b * length + t] * width + i];
        for (Index s = 0; s < L; ++s) x += E[sentences.tokens[b * length + s] * width + i] / static_cast<double>(L);
        y[static_cast<std::size_t>(k)] += W[k * width + i] * x;
      }
    return y;
  }

  /// Returns sums over the tags, sentence by sentence.
  Score score() const {
    Score score;
    for (Index i = 0; i < sentences.tags.size(); ++i) {
      const int tag = sentences.tags[i];
      if (tag < 0) continue;
      const std::vector<double> y = logits(i / length, i % length);
      double sum = 0;
      for (const double value : y) sum += std::exp(value);
      const bool right = std::max_element(y.begin(), y.end()) - y.begin() == tag;
      score = score + Score{1, std::log(sum) - y[static_cast<std::size_t>(tag)], right ? 1.0 : 0.0};
    }
    return score;
  }

  double loss() const {
    double squares = 0;
    for (const double c : parameters[2]) squares += c * c;
    return score().mean_loss() + squares;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(train_seam)

// The loss is a mean over the tags of the whole batch, whose microbatches have different numbers of tags; the penalty
// counts once. Central differences with steps of 1e-5 are accurate to 1e-10 times third derivatives, of order one here.
BOOST_FIXTURE_TEST_CASE(gradients_of_a_foreign_batch, Foreign) {
  const TaggedBatch<double> batch(sentences, 0, 11);
  for (const Index microbatch : {1, 2, 11}) {
    BatchGradient<double> gradient(model, parameters, 11, {.microbatch = microbatch});
    const BatchResult result = gradient.run(batch, RandomStream(1));
    BOOST_TEST(std::abs(result.loss - loss()) < 1e-13);
    BOOST_TEST(result.terms == score().terms);
    BOOST_TEST(result.correct == score().correct);
    for (ParameterId id = 0; id < 3; ++id)
      for (Index i = 0; i < parameters[id].size(); ++i) {
        double& weight = parameters[id][i];
        const double before = weight, h = 1e-5;
        weight = before + h;
        const double above = loss();
        weight = before - h;
        const double below = loss();
        weight = before;
        BOOST_TEST(std::abs(gradient.gradients()[id][i] - (above - below) / (2 * h)) < 1e-8,
                   parameters.list()[id].name << " " << i);
      }
  }
}

// A model of sentences refuses to state the shape of images, and its task has no class names.
BOOST_FIXTURE_TEST_CASE(a_foreign_model_says_what_it_takes, Foreign) {
  BOOST_TEST(error_of([&] { model.image_shape(); }) == "[model] this model does not accept images");
  BOOST_TEST(Tagging(model, 4).class_names().empty());
}

BOOST_FIXTURE_TEST_CASE(evaluation_of_a_foreign_task, Foreign) {
  const Score expected = score();
  std::vector<Score> scores;
  // A visitor receives the index of a microbatch's first example.
  std::vector<Index> begun;
  std::mutex several;
  const AnswerVisitor<double> visit = [&](Index first, View<const double> answers) {
    const std::lock_guard lock(several);
    begun.push_back(first);
    const std::vector<double> of_first = logits(first, 0);
    for (std::size_t k = 0; k < of_first.size(); ++k)
      BOOST_TEST(std::abs(answers[static_cast<Index>(k)] - of_first[k]) < 1e-12, "sentence " << first);
  };
  SentenceSource<double> visited(model, sentences, 4);
  evaluate<double>(model, parameters, visited, 1, 3, {.visit = &visit});
  std::sort(begun.begin(), begun.end());
  BOOST_TEST(begun == (std::vector<Index>{0, 3, 4, 7, 8}), boost::test_tools::per_element());
  for (const int count : {1, 2, 3}) {
    const WithThreads with(count);
    SentenceSource<double> source(model, sentences, 4);
    const Evaluation result = evaluate(model, parameters, source, 1, 3);
    BOOST_TEST(result.score.terms == expected.terms);
    BOOST_TEST(result.score.correct == expected.correct);
    BOOST_TEST(result.counts[0] == expected.terms - expected.correct);
    BOOST_TEST(std::abs(result.score.loss - expected.loss) < 1e-13 * expected.terms);
    scores.push_back(result.score);
  }
  BOOST_TEST(scores[0].loss == scores[1].loss);
  BOOST_TEST(scores[0].loss == scores[2].loss);
}

// Eleven sentences in batches of four, four and three, in lanes of one each: of four processes, the first has none of
// the last batch.
BOOST_FIXTURE_TEST_CASE(evaluation_by_several_processes, Foreign) {
  SentenceSource<double> source(model, sentences, 4);
  const Evaluation alone = evaluate(model, parameters, source, 1, 1);
  for (const int count : {2, 4}) {
    std::vector<Evaluation> results(static_cast<std::size_t>(count));
    std::atomic<Index> answered = 0;
    in_processes(count, [&](Ranks& ranks) {
      SentenceSource<double> same(model, sentences, 4);
      const AnswerVisitor<double> visit = [&](Index, View<const double> logits) { answered += logits.shape()[0]; };
      results[static_cast<std::size_t>(ranks.rank())] =
          evaluate<double>(model, parameters, same, 1, 1, {.ranks = &ranks, .visit = &visit});
    });
    BOOST_TEST(answered == 11, count << " processes");
    for (const Evaluation& result : results) {
      BOOST_TEST(result.score.loss == alone.score.loss);
      BOOST_TEST(result.score.terms == alone.score.terms);
      BOOST_TEST(result.score.correct == alone.score.correct);
      BOOST_TEST(result.counts == alone.counts, boost::test_tools::per_element());
    }
  }
}

// The message counts the terms of the loss, here tags, not sentences.
BOOST_FIXTURE_TEST_CASE(evaluations_that_fail, Foreign) {
  std::vector<std::string> errors(3);
  in_processes(3, [&](Ranks& ranks) {
    SentenceSource<double> source(model, sentences, 4);
    errors[static_cast<std::size_t>(ranks.rank())] =
        error_of([&] { evaluate<double>(model, parameters, source, 1, 1, {.ranks = &ranks}); });
  });
  for (const std::string& error : errors)
    BOOST_TEST(error == "3 processes cannot share an evaluation; expected 1, 2, 4, 8 and so on");
  const Index terms = std::count_if(sentences.tags.begin(), sentences.tags.end(), [](int tag) { return tag >= 0; });
  BOOST_TEST(terms != 11);
  parameters[2][0] = -NAN;
  SentenceSource<double> source(model, sentences, 4);
  BOOST_CHECK_EXCEPTION(evaluate<double>(model, parameters, source, 1, 3), Diverged, [&](const Diverged& error) {
    return error.what() == fmt::format("the model's outputs are not finite: the loss of {} examples is nan", terms);
  });
}

// Eleven sentences in batches of four: the signal comes in the first batch or before any pass.
BOOST_FIXTURE_TEST_CASE(an_interrupted_evaluation_has_fewer_terms, Foreign) {
  std::atomic<bool> interrupt{false};
  const AnswerVisitor<double> visit = [&](Index, View<const double>) { interrupt = true; };
  SentenceSource<double> source(model, sentences, 4);
  const Evaluation first =
      evaluate<double>(model, parameters, source, 1, 2, {.interrupt = &interrupt, .visit = &visit});
  BOOST_TEST(first.score.terms == static_cast<double>(TaggedBatch<double>(sentences, 0, 4).terms()));
  BOOST_TEST(first.counts[0] == first.score.terms - first.score.correct);
  BOOST_TEST(evaluate<double>(model, parameters, source, 1, 2, {.interrupt = &interrupt}).score.terms == 0);
}

BOOST_FIXTURE_TEST_CASE(cost_of_a_foreign_model, Foreign) {
  const ModelCost cost = cost_of(model);
  BOOST_TEST(cost.parameters == vocabulary * width + tags * width + tags);
  const auto products = [&](CostPass pass) { return cost_total(cost, {Convention::contractions, pass}).counts.mul; };
  BOOST_TEST(products(CostPass::forward) == length * width * tags);
  BOOST_TEST(products(CostPass::backward) == 2 * length * width * tags);
}

// Two views of an example and a teacher that follows the weights. The task's state is in the checkpoint: without it, an
// interrupted run would continue with a different teacher.
BOOST_FIXTURE_TEST_CASE(training_with_a_teacher_and_resuming, Foreign) {
  const Workshop workshop(10, 10);
  Experiment x = workshop.experiment();
  x.train.batch = 8;
  x.train.dtype = "f64";
  struct Recorder : TrainObserver {
    std::vector<double> losses;
    double tested = 0;
    void epoch(const EpochReport& report) override { losses.push_back(report.train.loss); }
    void test(const Evaluation& evaluation) override { tested = evaluation.score.terms; }
  };
  const auto run = [&](const std::string& directory, Index steps, bool resume) {
    Tagging task(model, x.train.batch);
    std::atomic<bool> interrupt{false};
    Recorder recorder;
    AfterStep stop([&](const StepReport& report) { interrupt = report.step >= steps; });
    const TrainOptions options{.run = directory, .resume = resume, .interrupt = &interrupt};
    if (steps > 0)
      train(x, options, stop, model, task);
    else
      train(x, options, recorder, model, task);
    return recorder;
  };
  const Recorder whole = run(workshop / "whole", 0, false);
  BOOST_TEST(whole.losses.size() == 3u);
  BOOST_TEST(whole.losses.back() < whole.losses.front());
  BOOST_TEST(whole.tested == 22);  // number of tags in the test sentences
  run(workshop / "stopped", 2, false);
  run(workshop / "stopped", 5, true);
  run(workshop / "stopped", 0, true);
  check_same_run(workshop / "whole", workshop / "stopped");
  const SafetensorsFile last(workshop / "whole/last.safetensors");
  BOOST_TEST(last.contains("heed.task.teacher.embedding"));
}

BOOST_AUTO_TEST_SUITE_END()
