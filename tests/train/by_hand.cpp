// The training loop compared with independent calculations: formulas on plain arrays, and a scripted task that records
// its inputs.
#include "support/scripted.h"
#include "support/training.h"

#include "heed/base/split.h"
#include "heed/base/warnings.h"
#include "heed/data/loader.h"
#include "heed/io/safetensors.h"
#include "heed/nn/vit.h"
#include "heed/train/runs/data_record.h"
#include "heed/train/tasks/classification.h"

#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>

using namespace heed;
using namespace heed::test;

namespace {

// ---- Losses and accuracies of an image classifier ----

/// A split of a workshop's images in the model's normalisation, read from the files byte by byte.
struct Images {
  Tensor<double> pixels;
  std::vector<int> labels;

  Images(const Workshop& workshop, const std::string& start, double mean, double std) {
    const std::string images = read_file(workshop.data() + start + "-images-idx3-ubyte");
    const std::string bytes = read_file(workshop.data() + start + "-labels-idx1-ubyte");
    for (std::size_t i = 8; i < bytes.size(); ++i) labels.push_back(bytes[i]);
    pixels = Tensor<double>(Shape{static_cast<Index>(labels.size()), 1, 8, 8});
    for (Index i = 0; i < pixels.size(); ++i)
      pixels[i] = (static_cast<unsigned char>(images[static_cast<std::size_t>(16 + i)]) / 255.0 - mean) / std;
  }
};

/// Returns the cells of a CSV file.
std::vector<std::vector<std::string>> rows_of(const std::string& file) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream text(read_file(file));
  for (std::string row; std::getline(text, row);) rows.push_back(split(row, ','));
  return rows;
}

/// Mean cross entropy with smoothed labels, and the fraction of correct predictions.
struct Measures {
  double loss = 0, accuracy = 0;
};

Measures measure(const Tensor<double>& logits, const std::vector<int>& labels, const std::vector<Index>& images,
                 double smoothing) {
  Measures sum;
  for (const Index i : images) {
    const double* const row = logits.data() + 10 * i;
    const int label = labels[static_cast<std::size_t>(i)];
    double mass = 0;
    for (Index c = 0; c < 10; ++c) mass += std::exp(row[c]);
    for (Index c = 0; c < 10; ++c)
      sum.loss -= ((c == label ? 1 - smoothing : 0) + smoothing / 10) * std::log(std::exp(row[c]) / mass);
    bool right = true;
    for (Index c = 0; c < 10; ++c) right &= c == label || row[c] < row[label];
    sum.accuracy += right;
  }
  const double count = static_cast<double>(images.size());
  return {sum.loss / count, sum.accuracy / count};
}

struct Reports : TrainObserver {
  std::vector<EpochReport> epochs;
  Evaluation tested;
  void epoch(const EpochReport& report) override { epochs.push_back(report); }
  void test(const Evaluation& evaluation) override { tested = evaluation; }
};

/// A run of a scripted task, with three batches of eight per epoch.
struct Play {
  Workshop workshop{10, 10};
  Tagger model{7, 4, 3, 5};
  Experiment x = workshop.experiment();
  Script script;

  Play() {
    x.train.batch = 8;
    x.train.dtype = "f64";
    x.train.epochs = 6;
    x.optim.lr = 0.05;
  }

  Outcome run(ScriptedTask& task, const std::string& name, TrainObserver& observer, bool resume = false) const {
    return train(x, {.run = workshop / name, .resume = resume}, observer, model, task);
  }

  /// Returns the concatenated tensors of a file whose names are `prefix` and the name of a tensor of the model.
  std::vector<double> tensors(const std::string& file, const std::string& prefix = "") const {
    const SafetensorsFile read(workshop / file);
    std::vector<double> all;
    for (ParameterId id = 0; id < model.parameters().size(); ++id) {
      const Tensor<double> tensor = read.read<double>(prefix + model.parameters()[id].name);
      all.insert(all.end(), tensor.begin(), tensor.end());
    }
    return all;
  }
  std::vector<double> initial() const {
    Parameters<double> parameters(model.parameters());
    parameters.initialise(static_cast<std::uint64_t>(x.train.seed));
    return numbers_of(parameters);
  }
};

/// Returns the exponential moving average of the weights after each step.
std::vector<std::vector<double>> averages(std::vector<double> now, const std::vector<std::vector<double>>& steps,
                                          double keep) {
  std::vector<std::vector<double>> all;
  for (const std::vector<double>& weights : steps) {
    for (std::size_t i = 0; i < now.size(); ++i) now[i] = keep * now[i] + (1 - keep) * weights[i];
    all.push_back(now);
  }
  return all;
}

/// A task on the data of `file` that records the position of each step: its number, the number of steps, and its epoch.
struct PlacedTask : Tagging {
  PlacedTask(const Model& model, Index batch, std::string file) : Tagging(model, batch), file(std::move(file)) {}
  DataFacts data_facts() override { return {.files = {file}}; }
  UpdateRules update_rules(const StepPlace& place) const override {
    before.push_back(text_of(place));
    return {};
  }
  void after_step(const Parameters<double>& weights, const StepPlace& place) override {
    Tagging::after_step(weights, place);
    after.push_back(text_of(place));
  }
  static std::string text_of(const StepPlace& place) {
    return fmt::format("{} of {}, epoch {}", place.step, place.steps, place.epoch);
  }

  std::string file;
  mutable std::vector<std::string> before;
  std::vector<std::string> after;
};

/// Resumes the run of `play` with a task whose data have changed, and trains to its end.
void resume_on_changed(const Play& play, PlacedTask& task) {
  write_file(task.file, read_file(task.file) + "more");
  TrainObserver silent;
  BOOST_TEST((train(play.x, {.run = play.workshop / "run", .resume = true, .changed_data = true}, silent, play.model,
                    task) == Outcome::finished));
  take_warnings();
}

/// Trains with `first` up to a number of steps, then with `second` on changed data.
void train_on_changed(const Play& play, PlacedTask& first, Index steps, PlacedTask& second) {
  write_file(first.file, "some");
  std::atomic<bool> interrupt = false;
  AfterStep stop([&](const StepReport& report) { interrupt = report.step == steps; });
  train(play.x, {.run = play.workshop / "run", .interrupt = &interrupt}, stop, play.model, first);
  resume_on_changed(play, second);
}

/// A task with an accuracy of 1/7, whatever the predictions.
struct Concluding : Tagging {
  using Tagging::Tagging;
  void conclude(Evaluation& evaluation) const override { evaluation.score.correct = evaluation.score.terms / 7; }
};

/// A task that counts the batches read from each part.
struct CountedReads : Tagging {
  using Tagging::Tagging;
  struct Source : BatchSource<double> {
    Source(std::unique_ptr<BatchSource<double>> of, Index& reads) : of(std::move(of)), reads(reads) {}
    Index examples() const override { return of->examples(); }
    Index batches() const override { return of->batches(); }
    void start(Index epoch, Index first_batch) override { of->start(epoch, first_batch); }
    const TaskBatch<double>* next() override { return ++reads, of->next(); }
    std::unique_ptr<BatchSource<double>> of;
    Index& reads;
  };
  std::unique_ptr<BatchSource<double>> open(Part part, bool training) override {
    return std::make_unique<Source>(Tagging::open(part, training), reads[part]);
  }
  std::map<Part, Index> reads;
};

/// Observer that fails before the first step, or after a step.
struct Failing : TrainObserver {
  explicit Failing(Index step) : at(step) {}
  void begin(const TrainPlan&) override { fail_if(at == 0); }
  void step(const StepReport& report) override { fail_if(at == report.step); }
  static void fail_if(bool now) {
    if (now) throw Error("stop");
  }
  Index at;
};

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  BOOST_REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_by_hand)

// Weights are constant, so losses and accuracies are computed from the initial weights.
BOOST_AUTO_TEST_CASE(losses_and_right_answers_are_those_of_the_formulas) {
  for (const double smoothing : {0.0, 0.3}) {
    const Workshop workshop;
    Experiment x = workshop.experiment();
    x.data.mean = {0.4}, x.data.std = {0.3};
    x.train.dtype = "f64", x.train.epochs = 1, x.train.label_smoothing = smoothing;
    x.train.seed = 4;
    x.optim.lr = 0;
    Reports reports;
    train(x, {.run = workshop / "run"}, reports);

    const VisionTransformer model(x.model, x.attention);
    Parameters<double> parameters(model.parameters());
    parameters.initialise(4);
    const auto logits_of = [&](const Images& images) {
      Tensor<double> logits(Shape{images.pixels.shape()[0], 10});
      Inference<double>(model, parameters, 50).run({images.pixels.view()}, logits.data());
      return logits;
    };
    const auto check = [&](const char* what, double loss, double accuracy, const Measures& expected) {
      BOOST_TEST(std::abs(loss - expected.loss) < 1e-12, what << ": " << loss << ", not " << expected.loss);
      BOOST_TEST(std::abs(accuracy - expected.accuracy) < 1e-12, what);
    };
    const Images images(workshop, "/train", 0.4, 0.3), test(workshop, "/t10k", 0.4, 0.3);
    const Tensor<double> logits = logits_of(images);
    const Subsets subsets = split_validation(132, x.data, 4);
    BOOST_REQUIRE(subsets.train.size() == 112u);  // seven whole batches
    BOOST_REQUIRE(reports.epochs.size() == 1u);
    const EpochReport& epoch = reports.epochs[0];
    check("train", epoch.train.loss, epoch.train.accuracy, measure(logits, images.labels, subsets.train, smoothing));
    check("validation", epoch.validation_loss, epoch.validation_accuracy,
          measure(logits, images.labels, subsets.validation, 0));
    check("test", reports.tested.score.mean_loss(), reports.tested.score.accuracy(),
          measure(logits_of(test), test.labels, all_images(30), 0));
  }
}

// Checks the numbers of metrics.csv and gradients.csv: an epoch's row has means over its steps, and the learning rate
// of its last step. Sums of seven numbers in a different order differ by about 1e-15.
BOOST_AUTO_TEST_CASE(rows_of_epochs_are_means_of_their_steps) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.train.dtype = "f64", x.train.log_steps = true, x.train.seed = 3;
  x.optim.lr = 2e-3, x.optim.schedule = "linear", x.optim.warmup_steps = 4;
  Reports reports;
  train(x, {.run = workshop / "run"}, reports);
  const auto metrics = rows_of(workshop / "run/metrics.csv"), gradients = rows_of(workshop / "run/gradients.csv");
  BOOST_REQUIRE(metrics.size() == 1 + 3 * 9 + 1U);
  BOOST_REQUIRE(gradients.size() == 1 + 3 * 8U);
  const auto close = [](const std::string& found, double expected, const char* what) {
    BOOST_TEST(std::abs(std::stod(found) - expected) < 1e-13, what << " " << found << ", not " << expected);
  };
  std::size_t row = 1, norm = 1;
  for (Index epoch = 1; epoch <= 3; ++epoch) {
    double loss = 0, accuracy = 0, length = 0;
    for (Index i = 1; i <= 7; ++i, ++row, ++norm) {
      const Index step = 7 * (epoch - 1) + i;
      const double left = step <= 4 ? static_cast<double>(step) / 4 : 1 - static_cast<double>(step - 5) / 17;
      BOOST_TEST(metrics[row][0] == "step");
      BOOST_TEST(std::stoll(metrics[row][1]) == epoch);
      BOOST_TEST(std::stoll(metrics[row][2]) == step);
      close(metrics[row][5], 2e-3 * left, "rate");
      BOOST_TEST(std::stod(metrics[row][6]) > 0);
      loss += std::stod(metrics[row][3]) / 7, accuracy += std::stod(metrics[row][4]) / 7;
      BOOST_TEST(gradients[norm][2] == metrics[row][2]);
      length += std::stod(gradients[norm][3]) / 7;
    }
    BOOST_TEST(metrics[row][0] == "train");
    close(metrics[row][3], loss, "loss");
    close(metrics[row][4], accuracy, "accuracy");
    BOOST_TEST(metrics[row][5] == metrics[row - 1][5]);
    const StepReport& report = reports.epochs[static_cast<std::size_t>(epoch - 1)].train;
    close(metrics[row][5], report.lr, "reported rate");
    BOOST_TEST(std::stod(metrics[row][6]) == report.images_per_s);
    BOOST_TEST(report.epoch == epoch);
    BOOST_TEST(report.step == 7 * epoch);
    BOOST_TEST(report.batch == 7);
    for (const std::size_t rate : {5, 6}) BOOST_TEST(metrics[row + 1][rate] == "");
    BOOST_TEST(gradients[norm][0] == "train");
    close(gradients[norm++][3], length, "gradient norm");
    BOOST_TEST(metrics[row + 1][0] == "valid");
    for (const std::size_t of_epoch : {row, row + 1}) {
      BOOST_TEST(std::stoll(metrics[of_epoch][1]) == epoch);
      BOOST_TEST(std::stoll(metrics[of_epoch][2]) == 7 * epoch);
    }
    close(metrics[row + 1][3], reports.epochs[static_cast<std::size_t>(epoch - 1)].validation_loss, "validation loss");
    close(metrics[row + 1][4], reports.epochs[static_cast<std::size_t>(epoch - 1)].validation_accuracy,
          "validation accuracy");
    row += 2;
  }
  BOOST_TEST(metrics[row][0] == "test");
  BOOST_TEST(metrics[row][1] == "3");
  BOOST_TEST(metrics[row][2] == "21");
  close(metrics[row][3], reports.tested.score.mean_loss(), "test loss");
  close(metrics[row][4], reports.tested.score.accuracy(), "test accuracy");
  for (const std::size_t rate : {5, 6}) BOOST_TEST(metrics[row][rate] == "");
}

// Ties go to the lower class: class 3 is the fifth in the second row, and the sixth in the third.
BOOST_AUTO_TEST_CASE(five_classes_are_among_the_first_five) {
  const std::vector<double> logits{6, 5, 4, 3, 2, 1, 0,  //
                                   1, 2, 2, 1, 2, 1, 0,  //
                                   1, 2, 2, 1, 2, 2, 0,  //
                                   0, 0, 0, 0, 0, 0, 0,  //
                                   0, 0, 0, 0, 0, 0, 0,  //
                                   0, 1, 2, 3, 4, 5, 6};
  const std::vector<int> labels{4, 3, 3, 4, 5, 6};
  const Tensor<double> targets(Shape{6, 7});
  const ClassificationBatch<double> batch({}, targets.view(), labels.data());
  const View<const double> rows{logits.data(), Shape{6, 7}};
  for (Index i = 0; i < 6; ++i) {
    std::vector<double> counts(1 + 7 * 7);
    const Score score = batch.judge(rows.part(i, 1), {i, 1}, counts);
    BOOST_TEST(counts[top5_count] == (i == 2 || i == 4 ? 0 : 1), "row " << i);
    BOOST_TEST(score.correct == (i == 5 ? 1 : 0));
    BOOST_TEST(batch.correct(rows.part(i, 1), {i, 1}) == score.correct);
  }
  std::vector<double> counts(1 + 7 * 7);
  batch.judge(rows, {0, 6}, counts);
  BOOST_TEST(counts[confusion_count(7, 4, 0)] == 2);
  BOOST_TEST(counts[confusion_count(7, 3, 1)] == 2);
  BOOST_TEST(counts[confusion_count(7, 6, 6)] == 1);
}

// The best epoch is the first of several equal ones, even across an interruption.
BOOST_FIXTURE_TEST_CASE(the_best_epoch_is_the_first_with_the_largest_accuracy, Play) {
  script.right = {3, 7, 7, 5, 8, 2};
  ScriptedTask task(model, x.train.batch, script);
  Reports reports;
  BOOST_TEST((run(task, "run", reports) == Outcome::finished));
  BOOST_REQUIRE(task.steps.size() == 18u);
  for (std::size_t i = 0; i < 6; ++i) BOOST_TEST(reports.epochs[i].validation_accuracy == script.right[i] / 10);
  BOOST_TEST(tensors("run/best.safetensors") == task.steps[14], boost::test_tools::per_element());
  for (const auto& [stop, best] : {std::pair<std::size_t, std::size_t>{2, 1}, {3, 1}, {4, 1}, {5, 4}}) {
    ScriptedTask again(model, x.train.batch, script);
    struct Stop : TrainObserver {
      std::size_t epochs = 0, last;
      std::atomic<bool> interrupt = false;
      explicit Stop(std::size_t last) : last(last) {}
      void epoch(const EpochReport&) override { interrupt = ++epochs == last; }
    } observer(stop);
    const std::string name = "stopped " + std::to_string(stop);
    train(x, {.run = workshop / name, .interrupt = &observer.interrupt}, observer, model, again);
    BOOST_TEST(tensors(name + "/best.safetensors") == task.steps[3 * best + 2], boost::test_tools::per_element());
    Script rest = script;
    rest.right.erase(rest.right.begin(), rest.right.begin() + static_cast<std::ptrdiff_t>(stop));
    ScriptedTask after(model, x.train.batch, rest);
    TrainObserver silent;
    BOOST_TEST((run(after, name, silent, true) == Outcome::finished));
    BOOST_TEST(tensors(name + "/best.safetensors") == task.steps[14], boost::test_tools::per_element());
  }
}

// Every evaluation uses the average, which is also saved as the best; training continues with the weights themselves.
BOOST_FIXTURE_TEST_CASE(averaged_weights_are_judged_and_kept, Play) {
  x.train.ema = 0.6;
  x.train.epochs = 3;
  script.right = {5, 9, 4};
  std::vector<std::vector<double>> judged;
  std::mutex several;
  script.watch = [&](const Tape<double>& tape) {
    const std::lock_guard lock(several);
    judged.emplace_back();
    for (ParameterId id = 0; id < model.parameters().size(); ++id) {
      const View<const double> values = const_cast<Tape<double>&>(tape).parameter(id).value();
      judged.back().insert(judged.back().end(), values.begin(), values.end());
    }
  };
  ScriptedTask task(model, x.train.batch, script);
  Reports reports;
  BOOST_TEST((run(task, "run", reports) == Outcome::finished));
  const auto average = averages(initial(), task.steps, 0.6);
  BOOST_REQUIRE(average.size() == 9u);
  // Ten validation sentences after each epoch, eleven for testing, with one pass per microbatch.
  const auto passes = [&](Index sentences) {
    std::size_t count = 0;
    for (Index first = 0; first < sentences; first += 8)
      count += static_cast<std::size_t>((std::min<Index>(8, sentences - first) + x.train.microbatch - 1) /
                                        x.train.microbatch);
    return count;
  };
  BOOST_REQUIRE(judged.size() == 3 * passes(10) + passes(11));
  for (std::size_t i = 0; i < judged.size(); ++i) {
    const std::size_t epoch = std::min<std::size_t>(i / passes(10), 3);
    BOOST_TEST(distance(judged[i], average[epoch == 3 ? 5 : 3 * epoch + 2]) < 1e-15, "pass " << i);
    BOOST_TEST(distance(judged[i], task.steps[epoch == 3 ? 5 : 3 * epoch + 2]) > 1e-4);
  }
  BOOST_TEST(distance(tensors("run/best.safetensors"), average[5]) < 1e-15);
  BOOST_TEST(distance(tensors("run/last.safetensors"), task.steps[8]) == 0);
  BOOST_TEST(distance(tensors("run/last.safetensors", "heed.average."), average[8]) < 1e-15);
}

// The fifth step's loss is finite, its gradient is not. The message has the configured learning rate, not the step's,
// which is half of it during the warm-up.
BOOST_FIXTURE_TEST_CASE(a_gradient_alone_may_diverge, Play) {
  script.endless_slope = [](Index batch) { return batch == 4; };
  x.optim.warmup_steps = 10;
  {
    ScriptedTask task(model, x.train.batch, script);
    TrainObserver silent;
    BOOST_CHECK_EXCEPTION(run(task, "stopped", silent), Diverged, [](const Diverged& error) {
      const std::string text = error.what();
      return text.find("diverged at step 5 ") != text.npos && text.find("optim.lr (0.05 here)") != text.npos;
    });
    BOOST_TEST(task.steps.size() == 4u);
    BOOST_TEST(tensors("stopped/last.safetensors") == task.steps[2], boost::test_tools::per_element());
  }
  x.train.on_nonfinite = "skip";
  ScriptedTask task(model, x.train.batch, script);
  Reports reports;
  BOOST_TEST((run(task, "skipped", reports) == Outcome::finished));
  BOOST_TEST(task.steps.size() == 17u);
  BOOST_TEST(reports.epochs[1].skipped == 1);
}

// Step 2 and two of the three steps of the second epoch are skipped. Rows of epochs are means over the other steps; for
// the accuracy, a step's weight is its number of terms. Sums of three numbers in a different order differ by about
// 1e-16.
BOOST_FIXTURE_TEST_CASE(skipped_steps_count_in_no_mean, Play) {
  script.endless_slope = [](Index batch) { return batch == 1 || batch == 3 || batch == 4; };
  x.train.on_nonfinite = "skip", x.train.log_steps = true, x.train.epochs = 3;
  ScriptedTask task(model, x.train.batch, script);
  struct Steps : Reports {
    std::vector<StepReport> steps;
    void step(const StepReport& report) override { steps.push_back(report); }
  } reports;
  BOOST_TEST((run(task, "run", reports) == Outcome::finished));
  std::vector<double> terms;
  Tagging sentences(model, x.train.batch);
  const std::unique_ptr<BatchSource<double>> source = sentences.open(Part::train, false);
  source->start(0);
  while (const TaskBatch<double>* batch = source->next()) terms.push_back(static_cast<double>(batch->terms()));
  BOOST_REQUIRE(terms.size() == 3u);
  BOOST_TEST(terms[0] != terms[2]);  // otherwise an unweighted mean would pass, too

  const auto metrics = rows_of(workshop / "run/metrics.csv"), gradients = rows_of(workshop / "run/gradients.csv");
  BOOST_REQUIRE(metrics.size() == 1 + 3 * 5 + 1U);
  BOOST_REQUIRE(gradients.size() == 1 + 3 * 4U);
  const auto close = [](double found, double expected, const char* what) {
    BOOST_TEST(std::abs(found - expected) < 1e-13, what << " " << found << ", not " << expected);
  };
  std::size_t row = 1, norm = 1, reported = 0;
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    double loss = 0, right = 0, length = 0, count = 0, of_terms = 0;
    for (std::size_t i = 0; i < 3; ++i, ++row, ++norm) {
      const std::size_t step = 3 * epoch + i + 1;
      const bool skipped = step == 2 || step == 4 || step == 5;
      BOOST_TEST(std::stoull(metrics[row][2]) == step);
      BOOST_TEST(std::stoull(gradients[norm][2]) == step);
      BOOST_TEST(std::stod(metrics[row][5]) > 0);
      BOOST_TEST((metrics[row][3].empty() && metrics[row][4].empty() && gradients[norm][3].empty()) == skipped);
      if (!skipped) {
        ++count, of_terms += terms[i];
        loss += std::stod(metrics[row][3]), length += std::stod(gradients[norm][3]);
        right += std::stod(metrics[row][4]) * terms[i];
      }
      if (count == 0) continue;
      BOOST_REQUIRE(reported < reports.steps.size());
      const StepReport& report = reports.steps[reported++];
      BOOST_TEST(report.step == static_cast<Index>(step));
      BOOST_TEST(report.batch == static_cast<Index>(i + 1));
      close(report.lr, std::stod(metrics[row][5]), "reported rate");
      close(report.loss, loss / count, "reported loss");
      close(report.accuracy, right / of_terms, "reported accuracy");
    }
    BOOST_TEST(metrics[row][0] == "train");
    close(std::stod(metrics[row][3]), loss / count, "loss");
    close(std::stod(metrics[row][4]), right / of_terms, "accuracy");
    close(std::stod(gradients[norm++][3]), length / count, "gradient norm");
    const EpochReport& report = reports.epochs[epoch];
    close(report.train.loss, loss / count, "loss of the report");
    close(report.train.accuracy, right / of_terms, "accuracy of the report");
    BOOST_TEST(report.skipped == 3 - static_cast<Index>(count));
    BOOST_TEST(std::abs(report.train.images_per_s * report.seconds - 24) < 1e-13 * 24);
    row += 2;
  }
  BOOST_TEST(reported == reports.steps.size());
  // Skipped steps count as steps, but not as updates of the optimiser.
  const std::map<std::string, std::string> numbers = SafetensorsFile(workshop / "run/last.safetensors").metadata();
  BOOST_TEST(numbers.at("heed.step") == "9");
  BOOST_TEST(numbers.at("heed.updates") == "6");
}

// After four steps, one of them in the second epoch, epochs become four instead of three steps long: the next step is
// the second of its epoch, the sixth of twelve.
BOOST_FIXTURE_TEST_CASE(a_task_is_told_the_place_of_each_step, Play) {
  x.train.epochs = 3;
  const std::string file = workshop / "sentences";
  PlacedTask first(model, 8, file), second(model, 6, file);
  train_on_changed(*this, first, 4, second);
  BOOST_TEST(first.before ==
                 (std::vector<std::string>{"0 of 9, epoch 0", "1 of 9, epoch 0", "2 of 9, epoch 0", "3 of 9, epoch 1"}),
             boost::test_tools::per_element());
  BOOST_TEST(second.before == (std::vector<std::string>{"5 of 12, epoch 1", "6 of 12, epoch 1", "7 of 12, epoch 1",
                                                        "8 of 12, epoch 2", "9 of 12, epoch 2", "10 of 12, epoch 2",
                                                        "11 of 12, epoch 2"}),
             boost::test_tools::per_element());
  // data.json records every change of the data, with the number of steps before it.
  x.train.epochs = 4;
  PlacedTask third(model, 6, file);
  resume_on_changed(*this, third);
  BOOST_TEST(third.before == (std::vector<std::string>{"12 of 16, epoch 3", "13 of 16, epoch 3", "14 of 16, epoch 3",
                                                       "15 of 16, epoch 3"}),
             boost::test_tools::per_element());
  BOOST_TEST(read_data_record(RunPaths(workshop / "run"))->changes ==
                 (std::vector<std::string>{"after 4 steps: 1 edited (../sentences)",
                                           "after 11 steps: 1 edited (../sentences)"}),
             boost::test_tools::per_element());
  BOOST_TEST(first.after == first.before, boost::test_tools::per_element());
  BOOST_TEST(second.after == second.before, boost::test_tools::per_element());
}

// After five of the first epoch's six steps, epochs become three steps long: the first epoch is then complete.
BOOST_FIXTURE_TEST_CASE(changed_data_may_complete_an_epoch, Play) {
  x.train.epochs = 3;
  const std::string file = workshop / "sentences";
  PlacedTask first(model, 4, file), second(model, 8, file);
  train_on_changed(*this, first, 5, second);
  BOOST_TEST(second.before == (std::vector<std::string>{"3 of 9, epoch 1", "4 of 9, epoch 1", "5 of 9, epoch 1",
                                                        "6 of 9, epoch 2", "7 of 9, epoch 2", "8 of 9, epoch 2"}),
             boost::test_tools::per_element());
}

// The measured epoch ends before the validation, which takes at least 100 ms.
BOOST_FIXTURE_TEST_CASE(the_time_of_an_epoch_has_no_validation, Play) {
  x.train.epochs = 1;
  using Clock = std::chrono::steady_clock;
  std::once_flag validating;
  Clock::time_point validation;
  script.watch = [&](const Tape<double>&) {
    std::call_once(validating, [&] { validation = Clock::now(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  };
  ScriptedTask task(model, x.train.batch, script);
  Reports reports;
  const Clock::time_point start = Clock::now();
  run(task, "run", reports);
  BOOST_TEST(reports.epochs.at(0).seconds <= std::chrono::duration<double>(validation - start).count());
}

BOOST_FIXTURE_TEST_CASE(a_task_concludes_its_accuracy, Play) {
  x.train.epochs = 1;
  Reports reports;
  Concluding task(model, 8);
  train(x, {.run = workshop / "run"}, reports, model, task);
  BOOST_TEST(std::abs(reports.epochs.at(0).validation_accuracy - 1.0 / 7) < 1e-15);
  BOOST_TEST(std::abs(reports.tested.score.accuracy() - 1.0 / 7) < 1e-15);
}

BOOST_FIXTURE_TEST_CASE(a_check_reads_a_batch_of_each_part, Play) {
  CountedReads task(model, 8);
  Reports reports;
  BOOST_TEST(error_of([&] { train(x, {}, reports, model, task); }) == "the run directory's name is empty");
  BOOST_TEST((train(x, {.run = "", .check = true}, reports, model, task) == Outcome::checked));
  for (const Part part : {Part::train, Part::validation, Part::test}) BOOST_TEST(task.reads[part] == 1);
  BOOST_TEST(reports.epochs.empty());
}

// A failed run is removed only if it is new and has completed no step; files that it did not write are kept.
BOOST_FIXTURE_TEST_CASE(what_a_failed_run_leaves, Play) {
  const std::string directory = workshop / "run";
  const auto fail_at = [&](Index step, bool resume) {
    Tagging task(model, 8);
    Failing observer(step);
    BOOST_TEST(error_of([&] { train(x, {.run = directory, .resume = resume}, observer, model, task); }) == "stop");
  };
  const auto files = [&] {
    const std::filesystem::directory_iterator begin(directory);
    return std::distance(begin, std::filesystem::directory_iterator());
  };
  fail_at(0, false);
  BOOST_TEST(!std::filesystem::exists(directory));
  std::filesystem::create_directory(directory);
  write_file(directory + "/notes", "mine");
  fail_at(0, false);
  BOOST_TEST(files() == 1);
  fail_at(1, false);
  const auto left = files();
  BOOST_TEST(left > 5);
  BOOST_TEST(std::filesystem::exists(directory + "/last.safetensors"));
  fail_at(0, true);  // the resumed run fails before its first step
  BOOST_TEST(files() == left);
}

// Without validation examples, the best weights are the latest.
BOOST_AUTO_TEST_CASE(the_latest_weights_are_the_best_without_validation) {
  const Workshop workshop(32, 10);
  Experiment x = workshop.experiment();
  x.data.validation = 0, x.train.epochs = 2;
  TrainObserver silent;
  train(x, {.run = workshop / "run"}, silent);
  const SafetensorsFile best(workshop / "run/best.safetensors"), last(workshop / "run/last.safetensors");
  BOOST_TEST_REQUIRE(!best.names().empty());
  for (const std::string& name : best.names()) {
    const Tensor<double> a = best.read<double>(name), b = last.read<double>(name);
    BOOST_TEST(std::equal(a.begin(), a.end(), b.begin()), name);
  }
}

// Two epochs of three steps. An error names the missing or invalid metadata value and what is expected.
BOOST_FIXTURE_TEST_CASE(numbers_that_cannot_be_are_named, Play) {
  x.train.epochs = 2;
  ScriptedTask task(model, x.train.batch, script);
  TrainObserver silent;
  run(task, "run", silent);
  const std::string path = workshop / "run/last.safetensors";
  const SafetensorsFile file(path);
  std::vector<Tensor<double>> tensors;
  for (const std::string& name : file.names()) tensors.push_back(file.read<double>(name));
  const std::string left_out = "left_out.embedding", of_steps = "; expected 0 to 6, the number of steps";
  for (const auto& [key, value, error] :
       {std::tuple<std::string, std::string, std::string>{"updates", "7", "is 7" + of_steps},
        {"updates", "-1", "is -1" + of_steps},
        {left_out, "7", "is 7; expected 0 to 6, the number of updates"},
        {left_out, "-1", "is -1; expected 0 to 6, the number of updates"},
        {"step", "six", "is 'six'; expected a number"},
        {"step", "8", "is 8; expected 6 to 6"},
        {"best", "", "is missing; expected a checkpoint of heed train"},
        {"skipped", "1", "is 1; expected 0 to 0"},
        {"since_best", "3", "is 3; expected 0 to 2"},
        {"best", "1.5", "is 1.5; expected -1 to 1"}}) {
    SafetensorsWriter writer;
    for (std::size_t i = 0; i < tensors.size(); ++i) writer.add(file.names()[i], std::as_const(tensors[i]).view());
    for (const auto& [name, text] : file.metadata())
      if (name != "heed." + key) writer.metadata(name, text);
    if (!value.empty()) writer.metadata("heed." + key, value);
    writer.write(path);
    BOOST_TEST(error_of([&] { run(task, "run", silent, true); }, path) == ": metadata 'heed." + key + "' " + error);
  }
}

// A checkpoint with a non-finite element is rejected, whether in the weights or in the optimiser's state.
BOOST_FIXTURE_TEST_CASE(a_state_that_is_not_finite_is_not_resumed, Play) {
  x.train.ema = 0.9;
  x.train.epochs = 2;
  for (const char* optimiser : {"adamw", "sgd"}) {
    x.optim.name = optimiser;
    ScriptedTask task(model, x.train.batch, script);
    TrainObserver silent;
    run(task, optimiser, silent);
    const std::string path = workshop / optimiser + "/last.safetensors";
    const SafetensorsFile file(path);
    std::vector<Tensor<double>> tensors;
    for (const std::string& name : file.names()) tensors.push_back(file.read<double>(name));
    for (std::size_t damaged = 0; damaged < tensors.size(); ++damaged)
      for (const double value : {1.0 * NAN, 1.0 * INFINITY}) {
        SafetensorsWriter writer;
        const double before = std::exchange(tensors[damaged][2], value);
        for (std::size_t i = 0; i < tensors.size(); ++i) writer.add(file.names()[i], std::as_const(tensors[i]).view());
        for (const auto& [key, text] : file.metadata()) writer.metadata(key, text);
        writer.write(path);
        BOOST_CHECK_EXCEPTION(run(task, optimiser, silent, true), Error, [&](const Error& error) {
          return std::string(error.what()).find("tensor '" + file.names()[damaged] + "'") != std::string::npos;
        });
        tensors[damaged][2] = before;
      }
  }
}

BOOST_AUTO_TEST_SUITE_END()
