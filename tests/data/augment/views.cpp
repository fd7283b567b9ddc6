// Views for self-supervision: each change compared with its definition, and its frequency.
#include "src/data/augment/views.h"

#include "src/data/augment/augment.h"
#include "src/data/images/colour.h"
#include "support/images.h"
#include "support/statistics.h"

#include "heed/data/loader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

using namespace heed;
using namespace heed::test;

namespace {

/// Returns an image of random bytes.
Image noise(ImageSize size, std::uint64_t seed) {
  Image image{size, {}};
  for (Index i = 0; i < size.elements(); ++i)
    image.pixels.push_back(static_cast<std::uint8_t>(RandomStream(seed).below(i, 256)));
  return image;
}

int largest_difference(const Bytes& a, const Bytes& b) {
  BOOST_REQUIRE(a.size() == b.size());
  int worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

/// Hue in sixths of a turn, and saturation and value from 0 to 1.
struct Hsv {
  double h, s, v;
};
Hsv hsv_of(double r, double g, double b) {
  const double v = std::max({r, g, b}), range = v - std::min({r, g, b});
  double h = 0;
  if (range > 0 && v == r)
    h = std::fmod((g - b) / range + 6, 6);
  else if (range > 0 && v == g)
    h = 2 + (b - r) / range;
  else if (range > 0)
    h = 4 + (r - g) / range;
  return {h, v > 0 ? range / v : 0, v};
}
std::array<double, 3> rgb_of(const Hsv& c) {
  const int sector = static_cast<int>(std::floor(c.h)) % 6;
  const double f = c.h - std::floor(c.h), p = c.v * (1 - c.s), q = c.v * (1 - f * c.s), t = c.v * (1 - (1 - f) * c.s);
  const std::array<double, 3> of_sector[] = {{c.v, t, p}, {q, c.v, p}, {p, c.v, t},
                                             {p, q, c.v}, {t, p, c.v}, {c.v, p, q}};
  return of_sector[sector];
}

}  // namespace

BOOST_AUTO_TEST_SUITE(data_views)

// The expected pixels are from Pillow's resize(..., BICUBIC). The image has no extreme levels, since Pillow rounds and
// clips to bytes between its passes over rows and columns.
BOOST_AUTO_TEST_CASE(bicubic_as_pillow) {
  Image image{{1, 5, 7}, {}};
  for (int r = 0; r < 5; ++r)
    for (int c = 0; c < 7; ++c)
      image.pixels.push_back(static_cast<std::uint8_t>(100 + 10 * r + 8 * c + 4 * ((3 * r + 5 * c) % 7)));
  const Bytes shrunk{113, 127, 148, 157, 118, 141, 149, 163, 136, 143, 158, 169,
                     142, 150, 167, 182, 142, 164, 175, 194, 160, 168, 190, 188};
  const Bytes stretched{107, 117, 129, 136, 136, 142, 154, 152, 158, 166, 138, 137, 140, 150, 150,
                        154, 166, 171, 176, 179, 151, 151, 153, 162, 175, 180, 180, 189, 192, 191};
  BOOST_TEST(largest_difference(resampled(image, {0, 0, 5, 7}, 6, 4, Filter::cubic).pixels, shrunk) <= 1);
  BOOST_TEST(largest_difference(resampled(image, {0, 0, 5, 7}, 3, 10, Filter::cubic).pixels, stretched) <= 1);
}

// A crop is resampled like a separate image.
BOOST_AUTO_TEST_CASE(parts_are_images) {
  const Image image = noise({3, 9, 11}, 1);
  const Box box{2, 3, 8, 10};
  Image part{{3, 6, 7}, {}};
  for (Index c = 0; c < 3; ++c)
    for (Index y = box.top; y < box.bottom; ++y)
      for (Index x = box.left; x < box.right; ++x) part.pixels.push_back(image.pixels[(c * 9 + y) * 11 + x]);
  BOOST_TEST(resampled(image, box, 6, 7, Filter::cubic).pixels == part.pixels, boost::test_tools::per_element());
  BOOST_TEST(
      resampled(image, box, 4, 13, Filter::cubic).pixels == resampled(part, {0, 0, 6, 7}, 4, 13, Filter::cubic).pixels,
      boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(hue_turns) {
  Image colours{{3, 1, 4}, {255, 0, 90, 200, 0, 255, 90, 100, 0, 0, 90, 50}};  // red, green, grey, brown
  turn_hue(colours, 1.0 / 3);
  BOOST_TEST(colours.pixels == (Bytes{0, 0, 90, 50, 255, 0, 90, 200, 0, 255, 90, 100}),
             boost::test_tools::per_element());
  for (const double turn : {-0.1, -0.03, 0.0, 0.07, 0.5}) {
    const Image image = noise({3, 20, 30}, 2);
    Image turned = image;
    turn_hue(turned, turn);
    Bytes expected(image.pixels.size());
    for (std::size_t i = 0; i < 600; ++i) {
      Hsv c = hsv_of(image.pixels[i] / 255.0, image.pixels[600 + i] / 255.0, image.pixels[1200 + i] / 255.0);
      c.h = std::fmod(c.h + 6 * turn + 6, 6);
      const std::array<double, 3> rgb = rgb_of(c);
      for (std::size_t k = 0; k < 3; ++k) expected[600 * k + i] = static_cast<std::uint8_t>(255 * rgb[k] + 0.5);
    }
    BOOST_TEST(largest_difference(turned.pixels, expected) <= 1, "turned by " << turn);
    if (turn == 0) BOOST_TEST(turned.pixels == image.pixels, boost::test_tools::per_element());
  }
}

// Every pixel is a weighted sum over the window; beyond an edge, the nearest pixel is repeated.
BOOST_AUTO_TEST_CASE(blur_is_a_gaussian) {
  for (const double sigma : {0.1, 0.5, 1.3, 2.0}) {
    const Index height = 6, width = 9, reach = static_cast<Index>(std::ceil(3 * sigma));
    const Image image = noise({2, height, width}, 3);
    Image blurred = image;
    blur(blurred, sigma);
    Bytes expected;
    for (Index c = 0; c < 2; ++c)
      for (Index y = 0; y < height; ++y)
        for (Index x = 0; x < width; ++x) {
          double sum = 0, weights = 0;
          for (Index dy = -reach; dy <= reach; ++dy)
            for (Index dx = -reach; dx <= reach; ++dx) {
              const double weight = std::exp(-static_cast<double>(dx * dx + dy * dy) / (2 * sigma * sigma));
              const Index row = std::clamp<Index>(y + dy, 0, height - 1),
                          column = std::clamp<Index>(x + dx, 0, width - 1);
              sum += weight * image.pixels[(c * height + row) * width + column];
              weights += weight;
            }
          expected.push_back(static_cast<std::uint8_t>(sum / weights + 0.5));
        }
    BOOST_TEST(largest_difference(blurred.pixels, expected) <= 1, "sigma " << sigma);
  }
}

BOOST_AUTO_TEST_CASE(solarise_and_grey_by_hand) {
  Image row{{1, 1, 4}, {0, 127, 128, 250}};
  solarise(row);
  BOOST_TEST(row.pixels == (Bytes{0, 127, 127, 5}), boost::test_tools::per_element());
  const Image colour{{3, 1, 2}, {255, 0, 0, 255, 0, 0}};
  BOOST_TEST(grey_of(colour).pixels == (Bytes{76, 150, 76, 150, 76, 150}), boost::test_tools::per_element());
}

// Fractions of the area are uniform between the bounds, logarithms of aspects between those of 3/4 and 4/3; rounding to
// pixels changes both by less than 2 %. The mean of 4000 uniform numbers has a deviation of 0.5 % of their range.
BOOST_AUTO_TEST_CASE(parts_are_as_large_as_asked) {
  const ImageSize size{3, 400, 400};
  double area = 0, aspect = 0, least = 1, most = 0, top = 0;
  std::vector<double> down, right;
  constexpr int count = 4000;
  for (int i = 0; i < count; ++i) {
    const Box box = draw_part(size, {0.1, 0.5}, RandomStream(4).derive(static_cast<std::uint64_t>(i)));
    BOOST_REQUIRE((box.top >= 0 && box.left >= 0 && box.bottom <= 400 && box.right <= 400));
    const double share = static_cast<double>(box.area()) / 160000;
    const double of = std::log(static_cast<double>(box.width()) / static_cast<double>(box.height()));
    BOOST_REQUIRE(std::abs(of) < std::log(4.0 / 3) + 0.02);
    area += share / count, aspect += of / count;
    least = std::min(least, share), most = std::max(most, share);
    down.push_back((static_cast<double>(box.top) + 0.5) / static_cast<double>(400 - box.height() + 1));
    right.push_back((static_cast<double>(box.left) + 0.5) / static_cast<double>(400 - box.width() + 1));
    top += static_cast<double>(box.top) / static_cast<double>(400 - box.height() + 1) / count;
  }
  BOOST_TEST(std::abs(area - 0.3) < 0.01);
  BOOST_TEST(std::abs(aspect) < 0.02);
  BOOST_TEST(least < 0.105);
  BOOST_TEST(most > 0.495);
  BOOST_TEST(std::abs(top - 0.5) < 0.02);
  check_z(z_of_correlation(down, right), "rows and columns");
  // If no crop of this size fits, the largest one of an allowed aspect, in the middle, is used.
  const Box middle = draw_part({1, 10, 100}, {1, 1}, RandomStream(4));
  BOOST_TEST((middle.top == 0 && middle.bottom == 10 && middle.left == 43 && middle.right == 56));
  const Box of_tall = draw_part({1, 100, 10}, {1, 1}, RandomStream(4));
  BOOST_TEST((of_tall.top == 43 && of_tall.bottom == 56 && of_tall.left == 0 && of_tall.right == 10));
}

// Crops of at most 60 pixels a side lie anywhere in images of 90 x 300, with areas and aspects independent of the
// image's shape. The mean of the logarithms of 3000 aspects has a deviation of 0.003, that of the areas 0.0003.
BOOST_AUTO_TEST_CASE(parts_of_images_that_are_not_square) {
  for (const ImageSize& size : {ImageSize{1, 90, 300}, ImageSize{1, 300, 90}}) {
    std::vector<double> down, right;
    double area = 0, aspect = 0;
    constexpr int count = 3000;
    for (std::uint64_t i = 0; i < count; ++i) {
      const Box box = draw_part(size, {0.05, 0.1}, RandomStream(11).derive(i));
      BOOST_REQUIRE((box.top >= 0 && box.left >= 0 && box.bottom <= size.height && box.right <= size.width));
      const double rows = static_cast<double>(box.height()), columns = static_cast<double>(box.width());
      area += rows * columns / static_cast<double>(size.pixels()) / count;
      aspect += std::log(columns / rows) / count;
      down.push_back((static_cast<double>(box.top) + 0.5) / (static_cast<double>(size.height) - rows + 1));
      right.push_back((static_cast<double>(box.left) + 0.5) / (static_cast<double>(size.width) - columns + 1));
    }
    BOOST_TEST(std::abs(area - 0.075) < 0.002);
    BOOST_TEST(std::abs(aspect) < 0.02);
    check_distribution(
        down, [](double x) { return x; }, "rows");
    check_distribution(
        right, [](double x) { return x; }, "columns");
  }
}

// In an image that brightens from left to right, the range of a view's pixels gives the width of its crop. Both large
// views show at least 0.9 of the image's area, so at least sqrt(0.9 x 3/4) of its width; small views show at most a
// tenth of the area, so at most sqrt(0.1 x 4/3) of the width.
BOOST_AUTO_TEST_CASE(each_view_has_a_part_of_its_scale) {
  Image slope{{1, 64, 64}, {}};
  for (int i = 0; i < 64 * 64; ++i) slope.pixels.push_back(static_cast<std::uint8_t>(4 * (i % 64)));
  DinoConfig dino;
  dino.global_scale = {0.9, 1}, dino.local_scale = {0.05, 0.1};
  dino.local_crops = 2, dino.local_size = 16;
  DataConfig data;
  data.augment = {};
  const ViewMaker views(data, dino, {1, 64, 64});
  for (Index view = 0; view < 4; ++view)
    for (std::uint64_t i = 0; i < 50; ++i) {
      const Image seen = views(slope, view, RandomStream(6).derive(i));
      const auto [dark, bright] = std::minmax_element(seen.pixels.begin(), seen.pixels.end());
      const double width = (*bright - *dark) / 252.0;
      BOOST_TEST((view < 2 ? width > 0.75 : width < 0.4), "view " << view << " shows " << width);
    }
}

// Frequency of each change in each view: the fraction of views that differ from the same view without the change.
BOOST_AUTO_TEST_CASE(how_often_views_are_changed) {
  DinoConfig dino;
  dino.local_crops = 1;
  dino.local_size = 6;
  Image flat{{3, 8, 8}, {}};
  for (const std::uint8_t level : {200, 40, 90}) flat.pixels.insert(flat.pixels.end(), 64, level);
  const Image edge = [] {
    Image image{{3, 8, 8}, Bytes(192, 10)};
    for (std::size_t i = 0; i < 192; ++i)
      if (i % 8 >= 4) image.pixels[i] = 100;
    return image;
  }();
  const auto share = [&](const char* change, const Image& image, Index view) {
    DataConfig data;
    data.augment = {change};
    const ViewMaker with(data, dino, {3, 8, 8});
    data.augment = {};
    const ViewMaker without(data, dino, {3, 8, 8});
    int changed = 0;
    constexpr int count = 2000;
    for (int i = 0; i < count; ++i) {
      const RandomStream stream = RandomStream(5).derive(static_cast<std::uint64_t>(i));
      const Image view_with = with(image, view, stream);
      BOOST_REQUIRE((view_with.size == (view < 2 ? ImageSize{3, 8, 8} : ImageSize{3, 6, 6})));
      changed += view_with.pixels != without(image, view, stream).pixels;
    }
    return static_cast<double>(changed) / count;
  };
  // Each measured frequency has a standard deviation of at most 0.0112. Blurs are undercounted, since a narrow blur
  // does not change the edge.
  for (const Index view : {0, 1, 2}) {
    BOOST_TEST(std::abs(share("jitter", flat, view) - 0.8) < 0.04);
    BOOST_TEST(std::abs(share("grey", flat, view) - 0.2) < 0.04);
    BOOST_TEST(std::abs(share("solarise", flat, view) - (view == 1 ? 0.2 : 0)) < 0.04);
  }
  dino.global_scale = dino.local_scale = {1, 1};
  for (const Index view : {0, 1, 2}) {
    BOOST_TEST(std::abs(share("flip", edge, view) - 0.5) < 0.04);
    const double blurred = share("blur", edge, view), expected = view == 0 ? 1 : view == 1 ? 0.1 : 0.5;
    BOOST_TEST(blurred <= expected + 0.04);
    BOOST_TEST(blurred > 0.8 * expected - 0.02);
  }
}

// A batch has two large and several small views of each image, for any number of threads; another epoch's views differ.
BOOST_AUTO_TEST_CASE(a_loader_of_views) {
  const MemoryDataset set = pattern_dataset(12, {3, 10, 10}, 3);
  DataConfig data;
  data.augment = {"flip", "jitter", "grey", "blur", "solarise"};
  data.mean = {0.0};
  data.std = {1.0};
  DinoConfig dino;
  dino.local_crops = 3;
  dino.local_size = 4;
  const auto batch_of = [&](Index epoch, Index number, int workers) {
    Loader<float> loader(set, all_images(12), data, {{3, 10, 10}, 4, 7, true, workers, dino});
    loader.start(epoch, number);
    const Batch<float>& batch = *loader.next();
    BOOST_TEST((batch.images.shape() == Shape{4, 2, 3, 10, 10}));
    BOOST_TEST((batch.crops.shape() == Shape{4, 3, 3, 4, 4}));
    std::vector<float> numbers(batch.images.begin(), batch.images.end());
    numbers.insert(numbers.end(), batch.crops.begin(), batch.crops.end());
    return numbers;
  };
  const std::vector<float> one = batch_of(1, 2, 1);
  BOOST_TEST(one == batch_of(1, 2, 3));
  BOOST_TEST(one != batch_of(0, 2, 1));
  BOOST_TEST(!std::equal(one.begin(), one.begin() + 300, one.begin() + 300));  // two views of the first image
}

// On a grey image of two levels, brightness scales the mean, and contrast the difference relative to the mean; the
// image stays grey. On a red image, whose channels stay below 255, the new hue is the drawn shift of the hue. Rounding
// to bytes moves a ratio by less than 2 % of its range.
BOOST_AUTO_TEST_CASE(jitter_draws_factors_from_their_ranges) {
  std::vector<double> brightness, contrast, hue;
  Image grey{{3, 1, 2}, {90, 150, 90, 150, 90, 150}}, red{{3, 1, 1}, {140, 60, 60}};
  for (std::uint64_t i = 0; i < 1500; ++i) {
    Image image = grey;
    jitter(image, RandomStream(8).derive(i));
    const double mean = (image.pixels[0] + image.pixels[1]) / 2.0, range = image.pixels[1] - image.pixels[0];
    BOOST_REQUIRE(image.pixels[2] == image.pixels[0]);
    brightness.push_back(mean / 120), contrast.push_back(range / 60 / (mean / 120));
    image = red;
    jitter(image, RandomStream(9).derive(i));
    const double sixths = hsv_of(image.pixels[0], image.pixels[1], image.pixels[2]).h;
    hue.push_back((sixths > 3 ? sixths - 6 : sixths) / 6);
  }
  const auto uniform = [](double low, double high) {
    return [=](double x) { return std::clamp((x - low) / (high - low), 0.0, 1.0); };
  };
  check_distribution(brightness, uniform(0.6, 1.4), "brightness");
  check_distribution(contrast, uniform(0.6, 1.4), "contrast");
  check_distribution(hue, uniform(-0.1, 0.1), "hue");
  check_z(z_of_mean(brightness, 1, 0.64 / 12), "brightness");
  check_z(z_of_mean(contrast, 1, 0.64 / 12), "contrast");
}

// All 24 orders of the four changes are equally frequent. A result that several orders give is not counted.
BOOST_AUTO_TEST_CASE(jitter_makes_its_changes_in_any_order) {
  const Image image = noise({3, 6, 8}, 12);
  std::vector<double> orders(24);
  for (std::uint64_t i = 0; i < 600; ++i) {
    const RandomStream stream = RandomStream(10).derive(i), factors = stream.derive("factors");
    Image found = image;
    jitter(found, stream);
    std::array<int, 4> order{0, 1, 2, 3};
    std::vector<std::size_t> fitting;
    std::size_t number = 0;
    do {
      Image changed = image;
      for (const int change : order) {
        if (change == 0) change_brightness(changed, factors.uniform(0, 0.6, 1.4));
        if (change == 1) change_contrast(changed, factors.uniform(1, 0.6, 1.4));
        if (change == 2) change_saturation(changed, factors.uniform(2, 0.8, 1.2));
        if (change == 3) turn_hue(changed, factors.uniform(3, -0.1, 0.1));
      }
      if (changed.pixels == found.pixels) fitting.push_back(number);
      ++number;
    } while (std::next_permutation(order.begin(), order.end()));
    BOOST_REQUIRE(!fitting.empty());
    if (fitting.size() == 1) ++orders[fitting[0]];
  }
  BOOST_TEST(std::accumulate(orders.begin(), orders.end(), 0.0) > 300);
  check_z(z_of_equal_cells(orders), "orders");
}

// With weights w_d of a blur, the bright pixel at a vertical edge becomes 255 (1 + w_0) / 2, from which sigma follows.
// Sigma is uniform in 0.1..2, whether every view is blurred (view 0) or half of them (view 2). Rounding to bytes
// changes sigma by at most 0.04, and hides blurs with sigma below 0.25.
BOOST_AUTO_TEST_CASE(blurs_have_widths_from_their_range) {
  Image edge{{1, 24, 24}, {}};
  for (int i = 0; i < 576; ++i) edge.pixels.push_back(i % 24 < 12 ? 0 : 255);
  DinoConfig dino;
  dino.global_scale = dino.local_scale = {1, 1}, dino.local_crops = 1, dino.local_size = 24;
  DataConfig data;
  data.augment = {"blur"};
  const ViewMaker views(data, dino, {1, 24, 24});
  const auto own_weight = [](double sigma) {
    double sum = 1;
    for (int d = 1; d <= std::ceil(3 * sigma); ++d) sum += 2 * std::exp(-d * d / (2 * sigma * sigma));
    return 1 / sum;
  };
  for (const Index view : {0, 2}) {
    std::vector<double> sigmas;
    for (std::uint64_t i = 0; i < 800; ++i) {
      const double found = 2 * views(edge, view, RandomStream(14).derive(i)).pixels[12 * 24 + 12] / 255.0 - 1;
      double low = 0.05, high = 3;  // own_weight() decreases
      for (int step = 0; step < 30; ++step) {
        const double middle = (low + high) / 2;
        (own_weight(middle) > found ? low : high) = middle;
      }
      if (low > 0.4) sigmas.push_back(low);
    }
    check_z(z_of_successes(static_cast<double>(sigmas.size()), 800, (view == 0 ? 1 : 0.5) * 1.6 / 1.9), "blurs");
    check_distribution(
        sigmas, [](double x) { return std::clamp((x - 0.4) / 1.6, 0.0, 1.0); }, "sigma");
  }
}

// Each change draws from its own stream, so a view with two changes equals the view with the first change, to which the
// second is applied. The order is jitter, grey, blur, solarise, whatever the order of the keys.
BOOST_AUTO_TEST_CASE(changes_of_a_view_follow_each_other) {
  const Image image = noise({3, 8, 8}, 13);
  DinoConfig dino;
  dino.global_scale = {1, 1}, dino.local_crops = 0;
  int both[3] = {0, 0, 0};
  for (std::uint64_t i = 0; i < 600; ++i) {
    const auto view = [&](const std::vector<std::string>& changes) {
      DataConfig data;
      data.augment = changes;
      return ViewMaker(data, dino, {3, 8, 8})(image, 1, RandomStream(15).derive(i));
    };
    const auto solarised = [](Image of) {
      solarise(of);
      return of;
    };
    const Image plain = view({}), jittered = view({"jitter"}), grey = view({"grey"}), blurred = view({"blur"});
    const bool is_grey = grey.pixels != plain.pixels, is_solarised = view({"solarise"}).pixels != plain.pixels;
    BOOST_TEST((view({"grey", "jitter"}).pixels == (is_grey ? grey_of(jittered) : jittered).pixels), i);
    BOOST_TEST((view({"solarise", "blur"}).pixels == (is_solarised ? solarised(blurred) : blurred).pixels), i);
    BOOST_TEST((view({"solarise", "grey"}).pixels == (is_solarised ? solarised(grey) : grey).pixels), i);
    both[0] += is_grey && jittered.pixels != plain.pixels;
    both[1] += is_solarised && blurred.pixels != plain.pixels;
    both[2] += is_solarised && is_grey;
  }
  for (const int count : both) BOOST_TEST(count > 0);
}

BOOST_AUTO_TEST_SUITE_END()
