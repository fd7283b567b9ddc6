// Examples of every task's epochs: two epochs differ, an epoch can be started at any batch, and the validation examples
// are disjoint from others and always the same.
#include "support/tasks.h"

#include "heed/base/warnings.h"
#include "heed/nn/families.h"
#include "heed/tape/preparation.h"
#include "heed/train/tasks/task.h"

#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>

using namespace heed;
using namespace heed::test;

namespace {

/// An example's logits and loss under fixed weights; they identify the example.
using Fingerprint = std::vector<double>;
using Fingerprints = std::vector<Fingerprint>;

struct Reader {
  Experiment x;
  std::unique_ptr<Model> model;
  std::unique_ptr<Task<double>> task;
  Parameters<double> parameters;

  explicit Reader(const Experiment& experiment)
      : x(experiment), model(make_model(x)), task(make_task<double>(x, *model)), parameters(model->parameters()) {
    parameters.initialise(3);
    for (Index i = 0; i < parameters.trainable_size(); ++i) parameters.data()[i] += 0.3 * RandomStream(8).normal(i);
    prepare(PreparationPass<double>{&parameters});
    task->begin(parameters);
  }

  Fingerprints rest(BatchSource<double>& source) {
    Fingerprints all;
    while (const TaskBatch<double>* batch = source.next()) {
      batch->before_step({});
      for (Index i = 0; i < batch->size(); ++i) {
        Tape<double> tape({.parameters = &parameters, .prepared = true});
        const Var<double> logits = batch->logits(*model, tape, {i, 1});
        Fingerprint& row = all.emplace_back(logits.data(), logits.data() + logits.size());
        row.push_back(*batch->loss(logits, {i, 1}, 1).data());
      }
    }
    return all;
  }
  Fingerprints epoch(BatchSource<double>& source, Index number, Index first_batch = 0) {
    source.start(number, first_batch);
    return rest(source);
  }
  Fingerprints training(Index number, Index first_batch = 0) {
    return epoch(*task->open(Part::train, true), number, first_batch);
  }
};

std::size_t distinct(const Fingerprints& all) { return std::set<Fingerprint>(all.begin(), all.end()).size(); }

std::size_t at_their_places(const Fingerprints& a, const Fingerprints& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] == b[i];
  return count;
}

Fingerprints sorted(Fingerprints all) {
  std::sort(all.begin(), all.end());
  return all;
}

/// Returns true if each example has one label.
bool has_label(const Experiment& x) { return x.model.task != "lm" && x.data.name != "scenes" && !x.self_supervised(); }

/// Writes an asymmetric image, 36 times for training and 13 times for testing.
void write_one_image(const std::string& directory) {
  write_patterns(directory, 36, 13, 8);
  for (const char* part : {"/train-", "/t10k-"}) {
    const std::string images = directory + part + "images-idx3-ubyte", labels = directory + part + "labels-idx1-ubyte";
    std::string bytes = read_file(images), of_class = read_file(labels);
    for (std::size_t i = 16 + 64; i < bytes.size(); ++i) bytes[i] = bytes[i - 64];
    for (std::size_t i = 8; i < of_class.size(); ++i) of_class[i] = static_cast<char>(i % 10);
    write_file(images, bytes), write_file(labels, of_class);
  }
}

/// Returns a text model's logits for the given bytes, [1, number of bytes, 256].
Fingerprint logits_of_text(Reader& reader, const std::string& bytes) {
  Tensor<int> tokens(Shape{1, std::ssize(bytes)});
  std::copy(bytes.begin(), bytes.end(), tokens.begin());
  Tape<double> tape({.parameters = &reader.parameters, .prepared = true});
  const Var<double> logits = reader.model->logits(tape, ModelInput<double>{.sequences = {tokens.view()}});
  return {logits.data(), logits.data() + logits.size()};
}

/// Returns -log softmax of row t of logits [.., 256] at `byte`.
double surprise(const Fingerprint& logits, Index t, char byte) {
  const double* const row = logits.data() + 256 * t;
  double mass = 0;
  for (Index c = 0; c < 256; ++c) mass += std::exp(row[c]);
  return std::log(mass) - row[static_cast<unsigned char>(byte)];
}

Experiment of_text(const TaskData& data, bool start) {
  Experiment x = data.experiment("text");
  x.model.start = start, x.model.context = 20;
  return x;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_sources)

// Two random orders of 24 examples have one example at the same position on average, and more than 9 with probability
// 1e-7.
BOOST_AUTO_TEST_CASE(epochs_differ) {
  const TaskData data;
  for (const TaskCase& c : data.cases()) BOOST_TEST_CONTEXT(c.name) {
      Reader reader(c.x);
      const std::unique_ptr<BatchSource<double>> source = reader.task->open(Part::train, true);
      const Fingerprints first = reader.epoch(*source, 0), second = reader.epoch(*source, 1);
      BOOST_TEST(first.size() % 8 == 0U);
      BOOST_TEST(distinct(first) >= first.size() - (c.epoch == TaskCase::Epoch::drawn ? 3 : 0));
      BOOST_TEST(at_their_places(first, second) <= 9U);
      BOOST_TEST((reader.epoch(*source, 0) == first));
      const bool same_examples = sorted(first) == sorted(second);
      BOOST_TEST(same_examples == (c.epoch == TaskCase::Epoch::shuffled));
      Experiment other = c.x;
      other.train.seed = 6;
      BOOST_TEST(at_their_places(Reader(other).training(0), first) <= 9U);
    }
}

BOOST_AUTO_TEST_CASE(an_epoch_begun_anywhere_goes_on_as_the_whole) {
  const TaskData data;
  for (const TaskCase& c : data.cases()) BOOST_TEST_CONTEXT(c.name) {
      Reader reader(c.x);
      const Fingerprints whole = reader.training(1);
      for (const Index batch : {1, 2}) {
        const Fingerprints rest(whole.begin() + 8 * batch, whole.end());
        BOOST_TEST((Reader(c.x).training(1, batch) == rest), "batch " << batch);
      }
    }
}

// Without shuffling, two epochs have the same examples in the same order, unless each example is augmented.
BOOST_AUTO_TEST_CASE(what_is_not_shuffled_is_changed_all_the_same) {
  const TaskData data;
  for (const TaskCase& c : data.cases()) BOOST_TEST_CONTEXT(c.name) {
      Experiment x = c.x;
      x.data.shuffle = false;
      Reader reader(x);
      const Fingerprints first = reader.training(0), second = reader.training(1);
      if (c.epoch == TaskCase::Epoch::augmented)
        BOOST_TEST(at_their_places(first, second) <= first.size() / 4);
      else
        BOOST_TEST((first == second));
    }
}

// All examples are copies of one image, and augmentation is drawn for each example of the epoch. Some are equal, since
// they have the same flip and the same shift, one of 21.
BOOST_AUTO_TEST_CASE(copies_of_an_image_are_changed_independently) {
  const TaskData data;
  write_one_image(data.path("one"));
  for (const TaskCase& c : data.cases()) {
    if (c.epoch != TaskCase::Epoch::augmented) continue;
    BOOST_TEST_CONTEXT(c.name) {
      Experiment x = c.x;
      x.data.path = data.path("one");
      Fingerprints all = Reader(x).training(0);
      for (Fingerprint& row : all) row.pop_back();  // labels differ
      BOOST_TEST(distinct(all) > 11U);
      for (std::size_t batch = 8; batch < all.size(); batch += 8)
        BOOST_TEST(at_their_places(
                       {all.begin(), all.begin() + 8},
                       {all.begin() + static_cast<Index>(batch), all.begin() + static_cast<Index>(batch) + 8}) <= 3U);
    }
  }
}

// 12 and 13 examples are not whole batches; each example is read once, unchanged, and not used for training.
BOOST_AUTO_TEST_CASE(evaluated_examples_are_all_the_others_unchanged) {
  const TaskData data;
  for (const TaskCase& c : data.cases()) {
    if (c.epoch == TaskCase::Epoch::drawn || c.x.self_supervised()) continue;
    BOOST_TEST_CONTEXT(c.name) {
      Experiment plain = c.x;
      plain.data.augment = {};
      Reader reader(c.x);
      Fingerprints seen = Reader(plain).training(0);
      for (const auto& [part, count] : {std::pair(Part::validation, 12U), {Part::test, 13U}}) {
        if (part == Part::test && c.x.data.name == "scenes") continue;
        const std::unique_ptr<BatchSource<double>> source = reader.task->open(part, false);
        const Fingerprints found = reader.epoch(*source, 0);
        BOOST_TEST(found.size() == count);
        BOOST_TEST(source->examples() == static_cast<Index>(count));
        BOOST_TEST((reader.epoch(*source, 1) == found));
        BOOST_TEST((reader.epoch(*Reader(plain).task->open(part, false), 0) == found));
        seen.insert(seen.end(), found.begin(), found.end());
      }
      BOOST_TEST(distinct(seen) == seen.size());
    }
  }
}

// A run warns once about sequences longer than the context. Texts have 5 + i^2 mod 19 letters, more than 19 for five i
// below 24; expressions have more than 3 tokens, the two texts of a pair 64 or more. A text's windows are not
// truncated.
BOOST_AUTO_TEST_CASE(truncated_sequences_are_reported_once) {
  const std::map<std::string, std::pair<Index, std::string>> expected{
      {"documents", {19, "5 of 24"}}, {"listops", {3, "24 of 24"}}, {"pairs", {63, "48 of 48"}}, {"text", {20, ""}}};
  const TaskData data;
  for (TaskCase& c : data.cases()) BOOST_TEST_CONTEXT(c.name) {
      if (!expected.contains(c.name)) continue;
      const auto& [context, count] = expected.at(c.name);
      const auto said = [&](Index of) {
        c.x.model.context = of;
        const Reader reader(c.x);
        take_warnings();
        for (const Part part : {Part::train, Part::validation, Part::test}) reader.task->open(part, false);
        std::vector<std::string> lines = take_warnings();
        std::erase_if(lines, [](const std::string& line) { return line.find(" truncated") == std::string::npos; });
        return lines;
      };
      std::vector<std::string> lines;
      if (!count.empty())
        lines.push_back(
            fmt::format("{} sequences are longer than model.context = {} and are truncated", count, context));
      BOOST_TEST(said(context) == lines, boost::test_tools::per_element());
      if (c.name != "text") BOOST_TEST(said(128).empty());
    }
}

// Every byte but the first is predicted once, for any stride: 30 bytes of validation, windows of 20.
BOOST_AUTO_TEST_CASE(each_byte_is_predicted_once) {
  const TaskData data;
  for (const Index stride : {0, 1, 7, 20}) {
    Experiment x = data.experiment("text");
    x.data.stride = stride;
    Reader reader(x);
    const std::unique_ptr<BatchSource<double>> source = reader.task->open(Part::validation, false);
    source->start(0);
    Index terms = 0;
    while (const TaskBatch<double>* batch = source->next()) terms += batch->terms();
    BOOST_TEST(terms == 29, "stride " << stride);
  }
}

// In training, the smoothed loss is (1 - s) times the plain loss plus s times the mean of -log p over the classes, also
// for mixed labels. Tasks without a label per example reject the key.
BOOST_AUTO_TEST_CASE(labels_are_smoothed_where_there_are_any) {
  const TaskData data;
  std::size_t smoothed = 0;
  for (const TaskCase& c : data.cases()) BOOST_TEST_CONTEXT(c.name) {
      Experiment x = c.x;
      x.train.label_smoothing = 0.3;
      if (!has_label(c.x)) {
        const std::string refusal = error_of([&] { validate(x), Reader(x).training(0); });
        BOOST_TEST(refusal.find("label_smoothing = 0.3") != std::string::npos, refusal);
        continue;
      }
      ++smoothed;
      const Fingerprints plain = Reader(c.x).training(1), smooth = Reader(x).training(1);
      BOOST_REQUIRE(plain.size() == smooth.size());
      for (std::size_t i = 0; i < plain.size(); ++i) {
        const std::size_t classes = plain[i].size() - 1;
        double mass = 0, sum = 0;
        for (std::size_t k = 0; k < classes; ++k) mass += std::exp(plain[i][k]), sum += plain[i][k];
        const double mean = std::log(mass) - sum / static_cast<double>(classes);
        BOOST_TEST(std::abs(smooth[i].back() - (0.7 * plain[i].back() + 0.3 * mean)) < 1e-12);
      }
      for (const Part part : {Part::train, Part::validation, Part::test}) {
        Reader one(c.x), other(x);
        BOOST_TEST((one.epoch(*one.task->open(part, false), 0) == other.epoch(*other.task->open(part, false), 0)));
      }
    }
  BOOST_TEST(smoothed == 7u);
}

// No examples are set aside from data with a validation file or directory, nor from a text, which has a fixed section
// for validation.
BOOST_AUTO_TEST_CASE(examples_are_set_aside) {
  const TaskData data;
  const std::set<std::string> separate{"documents", "listops", "pairs", "text"};
  for (const TaskCase& c : data.cases()) {
    Reader reader(c.x);
    for (const Part part : {Part::train, Part::validation, Part::test}) reader.task->open(part, false);
    BOOST_TEST(reader.task->data_facts().sets_aside == !separate.contains(c.name), c.name);
  }
}

// The test files are listed as such, and training files are listed too, even if the test part is opened first.
BOOST_AUTO_TEST_CASE(files_of_the_test_part_are_known) {
  const TaskData data;
  for (const TaskCase& c : data.cases()) BOOST_TEST_CONTEXT(c.name) {
      Reader reader(c.x);
      for (const Part part : {Part::test, Part::validation, Part::train}) reader.task->open(part, false);
      const DataFacts facts = reader.task->data_facts();
      const std::set<std::string> files(facts.files.begin(), facts.files.end());
      BOOST_TEST(!facts.test.empty());
      for (const std::string& file : facts.test) {
        const std::string name = std::filesystem::path(file).filename();
        BOOST_TEST((name.find("test") != std::string::npos || name.starts_with("t10k-") || name == "text"), file);
        BOOST_TEST(files.contains(file), file);
      }
      if (c.name == "text") continue;
      BOOST_TEST(std::any_of(files.begin(), files.end(), [](const std::string& file) {
        return std::filesystem::path(file).filename().string().find("train") != std::string::npos;
      }));
    }
}

// Four of twelve training files, one for each document, are set aside.
BOOST_AUTO_TEST_CASE(files_set_aside_are_known) {
  const TemporaryDirectory directory;
  for (const auto& [name, count] : {std::pair("train/a", 7), {"train/b", 5}, {"test/a", 1}, {"test/b", 2}})
    for (int i = 0; i < count; ++i) {
      std::filesystem::create_directories(directory / name);
      write_file(directory / name / fmt::format("{}.txt", i), fmt::format("{} {}", name, i));
    }
  const TaskData data;
  Experiment x = data.experiment("documents");
  x.data.path = directory.path().string(), x.data.validation = 4, x.model.classes = 2;
  Reader reader(x);
  for (const Part part : {Part::train, Part::validation, Part::test}) reader.task->open(part, false);
  const DataFacts facts = reader.task->data_facts();
  BOOST_TEST(facts.sets_aside);
  BOOST_TEST(facts.test.size() == 3u);
  BOOST_TEST(std::set<std::string>(facts.validation.begin(), facts.validation.end()).size() == 4u);
  for (const std::string& file : facts.validation)
    BOOST_TEST(std::filesystem::path(file).parent_path().parent_path().filename() == "train", file);
  BOOST_TEST(facts.classes == (std::vector<std::string>{"a", "b"}), boost::test_tools::per_element());
}

// Each window predicts 20 bytes: after a start token these are all of its bytes, otherwise all but the first.
BOOST_AUTO_TEST_CASE(windows_of_a_text) {
  const TaskData data;
  for (const bool start : {false, true})  // 540 of 600 bytes are for training
    BOOST_TEST(Reader(of_text(data, start)).task->open(Part::train, true)->examples() == (start ? 27 : 26));
}

// In 41 training bytes, a window of 21 bytes fits at 21 positions, one of 20 after a start token at 22. Random windows
// begin at all of them; without shuffling, windows are adjacent. All bytes differ, so no two windows have equal logits.
BOOST_AUTO_TEST_CASE(windows_begin_anywhere_in_a_text) {
  const TaskData data;
  std::string text;
  for (int i = 0; i < 46; ++i) text += static_cast<char>('0' + i);  // 41 for training
  write_file(data.path("short"), text);
  for (const bool start : {false, true}) {
    Experiment x = of_text(data, start);
    x.data.path = data.path("short"), x.data.windows = 400, x.train.batch = 2;
    const Fingerprints all = Reader(x).training(0);
    BOOST_TEST(all.size() == 400u);
    BOOST_TEST(distinct(all) == (start ? 22u : 21u));  // 400 draws miss a window with probability 2e-7
    x.data.windows = 0, x.data.shuffle = false;
    const Fingerprints side_by_side = Reader(x).training(0);
    BOOST_TEST(side_by_side.size() == 2u);
    BOOST_TEST(distinct(side_by_side) == 2u);
    for (const Fingerprint& window : side_by_side) BOOST_TEST(std::count(all.begin(), all.end(), window) > 0);
  }
}

// A window predicts 20 bytes, each from the bytes of the window before it: all of its bytes after a start token,
// otherwise all but the first. The bytes of the text are different.
BOOST_AUTO_TEST_CASE(windows_of_training_predict_their_next_bytes) {
  const TaskData data;
  std::string text;
  for (int i = 0; i < 46; ++i) text += static_cast<char>('0' + i);  // 41 for training
  write_file(data.path("short"), text);
  for (const bool start : {false, true}) {
    Experiment x = of_text(data, start);
    x.data.path = data.path("short"), x.data.windows = 30, x.train.batch = 2;
    Reader reader(x);
    Fingerprints expected;
    for (std::size_t first = 0; first + 20 + !start <= 41; ++first) {
      Fingerprint& window = expected.emplace_back(logits_of_text(reader, text.substr(first, 20)));
      double loss = 0;
      for (std::size_t t = 0; t < 20; ++t) loss += surprise(window, static_cast<Index>(t), text[first + t + !start]);
      window.push_back(loss);
    }
    const Fingerprints windows = reader.training(0);
    BOOST_TEST(!windows.empty());
    for (const Fingerprint& found : windows) {
      const auto close = [](double a, double b) { return std::abs(a - b) < 1e-10; };
      BOOST_TEST(std::any_of(expected.begin(), expected.end(), [&](const Fingerprint& one) {
        return std::equal(found.begin(), found.end(), one.begin(), one.end(), close);
      }));
    }
  }
}

// Evaluation predicts byte i in the first window that reaches it, from the bytes of that window before i. Parts have 30
// bytes; windows have 20 and start `stride` bytes apart. Batches have two windows.
BOOST_AUTO_TEST_CASE(windows_of_evaluation_predict_each_byte_from_their_start) {
  const TaskData data;
  const std::string text = read_file(data.path("text"));
  for (const bool start : {false, true})
    for (const Index stride : {0, 7}) {
      Experiment x = of_text(data, start);
      x.data.stride = stride, x.train.batch = 2;
      Reader reader(x);
      for (const auto& [part, begin] : {std::pair(Part::validation, 540U), {Part::test, 570U}}) {
        const std::string bytes = text.substr(begin, 30);
        double expected = 0, found = 0;
        for (Index i = !start; i < 30; ++i) {
          Index first = 0;
          while (first + 20 - start < i) first += stride == 0 ? 20 : stride;
          const Index inputs = i - first + start;
          const Fingerprint logits =
              logits_of_text(reader, bytes.substr(static_cast<std::size_t>(first), static_cast<std::size_t>(inputs)));
          expected += surprise(logits, inputs - 1, bytes[static_cast<std::size_t>(i)]);
        }
        const std::unique_ptr<BatchSource<double>> source = reader.task->open(part, false);
        BOOST_TEST(source->examples() == (stride == 0 ? 2 : 3));
        BOOST_TEST(source->batches() == (stride == 0 ? 1 : 2));
        for (const Fingerprint& window : reader.epoch(*source, 0)) found += window.back();
        BOOST_TEST(std::abs(found - expected) < 1e-9, "start " << start << ", stride " << stride);
      }
    }
}

BOOST_AUTO_TEST_CASE(data_that_do_not_fit_are_named) {
  const TaskData data;
  const auto refusal = [&](const std::string& name, const std::function<void(Experiment&)>& change,
                           Part part = Part::train) {
    Experiment x = data.experiment(name);
    change(x);
    return error_of([&] { Reader(x).task->open(part, part == Part::train); });
  };
  const auto batch_of_25 = [](Experiment& x) { x.train.batch = 25; };
  BOOST_TEST(refusal("documents", batch_of_25) ==
             "documents: 24 training examples do not fill one batch of 25; expected a train.batch of at most 24");
  BOOST_TEST(refusal("scenes", batch_of_25) ==
             "scenes: 24 training scenes do not fill one batch of 25; expected a train.batch of at most 24");
  BOOST_TEST(refusal("pixels written", batch_of_25) ==
             "24 training images do not fill one batch of 25; expected a train.batch of at most 24");
  for (const char* name : {"documents", "scenes", "pixels written"})
    BOOST_TEST(refusal(name, [](Experiment& x) { x.train.batch = 24; }) == "no error", name);
  BOOST_TEST(refusal("documents", [](Experiment& x) { x.model.classes = 4; }) ==
             "[model] classes = 4, but documents has 3 classes, 'a', 'b', 'c'; set model.classes=3");
  BOOST_TEST(refusal("documents", [&](Experiment& x) { x.data.name = "pairs", x.data.path = data.path("pairs"); }) ==
             "data.name=pairs has pairs, but the model expects single sequences");
  BOOST_TEST(refusal("pairs", [&](Experiment& x) {
               x.data.name = "documents", x.data.path = data.path("documents");
             }) == "data.name=documents has single sequences, but the model expects pairs");
  // 18 of 20 bytes are for training, and one each for validation and testing. The first byte of a part is not
  // predicted.
  const std::string path = data.path("twenty");
  write_file(path, std::string(20, 'a'));
  const auto of_twenty = [&](Part part, bool start) {
    return refusal(
        "text", [&](Experiment& x) { x.data.path = path, x.model.start = start; }, part);
  };
  BOOST_TEST(of_twenty(Part::train, false) ==
             path + ": 18 of 20 bytes are for training; expected at least 21, one window");
  BOOST_TEST(of_twenty(Part::train, true) ==
             path + ": 18 of 20 bytes are for training; expected at least 20, one window");
  BOOST_TEST(of_twenty(Part::validation, false) == path + ": 1 of 20 bytes are for validation; use a longer text");
  BOOST_TEST(of_twenty(Part::test, false) == path + ": 1 of 20 bytes are for test; use a longer text");
  for (const Part part : {Part::validation, Part::test}) BOOST_TEST(of_twenty(part, true) == "no error");
}

// Training examples read for an evaluation are the same in each epoch, neither shuffled nor augmented.
BOOST_AUTO_TEST_CASE(training_examples_may_be_evaluated) {
  const TaskData data;
  for (const TaskCase& c : data.cases()) {
    if (c.epoch == TaskCase::Epoch::drawn || c.x.self_supervised() || c.x.data.name == "scenes") continue;
    BOOST_TEST_CONTEXT(c.name) {
      Experiment plain = c.x;
      plain.data.augment = {}, plain.data.shuffle = false;
      Reader reader(c.x);
      const std::unique_ptr<BatchSource<double>> source = reader.task->open(Part::train, false);
      const Fingerprints found = reader.epoch(*source, 3);
      BOOST_TEST((found == Reader(plain).training(0)));
      BOOST_TEST(found.size() == 24U);
    }
  }
}

// The rows of an evaluation's confusion table are true classes; the sums of its rows are class_counts(). Only
// classifications have class counts.
BOOST_AUTO_TEST_CASE(classes_are_counted) {
  const TaskData data;
  for (const TaskCase& c : data.cases()) BOOST_TEST_CONTEXT(c.name) {
      Reader reader(c.x);
      for (const Part part : {Part::train, Part::validation, Part::test}) {
        if (c.x.data.name == "scenes" && part == Part::test) continue;  // thousands of scenes
        const std::unique_ptr<BatchSource<double>> source = reader.task->open(part, part == Part::train);
        if (!has_label(c.x)) {
          BOOST_TEST(source->class_counts().empty());
          continue;
        }
        const Index classes = reader.model->outputs()[0];
        std::vector<double> counts(static_cast<std::size_t>(reader.task->counts()));
        BOOST_REQUIRE(counts.size() == static_cast<std::size_t>(1 + classes * classes));
        source->start(0);
        while (const TaskBatch<double>* batch = source->next()) {
          Tape<double> tape({.parameters = &reader.parameters, .prepared = true});
          const ExampleRange all{0, batch->size()};
          batch->judge(batch->logits(*reader.model, tape, all).value(), all, counts);
        }
        std::vector<Index> expected;
        for (Index of = 0; of < classes; ++of) {
          const auto row = counts.begin() + 1 + of * classes;
          expected.push_back(static_cast<Index>(std::accumulate(row, row + classes, 0.0)));
        }
        BOOST_TEST(source->class_counts() == expected, boost::test_tools::per_element());
        BOOST_TEST(std::accumulate(expected.begin(), expected.end(), Index{0}) == source->examples());
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()
