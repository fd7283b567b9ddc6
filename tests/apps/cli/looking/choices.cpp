// The options that choose a model and its data have the same effect in every command that looks at a trained model.
#include "heed/data/images/image_write.h"
#include "heed/io/safetensors.h"
#include "run_model.h"
#include "support/cli.h"
#include "support/images.h"
#include "support/lines.h"

#include <fmt/ranges.h>

#include <array>

using namespace heed;
using namespace heed::test;

namespace {

/// A run whose best and last weights differ, with maps in the first block and inverted matrices in the second.
struct Chosen : Workshop {
  std::string run = *this / "run", last = run + "/last.safetensors", config = run + "/config.toml", out = *this / "out",
              file;

  Chosen() : Workshop(150, 30) {
    Experiment x = experiment();
    x.attention = {{"softmax", "soft"}, {{"landmarks", {"4", ""}}}, {}};
    x.optim.lr = 3e-3, x.train.epochs = 2, x.train.ema = 0.5;
    file = write_experiment(*this, x);
    output_of({"train", file, "--run", run});
  }

  /// Returns what a command prints and writes to `out`.
  std::string result(std::vector<std::string> words, const std::vector<std::string>& more) const {
    words.insert(words.end(), more.begin(), more.end());
    std::filesystem::remove(out);
    const Finished finished = heed_with(words);
    BOOST_TEST(finished.status == 0, finished.err);
    return finished.out + (std::filesystem::exists(out) ? read_file(out) : "");
  }

  Tensor<float> features(const std::vector<std::string>& words) const {
    result({"features"}, words);
    return SafetensorsFile(out).read<float>("features");
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_choices)

// A run with --weights gives the same results as --weights with the run's configuration as --model.
BOOST_FIXTURE_TEST_CASE(weights_of_a_run_or_with_a_model_file, Chosen) {
  out += ".png";
  for (const std::vector<std::string>& command : {std::vector<std::string>{"eval"},
                                                  {"eval", "--split", "validation"},
                                                  {"eval", "--knn", "--k", "3"},
                                                  {"eval", "--shots", "2", "--split", "validation"},
                                                  {"features", "-o", out},
                                                  {"predict", "--index", "4,0", "--top", "10"},
                                                  {"maps", "--index", "4,0", "--block", "1", "-o", out}})
    BOOST_TEST_CONTEXT(fmt::format("{}", fmt::join(command, " "))) {
      std::vector<std::string> of_run = command;
      of_run.push_back(run);
      const std::string plain = result(of_run, {"--weights", last}), std = "data.std=[0.05]",
                        set = result(of_run, {"--weights", last, "--set", std});
      BOOST_TEST((result(command, {"--weights", last, "--model", config}) == plain));
      BOOST_TEST((result(command, {"--weights", last, "--model", config, "--set", std}) == set));
      if (command[0] == "features" || command[0] == "predict")
        BOOST_TEST((result(of_run, {}) != plain && plain != set));
    }
}

// Names replace the class digits, in order, and change nothing else.
BOOST_FIXTURE_TEST_CASE(names_are_those_of_the_classes, Chosen) {
  std::string names, expected;
  for (int c = 0; c < 10; ++c) names += fmt::format("n{}\n", c);
  write_file(*this / "names", names);
  std::vector<std::string> images{*this / "4.png", *this / "5.png"}, words{"predict", "--top", "10"};
  for (const std::string& image : images) {
    output_of({"image", "--path", data(), "--index", image == images[0] ? "4" : "5", "-o", image});
    std::string line = output_of({"predict", run, image, "--weights", last, "--top", "10"});
    for (std::size_t at = image.size(); at != std::string::npos; at = line.find(", ", at + 1)) line.insert(at + 2, "n");
    expected += line;
  }
  words.insert(words.end(), {images[0], images[1], "--weights", last, "--names", *this / "names"});
  BOOST_TEST(result(words, {"--model", config}) == expected);
  words.insert(words.begin() + 1, run);
  BOOST_TEST(result(words, {}) == expected);
}

// Spectra and residuals are written to the chosen file only. There are 30 test images, so --images 31 uses all of them.
BOOST_FIXTURE_TEST_CASE(tables_of_the_chosen_weights, Chosen) {
  out += ".csv";
  for (const std::string command : {"spectrum", "residual"}) {
    const std::string table = run + "/" + command + ".csv";
    std::string expected = result({command, run, "--weights", last}, {});
    expected += read_file(table);
    expected.replace(expected.find(table), table.size(), out);
    check_contains(expected, {" 30 test images"});
    std::filesystem::remove(table);
    const std::vector<std::string> elsewhere{command, run, "-o", out};
    BOOST_TEST((result(elsewhere, {"--weights", last, "--images", "31"}) == expected));
    BOOST_TEST((result(elsewhere, {}) != expected));
    BOOST_TEST((result(elsewhere, {"--weights", last, "--images", "29"}) != expected));
    BOOST_TEST(!std::filesystem::exists(table));
  }
}

// --data starts without the run's data.limit and validation split; --path keeps them; --set wins over both.
BOOST_FIXTURE_TEST_CASE(other_data_have_no_limit_of_the_run, Chosen) {
  write_patterns(*this / "more", 50, 12, 8);
  const std::string limited = *this / "limited", more = *this / "more";
  output_of({"train", file, "--run", limited, "--set", "data.limit=96"});
  using Words = std::vector<std::string>;
  for (const auto& [words, train, test] :
       {std::tuple<Words, Index, Index>{{}, 96, 30},
        {{"--data", "mnist", "--path", data()}, 150, 30},
        {{"--path", more}, 30, 12},
        {{"--data", "mnist", "--path", more}, 50, 12},
        {{"--data", "mnist", "--path", more, "--set", "data.path=" + data()}, 150, 30},
        {{"--data", "mnist", "--path", more, "--set", "data.limit=40"}, 40, 12},
        {{"--path", more, "--set", "data.validation=7"}, 43, 12}})
    for (const bool of_training : {true, false}) BOOST_TEST_CONTEXT(fmt::format("{}", fmt::join(words, " "))) {
        std::vector<std::string> all{limited, "--pixels", "-o", out, "--split", of_training ? "train" : "test"};
        all.insert(all.end(), words.begin(), words.end());
        BOOST_TEST(features(all).shape()[0] == (of_training ? train : test));
      }
}

// Untrained weights are determined by the configured seed; training at a rate of 0 leaves them unchanged.
BOOST_FIXTURE_TEST_CASE(untrained_weights_are_those_of_the_seed, Chosen) {
  for (const char* const seed : {"train.seed=1", "train.seed=5"}) {
    const std::string still = *this / seed;
    output_of({"train", file, "--run", still, "--set", "optim.lr=0", "--set", seed});
    const Tensor<float> expected = features({still, "-o", out}),
                        found = features({run, "--untrained", "--set", seed, "-o", out});
    BOOST_TEST(std::equal(expected.begin(), expected.end(), found.begin(), found.end()));
  }
}

// Each preset has timm's values: pixels p become (p - mean) / std. Keys of the command line take precedence, even with
// --model auto, whose preset is imagenet by default.
BOOST_AUTO_TEST_CASE(presets_normalise_and_crop) {
  const Workshop workshop;
  const std::string weights = workshop / "w.safetensors", toml = workshop / "model.toml", tree = workshop / "tree",
                    out = workshop / "out";
  Experiment x;
  x.model.image = 12, x.model.channels = 3, x.model.patch = 4, x.model.dim = 64, x.model.depth = 1, x.model.heads = 1;
  x.model.hidden = 8, x.model.classes = 2;
  const VisionTransformer model(x.model, {});
  Parameters<float> parameters(model.parameters());
  parameters.initialise(3);
  SafetensorsWriter writer;
  add_weights(writer, parameters);
  writer.write(weights);
  write_file(toml, to_toml(x).substr(0, to_toml(x).find("\n[data]")));
  for (const char* const part : {"train", "test"})
    for (const char* const name : {"/ant/1.png", "/bee/2.png"})
      write_image(tree + "/" + part + name, pattern({3, 20, 26}, name[5]));
  const auto pixels = [&](const std::string& given, const std::string& preset, const std::vector<std::string>& sets) {
    std::vector<std::string> words{"features", "--pixels", "--weights", weights, "--model", given,
                                   "--data",   "folder",   "--path",    tree,    "-o",      out};
    if (!preset.empty()) words.insert(words.end(), {"--preset", preset});
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    const Finished finished = heed_with(words);
    BOOST_REQUIRE_MESSAGE(finished.status == 0, finished.err);
    return SafetensorsFile(out).read<float>("features");
  };
  struct Preset {
    std::string name, crop;
    std::array<float, 3> mean, std;
  };
  for (const Preset& p :
       {Preset{"imagenet", "0.875", {0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}},
        {"inception", "0.9", {0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}},
        {"clip", "1.0", {0.48145466F, 0.4578275F, 0.40821073F}, {0.26862954F, 0.26130258F, 0.27577711F}}}) {
    const std::vector<std::string> raw{"data.mean=[0,0,0]", "data.std=[1,1,1]", "data.resize=crop",
                                       "data.interpolation=bicubic", "data.crop_fraction=" + p.crop};
    const Tensor<float> plain = pixels(toml, "", raw);
    BOOST_REQUIRE((plain.shape() == Shape{2, 3 * 144}));
    for (const std::string& given : {toml, std::string("auto")})
      for (const bool overridden : {false, true}) BOOST_TEST_CONTEXT(p.name << " " << given << " " << overridden) {
          const std::vector<std::string> sets(overridden ? 1U : 0U, "data.std=[2,4,8]");
          const Tensor<float> found = pixels(given, p.name, sets);
          float largest = 0;
          for (Index i = 0; i < found.size(); ++i) {
            const auto c = static_cast<std::size_t>(i / 144 % 3);
            const float std = overridden ? std::array{2.0F, 4.0F, 8.0F}[c] : p.std[c];
            largest = std::max(largest, std::abs(found[i] - (plain[i] - p.mean[c]) / std));
          }
          BOOST_TEST(largest < 1e-5F);  // rounding errors of numbers below 3
        }
    if (p.name != "imagenet") continue;
    const Tensor<float> automatic = pixels("auto", "", {}), named = pixels("auto", p.name, {});
    BOOST_TEST(std::equal(automatic.begin(), automatic.end(), named.begin(), named.end()));
  }
}

// spectrum, residual and generate need a run, and print no class names.
BOOST_AUTO_TEST_CASE(commands_of_runs_offer_no_model_file) {
  for (const char* const command : {"spectrum", "residual", "generate"}) {
    const std::string help = output_of({command, "--help"});
    for (const char* const option : {"--model", "--names"}) BOOST_TEST(help.find(option) == std::string::npos, command);
    check_contains(help, {"--weights", "--preset"});
  }
  check_contains(output_of({"maps", "--help"}), {"--model", "--names"});
}

BOOST_AUTO_TEST_SUITE_END()
