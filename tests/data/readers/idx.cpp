// IDX files of MNIST: reading and errors.
#include "support/images.h"
#include "support/temporary.h"

#include <stdlib.h>

using namespace heed;
using namespace heed::test;

namespace {

/// A data set of three images of 2 x 4 pixels, whose files tests may damage or replace.
struct Mnist {
  TemporaryDirectory directory;
  Image images = pattern({1, 3 * 2, 4}, 5);  // three images in one

  Mnist() {
    write_images(idx({3, 2, 4}, images.pixels));
    write_labels(idx({3}, {7, 0, 9}));
  }
  std::filesystem::path images_path() const { return directory / "train-images-idx3-ubyte"; }
  std::filesystem::path labels_path() const { return directory / "train-labels-idx1-ubyte"; }
  void write_images(const Bytes& bytes) const { write_file(images_path(), bytes); }
  void write_labels(const Bytes& bytes) const { write_file(labels_path(), bytes); }
  std::unique_ptr<Dataset> open() const { return open_dataset("mnist", directory.path().string(), Split::train); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(data_idx)

BOOST_FIXTURE_TEST_CASE(plain_files_are_read, Mnist) {
  const auto data = open();
  BOOST_TEST(data->size() == 3);
  BOOST_TEST((data->image_size() == ImageSize{1, 2, 4}));
  BOOST_TEST(data->class_names().size() == 10u);
  BOOST_TEST(data->label(0) == 7);
  BOOST_TEST(data->label(2) == 9);
  BOOST_TEST(data->files() == (std::vector<std::string>{images_path().string(), labels_path().string()}),
             boost::test_tools::per_element());
  Image image;
  data->read(1, image);
  BOOST_TEST((image.size == ImageSize{1, 2, 4}));
  BOOST_TEST(image.pixels == Bytes(images.pixels.begin() + 8, images.pixels.begin() + 16),
             boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(compressed_files_give_the_same, Mnist) {
  std::filesystem::remove(images_path());
  std::filesystem::remove(labels_path());
  write_gz(directory / "train-images-idx3-ubyte.gz", idx({3, 2, 4}, images.pixels));
  write_gz(directory / "train-labels-idx1-ubyte.gz", idx({3}, {7, 0, 9}));
  const auto data = open();
  Image image;
  data->read(2, image);
  BOOST_TEST(image.pixels == Bytes(images.pixels.begin() + 16, images.pixels.end()), boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(missing_files_are_named, Mnist) {
  std::filesystem::remove(labels_path());
  check_error([&] { open(); }, {directory.path().string(), "train-labels-idx1-ubyte"});
  check_error([&] { open_dataset("mnist", directory.path().string(), Split::test); }, {"t10k-images-idx3-ubyte"});
  check_error([&] { open_dataset("mnist", (directory / "none").string(), Split::test); },
              {"none", "the directory does not exist"});
}

BOOST_FIXTURE_TEST_CASE(truncated_and_overlong_files_are_refused, Mnist) {
  Bytes bytes = idx({3, 2, 4}, images.pixels);
  bytes.pop_back();
  write_images(bytes);
  check_error([&] { open(); }, {images_path().string(), "expected 24 bytes", "found 23"});
  bytes.resize(bytes.size() + 2);
  write_images(bytes);
  check_error([&] { open(); }, {images_path().string(), "expected 24 bytes", "more"});
  for (std::size_t length = 0; length < 16; ++length) {
    write_images(Bytes(bytes.begin(), bytes.begin() + static_cast<Index>(length)));
    check_error([&] { open(); }, {images_path().string() + ": the file ends before its " +
                                  (length < 4 ? "magic number" : "header's end")});
  }
}

BOOST_FIXTURE_TEST_CASE(truncated_compressed_files_are_refused, Mnist) {
  std::filesystem::remove(images_path());
  const auto path = directory / "train-images-idx3-ubyte.gz";
  write_gz(path, idx({3, 2, 4}, images.pixels));
  const Bytes whole = read_bytes(path);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_file(path, Bytes(whole.begin(), whole.begin() + static_cast<Index>(length)));
    check_error([&] { open(); }, {path.string()});
  }
  Bytes wrong_sum = whole;
  wrong_sum[whole.size() - 8] ^= 1;
  write_file(path, wrong_sum);
  check_error([&] { open(); }, {path.string(), "uncompressed"});
}

// Large blocks are decompressed directly to their destination, which is full here, although the file ends within the
// checksum and length that follow the data.
BOOST_FIXTURE_TEST_CASE(truncated_compressed_files_are_refused_when_all_elements_are_there, Mnist) {
  std::filesystem::remove(images_path());
  const auto path = directory / "train-images-idx3-ubyte.gz";
  write_gz(path, idx({3, 1024, 1024}, Bytes(3 << 20, 0)));
  BOOST_TEST(open()->size() == 3);
  const Bytes whole = read_bytes(path);
  for (Index missing = 1; missing <= 8; ++missing) {
    write_file(path, Bytes(whole.begin(), whole.end() - missing));
    check_error([&] { open(); }, {path.string(), "ends before its checksum"});
  }
}

// gzip concatenates the contents of consecutive members.
BOOST_FIXTURE_TEST_CASE(what_follows_a_compressed_file_is_another_one, Mnist) {
  std::filesystem::remove(images_path());
  const auto path = directory / "train-images-idx3-ubyte.gz", second = directory / "second.gz";
  const Bytes bytes = idx({3, 2, 4}, images.pixels);
  write_gz(path, Bytes(bytes.begin(), bytes.begin() + 21));
  write_gz(second, Bytes(bytes.begin() + 21, bytes.end()));
  Bytes both = read_bytes(path);
  const Bytes rest = read_bytes(second);
  both.insert(both.end(), rest.begin(), rest.end());
  write_file(path, both);
  Image image;
  open()->read(2, image);
  BOOST_TEST(image.pixels == Bytes(images.pixels.begin() + 16, images.pixels.end()), boost::test_tools::per_element());
  both.push_back('x');
  write_file(path, both);
  check_error([&] { open(); }, {path.string(), "ends before its checksum"});
  both.push_back('y');
  write_file(path, both);
  check_error([&] { open(); }, {path.string(), "cannot be uncompressed"});
}

// gzip ignores zeros after a member, but nothing else.
BOOST_FIXTURE_TEST_CASE(zeros_behind_a_compressed_file_are_ignored, Mnist) {
  std::filesystem::remove(images_path());
  const auto path = directory / "train-images-idx3-ubyte.gz";
  write_gz(path, idx({3, 2, 4}, images.pixels));
  Bytes bytes = read_bytes(path);
  bytes.resize(bytes.size() + 300'000);
  write_file(path, bytes);
  BOOST_TEST(open()->size() == 3);
  bytes.push_back('x');
  write_file(path, bytes);
  check_error([&] { open(); }, {path.string(), "unexpected bytes after the padding of zeros"});
}

// Alternative names of MNIST's files.
BOOST_FIXTURE_TEST_CASE(other_names_of_the_files_are_known, Mnist) {
  const Bytes pixels = read_bytes(images_path()), labels = read_bytes(labels_path());
  for (const auto& [images_name, labels_name] :
       {std::pair("train-images.idx3-ubyte", "train-labels.idx1-ubyte"),
        std::pair("MNIST/raw/train-images-idx3-ubyte", "MNIST/raw/train-labels-idx1-ubyte"),
        std::pair("raw/qmnist-train-images-idx3-ubyte", "raw/qmnist-train-labels-idx1-ubyte")}) {
    const TemporaryDirectory other;
    write_file(other / images_name, pixels);
    write_file(other / labels_name, labels);
    const auto data = open_dataset("mnist", other.path().string(), Split::train);
    BOOST_TEST(data->size() == 3, images_name);
    BOOST_TEST(data->label(2) == 9);
  }
}

// If several names of files match, the first by name is read, whatever the order of the directory.
BOOST_FIXTURE_TEST_CASE(one_of_several_files, Mnist) {
  const Bytes pixels = read_bytes(images_path());
  for (int i = 0; i < 8; ++i) {
    const TemporaryDirectory other;
    const std::string prefix = std::string(static_cast<std::size_t>(i), 'x');
    for (const char* const dot : {i % 2 ? "." : "-", i % 2 ? "-" : "."}) {
      write_file(other / (prefix + "train-images" + dot + "idx3-ubyte"), *dot == '-' ? pixels : Bytes{});
      write_file(other / (prefix + "train-labels" + dot + "idx1-ubyte"),
                 *dot == '-' ? read_bytes(labels_path()) : Bytes{});
    }
    BOOST_TEST(open_dataset("mnist", other.path().string(), Split::train)->size() == 3);
  }
}

// QMNIST's labels are rows of big-endian integers, the class first.
BOOST_AUTO_TEST_CASE(qmnist) {
  const TemporaryDirectory directory;
  write_file(directory / "qmnist-test-images-idx3-ubyte", idx({2, 1, 1}, {7, 8}));
  Bytes labels = idx({2, 3}, {0, 0, 0, 5, 1, 2, 3, 4, 0, 0, 0, 9, 0, 0, 0, 3, 1, 1, 1, 1, 2, 2, 2, 2});
  labels[2] = 0x0c;
  write_file(directory / "qmnist-test-labels-idx2-int", labels);
  const auto data = open_dataset("mnist", directory.path().string(), Split::test);
  BOOST_TEST(data->label(0) == 5);
  BOOST_TEST(data->label(1) == 3);
  labels[12 + 2] = 1;
  write_file(directory / "qmnist-test-labels-idx2-int", labels);
  check_error([&] { open_dataset("mnist", directory.path().string(), Split::test); },
              {"qmnist-test-labels-idx2-int: label 0 is 261; expected 0 to 9"});
}

// EMNIST's images are transposed, its labels may begin at 1, and a file names the classes.
BOOST_AUTO_TEST_CASE(emnist) {
  const TemporaryDirectory directory;
  const auto write = [&](const std::string& set) {
    write_file(directory / ("emnist-" + set + "-train-images-idx3-ubyte"), idx({1, 2, 3}, {1, 2, 3, 4, 5, 6}));
    write_file(directory / ("emnist-" + set + "-train-labels-idx1-ubyte"), idx({1}, {2}));
  };
  write("letters");
  const auto open = [&](const std::string& path) { return open_dataset("mnist", path, Split::train); };
  check_error([&] { open(directory.path().string()); }, {"emnist-letters-mapping.txt", "the file does not exist"});
  const std::string mapping = "1 65 97\n2 66 98\n3 67 99\n";
  write_file(directory / "emnist-letters-mapping.txt", Bytes(mapping.begin(), mapping.end()));
  const auto data = open(directory.path().string());
  BOOST_TEST(data->class_names() == (std::vector<std::string>{"Aa", "Bb", "Cc"}), boost::test_tools::per_element());
  BOOST_TEST(data->label(0) == 1);
  Image image;
  data->read(0, image);
  BOOST_TEST((image.size == ImageSize{1, 3, 2}));
  BOOST_TEST(image.pixels == (Bytes{1, 4, 2, 5, 3, 6}), boost::test_tools::per_element());
  write("digits");
  check_error([&] { open(directory.path().string()); }, {"contains several sets", "emnist-digits"});
  BOOST_TEST(open((directory / "emnist-letters").string())->label(0) == 1);
  // In the working directory, the prefix alone selects a set.
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  BOOST_CHECK_NO_THROW(open("emnist-letters"));
  std::filesystem::current_path(here);
}

// The file has the length that its header declares, a megabyte, but is sparse: it takes almost no space on the disk. A
// small compressed file could declare and contain as much.
BOOST_FIXTURE_TEST_CASE(memory_for_a_file_is_limited, Mnist) {
  write_images(idx({1 << 10, 1 << 10, 1}, {}));
  std::filesystem::resize_file(images_path(), 16 + (1 << 20));
  const EnvironmentVariable limit("HEED_READ_LIMIT", "1048575");
  check_error([&] { open(); }, {images_path().string(), "axis 1 has size 1024", "1048575 bytes", "HEED_READ_LIMIT"});
  limit.set("1048576");
  check_error([&] { open(); }, {labels_path().string(), "expected 1024 labels"});
  for (const char* bad : {"", "lots", "-1", "1e9", "99999999999999999999"}) {
    limit.set(bad);
    check_error([&] { open(); }, {"HEED_READ_LIMIT is", bad});
  }
}

BOOST_FIXTURE_TEST_CASE(wrong_magic_is_refused, Mnist) {
  write_images(idx({24}, images.pixels));
  check_error([&] { open(); }, {images_path().string(), "0x00000803", "0x00000801"});
  Bytes floats = idx({3, 2, 4}, images.pixels);
  floats[2] = 0x0d;
  write_images(floats);
  check_error([&] { open(); }, {images_path().string(), "0x00000d03"});
}

BOOST_FIXTURE_TEST_CASE(labels_must_fit, Mnist) {
  write_labels(idx({2}, {7, 0}));
  check_error([&] { open(); }, {labels_path().string(), "expected 3", "found 2"});
  write_labels(idx({3}, {7, 10, 9}));
  check_error([&] { open(); }, {labels_path().string(), "label 1 is 10", "0 to 9"});
}

BOOST_FIXTURE_TEST_CASE(announced_sizes_are_checked_before_memory_is_taken, Mnist) {
  const std::uint32_t huge = 0xffffffff;
  write_images(idx({huge, huge, huge}, images.pixels));
  check_error([&] { open(); }, {images_path().string(), "4294967295"});
  write_images(idx({30, 30, 30}, images.pixels));  // each size fits in the file's 40 bytes, but not their product
  check_error([&] { open(); }, {images_path().string(), "axis 1 has size 30", "at most 40 bytes"});
  write_images(idx({3, 0, 4}, {}));
  check_error([&] { open(); }, {images_path().string(), "size 0"});
  std::filesystem::remove(images_path());
  write_gz(directory / "train-images-idx3-ubyte.gz", idx({huge, 28, 28}, images.pixels));
  check_error([&] { open(); }, {images_path().string() + ".gz", "4294967295"});
}

BOOST_FIXTURE_TEST_CASE(damaged_files_are_read_or_refused, Mnist) {
  const int refused = read_damaged(idx({3, 2, 4}, images.pixels), 500, [&](const Bytes& bytes) {
    write_images(bytes);
    open();
  });
  BOOST_TEST(refused > 100);
  std::filesystem::remove(images_path());
  const auto path = directory / "train-images-idx3-ubyte.gz";
  write_gz(path, idx({3, 2, 4}, images.pixels));
  const int refused_gz = read_damaged(read_bytes(path), 500, [&](const Bytes& bytes) {
    write_file(path, bytes);
    open();
  });
  BOOST_TEST(refused_gz > 100);
}

BOOST_AUTO_TEST_CASE(unknown_names_suggest_the_nearest) {
  check_error([] { open_dataset("fashion-mnits", "", Split::train); },
              {"fashion-mnits", "did you mean 'fashion-mnist'"});
  check_error([] { open_dataset("imagenet", "", Split::train); }, {"imagenet", "cifar10", "folder"});
  for (const std::string key : {"data.path", "--path"})
    check_error([&] { open_dataset("folder", "", Split::train, key); },
                {"folder needs " + key + ", the directory of train/ and test/, or of the classes"});
}

BOOST_FIXTURE_TEST_CASE(usual_places_are_searched, Mnist) {
  if (std::filesystem::exists("datasets/mnist") || std::filesystem::exists("/usr/share/datasets/mnist")) {
    BOOST_TEST_MESSAGE("skipped: MNIST is installed in one of the usual places");
    return;
  }
  const EnvironmentVariable data("HEED_DATA", directory.path().string());
  check_error([] { open_dataset("mnist", "", Split::train); },
              {"not found in datasets/mnist, " + (directory / "mnist").string() + ", /usr/share/datasets/mnist; ",
               "datasets/fetch.sh mnist"});
  std::filesystem::create_directory(directory / "mnist");
  std::filesystem::rename(images_path(), directory / "mnist/train-images-idx3-ubyte");
  std::filesystem::rename(labels_path(), directory / "mnist/train-labels-idx1-ubyte");
  BOOST_TEST(open_dataset("mnist", "", Split::train)->size() == 3);
}

BOOST_AUTO_TEST_CASE(errors_say_how_to_get_the_data) {
  if (std::filesystem::exists("datasets/cifar100") || std::filesystem::exists("/usr/share/datasets/cifar100")) {
    BOOST_TEST_MESSAGE("skipped: CIFAR-100 is installed in one of the usual places");
    return;
  }
  const TemporaryDirectory directory;
  const auto refusal = [](const std::string& key) {
    return error_of([&] { open_dataset("cifar100", "", Split::train, key); }, "cifar100: not found in ");
  };
  const std::string own = (directory / "cifar100").string(),
                    fetch = ", /usr/share/datasets/cifar100; run `datasets/fetch.sh cifar100` to download it, or ";
  const EnvironmentVariable data("HEED_DATA", directory.path().string());
  for (const auto& [key, remedy] : {std::pair("data.path", "name its directory: --set data.path=DIRECTORY"),
                                    {"--path", "name its directory: --path DIRECTORY"},
                                    {"", "set HEED_DATA to the directory that contains it"}})
    BOOST_TEST(refusal(key) == "datasets/cifar100, " + own + fetch + remedy);
  data.set("");
  BOOST_TEST(refusal("").starts_with("datasets/cifar100" + fetch));
}

// Both splits are in one directory; a plain file is read before its compressed copy.
BOOST_FIXTURE_TEST_CASE(splits_have_their_own_images_and_labels, Mnist) {
  for (const std::string name : {"t10k", "test"}) {
    write_file(directory / (name + "-images-idx3-ubyte"), idx({2, 1, 1}, {50, 60}));
    write_file(directory / (name + "-labels-idx1-ubyte"), idx({2}, {4, 3}));
    write_gz(directory / (name + "-labels-idx1-ubyte.gz"), idx({2}, {1, 1}));
    const auto test = open_dataset("mnist", directory.path().string(), Split::test), train = open();
    BOOST_TEST(test->size() == 2);
    BOOST_TEST(test->label(0) == 4);
    BOOST_TEST(test->label(1) == 3);
    Image image;
    test->read(1, image);
    BOOST_TEST(image.pixels == Bytes{60}, boost::test_tools::per_element());
    BOOST_TEST(train->size() == 3);
    BOOST_TEST(train->label(0) == 7);
    for (const char* kind : {"-images-idx3-ubyte", "-labels-idx1-ubyte", "-labels-idx1-ubyte.gz"})
      std::filesystem::remove(directory / (name + kind));
  }
}

// torchvision has a directory for each of the two sets; each set has its own class names.
BOOST_AUTO_TEST_CASE(fashion_mnist_beside_mnist) {
  const TemporaryDirectory directory;
  for (const auto& [place, label] : {std::pair("MNIST/raw", 3), {"FashionMNIST/raw", 9}}) {
    write_file(directory / place / "train-images-idx3-ubyte", idx({1, 1, 1}, {1}));
    write_file(directory / place / "train-labels-idx1-ubyte", idx({1}, {static_cast<std::uint8_t>(label)}));
  }
  for (const auto& [name, called] : {std::pair("mnist", "3"), {"fashion-mnist", "Ankle boot"}}) {
    const auto data = open_dataset(name, directory.path().string(), Split::train);
    BOOST_TEST(data->class_names()[static_cast<std::size_t>(data->label(0))] == called);
  }
}

// Elements are read in steps of 16 MiB; the second step begins with image 16.
BOOST_FIXTURE_TEST_CASE(elements_of_large_files_are_in_their_order, Mnist) {
  Bytes pixels(17 << 20, 0);
  pixels.front() = 1, pixels[16 << 20] = 2, pixels.back() = 3;
  write_images(idx({17, 1024, 1024}, pixels));
  write_labels(idx({17}, Bytes(17, 4)));
  const auto data = open();
  Image image;
  data->read(0, image);
  BOOST_TEST(image.pixels.front() == 1);
  data->read(16, image);
  BOOST_TEST(image.pixels.front() == 2);
  BOOST_TEST(image.pixels.back() == 3);
}

// Each image of EMNIST is transposed; labels are counted from that of the first class. The path of the directory
// selects the files without a prefix, even if the directory also has files with one.
BOOST_FIXTURE_TEST_CASE(several_images_of_emnist, Mnist) {
  const std::string set = directory / "emnist-letters", mapping = "1 65\n2 66\n3 67\n";
  write_file(set + "-train-images-idx3-ubyte", idx({2, 2, 3}, {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16}));
  write_file(set + "-mapping.txt", Bytes(mapping.begin(), mapping.end()));
  const auto open_labels = [&](const Bytes& labels) {
    write_file(set + "-train-labels-idx1-ubyte", idx({2}, labels));
    return open_dataset("mnist", set, Split::train);
  };
  const auto data = open_labels({3, 1});
  BOOST_TEST(data->label(0) == 2);
  BOOST_TEST(data->label(1) == 0);
  Image image;
  data->read(1, image);
  BOOST_TEST(image.pixels == (Bytes{11, 14, 12, 15, 13, 16}), boost::test_tools::per_element());
  check_error([&] { open_labels({1, 4}); }, {"letters-train-labels-idx1-ubyte: label 1 is 4; expected 1 to 3"});
  BOOST_TEST(open()->size() == 3);
  BOOST_TEST(open()->label(0) == 7);
}

BOOST_FIXTURE_TEST_CASE(a_set_has_the_classes_of_a_run, Mnist) {
  DataConfig data;
  data.name = "mnist", data.path = directory.path().string();
  const auto open_with = [&](std::vector<std::string> classes) {
    data.recorded.classes = std::move(classes);
    return open_dataset(data, Split::train)->size();
  };
  std::vector<std::string> classes = mnist_class_names("mnist");
  BOOST_TEST(open_with(classes) == 3);
  const std::string others = ": has 10 of the model's ", expected = " classes; expected all, in the same order";
  classes.push_back("10");
  check_error([&] { open_with(classes); }, {data.path + others + "11" + expected});
  classes.pop_back();
  std::swap(classes[3], classes[4]);
  check_error([&] { open_with(classes); }, {data.path + others + "10" + expected});
  check_error([&] { open_with({"0", "1"}); }, {data.path + ": the model has no class '2'"});
}

// The class names of Fashion-MNIST are those that its authors list. A data set in memory rejects a number of pixels
// that does not match the number of labels, and labels that are not classes.
BOOST_AUTO_TEST_CASE(sets_in_memory_are_consistent) {
  BOOST_TEST(mnist_class_names("fashion-mnist") ==
                 (std::vector<std::string>{"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt",
                                           "Sneaker", "Bag", "Ankle boot"}),
             boost::test_tools::per_element());
  check_error(
      [] {
        MemoryDataset("set", {"a"}, {1, 2, 2}, Bytes(7), Bytes(2, 0));
      },
      {"set: 2 labels and images of 1x2x2 need 8 bytes, found 7"});
  check_error(
      [] {
        MemoryDataset("set", {"a", "b"}, {1, 1, 1}, Bytes(3), {0, 1, 2});
      },
      {"set: label 2; expected less than 2, the number of classes"});
}

BOOST_AUTO_TEST_SUITE_END()
