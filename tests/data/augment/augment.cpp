// Augmentations compared with hand calculations, and their invariants.
#include "src/data/augment/augment.h"

#include "support/images.h"

#include <cmath>
#include <set>

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(data_augment)

BOOST_AUTO_TEST_CASE(flip_mirrors_rows) {
  Image image{{1, 2, 3}, {1, 2, 3, 4, 5, 6}};
  flip(image);
  BOOST_TEST(image.pixels == (Bytes{3, 2, 1, 6, 5, 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(crop_by_hand) {
  Image image{{1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}};
  crop(image, 1, 0, 2);  // one row of padding above, one column on the right
  BOOST_TEST(image.pixels == (Bytes{0, 0, 0, 2, 3, 0, 5, 6, 0}), boost::test_tools::per_element());
}

// Compares every position with direct reading of the padded image, even if the padding is larger than the image.
BOOST_AUTO_TEST_CASE(crop_is_a_window_of_the_padded_image) {
  const ImageSize size{3, 4, 3};
  for (const Index padding : {0, 1, 2, 6})
    for (Index top = 0; top <= 2 * padding; ++top)
      for (Index left = 0; left <= 2 * padding; ++left) {
        const Image from = pattern(size, 1);
        Image image = from;
        crop(image, padding, top, left);
        Bytes expected;
        for (Index c = 0; c < 3; ++c)
          for (Index y = top - padding; y < top - padding + 4; ++y)
            for (Index x = left - padding; x < left - padding + 3; ++x) {
              const bool inside = y >= 0 && y < 4 && x >= 0 && x < 3;
              expected.push_back(inside ? from.pixels[static_cast<std::size_t>((c * 4 + y) * 3 + x)] : std::uint8_t{0});
            }
        BOOST_REQUIRE(image.pixels == expected);
      }
}

BOOST_AUTO_TEST_CASE(crop_and_flip_take_every_position_and_side) {
  DataConfig config;
  config.augment = {"crop", "flip"};
  config.crop_padding = 1;
  const Augmentations which = parse_augmentations(config);
  std::set<Bytes> seen;
  for (std::uint64_t i = 0; i < 400; ++i) {
    Image image = pattern({1, 5, 5}, 1);
    augment(image, which, config, RandomStream(i));
    seen.insert(image.pixels);
  }
  BOOST_TEST(seen.size() == 18u);  // 3 x 3 positions, flipped or not
}

BOOST_AUTO_TEST_CASE(names_and_parameters_are_checked) {
  DataConfig config;
  config.augment = {"crop", "flipp"};
  check_error([&] { parse_augmentations(config); }, {"data.augment", "'flipp'", "did you mean 'flip'"});
  config.augment = {"crop", "colourful"};
  check_error([&] { parse_augmentations(config); }, {"'colourful'", "mixup", "randaugment"});
  config.augment = {"crop", "crop"};
  check_error([&] { parse_augmentations(config); }, {"'crop'", "twice"});
  const auto check = [](auto set, const char* key) {
    DataConfig bad;
    set(bad);
    check_error([&] { parse_augmentations(bad); }, {key});
  };
  check([](DataConfig& c) { c.crop_padding = -1; }, "data.crop_padding is -1");
  check([](DataConfig& c) { c.mixup_alpha = 0; }, "data.mixup_alpha is 0");
  check([](DataConfig& c) { c.cutmix_alpha = std::nan(""); }, "data.cutmix_alpha is nan");
  check([](DataConfig& c) { c.erase_probability = 1.5; }, "data.erase_probability is 1.5");
  check([](DataConfig& c) { c.randaugment_ops = -2; }, "data.randaugment_ops is -2");
  check([](DataConfig& c) { c.randaugment_magnitude = 11; }, "data.randaugment_magnitude is 11");
  check([](DataConfig& c) { c.crop_padding = 16385; }, "data.crop_padding is 16385; expected 0 to 16384");
  check([](DataConfig& c) { c.mixup_alpha = 1.1e6; }, "data.mixup_alpha is ");
  check([](DataConfig& c) { c.cutmix_alpha = -1; }, "data.cutmix_alpha is -1");
  check([](DataConfig& c) { c.erase_probability = -0.5; }, "data.erase_probability is -0.5");
  check([](DataConfig& c) { c.randaugment_ops = 101; }, "data.randaugment_ops is 101; expected 0 to 100");
  check([](DataConfig& c) { c.randaugment_magnitude = -1; }, "data.randaugment_magnitude is -1; expected 0 to 10");
  DataConfig largest, least;
  largest.crop_padding = 16384, largest.mixup_alpha = largest.cutmix_alpha = 1e6, largest.erase_probability = 1;
  largest.randaugment_ops = 100, largest.randaugment_magnitude = 10;
  least.crop_padding = least.randaugment_ops = 0, least.erase_probability = least.randaugment_magnitude = 0;
  for (const DataConfig& good : {largest, least}) BOOST_CHECK_NO_THROW(parse_augmentations(good));
}

// At probability 1/4, 100 +- 8.7 of n = 400 images are erased; the bounds are six deviations. The changes must be a
// full rectangle in all channels, with separate noise for each element.
BOOST_AUTO_TEST_CASE(erase_fills_one_rectangle) {
  int erased = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    Tensor<double> image({3, 16, 12});
    std::fill(image.begin(), image.end(), 77.0);
    erase(image.view(), 0.25, RandomStream(i));
    Index count = 0, top = 16, left = 12, bottom = 0, right = 0;
    std::set<double> noise;
    for (Index at = 0; at < image.size(); ++at)
      if (image[at] != 77.0) {
        const Index y = at / 12 % 16, x = at % 12;
        ++count;
        top = std::min(top, y), left = std::min(left, x), bottom = std::max(bottom, y + 1),
        right = std::max(right, x + 1);
        BOOST_REQUIRE(std::abs(image[at]) < 8);
        noise.insert(image[at]);
      }
    if (count == 0) continue;
    ++erased;
    BOOST_REQUIRE(count == 3 * (bottom - top) * (right - left));
    BOOST_REQUIRE(noise.size() == static_cast<std::size_t>(count));
  }
  BOOST_TEST(erased > 48);
  BOOST_TEST(erased < 152);
}

BOOST_AUTO_TEST_CASE(mixup_by_hand) {
  Tensor<double> images({3, 1, 1, 2}, {1, 2, 10, 20, 5, 6});
  Tensor<double> targets({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  apply_mix({.keep = 0.75, .cut = false, .box = {}}, images.view(), targets.view());
  const std::vector<double> expected = {2, 3, 10, 20, 4, 5};
  const std::vector<double> expected_targets = {0.75, 0, 0.25, 0, 1, 0, 0.25, 0, 0.75};
  BOOST_TEST(std::vector<double>(images.begin(), images.end()) == expected, boost::test_tools::per_element());
  BOOST_TEST(std::vector<double>(targets.begin(), targets.end()) == expected_targets, boost::test_tools::per_element());
}

// The rectangle of row 1 and columns 1 and 2 is exchanged in each channel of images 0 and 2; image 1 has no partner.
BOOST_AUTO_TEST_CASE(cutmix_by_hand) {
  Tensor<double> images({3, 2, 2, 3}), targets({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  for (Index i = 0; i < images.size(); ++i) images[i] = static_cast<double>(i + 1);
  apply_mix({.keep = 0.75, .cut = true, .box = {1, 1, 2, 3}}, images.view(), targets.view());
  const std::vector<double> expected = {1,  2,  3,  4,  29, 30, 7,  8,  9,  10, 35, 36, 13, 14, 15, 16, 17, 18,
                                        19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 5,  6,  31, 32, 33, 34, 11, 12};
  const std::vector<double> expected_targets = {0.75, 0, 0.25, 0, 1, 0, 0.25, 0, 0.75};
  BOOST_TEST(std::vector<double>(images.begin(), images.end()) == expected, boost::test_tools::per_element());
  BOOST_TEST(std::vector<double>(targets.begin(), targets.end()) == expected_targets, boost::test_tools::per_element());
}

// An image's weight in the targets must be the fraction of pixels from this image.
BOOST_AUTO_TEST_CASE(cutmix_targets_match_pixels) {
  DataConfig config;
  config.augment = {"cutmix"};
  const Augmentations which = parse_augmentations(config);
  double least = 1, most = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const ImageSize size{3, 8, 6};
    Tensor<float> images({2, 3, 8, 6}), targets({2, 2}, {1, 0, 0, 1});
    std::fill(images.begin() + size.elements(), images.end(), 1.0f);  // image 0 is all 0, image 1 all 1
    const Mix mix = draw_mix(which, config, size, RandomStream(i));
    BOOST_REQUIRE(mix.cut);
    apply_mix(mix, images.view(), targets.view());
    for (Index image = 0; image < 2; ++image) {
      double ones = 0;
      for (Index at = 0; at < size.elements(); ++at) ones += images[image * size.elements() + at];
      BOOST_REQUIRE(std::abs(targets[image * 2 + 1] - ones / static_cast<double>(size.elements())) < 1e-6);
      BOOST_REQUIRE(std::abs(targets[image * 2] + targets[image * 2 + 1] - 1) < 1e-6);
    }
    least = std::min(least, mix.keep), most = std::max(most, mix.keep);
  }
  BOOST_TEST(least < 0.5);
  BOOST_TEST(most > 0.9);
}

// Beta(a, a) has mean 1/2 and variance 1 / (4 (2 a + 1)). Over n = 20,000 draws the mean is within 5 standard
// deviations and the variance within 5%; the standard deviation of the variance is below 1%.
BOOST_AUTO_TEST_CASE(mixup_weights_follow_beta) {
  for (const double alpha : {0.1, 0.8, 1.0, 3.0}) {
    DataConfig config;
    config.augment = {"mixup"};
    config.mixup_alpha = alpha;
    const Augmentations which = parse_augmentations(config);
    const int n = 20'000;
    double sum = 0, squares = 0;
    for (std::uint64_t i = 0; i < n; ++i) {
      const double keep = draw_mix(which, config, {1, 4, 4}, RandomStream(3).derive(i)).keep;
      BOOST_REQUIRE((keep >= 0 && keep <= 1));
      sum += keep - 0.5;
      squares += (keep - 0.5) * (keep - 0.5);
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    BOOST_TEST(std::abs(sum / n) < 5 * std::sqrt(variance / n));
    BOOST_TEST(std::abs(squares / n / variance - 1) < 0.05);
  }
}

BOOST_AUTO_TEST_CASE(mixup_and_cutmix_take_turns) {
  DataConfig config;
  config.augment = {"mixup", "cutmix"};
  const Augmentations which = parse_augmentations(config);
  int cut = 0;
  for (std::uint64_t i = 0; i < 400; ++i) cut += draw_mix(which, config, {1, 9, 9}, RandomStream(i)).cut ? 1 : 0;
  BOOST_TEST(std::abs(cut - 200) < 60);  // six deviations
}

// Samples of Beta(alpha, alpha) are near 1/2 for a large alpha, and near 0 or 1 for a small alpha; half of the boxes
// are then empty.
BOOST_AUTO_TEST_CASE(each_mix_has_its_own_alpha) {
  DataConfig config;
  config.augment = {"mixup", "cutmix"};
  const Augmentations which = parse_augmentations(config);
  for (const bool sharp_cut : {false, true}) {
    config.mixup_alpha = sharp_cut ? 1e6 : 0.01;
    config.cutmix_alpha = sharp_cut ? 0.01 : 1e6;
    int extreme[2] = {0, 0}, count[2] = {0, 0};
    for (std::uint64_t i = 0; i < 400; ++i) {
      const Mix mix = draw_mix(which, config, {1, 100, 100}, RandomStream(i));
      ++count[mix.cut];
      // A box of about half the image's area covers at least an eighth of the image after clipping at two borders.
      extreme[mix.cut] += mix.cut ? mix.keep < 0.1 || mix.keep > 0.95 : std::abs(mix.keep - 0.5) > 0.4;
    }
    for (const int cut : {0, 1}) {
      BOOST_TEST(count[cut] > 100);
      if ((cut == 1) == sharp_cut)
        BOOST_TEST(extreme[cut] > 0.4 * count[cut], "cut = " << cut);
      else
        BOOST_TEST(extreme[cut] == 0, "cut = " << cut);
    }
  }
}

// data.augment uses the options of RandAugment and of the crop.
BOOST_AUTO_TEST_CASE(augmentation_heeds_its_options) {
  const Image image = pattern({1, 9, 9}, 5);
  const auto results = [&](const DataConfig& config) {
    const Augmentations which = parse_augmentations(config);
    std::vector<Bytes> all;
    for (std::uint64_t i = 0; i < 60; ++i) {
      Image changed = image;
      augment(changed, which, config, RandomStream(i));
      all.push_back(changed.pixels);
    }
    return all;
  };
  DataConfig config;
  config.augment = {"randaugment"};
  for (const Index ops : {0, 1, 3})
    for (const double magnitude : {2.0, 9.0}) {
      config.randaugment_ops = ops, config.randaugment_magnitude = magnitude;
      const std::vector<Bytes> found = results(config);
      for (std::uint64_t i = 0; i < 60; ++i) {
        Image expected = image;
        randaugment(expected, ops, magnitude, RandomStream(i).derive("randaugment"));
        BOOST_TEST((found[i] == expected.pixels), ops << " operations, " << magnitude);
      }
    }
  // The black border at the top is at most as high as the padding, and in some draws exactly as high.
  config.augment = {"crop"};
  for (const Index padding : {0, 1, 3}) {
    config.crop_padding = padding;
    Index most = 0;
    for (const Bytes& pixels : results(config)) {
      Index black = 0;
      while (black < 9 && std::all_of(pixels.begin() + 9 * black, pixels.begin() + 9 * (black + 1),
                                      [](std::uint8_t x) { return x == 0; }))
        ++black;
      most = std::max(most, black);
    }
    BOOST_TEST(most == padding);
  }
}

BOOST_AUTO_TEST_SUITE_END()
