#include "own_images.h"

#include "heed/base/suggest.h"
#include "heed/data/loader.h"
#include "heed/io/file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

namespace heed::cli {

namespace {

/// Statistics of up to a thousand training images.
struct Look {
  Index channels = 1, side = 0;   ///< 3 if any image is in colour; median of sqrt(height * width)
  std::vector<double> mean, std;  ///< by channel, pixels from 0 to 1
};

Look look_at(const Dataset& data) {
  const Index count = std::min<Index>(data.size(), 1000);
  Look look;
  Image image;
  std::vector<double> sides;
  const auto for_images = [&](const auto& f) {
    for (Index i = 0; i < count; ++i) {
      data.read(i * data.size() / count, image);
      f();
    }
  };
  for_images([&] {
    look.channels = std::max(look.channels, image.size.channels);
    sides.push_back(std::sqrt(static_cast<double>(image.size.pixels())));
  });
  const auto middle = sides.begin() + count / 2;
  std::nth_element(sides.begin(), middle, sides.end());
  look.side = static_cast<Index>(std::lround(*middle));

  const std::size_t channels = static_cast<std::size_t>(look.channels);
  std::vector<double> sum(channels), squares(channels);
  for_images([&] {
    const Image own = convert(image, {look.channels, image.size.height, image.size.width});
    const Index n = own.size.pixels();
    // Each image has the same weight, whatever its size.
    for (std::size_t c = 0; c < channels; ++c)
      for (Index i = 0; i < n; ++i) {
        const double x = own.pixels[c * static_cast<std::size_t>(n) + static_cast<std::size_t>(i)] / 255.0;
        sum[c] += x / static_cast<double>(n);
        squares[c] += x * x / static_cast<double>(n);
      }
  });
  constexpr double least_std = 0.01;  // lower bound, for images of a single colour
  const double images = static_cast<double>(count);
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = sum[c] / images;
    look.mean.push_back(mean);
    look.std.push_back(std::max(least_std, std::sqrt(std::max(0.0, squares[c] / images - mean * mean))));
  }
  return look;
}

std::string toml_list(const std::vector<double>& values) { return fmt::format("[{:.4f}]", fmt::join(values, ",")); }

}  // namespace

OwnImages own_images(const std::string& directory, bool model, const DataConfig& given, bool divided) {
  const std::string path = std::filesystem::absolute(with_plain_parents(directory)).lexically_normal();
  constexpr const char* option = "--images";
  DataConfig data;
  data.name = "folder";
  data.path = path;
  data.skip_bad = given.skip_bad;
  ImageSets sets(data, 0, option);
  const Dataset &train = sets.set(Part::train), &test = sets.set(Part::test);
  const std::vector<std::string>& classes = train.class_names();
  require(classes.size() > 1, "--images {}: found one class, {}; expected a directory for each of at least two classes",
          directory, in_quotes(classes[0]));
  constexpr Index most_validation = 5000;
  const bool divides = !has_directory(data, Split::validation);
  const Index validation = divides ? std::min(train.size() / 10, most_validation) : sets.set(Part::validation).size();
  const Index aside = divides && divided ? std::min(given.validation, train.size()) : validation;
  Index trained = train.size() - (divides ? aside : 0);
  if (given.limit > 0) trained = std::min(given.limit, trained);
  OwnImages own;
  own.sets = {"data.name=folder", "data.path=" + path, "data.resize=true",
              fmt::format("data.validation={}", validation), fmt::format("model.classes={}", classes.size())};
  own.found = fmt::format("{} classes, {}; {} to train on, {} to validate, {} to test", classes.size(),
                          quoted_list(classes), counted(trained, "image"), aside, test.size());
  if (!has_directory(data, Split::test)) own.found += "; without test/, every fifth image of a class is for testing";
  if (!model) return own;
  const Look look = look_at(train);
  // Sizes for a model that two cores train in minutes: images of about the median number of pixels, at most 64 x 64, in
  // at most 8 x 8 patches.
  const Index patch = look.side <= 32 ? 4 : 8, side = std::clamp<Index>(look.side / patch * patch, 8, 64);
  // At least sixteen steps per epoch, if there are enough images.
  const Index images = train.size() - (divides ? validation : 0);
  const auto batch = std::bit_floor(static_cast<std::size_t>(std::clamp<Index>(images / 16, 1, 64)));
  own.sets.insert(own.sets.end(), {fmt::format("model.channels={}", look.channels), fmt::format("model.image={}", side),
                                   fmt::format("model.patch={}", patch), fmt::format("train.batch={}", batch),
                                   "data.mean=" + toml_list(look.mean), "data.std=" + toml_list(look.std)});
  own.found += fmt::format("; {}, about {} pixels along a side, trained at {}",
                           look.channels == 1 ? "grey" : "in colour", look.side, side);
  return own;
}

}  // namespace heed::cli
