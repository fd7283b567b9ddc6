// Self-supervision by a teacher: targets, gradients, schedules. dino_runs.cpp tests runs.
#include "heed/analysis/classifiers.h"
#include "heed/data/loader.h"
#include "heed/io/given_tensors.h"
#include "heed/kernels/grids/bicubic.h"
#include "heed/nn/dino.h"
#include "heed/nn/families.h"
#include "heed/ops/dino.h"
#include "heed/tape/preparation.h"
#include "heed/train/evaluate.h"
#include "heed/train/features.h"
#include "heed/train/optimizer.h"
#include "heed/train/step.h"
#include "heed/train/tasks/teaching.h"
#include "src/train/tasks/tasks.h"
#include "support/training.h"

#include <cmath>

using namespace heed;
using namespace heed::test;

namespace {

Tensor<double> random_tensor(const Shape& shape, std::uint64_t seed) {
  Tensor<double> tensor(shape);
  for (Index i = 0; i < tensor.size(); ++i) tensor[i] = RandomStream(seed).normal(i);
  return tensor;
}

/// Views of three images for a model.
struct Views {
  Tensor<double> large, small;
  ModelInput<double> input;

  explicit Views(const Model& model)
      : large(random_tensor(with_three(model.example().images.shape()), 1)),
        small(random_tensor(with_three(model.example().crops.shape()), 2)),
        input{.images = std::as_const(large).view(), .crops = std::as_const(small).view()} {}

  static Shape with_three(const Shape& one) { return {3, one[1], one[2], one[3], one[4]}; }
};

/// A task after begin(), with initial weights plus normal noise of standard deviation `spread`.
struct BegunTask {
  DinoModel model;
  Parameters<double> weights;
  std::unique_ptr<Task<double>> task;

  explicit BegunTask(const Experiment& x, double spread = 0)
      : model(x), weights(model.parameters()), task(make_dino<double>(x, model)) {
    weights.initialise(3);
    for (Index i = 0; i < weights.trainable_size(); ++i) weights.data()[i] += spread * RandomStream(8).normal(i);
    task->begin(weights);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(train_dino)

// The logits minus the centre are (2, 0) and (0, 0); q is the softmax of these values divided by the temperature, 2.
BOOST_AUTO_TEST_CASE(teaching_by_hand) {
  const Tensor<double> logits(Shape{2, 2}, {3, -1, 1, -1}), center(Shape{2}, {1, -1});
  const Teaching<double> taught = teach(logits.view(), center.view(), 2);
  const double p = 1 / (1 + std::exp(-1.0));
  const double expected[] = {p, 1 - p, 0.5, 0.5};
  for (Index i = 0; i < 4; ++i) BOOST_TEST(std::abs(taught.q[i] - expected[i]) < 1e-15);
  BOOST_TEST(taught.mean[0] == 2);
  BOOST_TEST(taught.mean[1] == -1);
  const double entropy = (std::log(2) - p * std::log(p) - (1 - p) * std::log(1 - p)) / 2;
  BOOST_TEST(std::abs(taught.entropy - entropy) < 1e-15);
  Tensor<double> moved = center;
  move_center(moved.view(), taught.mean.view(), 0.75);
  BOOST_TEST(moved[0] == 0.75 * 1 + 0.25 * 2);
  BOOST_TEST(moved[1] == -1);
}

// Views of the same size are processed together; a batch gives the results of its images, processed one by one.
BOOST_AUTO_TEST_CASE(views_are_batched_by_size) {
  const Workshop workshop;
  for (const char* pool : {"cls", "mean"}) {
    Experiment x = dino_experiment(workshop);
    x.model.pool = pool;
    const DinoModel model(x);
    Parameters<double> parameters(model.parameters());
    parameters.initialise(3);
    prepare(PreparationPass<double>{&parameters});
    const Views views(model);
    const auto run = [&](const ModelInput<double>& input) {
      Tape<double> tape({.parameters = &parameters, .prepared = true});
      const Var<double> y = model.logits(tape, input);
      return std::vector<double>(y.data(), y.data() + y.size());
    };
    const std::vector<double> all = run(views.input);
    const Index K = 24;
    BOOST_TEST(all.size() == 12u * 24);
    double worst = 0;
    for (Index image = 0; image < 3; ++image) {
      const std::vector<double> own = run(views.input.part(image, 1));
      for (Index k = 0; k < 2 * K; ++k) worst = std::max(worst, std::abs(all[2 * image * K + k] - own[k]));
      for (Index k = 0; k < 2 * K; ++k)
        worst = std::max(worst, std::abs(all[(6 + 2 * image) * K + k] - own[2 * K + k]));
    }
    BOOST_TEST(worst < 1e-13);
    // Small views give the results of a model of their size with an interpolated position embedding.
    Experiment small = x;
    small.model.image = 4;
    const std::unique_ptr<Model> backbone = make_backbone(small);
    Parameters<double> own(backbone->parameters());
    const Index skip = x.model.pool == "cls";
    for (ParameterId id = 0; id < own.list().size(); ++id) {
      const View<double> from = parameters[id];
      if (own.list()[id].name != "pos_embed") {
        std::copy(from.begin(), from.end(), own[id].begin());
        continue;
      }
      std::copy_n(from.data(), skip * 16, own[id].data());
      kernels::bicubic({4, 4}, Matrix<const double>(from.data() + skip * 16, 16, 16), {2, 2},
                       Matrix(own[id].data() + skip * 16, 4, 16));
    }
    Tape<double> tape({.parameters = &own});
    const Shape crops = views.small.shape();
    const Var<double> features = backbone->logits(
        tape, ModelInput<double>{.images = {views.small.data(), Shape{6, crops[2], crops[3], crops[4]}}});
    BOOST_TEST((features.shape() == Shape{6, 16}));
    ParameterList list;
    const DinoHead head(list, "dino.", 16, x.dino);
    Parameters<double> of_head(list);
    for (ParameterId id = 0; id < list.size(); ++id) {
      const View<double> from = parameters[model.parameters().find(list[id].name)];
      std::copy(from.begin(), from.end(), of_head[id].begin());
    }
    Tape<double> head_tape({.parameters = &of_head, .prepared = true});
    const Var<double> y = head(head_tape.constant(features.value()));
    worst = 0;
    for (Index i = 0; i < y.size(); ++i) worst = std::max(worst, std::abs(y.data()[i] - all[6 * K + i]));
    BOOST_TEST(worst < 1e-13);
  }
}

// Central differences of the whole loss with respect to three weights of each tensor, through views of both sizes and
// the head. The backward pass and recomputed blocks drop the same elements as the forward pass.
BOOST_AUTO_TEST_CASE(gradients_of_a_step) {
  const Workshop workshop;
  Experiment x = dino_experiment(workshop);
  x.train.dropout = 0.2;
  x.train.drop_path = 0.2;
  x.dino.local_crops = 3;  // different from the number of large views
  for (const bool recompute : {false, true}) {
    x.dino.norm_last_layer = recompute;
    BegunTask begun(x, 0.3);  // weights of order one, so that third derivatives are small
    auto& [model, parameters, task] = begun;
    const std::unique_ptr<TaskBatch<double>> batch = task->random_batch(3);
    batch->before_step({});
    BatchGradient<double> gradient(model, parameters, 3, {.microbatch = 2, .recompute = recompute});
    const auto loss = [&] { return gradient.run(*batch, RandomStream(1)).loss; };
    loss();
    const Gradients<double> found = gradient.gradients();
    for (ParameterId id = 0; id < parameters.list().size(); ++id) {
      if (!parameters.list()[id].trainable) continue;
      const Index size = parameters[id].size();
      for (const Index i : {Index{0}, size / 2, size - 1}) {
        double& weight = parameters[id][i];
        const double before = weight, h = 1e-5;
        weight = before + h;
        const double above = loss();
        weight = before - h;
        const double below = loss();
        weight = before;
        BOOST_TEST(std::abs(found[id][i] - (above - below) / (2 * h)) < 1e-7 * (1 + std::abs(found[id][i])),
                   parameters.list()[id].name << " " << i);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(clipping_each_tensor) {
  ParameterList list;
  list.add({"a", {2}, Initial::constant(0)});
  list.add({"b", {1, 2}, Initial::constant(0)});
  const Parameters<double> parameters(list);
  Gradients<double> gradients(parameters);
  const auto set = [&] {
    gradients[0][0] = 3, gradients[0][1] = 4;    // length 5
    gradients[1][0] = 0.6, gradients[1][1] = 0;  // length 0.6
  };
  set();
  const Clipping clipping = clip_each(gradients, 2);
  BOOST_TEST(std::abs(clipping.norm - std::sqrt(25.36)) < 1e-14);
  BOOST_TEST(clipping.factor == 1);
  BOOST_TEST(gradients[0][1] == 4 * (2 / (5 + 1e-6)));
  BOOST_TEST(gradients[1][0] == 0.6);
  set();
  clip_each(gradients, 0);
  BOOST_TEST(gradients[0][1] == 4);
}

BOOST_AUTO_TEST_CASE(schedules) {
  BOOST_TEST(std::abs(cosine(0.04, 0.4, 0, 10) - 0.04) < 1e-15);
  BOOST_TEST(std::abs(cosine(0.04, 0.4, 5, 10) - 0.22) < 1e-15);
  BOOST_TEST(cosine(0.04, 0.4, 10, 10) == 0.4);
  OptimConfig optim;
  optim.weight_decay = 0.04;
  BOOST_TEST(rates_of(optim, 7, 2, 10).weight_decay == 0.04);
  optim.weight_decay_end = 0.4;
  BOOST_TEST(rates_of(optim, 7, 2, 10).weight_decay == cosine(0.04, 0.4, 7, 10));
}

// In a warm-up of two or more epochs, the teacher's temperature rises in equal steps to its final value in the last of
// these epochs. In a warm-up of one epoch, it has its first value; without a warm-up, it always has its final value.
BOOST_AUTO_TEST_CASE(temperatures_of_the_teacher) {
  const Workshop workshop;
  Experiment x = dino_experiment(workshop);
  x.dino.teacher_temp_start = 0.04, x.dino.teacher_temp = 0.07;
  const DinoModel model(x);
  Parameters<double> weights(model.parameters());
  weights.initialise(3);
  prepare(PreparationPass<double>{&weights});
  for (const auto& [epochs, temperatures] : {std::pair<Index, std::vector<double>>{3, {0.04, 0.055, 0.07, 0.07}},
                                             {2, {0.04, 0.07, 0.07}},
                                             {1, {0.04, 0.07}},
                                             {0, {0.07, 0.07}}}) {
    x.dino.teacher_temp_warmup = epochs;
    const std::unique_ptr<Task<double>> task = make_dino<double>(x, model);
    task->begin(weights);
    const std::unique_ptr<TaskBatch<double>> batch = task->random_batch(3);
    Tape<double> tape({.parameters = &weights, .prepared = true});
    const Var<double> logits = batch->logits(model, tape, {0, 3});
    const Tensor<double> center(Shape{24});
    for (std::size_t epoch = 0; epoch < temperatures.size(); ++epoch) {
      const Teaching<double> taught =
          teach(View<const double>(logits.data(), Shape{3, 2, 24}), center.view(), temperatures[epoch]);
      batch->before_step({0, 21, static_cast<Index>(epoch)});
      const double found = *batch->loss(logits, {0, 3}, batch->terms()).data();
      const double expected = *dino_loss(logits, taught.q.view(), x.dino.student_temp, batch->terms()).data();
      BOOST_TEST(std::abs(found - expected) < 1e-12, epochs << " epochs, epoch " << epoch);
    }
  }
}

// Random views have the model's channels: logits of two large and three small views of two images.
BOOST_AUTO_TEST_CASE(random_views_fit_the_model) {
  const Workshop workshop;
  Experiment x = dino_experiment(workshop);
  x.model.channels = 3, x.dino.local_crops = 3;
  BegunTask begun(x);
  auto& [model, weights, task] = begun;
  const std::unique_ptr<TaskBatch<double>> batch = task->random_batch(2);
  batch->before_step({});
  prepare(PreparationPass<double>{&weights});
  Tape<double> tape({.parameters = &weights, .prepared = true});
  BOOST_TEST((batch->logits(model, tape, {0, 2}).shape() == Shape{10, 24}));
  BOOST_TEST(batch->size() == 2);
}

// Targets are computed from the teacher's current weights, of which float models have packed and prepared copies.
BOOST_AUTO_TEST_CASE(targets_follow_the_weights) {
  const Workshop workshop;
  const Experiment x = dino_experiment(workshop);
  const DinoModel model(x);
  Parameters<float> weights(model.parameters());
  weights.initialise(3);
  const std::unique_ptr<Task<float>> task = make_dino<float>(x, model);
  const std::unique_ptr<TaskBatch<float>> batch = task->random_batch(3);
  const Tensor<float> center(Shape{24});
  for (const std::uint64_t round : {1, 2}) {
    for (Index i = 0; i < weights.trainable_size(); ++i)
      weights.data()[i] += static_cast<float>(0.2 * RandomStream(round).normal(i));
    task->begin(weights);
    batch->before_step({});
    prepare(PreparationPass<float>{&weights});
    Tape<float> tape({.parameters = &weights, .prepared = true});
    const Var<float> logits = batch->logits(model, tape, {0, 3});
    const Teaching<float> taught = teach(View<const float>(logits.data(), Shape{3, 2, 24}), center.view(), 0.04);
    const float found = *batch->loss(logits, {0, 3}, batch->terms()).data();
    const float expected = *dino_loss(logits, taught.q.view(), x.dino.student_temp, batch->terms()).data();
    // The temperature multiplies rounding errors of about 1e-6 by 25, and -log p is at most 20.
    BOOST_TEST(std::abs(found - expected) < 5e-3f, "round " << round);
  }
}

// Agreeing predictions, counted pair by pair: each large view of the student is paired with the teacher's other large
// view, each small view with both of the teacher's large views. The centre is still zero, so the teacher's largest
// logits are its largest targets.
BOOST_AUTO_TEST_CASE(agreements_by_hand) {
  const Workshop workshop;
  Experiment x = dino_experiment(workshop);
  x.dino.local_crops = 3;
  BegunTask begun(x, 0.3);
  auto& [model, weights, task] = begun;
  constexpr Index B = 5, K = 24, crops = 3;
  const std::unique_ptr<TaskBatch<double>> batch = task->random_batch(B);
  batch->before_step({});
  prepare(PreparationPass<double>{&weights});
  Tape<double> tape({.parameters = &weights, .prepared = true});
  const View<const double> logits = batch->logits(model, tape, {0, B}).value();
  const auto largest = [K](const double* row) { return std::max_element(row, row + K) - row; };
  std::vector<Index> of_teacher;
  for (Index row = 0; row < 2 * B; ++row) of_teacher.push_back(largest(logits.data() + row * K));
  // A student that predicts, for each view at random, one of the teacher's two predictions or a different class.
  Tensor<double> student(logits.shape());
  std::vector<Index> answers;
  for (Index row = 0; row < (2 + crops) * B; ++row) {
    const Index image = row < 2 * B ? row / 2 : (row - 2 * B) / crops, which = RandomStream(5).below(row, 3);
    const auto first = static_cast<std::size_t>(2 * image);
    answers.push_back(which == 2 ? (of_teacher[first] + 1) % K : of_teacher[first + static_cast<std::size_t>(which)]);
    student[row * K + answers.back()] = 1;
  }
  // Counts agreeing pairs of views of images [first, first + count). If `crossed`, as in the metric, a large view is
  // paired with the other large view, otherwise with itself.
  const auto agreements = [&](Index first, Index count, bool crossed) {
    Index agreed = 0;
    for (Index image = first; image < first + count; ++image)
      for (Index teacher = 0; teacher < 2; ++teacher) {
        const Index taught = of_teacher[static_cast<std::size_t>(2 * image + teacher)];
        agreed += answers[static_cast<std::size_t>(2 * image + (crossed ? 1 - teacher : teacher))] == taught;
        for (Index crop = 0; crop < crops; ++crop)
          agreed += answers[static_cast<std::size_t>(2 * B + crops * image + crop)] == taught;
      }
    return agreed;
  };
  Index distinguished = 0;
  for (const ExampleRange part : {ExampleRange{0, B}, {0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {1, 3}}) {
    Tensor<double> own(Shape{(2 + crops) * part.count, K});
    const auto rows = [&](Index from, Index count, Index to) {
      std::copy_n(student.data() + from * K, count * K, own.data() + to * K);
    };
    rows(2 * part.first, 2 * part.count, 0);
    rows(2 * B + crops * part.first, crops * part.count, 2 * part.count);
    BOOST_TEST(batch->correct(std::as_const(own).view(), part) == agreements(part.first, part.count, true),
               part.count << " images from " << part.first);
    distinguished += agreements(part.first, part.count, true) != agreements(part.first, part.count, false);
  }
  BOOST_TEST(distinguished >= 2);  // otherwise wrong pairs could give the same counts
  BOOST_TEST(batch->terms() == B * 2 * (1 + crops));
  std::size_t unlike = 0;
  for (std::size_t i = 0; i < of_teacher.size(); i += 2) unlike += of_teacher[i] != of_teacher[i + 1];
  BOOST_TEST(unlike >= 2U);  // otherwise the teacher's views would be indistinguishable
}

// A step with teacher logits t adds the entropy of softmax((t - c) / temperature) to the epoch's sum, then sets c := m
// c + (1 - m) mean(t). With dino.ema = 1 the teacher is constant, so the mean is the same in both steps.
BOOST_AUTO_TEST_CASE(center_and_entropy_by_hand) {
  const Workshop workshop;
  Experiment x = dino_experiment(workshop);
  x.dino.center_momentum = 0.75, x.dino.ema = 1, x.dino.teacher_temp = 0.3;
  BegunTask begun(x, 0.3);
  auto& [model, weights, task] = begun;
  constexpr Index B = 3, K = 24;
  const std::unique_ptr<TaskBatch<double>> batch = task->random_batch(B);
  prepare(PreparationPass<double>{&weights});
  Tape<double> tape({.parameters = &weights, .prepared = true});
  const View<const double> logits = batch->logits(model, tape, {0, B}).value();  // large views first
  std::vector<double> mean(K), center(K);
  for (Index i = 0; i < 2 * B * K; ++i) mean[static_cast<std::size_t>(i % K)] += logits[i] / (2 * B);
  const auto state = [&](const std::string& name) {
    for (const TaskTensor<double>& tensor : task->state())
      if (tensor.name == name) return tensor.values;
    throw Error("no state " + name);
  };
  double entropies = 0;
  for (Index step = 0; step < 2; ++step) {
    for (Index r = 0; r < 2 * B; ++r) {
      double mass = 0, energy = 0;
      for (Index k = 0; k < K; ++k) {
        const double z = (logits[r * K + k] - center[static_cast<std::size_t>(k)]) / 0.3;
        mass += std::exp(z), energy += z * std::exp(z);
      }
      entropies += (std::log(mass) - energy / mass) / (2 * B);
    }
    batch->before_step({step, 7, 0});
    task->after_step(weights, {step, 7, 0});
    for (std::size_t k = 0; k < K; ++k) center[k] = 0.75 * center[k] + 0.25 * mean[k];
    for (Index k = 0; k < K; ++k)
      BOOST_TEST(std::abs(state("center")[k] - center[static_cast<std::size_t>(k)]) < 1e-12, "step " << step);
    BOOST_TEST(std::abs(state("entropy")[0] - entropies) < 1e-11);
    BOOST_TEST(state("entropy")[1] == static_cast<double>(step + 1));
  }
  BOOST_TEST(task->end_epoch() == "");
  BOOST_TEST((state("entropy")[0] == 0 && state("entropy")[1] == 0));  // each epoch starts a new mean
}

// An image of the evaluated part is classified by its 20 nearest training images, compared by the teacher's features.
BOOST_AUTO_TEST_CASE(evaluations_judge_by_the_teachers_neighbours) {
  const Workshop workshop;
  Experiment x = dino_experiment(workshop);
  x.train.seed = 4;
  BegunTask begun(x);
  auto& [model, weights, task] = begun;
  const Subsets subsets = split_validation(132, x.data, 4);
  const std::unique_ptr<Dataset> images = open_dataset("mnist", workshop.data(), Split::train),
                                 others = open_dataset("mnist", workshop.data(), Split::test);
  const auto features = [&](const Dataset& set, const std::vector<Index>& chosen) {
    return features_of(model, weights, ImageSelection{&set, chosen, x.data, {1, 8, 8}}, 1, 4);
  };
  const Neighbours<double> neighbours(features(*images, subsets.train), 10, NeighbourRule{});
  for (const Part part : {Part::validation, Part::test}) {
    const bool test = part == Part::test;
    Features<double> judged = test ? features(*others, all_images(30)) : features(*images, subsets.validation);
    const std::vector<int> labels = judged.labels;
    const Tensor<double> scores = neighbours.scores(std::move(judged.values));
    double right = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const double* const row = scores.data() + 10 * i;
      right += std::max_element(row, row + 10) - row == labels[i];
    }
    const std::unique_ptr<BatchSource<double>> source = task->open(part, false);
    const Evaluation found = evaluate<double>(model, *task->teacher(), *source, task->counts(), 4);
    BOOST_TEST(found.score.terms == (test ? 30 : 20));
    BOOST_TEST(found.score.correct == right);
    BOOST_TEST(right > 4);  // more than chance
  }
}

// Each evaluation computes the features of the training images with the current weights.
BOOST_AUTO_TEST_CASE(neighbours_follow_the_weights) {
  const Workshop workshop;
  Experiment x = dino_experiment(workshop);
  x.train.seed = 4;
  BegunTask begun(x);
  auto& [model, weights, task] = begun;
  const Subsets subsets = split_validation(132, x.data, 4);
  const std::unique_ptr<Dataset> images = open_dataset("mnist", workshop.data(), Split::train),
                                 others = open_dataset("mnist", workshop.data(), Split::test);
  const auto features = [&](const Dataset& set, const std::vector<Index>& chosen) {
    return features_of(model, weights, ImageSelection{&set, chosen, x.data, {1, 8, 8}}, 1, 4);
  };
  const std::unique_ptr<BatchSource<double>> source = task->open(Part::test, false);
  BOOST_TEST(source->examples() == 30);
  BOOST_TEST(source->batches() == 2);  // of sixteen
  for (const double moved : {0.0, 0.3}) {
    for (Index i = 0; i < weights.trainable_size(); ++i) weights.data()[i] += moved * RandomStream(8).normal(i);
    task->begin(weights);
    const Neighbours<double> neighbours(features(*images, subsets.train), 10, NeighbourRule{});
    const Tensor<double> expected = neighbours.scores(features(*others, all_images(30)).values);
    Tensor<double> found(expected.shape());
    const AnswerVisitor<double> visit = [&](Index first, View<const double> scores) {
      std::copy(scores.begin(), scores.end(), found.data() + 10 * first);
    };
    evaluate<double>(model, *task->teacher(), *source, task->counts(), 4, {.visit = &visit});
    for (Index i = 0; i < found.size(); ++i)
      BOOST_TEST(std::abs(found[i] - expected[i]) <= 1e-9 * expected[i], "score " << i << ", moved " << moved);
  }
}

// Running statistics are copied at the start; later each network has those of its own views, and only weights are
// averaged.
BOOST_AUTO_TEST_CASE(the_teacher_keeps_statistics_of_its_own) {
  const Workshop workshop;
  const Experiment x = dino_with_batch_norm(workshop);
  BegunTask begun(x);
  auto& [model, student, task] = begun;
  const ParameterList& list = model.parameters();
  const auto fill_statistics = [&](double value) {
    for (ParameterId id = 0; id < list.size(); ++id)
      if (list[id].running) std::fill(student[id].begin(), student[id].end(), value);
  };
  Parameters<double>& teacher = *task->teacher();
  fill_statistics(5);
  task->begin(student);
  const std::unique_ptr<TaskBatch<double>> batch = task->random_batch(4);
  for (ParameterId id = 0; id < list.size(); ++id)
    BOOST_TEST(std::equal(student[id].begin(), student[id].end(), teacher[id].begin()), list[id].name);
  batch->before_step({0, 21, 0});
  const Parameters<double> before = teacher;
  fill_statistics(9);
  for (Index i = 0; i < student.trainable_size(); ++i) student.data()[i] += 0.1;
  task->after_step(student, {0, 21, 0});
  Index statistics = 0;
  for (ParameterId id = 0; id < list.size(); ++id)
    for (Index i = 0; i < teacher[id].size() && !list[id].prepared; ++i) {
      const double expected = list[id].trainable ? 0.9 * before[id][i] + 0.1 * student[id][i] : before[id][i];
      BOOST_TEST(std::abs(teacher[id][i] - expected) < 1e-14, list[id].name << " " << i);
      if (!list[id].running) continue;
      BOOST_TEST(before[id][i] != 5, list[id].name << " " << i);
      ++statistics;
    }
  BOOST_TEST(statistics > 0);
}

BOOST_AUTO_TEST_CASE(models_and_tensors_without_views_are_refused) {
  const Workshop workshop;
  const Experiment x = dino_experiment(workshop);
  const std::unique_ptr<Model> backbone = make_backbone(x);
  BOOST_TEST(error_of([&] { make_dino<double>(x, *backbone)->open(Part::test, false); }) ==
             "[train] method = \"dino\": without its head the model has no outputs to evaluate");
  const std::string path = workshop / "given.safetensors";
  SafetensorsWriter writer;
  const Tensor<double> images(Shape{1, 2, 1, 8, 8});
  writer.add("images", images.view());
  writer.write(path);
  GivenTensors tensors(path);
  BOOST_TEST(error_of([&] { BegunTask(x).task->given_batch(tensors); }, path) ==
             ": [train] method = \"dino\" learns from random views, not from given tensors; for given logits use heed "
             "probe dino");
}

// The teacher starts as a copy of the student and follows it; the last layer is frozen in the first epoch.
BOOST_AUTO_TEST_CASE(teacher_and_last_layer) {
  const Workshop workshop;
  const Experiment x = dino_experiment(workshop);
  BegunTask begun(x);
  auto& [model, student, task] = begun;
  BOOST_TEST(task->end_epoch() == "");  // without steps
  Parameters<double> expected = student;
  const std::unique_ptr<BatchSource<double>> source = task->open(Part::train, true);
  BOOST_TEST(source->examples() == 112);
  BOOST_TEST(source->batches() == 7);
  source->start(0);
  for (Index step = 0; step < 3; ++step) {
    source->next()->before_step({step, 21, 0});
    for (Index i = 0; i < student.trainable_size(); ++i) student.data()[i] += 0.1;
    task->after_step(student, {step, 21, 0});
    const double decay = 1 + (0.9 - 1) * (1 + std::cos(M_PI * static_cast<double>(step) / 21)) / 2;
    double worst = 0;
    for (Index i = 0; i < student.trainable_size(); ++i) {
      expected.data()[i] = decay * expected.data()[i] + (1 - decay) * student.data()[i];
      worst = std::max(worst, std::abs(expected.data()[i] - task->teacher()->data()[i]));
    }
    BOOST_TEST(worst < 1e-14);
  }
  const UpdateRules first = task->update_rules({0, 21, 0}), second = task->update_rules({7, 21, 1});
  BOOST_TEST(first.clip_each);
  BOOST_TEST(first.frozen.size() == 1u);
  BOOST_TEST(model.parameters()[first.frozen[0]].name == "dino.last_layer.weight_v");
  BOOST_TEST(second.frozen.empty());
}

// Without dino.norm_last_layer, the last layer has lengths and directions; dino.freeze_last_layer freezes both.
BOOST_AUTO_TEST_CASE(all_of_the_last_layer_is_frozen) {
  const Workshop workshop;
  Experiment x = dino_experiment(workshop);
  x.dino.norm_last_layer = false, x.dino.freeze_last_layer = 3;
  const BegunTask begun(x);
  const auto frozen = [&](Index epoch) {
    std::vector<std::string> names;
    for (const ParameterId id : begun.task->update_rules({7 * epoch, 28, epoch}).frozen)
      names.push_back(begun.model.parameters()[id].name);
    std::sort(names.begin(), names.end());
    return names;
  };
  for (const Index epoch : {0, 1, 2})
    BOOST_TEST(frozen(epoch) == (std::vector<std::string>{"dino.last_layer.weight_g", "dino.last_layer.weight_v"}),
               boost::test_tools::per_element());
  BOOST_TEST(frozen(3).empty());
}

BOOST_AUTO_TEST_SUITE_END()
