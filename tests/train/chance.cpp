// Dropout and stochastic depth in training, in every family and task: a tiny rate has no effect; otherwise each layer
// drops with the probability of its rate, independently of all other layers and of how the batch is divided.
#include "support/training.h"
#include "support/families.h"
#include "support/statistics.h"

#include "heed/tape/preparation.h"
#include "heed/train/step.h"

using namespace heed;
using namespace heed::test;

namespace {

/// A model, its rates of stochastic depth for train.drop_path = 0.6 in the order of computation, and its number of
/// dropouts.
struct ChanceCase {
  const char* name;
  Experiment x;
  std::vector<double> skips;
  int dropouts;
};

Experiment small_vit() {
  Experiment x;
  x.model.image = 8, x.model.channels = 2, x.model.patch = 4, x.model.classes = 3;
  x.model.dim = 6, x.model.depth = 3, x.model.heads = 2, x.model.hidden = 5;
  return x;
}

Experiment small_sequence(const char* task) {
  Experiment x = small_vit();
  x.model.family = "sequence", x.model.task = task, x.model.vocab = 7, x.model.context = 9, x.model.pool = "mean";
  return x;
}

Experiment small_dino() {
  Experiment x = dino_experiment(Workshop(10, 10));
  x.model.patch = 4, x.model.dim = 6, x.model.hidden = 5;
  x.dino.local_crops = 3;  // different from the number of large views
  return x;
}

std::vector<ChanceCase> chance_cases() {
  const std::vector<double> linear{0.3, 0.3, 0.6, 0.6}, constant(6, 0.6), of_four{0.2, 0.2, 0.4, 0.4, 0.6, 0.6};
  return {{"vit", small_vit(), linear, 1 + 3 * 3},
          {"xcit", small_experiment("xcit", {"model.cls_depth=2"}), constant, 1 + 2 * 4 + 2 * 3},
          {"xcit, sima",
           small_experiment("xcit", {"model.cls_attention=sima", "model.tokens_norm=false", "model.lpi=false"}),
           {0.6, 0.6, 0.6, 0.6},
           1 + 2 * 3 + 3},
          {"cvt", small_experiment("cvt", {"model.depth=[2,3]"}), linear, 5 * 3},
          {"soft", small_experiment("soft", {"model.depth=[2,2]"}), of_four, 2 + 4 * 3},
          {"soft, mean", small_experiment("soft", {"model.depth=[2,2]", "model.pool=mean"}), of_four, 2 + 4 * 3},
          {"classify", small_sequence("classify"), linear, 1 + 3 * 3},
          {"pair", small_sequence("pair"), linear, 1 + 3 * 3},
          {"lm", small_sequence("lm"), linear, 1 + 3 * 3},
          {"dino", small_dino(), {0.6, 0.6, 0.6, 0.6}, 2 * (1 + 2 * 3)}};
}

/// A model with the given rates of dropout and stochastic depth, weights of order one, and random examples.
struct ChanceTraining {
  Experiment x;
  std::unique_ptr<Model> model = make_model(x);
  std::unique_ptr<Task<double>> task = make_task<double>(x, *model);
  Parameters<double> parameters{model->parameters()};
  std::unique_ptr<TaskBatch<double>> batch;

  ChanceTraining(const Experiment& experiment, double dropout, double drop_path, Index count)
      : x(with_rates(experiment, dropout, drop_path, count)) {
    parameters.initialise(3);
    for (Index i = 0; i < parameters.trainable_size(); ++i) parameters.data()[i] += 0.3 * RandomStream(8).normal(i);
    task->begin(parameters);
    batch = task->random_batch(count);
    batch->before_step({});
  }

  static Experiment with_rates(Experiment x, double dropout, double drop_path, Index count) {
    x.train.dropout = dropout, x.train.drop_path = drop_path, x.train.batch = count;
    return x;
  }

  /// Returns the loss and the gradients of a step.
  std::vector<double> step(Index microbatch, TensorObserver<double>* observer = nullptr, bool recompute = false) {
    BatchGradient<double> gradient(*model, parameters, batch->size(),
                                   {.microbatch = microbatch, .recompute = recompute});
    gradient.observe(observer);
    std::vector<double> all{gradient.run(*batch, RandomStream(9)).loss};
    all.insert(all.end(), gradient.gradients().data(), gradient.gradients().data() + parameters.trainable_size());
    return all;
  }

  std::vector<double> answers() {
    prepare(PreparationPass<double>{&parameters});
    Tape<double> tape({.parameters = &parameters, .prepared = true});
    const Var<double> logits = batch->logits(*model, tape, {0, batch->size()});
    return {logits.data(), logits.data() + logits.size()};
  }
};

/// Returns the largest difference of two lists, relative to the largest value.
double difference(const std::vector<double>& a, const std::vector<double>& b) {
  BOOST_REQUIRE(a.size() == b.size());
  double most = 0, off = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(b[i])), off = std::max(off, std::abs(a[i] - b[i]));
  return off / most;
}

/// Flags of the elements kept by each dropout and of the images kept by each stochastic depth.
struct Dropped : TensorObserver<double> {
  struct Draws {
    std::string name;
    std::vector<bool> kept;
  };
  std::vector<Draws> elements, images;
  ResultNames names;

  void observe(const ObservedTensor<double>& tensor) override {
    const std::string name = names.of(tensor), operation = tensor.result.operation;
    if (tensor.gradient || tensor.recomputed) return;
    if (operation == "dropout") keep(elements, name, tensor.values, 1);
    if (operation == "stochastic_depth") keep(images, name, tensor.values, tensor.values.size() / rows(tensor.values));
  }
  /// Returns the number of images or sequences. Sequences are concatenated, with nine tokens of six channels each.
  static Index rows(View<const double> values) {
    return values.shape()[0] > 1 ? values.shape()[0] : values.size() / (9 * 6);
  }
  static void keep(std::vector<Draws>& to, const std::string& name, View<const double> values, Index group) {
    Draws& draws = to.emplace_back(Draws{name, {}});
    for (Index i = 0; i < values.size(); i += group)
      draws.kept.push_back(std::any_of(values.data() + i, values.data() + i + group, [](double v) { return v != 0; }));
  }
};

/// Checks that elements are kept as often as each rate implies, and that every pair of draws is independent.
void check_draws(const std::vector<Dropped::Draws>& all, const std::vector<double>& rates) {
  BOOST_REQUIRE(all.size() == rates.size());
  for (std::size_t a = 0; a < all.size(); ++a) {
    const std::vector<bool>& kept = all[a].kept;
    check_z(z_of_successes(static_cast<double>(std::count(kept.begin(), kept.end(), true)),
                           static_cast<double>(kept.size()), 1 - rates[a]),
            all[a].name);
    for (std::size_t b = 0; b < a; ++b) {
      const std::size_t n = std::min(kept.size(), all[b].kept.size());
      double alike = 0;
      for (std::size_t i = 0; i < n; ++i) alike += kept[i] == all[b].kept[i];
      check_z(z_of_successes(alike, static_cast<double>(n), rates[a] * rates[b] + (1 - rates[a]) * (1 - rates[b])),
              all[a].name + " and " + all[b].name);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_chance)

// At a rate of 1e-12 practically nothing is dropped. The remaining differences are rounding, in part because residuals
// are added by a different operation.
BOOST_AUTO_TEST_CASE(tiny_rates_change_nothing) {
  for (const ChanceCase& c : chance_cases()) {
    const std::vector<double> plain = ChanceTraining(c.x, 0, 0, 5).step(5);
    for (const auto& [dropout, drop_path] : {std::pair(1e-12, 0.0), {0.0, 1e-12}, {1e-12, 1e-12}})
      BOOST_TEST(difference(ChanceTraining(c.x, dropout, drop_path, 5).step(5), plain) < 1e-9,
                 c.name << ", " << dropout << ", " << drop_path);
  }
}

// A tensor without a gradient would be unused.
BOOST_AUTO_TEST_CASE(every_tensor_has_a_gradient) {
  std::vector<ChanceCase> cases = chance_cases();
  for (const std::string family : {"vit", "cvt", "soft", "xcit"}) {
    Experiment x = family == "vit" ? small_vit() : small_experiment(family);
    x.model.gate = true;
    if (family != "soft") x.model.qk_norm = true, x.attention.mechanism = {"softmax"};
    cases.push_back({"with options", x, {}, 0});
  }
  for (ChanceCase& c : cases)
    if (c.x.model.family == "cvt") c.x.model.pool = "mean";  // with a class token, other queries would be unused
  for (const ChanceCase& c : cases) {
    ChanceTraining training(c.x, 0, 0, 5);
    const std::vector<double> step = training.step(5);
    const ParameterList& list = training.parameters.list();
    for (ParameterId id = 0; id < list.size(); ++id) {
      if (!list[id].trainable) continue;
      const auto first = step.begin() + 1 + training.parameters.offset(id);
      BOOST_TEST(std::any_of(first, first + list[id].shape.elements(), [](double g) { return g != 0; }),
                 c.name << ", " << c.x.model.family << ": " << list[id].name);
    }
  }
}

BOOST_AUTO_TEST_CASE(evaluation_drops_nothing) {
  for (const ChanceCase& c : chance_cases())
    BOOST_TEST((ChanceTraining(c.x, 0.3, 0.6, 5).answers() == ChanceTraining(c.x, 0, 0, 5).answers()), c.name);
}

BOOST_AUTO_TEST_CASE(all_drop_at_their_rates_and_independently) {
  for (const ChanceCase& c : chance_cases()) BOOST_TEST_CONTEXT(c.name) {
      Dropped dropped;
      ChanceTraining(c.x, 0.3, 0.6, 200).step(200, &dropped);
      check_draws(dropped.elements, std::vector<double>(static_cast<std::size_t>(c.dropouts), 0.3));
      check_draws(dropped.images, c.skips);
    }
}

// The drops of an example depend neither on the other examples of its microbatch nor on recomputation.
BOOST_AUTO_TEST_CASE(microbatches_and_recomputation_drop_the_same) {
  for (const ChanceCase& c : chance_cases()) {
    const std::vector<double> whole = ChanceTraining(c.x, 0.3, 0.6, 5).step(5);
    for (const Index microbatch : {1, 2})
      BOOST_TEST(difference(ChanceTraining(c.x, 0.3, 0.6, 5).step(microbatch), whole) < 1e-11,
                 c.name << ", microbatches of " << microbatch);
    BOOST_TEST((ChanceTraining(c.x, 0.3, 0.6, 5).step(5, nullptr, true) == whole), c.name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
