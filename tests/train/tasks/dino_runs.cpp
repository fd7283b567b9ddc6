// Runs of self-distillation (DINO): files, resumption, messages and errors.
#include "heed/io/safetensors.h"
#include "heed/nn/families.h"
#include "heed/train/step.h"
#include "src/train/tasks/tasks.h"
#include "support/training.h"

#include <algorithm>

using namespace heed;
using namespace heed::test;

namespace {

/// Observer that collects the remarks on each epoch.
struct Remarks : TrainObserver {
  void epoch(const EpochReport& report) override { remarks.push_back(report.remark); }
  std::vector<std::string> remarks;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(train_dino_runs)

BOOST_AUTO_TEST_CASE(files_of_a_run) {
  const Workshop workshop;
  Experiment x = dino_experiment(workshop);
  x.train.epochs = 1;
  BOOST_TEST((run(x, workshop / "a") == Outcome::finished));
  const SafetensorsFile last(workshop / "a/last.safetensors"), best(workshop / "a/best.safetensors");
  for (const SafetensorsFile* file : {&last, &best}) {
    BOOST_TEST(file->contains("blocks.1.mlp.fc2.weight"));
    BOOST_TEST(!file->contains("head.weight"));
    BOOST_TEST(!file->contains("dino.mlp.0.weight"));
  }
  for (const char* name : {"heed.student.pos_embed", "heed.student.dino.mlp.0.weight", "heed.teacher.dino.mlp.0.weight",
                           "heed.task.center", "heed.mean.dino.last_layer.weight_v"})
    BOOST_TEST(last.contains(name), name);
  BOOST_TEST(!best.contains("heed.student.pos_embed"));
  // Another model is initialised from this run.
  Experiment next = workshop.experiment();
  next.model.patch = 2;
  next.train.epochs = 1;
  next.train.init_head = true;
  BOOST_TEST((run(next, workshop / "b", false, workshop / "a") == Outcome::finished));
  BOOST_TEST(read_file(workshop / "a/metrics.csv").find("valid,1,7,,") != std::string::npos);
}

// The run is interrupted after step 10, in the middle of the second epoch; it has three threads, the uninterrupted run
// one.
BOOST_AUTO_TEST_CASE(resumed_bit_for_bit) {
  const Workshop workshop;
  for (const std::string family : {"vit", "xcit"}) {
    Experiment x = family == "vit" ? dino_experiment(workshop) : dino_with_batch_norm(workshop);
    x.train.dropout = 0.1;
    x.train.drop_path = 0.1;
    const auto at = [&](const char* name) { return workshop / (family + name); };
    {
      const WithThreads with(1);
      BOOST_TEST((run(x, at("whole")) == Outcome::finished));
    }
    const WithThreads with(3);
    BOOST_TEST((run_until(10, x, at("parts")) == Outcome::interrupted));
    BOOST_TEST((run(x, at("parts"), true) == Outcome::finished));
    check_same_run(at("whole"), at("parts"));
  }
}

BOOST_AUTO_TEST_CASE(a_collapse_is_said) {
  const Workshop workshop;
  Experiment x = dino_experiment(workshop);
  x.train.epochs = 1;
  x.dino.teacher_temp = 1e4;  // all outputs have the same probability
  Remarks observer;
  train(x, {.run = workshop / "a"}, observer);
  BOOST_REQUIRE(observer.remarks.size() == 1u);
  BOOST_TEST(observer.remarks[0].starts_with("the teacher has collapsed: the entropy of its outputs is 3.178"));
  x.dino.teacher_temp = 1e-6;  // one output has all the probability
  Remarks constant;
  train(x, {.run = workshop / "c"}, constant);
  BOOST_REQUIRE(constant.remarks.size() == 1u);
  BOOST_TEST(constant.remarks[0].starts_with("the teacher has collapsed: the entropy of its outputs is 0.0"));
  BOOST_TEST(constant.remarks[0].find("log 24 = 3.1781 ") != std::string::npos);
  x.dino.teacher_temp = 0.04;
  Remarks silent;
  train(x, {.run = workshop / "b"}, silent);
  BOOST_TEST(silent.remarks == std::vector<std::string>{""}, boost::test_tools::per_element());
}

// An interrupt arrives after the last step of the first epoch, before validation: the statistics of the teacher's
// outputs in the epoch are preserved.
BOOST_AUTO_TEST_CASE(an_interrupted_validation_forgets_no_answers) {
  const Workshop workshop;
  Experiment x = dino_experiment(workshop);
  for (const bool collapsed : {false, true}) {
    if (collapsed) x.dino.teacher_temp = 1e4;
    const std::string whole = workshop / (collapsed ? "alike" : "whole"), parts = whole + "-parts";
    Remarks expected, resumed;
    train(x, {.run = whole}, expected);
    BOOST_TEST((run_until(7, x, parts) == Outcome::interrupted));
    BOOST_TEST(metrics_of(parts).size() == 1u);
    train(x, {.run = parts, .resume = true}, resumed);
    BOOST_TEST(expected.remarks == resumed.remarks, boost::test_tools::per_element());
    for (const std::string& remark : resumed.remarks) BOOST_TEST(remark.empty() == !collapsed);
    check_same_run(whole, parts);
  }
}

// One image overflows. The teacher has already processed it when the step is skipped; its running statistics are
// restored, like everything else.
BOOST_AUTO_TEST_CASE(a_step_that_is_left_out_leaves_the_teacher_as_it_was) {
  const Workshop workshop(112, 10);
  const std::string file = workshop.data() + "/train-images-idx3-ubyte";
  std::string images = read_file(file);
  std::fill(images.begin() + 16, images.begin() + 16 + 64, static_cast<char>(255));
  std::fill(images.begin() + 16 + 64, images.end(), '\0');
  write_file(file, images);
  Experiment x = dino_with_batch_norm(workshop);
  x.data.validation = 0;
  x.data.mean = {0};
  x.data.std = {1e-40};
  x.train.on_nonfinite = "skip";
  x.train.log_steps = true;
  // All tensors of the checkpoint after each step; steps from the second on are compared with the preceding one.
  std::vector<std::vector<double>> after;
  for (Index step = 1; step <= 6; ++step) {
    x.train.max_steps = step;
    run(x, workshop / "run", step > 1);
    const SafetensorsFile last(workshop / "run/last.safetensors");
    after.emplace_back();
    for (const std::string& name : last.names()) {
      const Tensor<double> tensor = last.read<double>(name);
      after.back().insert(after.back().end(), tensor.begin(), tensor.end());
    }
  }
  std::vector<bool> unchanged, left_out;
  for (std::size_t i = 1; i < after.size(); ++i) unchanged.push_back(after[i] == after[i - 1]);
  for (const std::string& row : metrics_of(workshop / "run"))
    if (row.starts_with("step,")) left_out.push_back(row.find(",,,") != std::string::npos);
  left_out.erase(left_out.begin());
  BOOST_TEST(unchanged == left_out, boost::test_tools::per_element());
  BOOST_TEST(std::count(left_out.begin(), left_out.end(), true) == 1);
}

// Views of each size have a separate pass, in which each norm has three sums over the batch.
BOOST_AUTO_TEST_CASE(views_of_two_sizes_are_two_passes) {
  const Workshop workshop;
  const Experiment x = dino_with_batch_norm(workshop);
  const std::unique_ptr<Model> model = make_model(x);
  Index running = 0;
  for (const ParameterSpec& spec : model->parameters()) running += spec.running;
  BOOST_TEST(running > 0);
  Parameters<double> parameters(model->parameters());
  parameters.initialise(3);
  const std::unique_ptr<Task<double>> task = make_dino<double>(x, *model);
  task->begin(parameters);
  const std::unique_ptr<TaskBatch<double>> batch = task->random_batch(4);
  batch->before_step({});
  BatchGradient<double> gradient(*model, parameters, 4, {.microbatch = 2});
  gradient.run(*batch, RandomStream(1));
  BOOST_TEST(gradient.sums_over_batch() == 6 * (running / 2));
}

BOOST_AUTO_TEST_CASE(what_cannot_be) {
  const Workshop workshop;
  const auto error = [&](const std::function<void(Experiment&)>& change) {
    Experiment x = dino_experiment(workshop);
    change(x);
    return error_of([&] {
      validate(x);
      make_model(x);
    });
  };
  BOOST_TEST(error([](Experiment&) {}) == "no error");
  BOOST_TEST(error([](Experiment& x) {
               x.attention.mechanism = {"aft"};
             }).starts_with("[dino] local_size = 4: the size of tensor 'blocks.0.attn."));
  BOOST_TEST(error([](Experiment& x) {
               x.attention.mechanism = {"aft"};
               x.dino.local_crops = 0;
             }) == "no error");
  BOOST_TEST(error([](Experiment& x) { x.dino.local_size = 5; }) ==
             "[dino] local_size = 5; [model] patch = 2 does not divide it");
  BOOST_TEST(error([](Experiment& x) { x.dino.local_size = 10; }) ==
             "[dino] local_size = 10; expected at most [model] image = 8");
  BOOST_TEST(error([](Experiment& x) {
               x.attention.mechanism = {"nystrom"};
               x.attention.options["landmarks"] = {"17", "--set"};
             }).starts_with("[dino] local_size = 4: --set: [nystrom] landmarks is 17"));
  BOOST_TEST(error([](Experiment& x) {
               x.data.augment = {"flip", "flip"};
             }) == "[data] augment: 'flip' is given twice");
  BOOST_TEST(error([](Experiment& x) { x.dino.teacher_temp = 1e-40; }) ==
             "[dino] teacher_temp = 1e-40; expected at least 1e-06");
  BOOST_TEST(error([](Experiment& x) { x.dino.out_dim = 1; }).starts_with("[dino] out_dim = 1; expected at least 2"));
  BOOST_TEST(error([](Experiment& x) { x.optim.weight_decay_end = -0.5; }) ==
             "[optim] weight_decay_end = -0.5; expected at least 0, or -1 for none");
  BOOST_TEST(error([](Experiment& x) { x.train.ema = 0.9; }).starts_with("[train] ema = 0.9: with method"));
  BOOST_TEST(error([](Experiment& x) {
               x.dino.global_scale = {0.5, 0.4};
             }).starts_with("[dino] global_scale: expected"));
  BOOST_TEST(error([](Experiment& x) { x.data.augment = {"mixup"}; }).find("not defined for method = 'dino'") !=
             std::string::npos);
  BOOST_TEST(error([](Experiment& x) { x.data.augment = {"jitter"}; }).find("colour images") != std::string::npos);
  BOOST_TEST(error([](Experiment& x) {
               x.train.method = "supervised";
               x.data.augment = {"blur"};
             }).find("only for \"dino\"") != std::string::npos);
}

// Evaluation needs 20 training images; an error reports fewer before training.
BOOST_AUTO_TEST_CASE(too_few_images) {
  const Workshop workshop;
  Experiment x = dino_experiment(workshop);
  x.data.limit = 19;
  BOOST_TEST(error_of([&] { run(x, workshop / "a"); }) ==
             "[train] method = \"dino\" is evaluated by the 20 nearest training images; there are only 19");
  BOOST_TEST(!std::filesystem::exists(workshop / "a"));
}

BOOST_AUTO_TEST_SUITE_END()
