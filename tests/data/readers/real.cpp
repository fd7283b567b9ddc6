// The published data sets, if present on this host.
#include "heed/data/loader.h"

#include "support/images.h"

#include <array>

using namespace heed;
using namespace heed::test;

namespace {

/// Opens a split if its directory is present; otherwise prints a message and returns null.
std::unique_ptr<Dataset> open_if_present(const std::string& name, const std::string& path, Split split) {
  if (std::filesystem::is_directory(path)) return open_dataset(name, path, split);
  BOOST_TEST_MESSAGE("skipped: " << path << " is not here");
  return nullptr;
}

std::array<Index, 10> class_counts(const Dataset& data) {
  std::array<Index, 10> counts{};
  for (Index i = 0; i < data.size(); ++i) ++counts[static_cast<std::size_t>(data.label(i))];
  return counts;
}

double mean_pixel(const Dataset& data) {
  double sum = 0;
  Image image;
  for (Index i = 0; i < data.size(); ++i) {
    data.read(i, image);
    for (const std::uint8_t x : image.pixels) sum += x;
  }
  return sum / 255 / static_cast<double>(data.size() * data.image_size().elements());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(data_real)

// First labels, class counts and the mean 0.1307 are known properties of MNIST.
BOOST_AUTO_TEST_CASE(mnist) {
  const auto train = open_if_present("mnist", "../shared/data/mnist", Split::train);
  if (!train) return;
  BOOST_TEST(train->size() == 60'000);
  BOOST_TEST((train->image_size() == ImageSize{1, 28, 28}));
  const int first[] = {5, 0, 4, 1, 9, 2, 1, 3, 1, 4};
  for (Index i = 0; i < 10; ++i) BOOST_TEST(train->label(i) == first[i]);
  const std::array<Index, 10> counts = {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949};
  BOOST_TEST(class_counts(*train) == counts, boost::test_tools::per_element());
  BOOST_TEST(std::abs(mean_pixel(*train) - 0.1307) < 5e-5);
  BOOST_TEST(open_dataset("mnist", "../shared/data/mnist", Split::test)->size() == 10'000);
}

// 0.2860 is the known mean of Fashion-MNIST; its classes have equal size.
BOOST_AUTO_TEST_CASE(fashion_mnist) {
  const auto train = open_if_present("fashion-mnist", "/usr/share/datasets/fashion-mnist", Split::train);
  if (!train) return;
  BOOST_TEST(train->size() == 60'000);
  BOOST_TEST(train->class_names()[static_cast<std::size_t>(train->label(0))] == "Ankle boot");
  for (const Index count : class_counts(*train)) BOOST_TEST(count == 6000);
  BOOST_TEST(std::abs(mean_pixel(*train) - 0.2860) < 5e-5);
}

BOOST_AUTO_TEST_CASE(mnist_goes_through_the_loader_once_per_epoch) {
  const auto train = open_if_present("mnist", "../shared/data/mnist", Split::train);
  if (!train) return;
  DataConfig config;
  config.mean = {0.1307};
  config.std = {0.3081};
  const Subsets subsets = split_validation(train->size(), config, 1);
  Loader<float> loader(*train, subsets.validation, config, {{1, 28, 28}, 128, 1, false});
  Index images = 0;
  double sum = 0, squares = 0;
  loader.start(0);
  while (const Batch<float>* batch = loader.next()) {
    images += batch->size;
    for (Index i = 0; i < batch->size * 784; ++i) {
      sum += batch->images[i];
      squares += static_cast<double>(batch->images[i]) * batch->images[i];
    }
  }
  BOOST_TEST(images == 5000);
  const double n = static_cast<double>(images) * 784;
  BOOST_TEST(std::abs(sum / n) < 0.02);
  BOOST_TEST(std::abs(squares / n - 1) < 0.02);
}

BOOST_AUTO_TEST_SUITE_END()
