// The report of a classification, the share of the commonest class, probabilities, and scores of logits.
#include "heed/train/tasks/classification.h"

#include <boost/test/unit_test.hpp>

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <utility>

using namespace heed;

namespace {

/// Number of examples of class `of` classified as `predicted`.
struct Answers {
  Index of, predicted;
  double examples;
};
Evaluation evaluation_of(Index classes, const std::vector<Answers>& answers) {
  Evaluation evaluation{{}, std::vector<double>(static_cast<std::size_t>(classification_counts(classes)))};
  for (const Answers& one : answers) {
    evaluation.counts[confusion_count(classes, one.of, one.predicted)] += one.examples;
    evaluation.score.terms += one.examples;
    evaluation.score.correct += one.of == one.predicted ? one.examples : 0;
  }
  return evaluation;
}

void check_contains(const std::string& text, const std::vector<std::string>& pieces) {
  for (const std::string& piece : pieces) BOOST_TEST(text.find(piece) != std::string::npos, piece << " in " << text);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_classification)

BOOST_AUTO_TEST_CASE(share_of_the_commonest_class) {
  const Evaluation found = evaluation_of(3, {{0, 0, 2}, {1, 0, 1}, {2, 0, 3}, {2, 2, 2}});
  BOOST_TEST(commonest_share(found, 3) == 5.0 / 8);
}

BOOST_AUTO_TEST_CASE(rows_have_number_and_name) {
  const Evaluation found = evaluation_of(3, {{0, 0, 2}, {1, 0, 3}, {1, 1, 1}, {2, 2, 1}});
  check_contains(classification_report(found, "images", 3, {"cat", "dog", "2"}),
                 {"7 images\n", "          0     1     2  accuracy\n", "0 cat     2     0     0  100.00 %\n",
                  "1 dog     3     1     0   25.00 %\n", "    2     0     0     1  100.00 %\n"});
}

// No image of class 1 was evaluated, all of class 2 are wrong.
BOOST_AUTO_TEST_CASE(classes_without_images_have_no_accuracy) {
  const std::string text =
      classification_report(evaluation_of(3, {{0, 0, 2}, {2, 1, 3}}), "images", 3, {"cat", "dog", "fox"});
  BOOST_TEST(text.ends_with("0 cat     2     0     0  100.00 %\n"
                            "1 dog     0     0     0       -\n"
                            "2 fox     0     3     0    0.00 %\n"),
             text);
}

BOOST_AUTO_TEST_CASE(columns_begin_after_the_longest_name) {
  BOOST_TEST(classification_report(evaluation_of(2, {{0, 0, 1}, {1, 0, 2}}), "images", 2, {"cat", "elephant"}) ==
             "3 images\ntop-1 accuracy 33.33 %\nloss           0.0000\n\n"
             "confusion: images of a row's class classified as a column's\n"
             "               0     1  accuracy\n"
             "     0 cat     1     0  100.00 %\n"
             "1 elephant     2     0    0.00 %\n");
}

BOOST_AUTO_TEST_CASE(five_classes_have_no_top_five) {
  for (const Index classes : {5, 6}) {
    Evaluation found = evaluation_of(classes, {{0, 1, 4}});
    found.counts[top5_count] = 3;
    const std::string text = classification_report(found, "images", classes, {});
    BOOST_TEST((text.find("top-5 accuracy 75.00 %\n") != std::string::npos) == (classes == 6), text);
    BOOST_TEST((text.find("top-5") != std::string::npos) == (classes == 6), text);
  }
}

BOOST_AUTO_TEST_CASE(the_hardest_of_many_classes) {
  std::vector<Answers> answers;
  std::vector<std::string> names;
  for (Index c = 0; c < 30; ++c) {
    names.push_back(fmt::format("name-{}", c));
    answers.push_back({c, c, 10});
  }
  answers.insert(answers.end(), {{17, 4, 20}, {17, 5, 10}, {3, 29, 10}});
  const std::string text = classification_report(evaluation_of(30, answers), "images", 30, names);
  check_contains(text, {"30 classes; the 10 with the lowest accuracy:\n 25.00 %  17 name-17, classified as 4 name-4 20 "
                        "times\n 50.00 %  3 name-3, classified as 29 name-29 10 times\n100.00 %  0 name-0\n"});
  BOOST_TEST(text.find("name-28") == std::string::npos);
}

// Weights of 1,000 classes may be evaluated on a folder of ten.
BOOST_AUTO_TEST_CASE(classes_without_examples_are_not_hard) {
  const std::string text =
      classification_report(evaluation_of(30, {{17, 4, 1}, {17, 17, 3}, {21, 21, 2}}), "images", 30, numbered(30));
  BOOST_TEST(text.ends_with("30 classes, 2 with examples; the 2 with the lowest accuracy:\n 75.00 %  17, classified as "
                            "4 1 times\n100.00 %  21\n"),
             text);
}

// exp(-1), exp(-3) and exp(0), divided by their sum: exps of the logits themselves overflow a float.
BOOST_AUTO_TEST_CASE(probabilities_of_large_logits) {
  const float logits[] = {100, 98, 101, 0};
  const std::vector<double> found = probabilities(logits, 3);
  const double sum = std::exp(-1) + std::exp(-3) + 1;
  BOOST_REQUIRE(found.size() == 3u);
  BOOST_TEST(std::abs(found[0] - std::exp(-1) / sum) < 1e-15);
  BOOST_TEST(std::abs(found[1] - std::exp(-3) / sum) < 1e-15);
  BOOST_TEST(std::abs(found[2] - 1 / sum) < 1e-15);
}

// On ties the smaller class is the answer; a label's rank counts larger logits and equal ones of smaller classes. Each
// row has its own label.
BOOST_AUTO_TEST_CASE(rows_of_logits_are_judged_one_by_one) {
  const Tensor<double> logits(Shape{3, 7}, {1, 2, 2, 0, 0, 0, 0, 5, 5, 5, 5, 5, 5, 5, 0, 0, 0, 0, 0, 9, 0});
  const int labels[] = {2, 5, 5};
  std::vector<double> counts(static_cast<std::size_t>(classification_counts(7)));
  const Score score = judge_logits(logits.view(), labels, std::span(counts));
  BOOST_TEST(score.terms == 3);
  BOOST_TEST(score.correct == 1);
  const double losses[] = {std::log(std::exp(1) + 2 * std::exp(2) + 4) - 2, std::log(7), std::log(std::exp(9) + 6) - 9};
  BOOST_TEST(std::abs(score.loss - (losses[0] + losses[1] + losses[2])) < 1e-13);
  BOOST_TEST(counts[top5_count] == 2);  // the second row has five equal logits before its label
  std::vector<double> expected(counts.size());
  expected[top5_count] = 2;
  for (const auto& [of, predicted] : {std::pair<Index, Index>{2, 1}, {5, 0}, {5, 5}})
    expected[confusion_count(7, of, predicted)] = 1;
  BOOST_TEST(counts == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
