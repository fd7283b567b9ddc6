// Scenes: labels compared with their definition, given the objects on the canvas.
#include "heed/data/readers/scenes.h"
#include "support/images.h"
#include "support/statistics.h"

#include <map>

using namespace heed;
using namespace heed::test;

namespace {

/// Writes ten images of side x side pixels for each split, one per class, with a square of brightness 20 + 25 c in the
/// middle for class c. The squares of classes 0 to 4 are dark, at most 127. Returns the directory.
std::string write_squares(const TemporaryDirectory& directory, std::uint32_t side = 28) {
  Bytes images, labels;
  for (std::uint8_t c = 0; c < 10; ++c) {
    for (std::uint32_t i = 0; i < side * side; ++i) {
      const auto inside = [side](std::uint32_t at) { return at >= side / 7 && at < 6 * side / 7; };
      images.push_back(inside(i / side) && inside(i % side) ? static_cast<std::uint8_t>(20 + 25 * c) : 0);
    }
    labels.push_back(c);
  }
  for (const std::string split : {"train", "t10k"}) {
    write_file(directory / (split + "-images-idx3-ubyte"), idx({10, side, side}, images));
    write_file(directory / (split + "-labels-idx1-ubyte"), idx({10}, labels));
  }
  return directory / "";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(data_scenes)

// A pixel brighter than 127 has a class, which its brightness identifies; other pixels have none.
BOOST_AUTO_TEST_CASE(labels_follow_from_pixels) {
  const TemporaryDirectory directory;
  const std::string path = write_squares(directory);
  for (const Index patch : {4, 7}) {
    const Scenes scenes("mnist", path, Split::train, 3, patch);
    BOOST_TEST(scenes.size() == 25'000);
    BOOST_TEST(scenes.classes() == 11);
    BOOST_TEST(scenes.class_names()[0] == "background");
    std::map<int, int> seen;
    std::vector<int> labels(static_cast<std::size_t>(scenes.patches()));
    Image image;
    bool same = true;
    for (Index scene = 0; scene < 60; ++scene) {
      scenes.read(scene, image, labels.data());
      BOOST_TEST((image.size == ImageSize{1, 56, 56}));
      const Index across = 56 / patch;
      for (Index p = 0; p < across * across; ++p) {
        std::vector<int> votes(11);
        for (Index y = 0; y < patch; ++y)
          for (Index x = 0; x < patch; ++x) {
            const int pixel = image.pixels[(p / across * patch + y) * 56 + p % across * patch + x];
            if (pixel > 127) ++votes[static_cast<std::size_t>((pixel - 20) / 25 + 1)];
          }
        int sum = 0, best = 0;
        for (int c = 1; c <= 10; ++c) {
          sum += votes[static_cast<std::size_t>(c)];
          if (votes[static_cast<std::size_t>(c)] > votes[static_cast<std::size_t>(best)]) best = c;
        }
        same &= labels[static_cast<std::size_t>(p)] == (4 * sum >= patch * patch ? best : 0);
        ++seen[labels[static_cast<std::size_t>(p)]];
      }
    }
    BOOST_TEST(same);
    for (int c = 0; c <= 10; ++c) BOOST_TEST((seen[c] > 0) == (c == 0 || c > 5), "class " << c);
  }
}

// A scene depends on the seed and its index; a test scene on its index alone.
BOOST_AUTO_TEST_CASE(scenes_repeat_themselves) {
  const TemporaryDirectory directory;
  const std::string path = write_squares(directory);
  std::vector<int> labels(64);
  const auto pixels = [&](Split split, std::uint64_t seed, Index scene) {
    Image image;
    Scenes("mnist", path, split, seed, 7).read(scene, image, labels.data());
    return image.pixels;
  };
  BOOST_TEST((pixels(Split::train, 1, 5) == pixels(Split::train, 1, 5)));
  BOOST_TEST((pixels(Split::train, 1, 5) != pixels(Split::train, 2, 5)));
  BOOST_TEST((pixels(Split::train, 1, 5) != pixels(Split::train, 1, 6)));
  BOOST_TEST((pixels(Split::test, 1, 5) == pixels(Split::test, 2, 5)));
  BOOST_TEST((pixels(Split::test, 1, 5) != pixels(Split::train, 1, 5)));
  BOOST_TEST(error_of([&] { Scenes("mnist", path, Split::train, 1, 5); }) ==
             "scenes: patches of 5 do not divide a canvas of 56");
  const TemporaryDirectory other;
  const std::string small = write_squares(other, 14);
  BOOST_TEST(error_of([&] { Scenes("mnist", small, Split::train, 1, 7); }) ==
             "scenes: the images of mnist are 1x14x14; expected 1x28x28");
}

// Only the upper left pixel of each image is bright, and its brightness identifies the image: 130 to 139, or 140 to 149
// in the test split. The bright pixels of a scene are then the corners of its images: 1 to 4 of them, anywhere in rows
// and columns 0 to 28. Two corners coincide in at most 4 * 3 / 2 / 841 = 0.7 % of the 1,600 scenes, a small part of the
// 400 expected in each cell of `counts`.
BOOST_AUTO_TEST_CASE(images_are_drawn_and_placed_evenly) {
  const TemporaryDirectory directory;
  for (const bool test : {false, true}) {
    Bytes images(10 * 28 * 28, 0), labels;
    for (std::uint8_t c = 0; c < 10; ++c) {
      images[c * 28 * 28u] = static_cast<std::uint8_t>((test ? 140 : 130) + c);
      labels.push_back(c);
    }
    const std::string split = test ? "t10k" : "train";
    write_file(directory / (split + "-images-idx3-ubyte"), idx({10, 28, 28}, images));
    write_file(directory / (split + "-labels-idx1-ubyte"), idx({10}, labels));
  }
  for (const bool test : {false, true}) {
    const Scenes scenes("mnist", directory / "", test ? Split::test : Split::train, 3, 28);
    BOOST_TEST(scenes.size() == (test ? 5'000 : 25'000));
    std::vector<double> counts(4), numbers(10), rows(29), columns(29), down, right;
    std::vector<int> unused(4);
    Image image;
    for (Index scene = 0; scene < 1600; ++scene) {
      scenes.read(scene, image, unused.data());
      std::size_t found = 0;
      for (std::size_t i = 0; i < 56 * 56; ++i) {
        if (image.pixels[i] == 0) continue;
        const int number = image.pixels[i] - (test ? 140 : 130);
        BOOST_REQUIRE((number >= 0 && number < 10 && i / 56 < 29 && i % 56 < 29));
        ++found, ++numbers[static_cast<std::size_t>(number)], ++rows[i / 56], ++columns[i % 56];
        down.push_back((static_cast<double>(i / 56) + 0.5) / 29);
        right.push_back((static_cast<double>(i % 56) + 0.5) / 29);
      }
      BOOST_REQUIRE((found >= 1 && found <= 4));
      ++counts[found - 1];
    }
    check_z(z_of_equal_cells(counts), "images in a scene");
    check_z(z_of_equal_cells(numbers), "images");
    check_z(z_of_equal_cells(rows), "rows");
    check_z(z_of_equal_cells(columns), "columns");
    check_z(z_of_correlation(down, right), "rows and columns");
  }
}

// Images of uniform brightness: pixels of 127 have no class, pixels of 128 have one.
BOOST_AUTO_TEST_CASE(pixels_need_more_than_127_for_a_class) {
  const TemporaryDirectory directory;
  Bytes images(2 * 28 * 28, 127);
  std::fill(images.begin() + 28 * 28, images.end(), std::uint8_t{128});
  write_file(directory / "train-images-idx3-ubyte", idx({2, 28, 28}, images));
  write_file(directory / "train-labels-idx1-ubyte", idx({2}, {0, 1}));
  const Scenes scenes("mnist", directory / "", Split::train, 3, 4);
  std::vector<int> labels(14 * 14);
  std::map<int, int> seen;
  Image image;
  for (Index scene = 0; scene < 40; ++scene) {
    scenes.read(scene, image, labels.data());
    for (std::size_t p = 0; p < 14 * 14; ++p) {
      int bright = 0;
      for (std::size_t k = 0; k < 16; ++k)
        bright += image.pixels[(p / 14 * 4 + k / 4) * 56 + p % 14 * 4 + k % 4] == 128;
      BOOST_REQUIRE(labels[p] == (bright >= 4 ? 2 : 0));
      ++seen[labels[p]];
    }
  }
  BOOST_TEST(seen[0] > 0);
  BOOST_TEST(seen[2] > 0);
}

BOOST_AUTO_TEST_SUITE_END()
