// The picture that heed predict draws for a model that classifies patches of scenes.
#include "heed/data/readers/scenes.h"
#include "heed/draw/patch_sheet.h"
#include "support/cli.h"
#include "support/images.h"

using namespace heed;
using namespace heed::test;

namespace {

/// A run after its first step, on scenes of small patterns.
struct ScenesRun {
  TemporaryDirectory directory;
  std::string data = directory / "data", run = directory / "run", picture = directory / "scenes.png";

  ScenesRun() {
    write_patterns(data, 30, 30, 28);
    output_of({"train", "experiments/scenes.toml", "--run", run,
               "--set", "data.path=" + data,       "--set", "model.dim=8",
               "--set", "data.validation=10",      "--set", "model.depth=1",
               "--set", "model.hidden=8",          "--set", "train.batch=2",
               "--set", "train.init='strict'",     "--set", "train.init_positions=false",
               "--set", "train.max_steps=1"});
  }
};

/// Returns a column of a sheet: its pictures are 56 pixels wide, each pixel is drawn 6 wide, and gaps are 2 pixels.
Image column(const Image& sheet, Index which) {
  Image part{{3, sheet.size.height, 56 * 6}, {}};
  for (Index c = 0; c < 3; ++c)
    for (Index y = 0; y < sheet.size.height; ++y) {
      const auto from = sheet.pixels.begin() + (c * sheet.size.height + y) * sheet.size.width + which * 58 * 6;
      part.pixels.insert(part.pixels.end(), from, from + 56 * 6);
    }
  return part;
}

/// Returns the sheet of scenes 0 and 5, with all patches predicted correctly.
Image right_sheet(const Scenes& scenes) {
  std::vector<PatchPicture> expected(2);
  for (std::size_t i = 0; i < 2; ++i) {
    expected[i].truth.resize(static_cast<std::size_t>(scenes.patches()));
    scenes.read(i == 0 ? 0 : 5, expected[i].image, expected[i].truth.data());
    expected[i].predicted = expected[i].truth;
  }
  return patch_sheet(expected, scenes.class_names(), 4, 6);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_scenes)

BOOST_FIXTURE_TEST_CASE(what_is_told_stands_between_scene_and_truth, ScenesRun) {
  check_contains(output_of_unfinished({"predict", run, "--index", "0,5", "-o", picture}),
                 {picture, "0 blue, 1 orange"});
  const Image drawn = load_image(picture), right = right_sheet(Scenes("mnist", data, Split::test, 0, 4));
  BOOST_REQUIRE((drawn.size == right.size));
  BOOST_TEST(column(drawn, 0).pixels == column(right, 0).pixels);
  BOOST_TEST(column(drawn, 2).pixels == column(right, 2).pixels);
  // After one step, not all of the model's predictions are right.
  BOOST_TEST((column(drawn, 1).pixels != column(right, 1).pixels));
}

// With --split train, scenes are drawn with the run's seed; with --path, they contain the images of that directory.
BOOST_FIXTURE_TEST_CASE(scenes_of_a_split_and_a_directory, ScenesRun) {
  const std::string other = directory / "other";
  write_patterns(other, 20, 20, 28);
  const auto check = [&](const char* option, const std::string& value, const Scenes& scenes) {
    output_of_unfinished({"predict", run, "--index", "0,5", "-o", picture, option, value});
    BOOST_TEST(column(load_image(picture), 0).pixels == column(right_sheet(scenes), 0).pixels);
  };
  check("--split", "train", Scenes("mnist", data, Split::train, 1, 4));
  check("--path", other, Scenes("mnist", other, Split::test, 0, 4));
}

BOOST_FIXTURE_TEST_CASE(a_picture_that_cannot_be_is_refused, ScenesRun) {
  check_refusal({"predict", run, "--index", "0"}, {"expected --index N,... and -o FILE.png"});
  check_refusal({"predict", run, "-o", picture}, {"expected IMAGE or --index"});
  check_refusal({"predict", run, "--index", "0", "-o", directory / "x.txt"},
                {"x.txt: expected a name that ends in .png"});
  for (const auto& [option, value] : {std::pair("--data", "mnist"), {"--top", "3"}, {"--invert", ""}}) {
    std::vector<std::string> words{"predict", run, "--index", "0", "-o", picture, option};
    if (*value) words.push_back(value);
    check_refusal(words, {std::string(option) + " is for models that classify images"});
  }
  check_refusal({"predict", run, "--index", "99999", "-o", picture}, {"--index 99999: expected an index below"});
  BOOST_TEST(!std::filesystem::exists(picture));
  check_refusal({"maps", run, "--index", "0", "-o", picture},
                {"data.name = 'scenes' has a label per patch; expected images with one label each; choose another data "
                 "set with --data"});
}

BOOST_AUTO_TEST_SUITE_END()
