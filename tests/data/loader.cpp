// Batches: order, normalisation, and independence of threads and interruptions.
#include "heed/data/loader.h"

#include "heed/io/checksum.h"
#include "heed/io/file.h"
#include "src/data/images/resample.h"
#include "src/data/readers/files.h"
#include "support/images.h"
#include "support/statistics.h"

#include <atomic>
#include <chrono>
#include <map>
#include <numeric>
#include <set>
#include <thread>

using namespace heed;
using namespace heed::test;

namespace {

/// Returns an epoch's content from batch `first_batch` on, in one list: first index, pixels, targets and labels of each
/// batch.
template <class T>
std::vector<double> contents(Loader<T>& loader, Index epoch, Index first_batch = 0) {
  std::vector<double> all;
  loader.start(epoch, first_batch);
  while (const Batch<T>* batch = loader.next()) {
    const Index image = batch->images.size() / batch->images.shape()[0], classes = batch->targets.shape()[1];
    all.push_back(static_cast<double>(batch->first));
    all.insert(all.end(), batch->images.begin(), batch->images.begin() + batch->size * image);
    all.insert(all.end(), batch->targets.begin(), batch->targets.begin() + batch->size * classes);
    all.insert(all.end(), batch->labels.begin(), batch->labels.begin() + batch->size);
  }
  return all;
}

template <class T>
std::vector<int> labels_of_epoch(Loader<T>& loader, Index epoch) {
  std::vector<int> labels;
  loader.start(epoch);
  while (const Batch<T>* batch = loader.next())
    labels.insert(labels.end(), batch->labels.begin(), batch->labels.begin() + batch->size);
  return labels;
}

constexpr ImageSize size{3, 8, 7};

/// Returns a configuration with all augmentations of labelled images.
DataConfig everything() {
  DataConfig config;
  config.augment = {"crop", "flip", "randaugment", "erase", "mixup", "cutmix"};
  config.crop_padding = 2;
  config.mean = {0.5, 0.4, 0.3};
  config.std = {0.25};
  return config;
}

/// A data set whose image 5 cannot be read.
class Broken : public MemoryDataset {
 public:
  Broken() : MemoryDataset(pattern_dataset(12, ::size, 3)) {}
  bool in_memory() const override { return false; }
  void read(Index image, Image& to) const override {
    require(image != 5, "image 5: unreadable");
    MemoryDataset::read(image, to);
  }
};

/// A data set that counts how many images are read.
class Counting : public MemoryDataset {
 public:
  Counting() : MemoryDataset(pattern_dataset(40, ::size, 3)) {}
  void read(Index image, Image& to) const override {
    ++reads;
    MemoryDataset::read(image, to);
  }
  mutable std::atomic<Index> reads = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(data_loader)

BOOST_AUTO_TEST_CASE(validation_is_drawn_by_seed) {
  DataConfig config;
  config.validation = 20;
  const Subsets a = split_validation(50, config, 1), again = split_validation(50, config, 1),
                b = split_validation(50, config, 2);
  BOOST_TEST(a.train.size() == 30u);
  BOOST_TEST(a.validation.size() == 20u);
  BOOST_TEST(std::is_sorted(a.train.begin(), a.train.end()));
  BOOST_TEST(std::is_sorted(a.validation.begin(), a.validation.end()));
  std::vector<Index> both = a.train;
  both.insert(both.end(), a.validation.begin(), a.validation.end());
  std::sort(both.begin(), both.end());
  BOOST_TEST(both == all_images(50), boost::test_tools::per_element());
  BOOST_TEST((a.validation == again.validation));
  BOOST_TEST((a.validation != b.validation));
  BOOST_TEST((a.validation.front() > 0 || a.validation.back() > 19));  // not just the first ones

  config.validation = 50;
  check_error([&] { split_validation(50, config, 1); }, {"data.validation", "50 of 50"});
  config.validation = -1;
  check_error([&] { split_validation(50, config, 1); },
              {"data.validation sets aside -1 of 50 training examples; expected 0 to 49"});
  config.validation = 49;
  BOOST_TEST(split_validation(50, config, 1).train.size() == 1u);
}

// A limit does not change the validation images, so that runs with different limits can be compared.
BOOST_AUTO_TEST_CASE(a_limit_is_one_of_training_images) {
  DataConfig config;
  config.validation = 20;
  const Subsets all = split_validation(1000, config, 1);
  config.limit = 30;
  const Subsets limited = split_validation(1000, config, 1);
  BOOST_TEST((limited.validation == all.validation));
  BOOST_TEST(limited.train.size() == 30u);
  BOOST_TEST(std::equal(limited.train.begin(), limited.train.end(), all.train.begin()));
  config.limit = 5000;
  BOOST_TEST((split_validation(1000, config, 1).train == all.train));
  config.limit = -1;
  check_error([&] { split_validation(1000, config, 1); }, {"data.limit is -1"});
}

// Validation images are those that a run recorded by name; the limit applies to training images.
BOOST_AUTO_TEST_CASE(recorded_images_are_set_aside_and_the_others_limited) {
  DataConfig config;
  config.path = "images";
  config.validation = 2, config.limit = 3;
  config.recorded.validation = {"a/1.png", "b/0.png"};
  const std::vector<std::string> files{"images/a/0.png", "images/a/1.png", "images/a/2.png",
                                       "images/b/0.png", "images/b/1.png", "images/b/2.png"};
  BOOST_TEST((examples_of_files(files, Part::train, config, 1) == std::vector<Index>{0, 2, 4}));
  for (const char* path : {"images/", "./images", "images"}) {
    config.path = path;
    BOOST_TEST((examples_of_files(files, Part::validation, config, 1) == std::vector<Index>{1, 3}), path);
  }
  BOOST_TEST(examples_of_files(files, Part::test, config, 1).size() == 6U);
  config.limit = 0;
  BOOST_TEST((examples_of_files(files, Part::train, config, 1) == std::vector<Index>{0, 2, 4, 5}));
  // If the number of validation images differs from the run's, they are drawn by the seed.
  DataConfig three = config;
  three.validation = 3;
  for (const Part part : {Part::train, Part::validation})
    BOOST_TEST((examples_of_files(files, part, three, 1) == examples_of(6, part, three, 1)));
  check_error(
      [&] {
        examples_of_files({"images/a/0.png", "images/a/2.png"}, Part::train, config, 1);
      },
      {"images: the run's validation files are missing: a/1.png, b/0.png"});
  check_error(
      [&] {
        examples_of_files({"images/a/1.png", "images/b/0.png"}, Part::train, config, 1);
      },
      {"images: all 2 examples are the run's validation examples"});
}

// Data at another path may be the run's data or different data with the same file names. Different data have none of
// the run's validation files.
BOOST_AUTO_TEST_CASE(other_data_have_no_recorded_images) {
  const TemporaryDirectory directory;
  DataConfig config;
  config.path = directory / "";
  config.validation = 1;
  config.recorded.elsewhere = true;
  config.recorded.validation = {"0.png"};
  config.recorded.files = {{"0.png", checksum("run")}};
  const std::vector<std::string> files{directory / "0.png", directory / "1.png"};
  heed::write_file(files[1], "other");
  for (const bool own : {false, true}) {
    heed::write_file(files[0], own ? "run" : "another");
    BOOST_TEST(examples_of_files(files, Part::train, config, 1).size() == (own ? 1U : 2U));
    BOOST_TEST(examples_of_files(files, Part::validation, config, 1).size() == (own ? 1U : 0U));
  }
}

// An image of the model's size is enlarged and cropped like any other. Here the image, 16 x in column x, is enlarged to
// twice its width: the middle columns are at x = 0.75, 1.25, 1.75 and 2.25.
BOOST_AUTO_TEST_CASE(images_of_the_models_size_are_cropped_too) {
  const ImageSize four{1, 4, 4};
  std::vector<std::uint8_t> ramp;
  for (int i = 0; i < 16; ++i) ramp.push_back(static_cast<std::uint8_t>(16 * (i % 4)));
  const MemoryDataset data("ramps", {"one"}, four, ramp, {0});
  DataConfig config;
  config.mean = config.std = {};
  config.augment = {};
  config.resize = "crop", config.crop_fraction = 0.5, config.interpolation = "bilinear";
  Loader<float> loader(data, {0}, config, {four, 1, 1, false});
  loader.start(0);
  const Batch<float>& batch = *loader.next();
  for (Index i = 0; i < 16; ++i) BOOST_TEST(batch.images[i] == static_cast<float>((12 + 8 * (i % 4)) / 255.0));
}

BOOST_AUTO_TEST_CASE(pixels_are_normalised_exactly_in_the_number_type) {
  const MemoryDataset data = pattern_dataset(3, size, 3);
  DataConfig config;
  config.mean = {0.1307, 0.2, 0.3};
  config.std = {0.3081, 0.5, 0.7};
  Loader<double> exact(data, {2}, config, {size, 1, 0, false});
  Loader<float> rounded(data, {2}, config, {size, 1, 0, false});
  exact.start(0);
  rounded.start(0);
  const Batch<double>& x = *exact.next();
  const Batch<float>& y = *rounded.next();
  const Image image = pattern(size, 22);
  for (Index i = 0; i < size.elements(); ++i) {
    const std::size_t channel = static_cast<std::size_t>(i / size.pixels());
    const double expected =
        (image.pixels[static_cast<std::size_t>(i)] / 255.0 - config.mean[channel]) / config.std[channel];
    BOOST_REQUIRE(x.images[i] == expected);
    BOOST_REQUIRE(y.images[i] == static_cast<float>(expected));
  }
  BOOST_TEST(x.labels[0] == 2);
  BOOST_TEST(x.targets[2] == 1.0);
  BOOST_TEST(x.targets[0] + x.targets[1] == 0.0);
}

// Image 5 cannot be read, and is mixed with image 6 in a batch of twelve.
BOOST_AUTO_TEST_CASE(only_wanted_images_and_their_partners_are_made) {
  const Broken data;
  DataConfig config;
  config.augment = {"flip"};
  config.shuffle = false;
  const auto first_batch = [&](Index wanted) {
    Loader<float> loader(data, all_images(12), config, {size, 12, 1, true});
    loader.make_only([=](Index i, Index images) { return i == wanted && images == 12; });
    loader.start(0);
    const Batch<float>* const batch = loader.next();
    const Index elements = size.elements();
    const float* const image = batch->images.data() + wanted * elements;
    return std::vector<float>(image, image + elements);
  };
  BOOST_CHECK_THROW(first_batch(5), Error);
  const std::vector<float> sixth = first_batch(6);
  BOOST_TEST((sixth != first_batch(7)));
  config.augment = {"flip", "mixup"};
  BOOST_CHECK_THROW(first_batch(6), Error);
  BOOST_TEST((first_batch(7) != std::vector<float>(sixth.size())));
  // The wanted images equal those of a loader that prepares all images.
  const MemoryDataset whole = pattern_dataset(12, size, 3);
  Loader<float> all(whole, all_images(12), config, {size, 12, 1, true});
  all.start(0);
  const Batch<float>* const batch = all.next();
  for (const Index i : {0, 4, 11}) {
    const std::vector<float> one = first_batch(i);
    BOOST_TEST(std::equal(one.begin(), one.end(), batch->images.data() + i * size.elements()), "image " << i);
  }
}

BOOST_AUTO_TEST_CASE(evaluation_keeps_order_and_partial_batch) {
  const MemoryDataset data = pattern_dataset(11, size, 11);
  Loader<float> loader(data, all_images(11), everything(), {size, 4, 1, false});
  BOOST_TEST(loader.batches() == 3);
  std::vector<int> expected(11);
  std::iota(expected.begin(), expected.end(), 0);
  BOOST_TEST(labels_of_epoch(loader, 0) == expected, boost::test_tools::per_element());
  loader.start(0, 2);
  const Batch<float>* last = loader.next();
  BOOST_REQUIRE(last != nullptr);
  BOOST_TEST(last->first == 8);
  BOOST_TEST(last->size == 3);
  BOOST_TEST((last->images.shape() == Shape{4, 3, 8, 7}));
  BOOST_TEST((loader.next() == nullptr));
  // Evaluation ignores augmentation.
  DataConfig plain;
  plain.mean = everything().mean, plain.std = everything().std;
  Loader<float> bare(data, all_images(11), plain, {size, 4, 1, false});
  BOOST_TEST((contents(loader, 0) == contents(bare, 0)));
}

BOOST_AUTO_TEST_CASE(training_shuffles_and_drops_the_partial_batch) {
  const MemoryDataset data = pattern_dataset(50, size, 50);
  DataConfig config;
  Loader<float> loader(data, all_images(50), config, {size, 8, 1, true});
  BOOST_TEST(loader.batches() == 6);
  BOOST_TEST((loader.next() == nullptr));
  const std::vector<int> first = labels_of_epoch(loader, 0), second = labels_of_epoch(loader, 1);
  BOOST_TEST(first.size() == 48u);
  BOOST_TEST(std::set<int>(first.begin(), first.end()).size() == 48u);
  BOOST_TEST((first != second));
  BOOST_TEST(!std::is_sorted(first.begin(), first.end()));
  BOOST_TEST((labels_of_epoch(loader, 0) == first));  // despite the other epoch in between
  Loader<float> other(data, all_images(50), config, {size, 8, 2, true});
  BOOST_TEST((labels_of_epoch(other, 0) != first));
  config.shuffle = false;
  Loader<float> ordered(data, all_images(50), config, {size, 8, 1, true});
  const std::vector<int> in_order = labels_of_epoch(ordered, 3);
  BOOST_TEST(std::is_sorted(in_order.begin(), in_order.end()));
}

BOOST_AUTO_TEST_CASE(threads_change_nothing) {
  const MemoryDataset data = pattern_dataset(64, size, 5);
  for (const bool resize : {false, true}) {
    DataConfig config = everything();
    config.resize = resize ? "squash" : "none";
    const ImageSize input = resize ? ImageSize{3, 12, 12} : size;
    Loader<float> one(data, all_images(64), config, {input, 16, 7, true, 1});
    const std::vector<double> expected = contents(one, 2);
    for (const int workers : {2, 3, 8}) {
      Loader<float> several(data, all_images(64), config, {input, 16, 7, true, workers});
      BOOST_TEST((contents(several, 2) == expected), workers << " workers");
    }
  }
}

BOOST_AUTO_TEST_CASE(an_epoch_resumed_is_the_epoch_uninterrupted) {
  const MemoryDataset data = pattern_dataset(64, size, 5);
  const DataConfig config = everything();
  Loader<double> whole(data, all_images(64), config, {size, 8, 7, true}),
      resumed(data, all_images(64), config, {size, 8, 7, true});
  const std::vector<double> expected = contents(whole, 4);
  for (Index first = 0; first <= 8; ++first) {
    // Abandons another epoch after `first` batches, with others prefetched.
    resumed.start(9);
    for (Index i = 0; i < first; ++i) resumed.next();
    const std::vector<double> rest = contents(resumed, 4, first);
    BOOST_REQUIRE(rest.size() == expected.size() / 8 * static_cast<std::size_t>(8 - first));
    BOOST_TEST(std::equal(rest.rbegin(), rest.rend(), expected.rbegin()));
  }
  check_error([&] { resumed.start(0, 9); }, {"8 batches", "batch 9"});
}

BOOST_AUTO_TEST_CASE(mixed_targets_sum_to_one) {
  const MemoryDataset data = pattern_dataset(64, size, 5);
  Loader<float> loader(data, all_images(64), everything(), {size, 16, 3, true});
  int soft = 0;
  std::set<float> weights;
  for (Index epoch = 0; epoch < 5; ++epoch) {
    loader.start(epoch);
    while (const Batch<float>* batch = loader.next())
      for (Index i = 0; i < 16; ++i) {
        const float* row = batch->targets.data() + i * 5;
        BOOST_REQUIRE(std::abs(std::accumulate(row, row + 5, 0.0f) - 1) < 1e-6f);
        const float own = row[batch->labels[static_cast<std::size_t>(i)]];
        soft += own < 1 ? 1 : 0;
        weights.insert(own);
      }
  }
  BOOST_TEST(soft > 100);
  BOOST_TEST(weights.size() > 10u);  // each of the 20 batches draws its own weight
}

// All images are equal, so any difference comes from augmentation.
BOOST_AUTO_TEST_CASE(augmentation_differs_by_image_epoch_and_seed) {
  Bytes pixels;
  for (int i = 0; i < 16; ++i) {
    const Image image = pattern(size, 1);
    pixels.insert(pixels.end(), image.pixels.begin(), image.pixels.end());
  }
  const MemoryDataset data("same", {"class"}, size, pixels, Bytes(16, 0));
  DataConfig config;
  config.augment = {"crop", "flip"};
  config.shuffle = false;
  Loader<float> loader(data, all_images(16), config, {size, 16, 1, true}),
      other(data, all_images(16), config, {size, 16, 2, true});
  const std::vector<double> first = contents(loader, 0);
  const auto image = [](const std::vector<double>& all, Index i) {
    const auto begin = all.begin() + 1 + i * size.elements();
    return std::vector<double>(begin, begin + size.elements());
  };
  std::set<std::vector<double>> images;
  for (Index i = 0; i < 16; ++i) images.insert(image(first, i));
  BOOST_TEST(images.size() > 10u);
  BOOST_TEST((contents(loader, 1) != first));
  BOOST_TEST((contents(other, 0) != first));
  // Augmentation depends on the image, not on its position in the epoch.
  std::vector<Index> backwards = all_images(16);
  std::reverse(backwards.begin(), backwards.end());
  Loader<float> reversed(data, backwards, config, {size, 16, 1, true});
  const std::vector<double> mirrored = contents(reversed, 0);
  for (Index i = 0; i < 16; ++i) BOOST_TEST((image(mirrored, i) == image(first, 15 - i)));
}

// While the first batch of 4 images is in use, two are prefetched; the pause gives a faulty loader time for a third.
BOOST_AUTO_TEST_CASE(the_batch_in_use_is_not_overwritten) {
  const Counting data;
  Loader<float> loader(data, all_images(40), {}, {size, 4, 1, false});
  loader.start(0);
  const Batch<float>* batch = loader.next();
  const std::vector<float> before(batch->images.begin(), batch->images.end());
  while (data.reads < 12) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  BOOST_TEST(data.reads == 12);
  BOOST_TEST(std::equal(before.begin(), before.end(), batch->images.begin()));
}

BOOST_AUTO_TEST_CASE(loaders_end_at_any_moment) {
  const MemoryDataset data = pattern_dataset(64, size, 5);
  for (Index taken = 0; taken < 6; ++taken) {
    Loader<float> loader(data, all_images(64), everything(), {size, 8, 7, true, 2});
    if (taken > 0) loader.start(0);
    for (Index i = 1; i < taken; ++i) BOOST_TEST((loader.next() != nullptr));
  }
}

BOOST_AUTO_TEST_CASE(unreadable_images_surface_at_their_batch) {
  const Broken data;
  for (const int workers : {1, 2}) {
    Loader<float> loader(data, all_images(12), {}, {size, 2, 1, false, workers});
    loader.start(0);
    for (Index i = 0; i < 2; ++i) BOOST_TEST((loader.next() != nullptr));
    check_error([&] { loader.next(); }, {"image 5: unreadable"});
    loader.start(0, 3);
    for (Index i = 3; i < 6; ++i) BOOST_TEST((loader.next() != nullptr));  // also in the slot of the failed batch
  }
}

BOOST_AUTO_TEST_CASE(images_are_converted_only_when_asked_for) {
  const MemoryDataset data = pattern_dataset(4, {1, 28, 28}, 4);
  DataConfig config;
  config.mean = config.std = {};
  config.augment = {};
  const auto make = [&] { return Loader<float>(data, all_images(4), config, {{3, 32, 32}, 2, 1, true}); };
  check_error([&] { make(); }, {"pattern", "1x28x28", "3x32x32", "data.resize=true"});
  config.resize = "squash";
  Loader<float> loader(data, {3}, config, {{3, 32, 32}, 1, 1, true});
  loader.start(0);
  const Batch<float>& batch = *loader.next();
  const Image expected = convert(pattern({1, 28, 28}, 33), {3, 32, 32});
  for (Index i = 0; i < 3 * 32 * 32; ++i)
    BOOST_REQUIRE(batch.images[i] == static_cast<float>(expected.pixels[static_cast<std::size_t>(i)] / 255.0));
}

BOOST_AUTO_TEST_CASE(batches_for_evaluation_are_no_larger_than_the_set) {
  const MemoryDataset data = pattern_dataset(4, size, 4);
  Loader<float> loader(data, {0, 2, 3}, {}, {size, 256, 1, false});
  loader.start(0);
  const Batch<float>& batch = *loader.next();
  BOOST_TEST(batch.size == 3);
  BOOST_TEST(batch.images.shape()[0] == 3);
}

BOOST_AUTO_TEST_CASE(bad_values_are_refused) {
  const MemoryDataset data = pattern_dataset(4, size, 4);
  const auto make = [&](const DataConfig& config, Index batch = 2) {
    Loader<float>(data, all_images(4), config, {size, batch, 1, true});
  };
  DataConfig config;
  config.std = {0.5, 0.0, 0.5};
  check_error([&] { make(config); }, {"data.std", "expected more than 0"});
  config.std = {0.5, 0.5};
  check_error([&] { make(config); }, {"data.std has 2 values", "expected 1 or 3"});
  config.std = {};
  config.mean = {std::numeric_limits<double>::infinity()};
  check_error([&] { make(config); }, {"data.mean contains inf; expected finite numbers"});
  check_error([&] { make({}, 0); }, {"batch size is 0"});
  check_error([&] { make({}, 5); }, {"4 training images", "batch of 5"});
  config = {};
  config.augment = {"cutmx"};
  check_error([&] { make(config); }, {"'cutmix'"});
}

// White pixels are normalised to 50, and then replaced by noise of N(0, 1).
BOOST_AUTO_TEST_CASE(erasing_is_as_likely_as_asked_and_after_normalisation) {
  const Index count = 64;
  const MemoryDataset data("flat", {"one"}, size, Bytes(static_cast<std::size_t>(count * size.elements()), 255),
                           Bytes(static_cast<std::size_t>(count), 0));
  DataConfig config;
  config.augment = {"erase"}, config.mean = {0}, config.std = {0.02};
  for (const double probability : {0.0, 1.0}) {
    config.erase_probability = probability;
    Loader<double> loader(data, all_images(count), config, {size, count, 1, true});
    loader.start(0);
    const Batch<double>& batch = *loader.next();
    std::set<double> noise;
    Index erased = 0;
    for (Index i = 0; i < count; ++i) {
      Index changed = 0, top = size.height, left = size.width, bottom = 0, right = 0;
      for (Index k = 0; k < size.elements(); ++k) {
        const double pixel = batch.images[i * size.elements() + k];
        if (pixel == 50) continue;
        const Index y = k / size.width % size.height, x = k % size.width;
        ++changed;
        top = std::min(top, y), left = std::min(left, x);
        bottom = std::max(bottom, y + 1), right = std::max(right, x + 1);
        BOOST_REQUIRE(std::abs(pixel) < 6);
        noise.insert(pixel);
      }
      if (changed > 0) BOOST_REQUIRE(changed == size.channels * (bottom - top) * (right - left));
      erased += changed > 0;
    }
    // It almost never happens that all ten attempts at a rectangle fail.
    BOOST_TEST(erased == (probability == 0 ? 0 : count));
    if (probability == 1) BOOST_TEST(noise.size() > 500u);  // each image has separate noise
  }
}

// Without augmentation, every view is the resized image, stored at the index of its image and view.
BOOST_AUTO_TEST_CASE(views_stand_beside_their_image) {
  const MemoryDataset data = pattern_dataset(6, {3, 10, 10}, 3);
  DataConfig config;
  config.augment = {}, config.mean = {0.5}, config.std = {0.25};
  DinoConfig dino;
  dino.local_crops = 3, dino.local_size = 4;
  dino.global_scale = dino.local_scale = {1, 1};
  const ImageSize large{3, 10, 10}, small{3, 4, 4};
  const auto parts_of = [&](const Batch<float>& batch, Index i) {
    std::vector<std::vector<float>> parts;
    for (Index view = 0; view < 2; ++view) {
      const float* const at = batch.images.data() + (2 * i + view) * large.elements();
      parts.emplace_back(at, at + large.elements());
    }
    for (Index crop = 0; crop < 3; ++crop) {
      const float* const at = batch.crops.data() + (3 * i + crop) * small.elements();
      parts.emplace_back(at, at + small.elements());
    }
    return parts;
  };
  Loader<float> loader(data, {1, 4, 5}, config, {large, 3, 7, true, 1, dino});
  loader.start(2);
  const Batch<float>& batch = *loader.next();
  const Index number[] = {1, 4, 5};
  std::set<int> labels;
  for (Index i = 0; i < 3; ++i) {
    // The order is a permutation; the first pixel of image n is 11 n.
    const Index first = std::lround((batch.images[2 * i * large.elements()] * 0.25f + 0.5f) * 255) / 11;
    BOOST_REQUIRE(std::count(std::begin(number), std::end(number), first) == 1);
    labels.insert(static_cast<int>(first));
    const std::vector<std::vector<float>> parts = parts_of(batch, i);
    for (std::size_t view = 0; view < 5; ++view) {
      const Image expected = resampled(pattern(large, static_cast<int>(11 * first)), {0, 0, 10, 10}, view < 2 ? 10 : 4,
                                       view < 2 ? 10 : 4, Filter::cubic);
      for (std::size_t k = 0; k < parts[view].size(); ++k)
        BOOST_REQUIRE(parts[view][k] == static_cast<float>((expected.pixels[k] / 255.0 - 0.5) / 0.25));
    }
    BOOST_TEST(batch.labels[static_cast<std::size_t>(i)] == first % 3);
  }
  BOOST_TEST(labels.size() == 3u);
  // With crops, all views of all images differ.
  dino.global_scale = {0.3, 0.6}, dino.local_scale = {0.1, 0.3};
  Loader<float> cropping(data, {1, 4, 5}, config, {large, 3, 7, true, 1, dino});
  cropping.start(2);
  const Batch<float>& cropped = *cropping.next();
  std::set<std::vector<float>> different;
  for (Index i = 0; i < 3; ++i)
    for (const std::vector<float>& part : parts_of(cropped, i)) different.insert(part);
  BOOST_TEST(different.size() == 15u);
}

// Without a background thread, next() prepares the batch, with the same contents.
BOOST_AUTO_TEST_CASE(batches_prepared_on_demand_are_the_same) {
  const MemoryDataset data = pattern_dataset(30, size, 5);
  for (const bool training : {true, false}) {
    Loading loading{size, 8, 7, training, 1};
    Loader<float> ahead(data, all_images(30), everything(), loading);
    loading.ahead = false;
    Loader<float> on_demand(data, all_images(30), everything(), loading);
    BOOST_TEST((on_demand.next() == nullptr));
    for (const Index epoch : {0, 3})
      for (const Index first : {0, 2})
        BOOST_TEST((contents(on_demand, epoch, first) == contents(ahead, epoch, first)), epoch << ", " << first);
  }
  const Broken broken;
  Loader<float> loader(broken, all_images(12), {}, {size, 2, 1, false, 1, {}, false});
  loader.start(0);
  for (Index i = 0; i < 2; ++i) BOOST_TEST((loader.next() != nullptr));
  check_error([&] { loader.next(); }, {"image 5: unreadable"});
  loader.start(0, 3);
  for (Index i = 3; i < 6; ++i) BOOST_TEST((loader.next() != nullptr));
  BOOST_TEST((loader.next() == nullptr));
}

BOOST_AUTO_TEST_CASE(another_choice_of_images_ends_the_epoch) {
  const MemoryDataset data = pattern_dataset(12, size, 3);
  Loader<float> loader(data, all_images(12), {}, {size, 2, 1, false});
  loader.start(0);
  BOOST_TEST((loader.next() != nullptr));
  loader.make_only([](Index, Index) { return true; });
  BOOST_TEST((loader.next() == nullptr));
  loader.start(0);
  for (Index i = 0; i < 6; ++i) BOOST_TEST((loader.next() != nullptr));
  BOOST_TEST((loader.next() == nullptr));
}

BOOST_AUTO_TEST_CASE(subsets_are_empty_or_within_the_set) {
  const MemoryDataset data = pattern_dataset(12, size, 3);
  Loader<float> none(data, {}, {}, {size, 4, 1, false});
  BOOST_TEST(none.batches() == 0);
  none.start(0);
  BOOST_TEST((none.next() == nullptr));
  const auto make = [&](const std::vector<Index>& subset, bool training) {
    Loader<float>(data, subset, {}, {size, 1, 1, training});
  };
  check_error([&] { make({}, true); }, {"pattern: 0 training images do not fill one batch of 1"});
  check_error([&] { make({0, 12}, false); }, {"pattern: image 12 of 12"});
  check_error([&] { make({-1}, false); }, {"pattern: image -1 of 12"});
}

BOOST_AUTO_TEST_CASE(all_orders_are_equally_likely) {
  std::map<std::vector<Index>, std::size_t> numbers;
  std::vector<Index> order = all_images(4);
  do numbers.emplace(order, numbers.size());
  while (std::next_permutation(order.begin(), order.end()));
  std::vector<double> counts(24);
  for (std::uint64_t i = 0; i < 24'000; ++i) {
    order = all_images(4);
    shuffle(order, RandomStream(5).derive(i));
    ++counts[numbers.at(order)];
  }
  check_z(z_of_equal_cells(counts), "orders");
}

// Images 5, 18 and 31 fail.
BOOST_AUTO_TEST_CASE(the_error_of_the_first_image_is_thrown) {
  for (const int workers : {1, 4})
    BOOST_TEST(error_of([&] {
                 data::for_each_image(workers, 40, [](Index i) { require(i % 13 != 5, "image {}", i); });
               }) == "image 5");
}

// Crops are cut from an image at its original size. Here each crop is the whole image, which is resized only once, to
// the size of the view, and converted from grey to colour.
BOOST_AUTO_TEST_CASE(views_are_cut_from_images_of_another_size) {
  const ImageSize stored{1, 20, 20}, large{3, 10, 10}, small{3, 4, 4};
  const MemoryDataset data = pattern_dataset(2, stored, 2);
  DataConfig config;
  config.augment = {}, config.mean = {0}, config.std = {1}, config.resize = "squash";
  DinoConfig dino;
  dino.local_crops = 1, dino.local_size = 4;
  dino.global_scale = dino.local_scale = {1, 1};
  Loader<float> loader(data, {0, 1}, config, {large, 2, 7, true, 1, dino});
  loader.start(0);
  const Batch<float>& batch = *loader.next();
  for (Index i = 0; i < 2; ++i) {
    const Image whole = convert(pattern(stored, 11 * batch.labels[static_cast<std::size_t>(i)]), {3, 20, 20});
    for (Index view = 0; view < 3; ++view) {
      const ImageSize& of_view = view < 2 ? large : small;
      const float* const found = view < 2 ? batch.images.data() + (2 * i + view) * large.elements()
                                          : batch.crops.data() + i * small.elements();
      const Bytes expected = resampled(whole, {0, 0, 20, 20}, of_view.height, of_view.width, Filter::cubic).pixels;
      for (std::size_t k = 0; k < expected.size(); ++k)
        BOOST_REQUIRE(found[k] == static_cast<float>(expected[k] / 255.0));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
