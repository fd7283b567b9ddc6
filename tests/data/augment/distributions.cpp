// Distributions of the augmentations' draws: positions, sides, operations, rectangles and their noise.
#include "src/data/augment/augment.h"

#include "support/images.h"
#include "support/statistics.h"

#include <map>

using namespace heed;
using namespace heed::test;

namespace {

/// Counts the results of f(stream) over `times` streams; `possible` has all results.
template <class F>
std::vector<double> counts_of(const std::vector<Bytes>& possible, std::uint64_t times, const F& f) {
  std::map<Bytes, std::size_t> places;
  for (std::size_t i = 0; i < possible.size(); ++i) BOOST_REQUIRE(places.emplace(possible[i], i).second);
  std::vector<double> counts(possible.size());
  for (std::uint64_t i = 0; i < times; ++i) ++counts[places.at(f(RandomStream(17).derive(i)))];
  return counts;
}

/// A rectangle erased from an image of zeros: its area as a fraction of the image's, log(rows / columns), and its
/// distances from the top and from the left as fractions of the largest possible ones.
struct Erased {
  double area, log_aspect, down, right;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(data_distributions)

BOOST_AUTO_TEST_CASE(every_place_and_side_comes_as_often) {
  DataConfig config;
  config.augment = {"crop", "flip"};
  config.crop_padding = 2;
  const Augmentations which = parse_augmentations(config);
  const Image image = pattern({1, 6, 7}, 1);
  std::vector<Bytes> possible;
  for (Index top = 0; top < 5; ++top)
    for (Index left = 0; left < 5; ++left)
      for (const bool mirrored : {false, true}) {
        Image moved = image;
        crop(moved, 2, top, left);
        if (mirrored) flip(moved);
        possible.push_back(moved.pixels);
      }
  check_z(z_of_equal_cells(counts_of(possible, 50'000,
                                     [&](const RandomStream& stream) {
                                       Image changed = image;
                                       augment(changed, which, config, stream);
                                       return changed.pixels;
                                     })),
          "crop and flip");
}

// With one operation, all 14 operations, and both directions of an operation that has two, are equally frequent. With
// two operations, the second is drawn independently of the first.
BOOST_AUTO_TEST_CASE(every_operation_comes_as_often) {
  const auto operations = randaugment_operations();
  BOOST_REQUIRE(operations.size() == 14u);
  Image image{{3, 20, 20}, {}};
  for (Index i = 0; i < 1200; ++i)
    image.pixels.push_back(static_cast<std::uint8_t>(RandomStream(4).below(i, 200) + 20));
  const double strength = 0.7;
  const auto after = [&](Image from, std::size_t operation, double sign) {
    operations[operation].apply(from, strength, sign);
    return from;
  };
  // Index and direction of each operation, by its result.
  std::map<Bytes, std::pair<std::size_t, double>> results;
  for (std::size_t i = 0; i < 14; ++i)
    for (const double sign : {-1.0, 1.0}) results.emplace(after(image, i, sign).pixels, std::pair(i, sign));
  BOOST_TEST(results.size() == 5u + 2 * 9u);  // identity, autocontrast, equalize, solarize, posterize have no direction

  std::vector<double> single(14), directions(2 * 14);
  for (std::uint64_t i = 0; i < 28'000; ++i) {
    Image changed = image;
    randaugment(changed, 1, 10 * strength, RandomStream(18).derive(i));
    const auto [operation, sign] = results.at(changed.pixels);
    ++single[operation], ++directions[2 * operation + (sign > 0)];
  }
  check_z(z_of_equal_cells(single), "operations");
  for (std::size_t i = 0; i < 14; ++i) {
    const double both = directions[2 * i] + directions[2 * i + 1];
    if (std::min(directions[2 * i], directions[2 * i + 1]) > 0)
      check_z(z_of_successes(directions[2 * i], both, 0.5), operations[i].name);
  }

  // Pairs of shears and translations, which do not commute, have the expected frequency.
  std::map<Bytes, std::size_t> pairs;
  for (std::size_t a = 10; a < 14; ++a)
    for (std::size_t b = 10; b < 14; ++b)
      for (const double sign : {-1.0, 1.0})
        for (const double other : {-1.0, 1.0})
          pairs.emplace(after(after(image, a, sign), b, other).pixels, pairs.size());
  double found = 0;
  const double times = 28'000, share = 16.0 / 196;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(times); ++i) {
    Image changed = image;
    randaugment(changed, 2, 10 * strength, RandomStream(19).derive(i));
    found += pairs.contains(changed.pixels);
  }
  check_z(z_of_successes(found, times, share), "pairs of operations");
}

// The area, from 2 % to 33 %, the logarithm of the aspect, and the position are uniform. Rectangles that do not fit
// into the image are redrawn, which never happens for areas below 30 %. The content is N(0, 1).
BOOST_AUTO_TEST_CASE(erased_rectangles_and_their_noise) {
  constexpr Index height = 150, width = 150;
  std::vector<Erased> all;
  std::vector<double> noise;
  Tensor<float> image({1, height, width});
  for (std::uint64_t i = 0; i < 3000; ++i) {
    std::fill(image.begin(), image.end(), 0.0f);
    erase(image.view(), 1, RandomStream(20).derive(i));
    Index top = height, left = width, bottom = 0, right = 0;
    for (Index at = 0; at < image.size(); ++at)
      if (image[at] != 0) {
        const Index y = at / width, x = at % width;
        top = std::min(top, y), left = std::min(left, x), bottom = std::max(bottom, y + 1);
        right = std::max(right, x + 1);
        if (at % 50 == 0) noise.push_back(image[at]);
      }
    const double rows = static_cast<double>(bottom - top), columns = static_cast<double>(right - left);
    all.push_back({rows * columns / (height * width), std::log(rows / columns),
                   (static_cast<double>(top) + 0.5) / (height - rows + 1),
                   (static_cast<double>(left) + 0.5) / (width - columns + 1)});
  }
  const auto of = [&](double Erased::*member) {
    std::vector<double> values;
    for (const Erased& erased : all)
      if (erased.area > 0.03 && erased.area < 0.3) values.push_back(erased.*member);
    return values;
  };
  check_z(z_of_successes(static_cast<double>(of(&Erased::area).size()), 3000, 0.27 / 0.31), "areas up to 30 %");
  check_distribution(
      of(&Erased::area), [](double x) { return (x - 0.03) / 0.27; }, "area");
  const double most = std::log(1 / 0.3);
  check_distribution(
      of(&Erased::log_aspect), [=](double x) { return (x + most) / (2 * most); }, "aspect");
  for (double Erased::*place : {&Erased::down, &Erased::right})
    check_distribution(
        of(place), [](double x) { return x; }, "place");
  check_z(z_of_correlation(of(&Erased::down), of(&Erased::right)), "rows and columns");
  check_distribution(noise, normal_distribution, "noise");
}

// cutmix: before clipping at the border, a box covers 1 - keep of the image's area and has a uniform centre.
BOOST_AUTO_TEST_CASE(boxes_lie_anywhere) {
  DataConfig config;
  config.augment = {"cutmix"};
  config.cutmix_alpha = 1;
  const Augmentations which = parse_augmentations(config);
  std::vector<bool> inside;
  std::vector<double> down, right;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const Mix mix = draw_mix(which, config, {1, 100, 200}, RandomStream(21).derive(i));
    if (mix.box.area() == 0) continue;
    const bool whole = mix.box.top > 0 && mix.box.left > 0 && mix.box.bottom < 100 && mix.box.right < 200;
    inside.push_back(whole);
    if (!whole) continue;
    down.push_back((mix.box.top + mix.box.bottom) / 200.0), right.push_back((mix.box.left + mix.box.right) / 400.0);
  }
  // A box of h x w touches no border for 99 - h of its centre's 100 rows and 199 - w of its 200 columns; h = 100 s and
  // w = 200 s, rounded down, with s^2 uniform.
  double likely = 0, some = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    const double side = std::sqrt((i + 0.5) * 1e-6), h = std::floor(100 * side), w = std::floor(200 * side);
    if (h < 1) continue;
    ++some, likely += std::max(0.0, 99 - h) / 100 * std::max(0.0, 199 - w) / 200;
  }
  const double sum = static_cast<double>(std::count(inside.begin(), inside.end(), true));
  check_z(z_of_successes(sum, static_cast<double>(inside.size()), likely / some), "boxes inside");
  check_z(z_of_correlation(down, right), "rows and columns");
  // The centres are on either side of the middle with equal probability.
  for (const std::vector<double>* centres : {&down, &right}) {
    double above = 0;
    for (const double centre : *centres) above += centre > 0.5 ? 1 : centre == 0.5 ? 0.5 : 0;
    check_z(z_of_successes(above, static_cast<double>(centres->size()), 0.5), "centres");
  }
}

BOOST_AUTO_TEST_CASE(mixing_weights_are_uniform_where_alpha_is_1) {
  DataConfig config;
  config.augment = {"mixup"};
  config.mixup_alpha = 1;
  const Augmentations which = parse_augmentations(config);
  std::vector<double> keep;
  for (std::uint64_t i = 0; i < 20'000; ++i)
    keep.push_back(draw_mix(which, config, {1, 4, 4}, RandomStream(22).derive(i)).keep);
  check_distribution(
      keep, [](double x) { return x; }, "Beta(1, 1)");
}

BOOST_AUTO_TEST_SUITE_END()
