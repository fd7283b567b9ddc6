// The report of each task, with numbers computed by hand.
#include "heed/nn/families.h"
#include "heed/train/tasks/classification.h"
#include "support/tasks.h"

#include <numbers>

using namespace heed;
using namespace heed::test;

namespace {

/// Returns the report of a task on an evaluation: terms, loss, correct, and counts at these indices.
std::string report_of(const Experiment& x, const Score& score, const std::vector<std::pair<std::size_t, double>>& given,
                      bool opened) {
  const std::unique_ptr<Model> model = make_model(x);
  const std::unique_ptr<Task<float>> task = make_task<float>(x, *model);
  if (opened) task->open(Part::test, false);  // class names come from the data
  Evaluation evaluation{score, std::vector<double>(static_cast<std::size_t>(task->counts()))};
  for (const auto& [index, count] : given) evaluation.counts.at(index) = count;
  return task->report(evaluation);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_reports)

// Top-5 accuracy is reported only for more than five classes. The confusion table has a row for each true class, with
// its counts and its recall.
BOOST_AUTO_TEST_CASE(reports_of_classifications) {
  const TaskData data;
  const Score score{8, 12, 5};
  BOOST_TEST(report_of(data.experiment("images"), score, {{0, 6}}, false) ==
             "8 images\ntop-1 accuracy 62.50 %\ntop-5 accuracy 75.00 %\nloss           1.5000\n");
  BOOST_TEST(report_of(data.experiment("images"), {8, -8, 5}, {{0, 6}}, false) ==
             "8 images\ntop-1 accuracy 62.50 %\ntop-5 accuracy 75.00 %\n");  // nearest neighbours have no loss
  // Two of class a are correct, one is classified as b; three of b are correct; of c, one is classified as a, one as b.
  const std::vector<std::pair<std::size_t, double>> counts{{1, 2}, {2, 1}, {5, 3}, {7, 1}, {8, 1}};
  BOOST_TEST(report_of(data.experiment("documents"), score, counts, true) ==
             "8 sequences\ntop-1 accuracy 62.50 %\nloss           1.5000\n\n"
             "confusion: sequences of a row's class classified as a column's\n"
             "          0     1     2  accuracy\n"
             "  0 a     2     1     0   66.67 %\n"
             "  1 b     0     3     0  100.00 %\n"
             "  2 c     1     1     0    0.00 %\n");
  const std::string pairs = report_of(data.experiment("pairs"), score, {{1, 2}, {2, 1}, {3, 2}, {4, 3}}, true);
  BOOST_TEST(pairs.starts_with("8 pairs\ntop-1 accuracy 62.50 %\nloss           1.5000\n\nconfusion: pairs of"), pairs);
  BOOST_TEST(pairs.find("     2     1   66.67 %\n") != std::string::npos, pairs);
  BOOST_TEST(pairs.find("     2     3   60.00 %\n") != std::string::npos, pairs);
}

// Self-supervision is judged among the ten classes of the data, though the model has seven outputs.
BOOST_AUTO_TEST_CASE(report_of_neighbours) {
  const TaskData data;
  const std::string text =
      report_of(data.experiment("dino"), {8, -8, 5}, {{0, 6}, {confusion_count(10, 9, 8), 3}}, true);
  BOOST_TEST(text.starts_with("8 images\ntop-1 accuracy 62.50 %\ntop-5 accuracy 75.00 %\n\nconfusion: images of"),
             text);
  std::string row = "\n    9";
  for (int c = 0; c < 10; ++c) row += c == 8 ? "     3" : "     0";
  BOOST_TEST(text.ends_with(row + "    0.00 %\n"), text);
}

// Names come from the run's record or, without one, from the data; without data, classes are numbered.
BOOST_AUTO_TEST_CASE(names_of_classes) {
  const TaskData data;
  Experiment x = data.experiment("images");
  x.data.name = "fashion-mnist";
  const auto last = [&] {
    const std::unique_ptr<Model> model = make_model(x);
    return make_task<float>(x, *model)->class_names().at(9);
  };
  BOOST_TEST(last() == "Ankle boot");
  x.data.recorded.classes = std::vector<std::string>(10, "recorded");
  BOOST_TEST(last() == "recorded");
  x.data.recorded.classes.clear();
  x.data.path = data.path("nowhere");
  BOOST_TEST(last() == "9");
}

// The report has a confusion table for 20 classes, and the classes of lowest accuracy for 21.
BOOST_AUTO_TEST_CASE(a_table_has_up_to_twenty_classes) {
  for (const Index classes : {20, 21}) {
    Evaluation evaluation{{1, 1, 1}, std::vector<double>(static_cast<std::size_t>(classification_counts(classes)))};
    evaluation.counts[confusion_count(classes, 0, 0)] = 1;
    const std::string text = classification_report(evaluation, "images", classes, numbered(classes));
    BOOST_TEST((text.find("confusion: ") != std::string::npos) == (classes == 20));
    BOOST_TEST((text.find("lowest accuracy:") != std::string::npos) == (classes == 21));
  }
}

// A loss of 1.5 ln 2 nats is 1.5 bits.
BOOST_AUTO_TEST_CASE(reports_of_predicted_tokens) {
  const TaskData data;
  const Score score{8, 8 * 1.5 * std::numbers::ln2, 3};
  BOOST_TEST(report_of(data.experiment("text"), score, {}, false) ==
             "8 bytes\nbits per character 1.5000\nnext-token accuracy 37.50 %\nloss 1.0397 nats\n");
  // If any part of the text has a byte of 128 or above, bytes are not characters.
  heed::write_file(data.path("text"), "é" + std::string(600, 'a'));
  BOOST_TEST(report_of(data.experiment("text"), score, {}, true) ==
             "8 bytes\nbits per byte 1.5000\nnext-token accuracy 37.50 %\nloss 1.0397 nats\n");
  BOOST_TEST(report_of(data.experiment("pixels written"), score, {}, false) ==
             "8 sub-pixels\nbits per dimension 1.5000\nnext-token accuracy 37.50 %\nloss 1.0397 nats\n");
}

// A scene has sixteen patches. Class 0 has 4 of 5 patches right, and one patch of class 2 is classified as class 0: the
// overlap is 4 / 6. Class 1 has all 10 right, class 2 none of 2. Class 4 does not occur but is predicted: 0 / 1. The
// mean of the four overlaps is (2 / 3 + 1) / 4.
BOOST_AUTO_TEST_CASE(report_of_patches) {
  const TaskData data;
  const Experiment x = data.experiment("scenes");
  const std::unique_ptr<Model> model = make_model(x);
  const std::unique_ptr<Task<float>> task = make_task<float>(x, *model);
  Evaluation evaluation{{32, 16, 99}, std::vector<double>(121)};
  evaluation.counts[0] = 4, evaluation.counts[1 * 11 + 1] = 10;
  evaluation.counts[0 * 11 + 2] = 1, evaluation.counts[2 * 11 + 0] = 1, evaluation.counts[2 * 11 + 4] = 1;
  task->conclude(evaluation);
  BOOST_TEST(task->measure() == "overlap by class");
  std::string expected =
      "2 scenes\nmean IoU       41.67 %\npatches right  43.75 %\nloss           0.5000\n\nclass     IoU\n";
  const char* const overlaps[] = {" 66.67", "100.00", "  0.00", "     -", "  0.00"};
  for (Index c = 0; c < 11; ++c) expected += fmt::format("{:<5}  {}\n", c, c < 5 ? overlaps[c] : "     -");
  BOOST_TEST(task->report(evaluation) == expected);
}

BOOST_AUTO_TEST_SUITE_END()
