// CIFAR's binary batches.
#include "support/images.h"
#include "support/temporary.h"

#include <algorithm>

using namespace heed;
using namespace heed::test;

namespace {

/// Returns a record: label bytes, then an image that begins with `first`.
Bytes record(const Bytes& labels, int first) {
  Bytes bytes = labels;
  const Image image = pattern({3, 32, 32}, first);
  bytes.insert(bytes.end(), image.pixels.begin(), image.pixels.end());
  return bytes;
}

/// Writes five training batches of one record each, labelled 0 to 4.
void write_cifar10(const std::filesystem::path& directory) {
  for (int i = 0; i < 5; ++i)
    write_file(directory / fmt::format("data_batch_{}.bin", i + 1), record({static_cast<std::uint8_t>(i)}, 3 * i));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(data_cifar)

BOOST_AUTO_TEST_CASE(cifar10_batches_are_read_in_order) {
  const TemporaryDirectory directory;
  for (const std::string place : {"plain", "archive/cifar-10-batches-bin"}) {
    write_cifar10(directory / place);
    const std::string path = (directory / place.substr(0, place.find('/'))).string();
    const auto data = open_dataset("cifar10", path, Split::train);
    BOOST_TEST(data->size() == 5);
    BOOST_TEST((data->image_size() == ImageSize{3, 32, 32}));
    BOOST_TEST(data->class_names()[9] == "truck");
    BOOST_TEST(std::ranges::is_sorted(data->class_names()));
    BOOST_REQUIRE(data->files().size() == 5u);
    for (std::size_t i = 0; i < 5; ++i)
      BOOST_TEST(data->files()[i] == (directory / place / fmt::format("data_batch_{}.bin", i + 1)).string());
    Image image;
    for (Index i = 0; i < 5; ++i) {
      BOOST_TEST(data->label(i) == i);
      data->read(i, image);
      BOOST_TEST(image.pixels == pattern({3, 32, 32}, static_cast<int>(3 * i)).pixels,
                 boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(cifar100_has_fine_labels) {
  const TemporaryDirectory directory;
  write_file(directory / "test.bin", record({19, 99}, 1));
  const auto data = open_dataset("cifar100", directory.path().string(), Split::test);
  BOOST_TEST(data->class_names().size() == 100u);
  BOOST_TEST(data->class_names()[99] == "worm");
  BOOST_TEST(std::ranges::is_sorted(data->class_names()));
  BOOST_TEST(data->label(0) == 99);
  Image image;
  data->read(0, image);
  BOOST_TEST(image.pixels == pattern({3, 32, 32}, 1).pixels, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(other_archives_are_named) {
  for (const auto& [name, file, part] : {std::tuple("cifar10", "cifar-10-batches-py/data_batch_1", "Python version"),
                                         std::tuple("cifar10", "data_batch_1", "datasets/fetch.sh cifar10"),
                                         std::tuple("cifar100", "train", "datasets/fetch.sh cifar100"),
                                         std::tuple("cifar100", "cifar-100-binary.tar.gz", "tar -xzf"),
                                         std::tuple("cifar10", "cifar-10-binary.tar.gz", "tar -xzf"),
                                         std::tuple("cifar10", "cifar-10-python.tar.gz", "CIFAR-10's Python version"),
                                         std::tuple("cifar100", "cifar-100-python/meta", "CIFAR-100's Python version"),
                                         std::tuple("cifar100", "cifar-100-python.tar.gz", "fetch.sh cifar100`")}) {
    const TemporaryDirectory directory;
    write_file(directory / file, {1});
    check_error([&, name = name] { open_dataset(name, directory.path().string(), Split::train); }, {part});
  }
}

BOOST_AUTO_TEST_CASE(the_command_that_unpacks_an_archive_quotes_paths) {
  const TemporaryDirectory directory;
  const std::string place = (directory / "my data").string(), archive = place + "/cifar-10-binary.tar.gz";
  write_file(archive, {1});
  check_error([&] { open_dataset("cifar10", place, Split::train); },
              {"run `tar -xzf '" + archive + "' -C '" + place + "'`"});
}

BOOST_AUTO_TEST_CASE(bad_batches_are_refused) {
  const TemporaryDirectory directory;
  const auto open = [&] { open_dataset("cifar10", directory.path().string(), Split::train); };
  write_cifar10(directory.path());
  const auto third = directory / "data_batch_3.bin";

  Bytes bytes = record({2}, 0);
  bytes.pop_back();
  write_file(third, bytes);
  check_error(open, {third.string(), "3073", "3072"});
  write_file(third, {});
  check_error(open, {third.string(), "found 0 bytes"});
  write_file(third, record({10}, 0));
  check_error(open, {third.string(), "label 0 is 10", "0 to 9"});
  write_file(directory / "train.bin", record({0, 100}, 0));
  check_error([&] { open_dataset("cifar100", directory.path().string(), Split::train); },
              {(directory / "train.bin").string() + ": label 0 is 100; expected 0 to 99"});
  Bytes two = record({2}, 0);
  const Bytes second = record({10}, 1);
  two.insert(two.end(), second.begin(), second.end());
  write_file(third, two);
  check_error(open, {third.string(), "label 1 is 10", "0 to 9"});  // counted from the file's first record
  write_file(third, second);
  std::filesystem::resize_file(third, Index{3073} << 18);
  check_error(open, {third.string(), "805568512 bytes", "HEED_READ_LIMIT"});
  std::filesystem::remove(third);
  check_error(open, {third.string(), "the file does not exist"});
  std::filesystem::create_directory(third);
  check_error(open, {third.string(), "not a regular file"});
}

// The memory limit applies to a whole split: here five batches, each of one record of a label and 3072 pixel values.
BOOST_AUTO_TEST_CASE(the_memory_limit_is_that_of_all_batches) {
  const TemporaryDirectory directory;
  write_cifar10(directory.path());
  const auto open = [&](const char* bytes) {
    const EnvironmentVariable limit("HEED_READ_LIMIT", bytes);
    return open_dataset("cifar10", directory.path().string(), Split::train)->size();
  };
  BOOST_TEST(open("16000") == 5);
  check_error([&] { open("15000"); }, {"data_batch_5.bin", "3073 bytes", "HEED_READ_LIMIT"});
  check_error([&] { open("12000"); }, {"data_batch_4.bin", "3073 bytes", "HEED_READ_LIMIT"});
  check_error([&] { open("3072"); }, {"data_batch_1.bin", "3073 bytes", "HEED_READ_LIMIT"});
}

// Each split has separate files, in the given directory or in the archive's.
BOOST_AUTO_TEST_CASE(splits_have_their_own_batches) {
  const TemporaryDirectory directory;
  const auto labels = [&](const std::string& name, Split split) {
    const auto data = open_dataset(name, directory.path().string(), split);
    std::vector<int> all;
    for (Index i = 0; i < data->size(); ++i) all.push_back(data->label(i));
    return all;
  };
  write_cifar10(directory / "cifar-10-batches-bin");
  Bytes two = record({8}, 0);
  const Bytes second = record({9}, 1);
  two.insert(two.end(), second.begin(), second.end());
  write_file(directory / "cifar-10-batches-bin/test_batch.bin", two);
  write_file(directory / "cifar-100-binary/train.bin", record({3, 77}, 0));
  write_file(directory / "cifar-100-binary/test.bin", record({5, 66}, 0));
  BOOST_TEST(labels("cifar10", Split::train) == (std::vector<int>{0, 1, 2, 3, 4}), boost::test_tools::per_element());
  BOOST_TEST(labels("cifar10", Split::test) == (std::vector<int>{8, 9}), boost::test_tools::per_element());
  BOOST_TEST(labels("cifar100", Split::train) == (std::vector<int>{77}), boost::test_tools::per_element());
  BOOST_TEST(labels("cifar100", Split::test) == (std::vector<int>{66}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
