// Final remark of heed train on whether its model is better than guessing the most frequent class.
#include "support/cli.h"
#include "support/command.h"
#include "support/images.h"
#include "support/lines.h"

using namespace heed;
using namespace heed::test;

namespace {

struct Guessing : Workshop {
  std::string file = write_experiment(*this, experiment());

  std::string train(const std::string& run, std::vector<std::string> more) const {
    more.insert(more.begin(), {"train", file, "--run", *this / run});
    return in_one_line(output_of(more));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cli_guessing, Guessing)

// Each class has three of 30 test images: two standard errors are 2 sqrt(0.1 * 0.9 / 30) = 10.95 points.
BOOST_AUTO_TEST_CASE(a_model_that_learns_nothing_gets_advice) {
  const std::string text = train("still", {"--set", "optim.lr=0", "--set", "train.epochs=1"});
  check_contains(text,
                 {"no better than guessing: 10.00 % of the test images belong to the most common class",
                  "does not exceed this by 10.95 points (two standard errors)", "a rate other than 0;",
                  "/still/config.toml suggests one", "more than 1; this run had 7 steps",
                  "data.mean, data.std measured on these images, pixels from 0 to 1; this run had 0.1307 and 0.3081"});
  check_contains(output_of({"lr", *this / "still/config.toml", "-o", *this / "lr.svg"}), {"suggestion: "});
}

// With --images alone, data.mean and data.std are measured; with an experiment file they are not. Both classes have the
// same images, so of two equal test images exactly one is classified correctly.
BOOST_AUTO_TEST_CASE(advice_on_images_whose_mean_is_measured) {
  const std::string tree = *this / "tree";
  for (int i = 0; i < 10; ++i)
    for (const char* const name : {"a", "b"})
      write_image(fmt::format("{}/{}/{}.png", tree, name, i), pattern({1, 8, 8}, 9 * i));
  for (const bool own : {true, false}) {
    std::vector<std::string> words{"train", "--images",      tree, "--run", *this / (own ? "own" : "file"),
                                   "--set", "train.epochs=1"};
    if (!own)
      words.insert(words.end(), {"experiments/images.toml", "--set", "model.image=8", "--set", "train.batch=4"});
    const Finished finished = heed_with(words);
    BOOST_TEST(finished.status == 0, finished.err);
    const std::string text = in_one_line(finished.out);
    check_contains(text, {"no better than guessing: 50.00 % of the test images", "a rate other than 0.001;"});
    const std::string resumed = in_one_line(heed_with({"train", "--run", words[4], "--resume"}).out);
    check_contains(resumed, {"no better than guessing"});
    for (const std::string& said : {text, resumed})
      BOOST_TEST((said.find("data.mean, data.std measured on these images") == std::string::npos) == own, said);
  }
}

BOOST_AUTO_TEST_CASE(a_model_that_learns_gets_none) {
  const std::string text = train("run", {"--set", "optim.lr=1e-2", "--set", "train.epochs=20"});
  BOOST_TEST(text.find("guessing") == std::string::npos, text);
}

BOOST_AUTO_TEST_SUITE_END()
