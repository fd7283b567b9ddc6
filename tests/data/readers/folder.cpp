// Image files and trees of images.
#include "heed/base/warnings.h"
#include "heed/data/loader.h"

#include "support/images.h"
#include "support/temporary.h"

#include <map>
#include <mutex>
#include <set>

using namespace heed;
using namespace heed::test;

namespace {

constexpr ImageSize folder_size{3, 6, 5};

/// The files {train,test}/{cat,dog}/{1,2}.png; image j of class i begins with level 50 i + 9 j.
struct Tree {
  TemporaryDirectory directory;
  Tree() {
    for (const std::string split : {"train", "test"})
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) write_image(path(split, i, j), pattern(folder_size, 50 * i + 9 * j));
  }
  std::filesystem::path path(const std::string& split, int i, int j) const {
    return directory / split / (i == 0 ? "cat" : "dog") / fmt::format("{}.png", j + 1);
  }
  std::unique_ptr<Dataset> open(Split split = Split::train) const {
    return open_dataset("folder", directory.path().string(), split);
  }
};

/// Returns the header of a PNG: signature, length 13, "IHDR", width, height (in units of 256 pixels), depth 8, colour
/// type (0 grey, 2 RGB), three methods, checksum.
Bytes png_header(std::uint8_t width, std::uint8_t height, std::uint8_t colour) {
  return {137, 80,    78, 71, 13, 10,     26, 10, 0,      0, 0, 13, 'I', 'H', 'D', 'R', 0,
          0,   width, 0,  0,  0,  height, 0,  8,  colour, 0, 0, 0,  0,   0,   0,   0};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(data_folder)

BOOST_FIXTURE_TEST_CASE(classes_and_images_come_in_the_order_of_names, Tree) {
  write_file(directory / "train/cat/notes.txt", {1, 2, 3});
  write_file(directory / "train/.hidden/x", {1});
  const auto data = open();
  BOOST_TEST(data->size() == 4);
  BOOST_TEST(data->class_names() == (std::vector<std::string>{"cat", "dog"}), boost::test_tools::per_element());
  BOOST_TEST((data->image_size() == folder_size));
  Image image;
  for (int k = 0; k < 4; ++k) {
    BOOST_TEST(data->label(k) == k / 2);
    data->read(k, image);
    BOOST_TEST(image.pixels == pattern(folder_size, 50 * (k / 2) + 9 * (k % 2)).pixels,
               boost::test_tools::per_element());
  }
}

// If there are only class directories, every fifth image of a class is for testing, or the last of fewer than five.
BOOST_AUTO_TEST_CASE(a_share_is_set_aside_for_testing) {
  const TemporaryDirectory directory;
  for (int i = 0; i < 11; ++i) write_image(directory / fmt::format("cat/{:02}.png", i), pattern(folder_size, i));
  for (int i = 0; i < 3; ++i) write_image(directory / fmt::format("dog/{}.png", i), pattern(folder_size, 100 + i));
  const auto firsts = [&](Split split) {
    const auto data = open_dataset("folder", directory.path().string(), split);
    std::vector<int> found;
    Image image;
    for (Index i = 0; i < data->size(); ++i) {
      data->read(i, image);
      found.push_back(image.pixels[0]);
      BOOST_TEST(data->label(i) == (image.pixels[0] >= 100));
    }
    return found;
  };
  BOOST_TEST(firsts(Split::test) == (std::vector<int>{4, 9, 102}), boost::test_tools::per_element());
  BOOST_TEST(firsts(Split::train) == (std::vector<int>{0, 1, 2, 3, 5, 6, 7, 8, 10, 100, 101}),
             boost::test_tools::per_element());
  write_image(directory / "owl/0.png", pattern(folder_size, 0));
  check_error([&] { firsts(Split::train); }, {"owl: this class has one image"});
}

BOOST_AUTO_TEST_CASE(grey_png_stays_grey) {
  const TemporaryDirectory directory;
  const Image grey = pattern({1, 9, 4}, 3);
  write_image(directory / "g.png", grey);
  const Image loaded = load_image((directory / "g.png").string());
  BOOST_TEST((loaded.size == grey.size));
  BOOST_TEST(loaded.pixels == grey.pixels, boost::test_tools::per_element());
}

// A uniform colour survives JPEG except for rounding in its colour transform.
BOOST_AUTO_TEST_CASE(jpeg_is_read) {
  const TemporaryDirectory directory;
  Image flat{{3, 16, 24}, Bytes(3 * 16 * 24, 200)};
  std::fill(flat.pixels.begin() + 16 * 24, flat.pixels.begin() + 2 * 16 * 24, std::uint8_t{100});
  write_image(directory / "x.jpg", flat);
  const Image loaded = load_image((directory / "x.jpg").string());
  BOOST_REQUIRE((loaded.size == flat.size));
  for (std::size_t i = 0; i < flat.pixels.size(); ++i) BOOST_REQUIRE(std::abs(loaded.pixels[i] - flat.pixels[i]) <= 3);
}

BOOST_FIXTURE_TEST_CASE(mixed_sizes_are_named_when_a_common_size_is_needed, Tree) {
  write_image(path("train", 1, 0), pattern({3, 6, 4}, 0));
  const auto data = open();
  check_error([&] { data->image_size(); },
              {path("train", 0, 0).string(), "3x6x5", path("train", 1, 0).string(), "3x6x4", "data.resize"});
  BOOST_TEST((open(Split::test)->image_size() == folder_size));
}

BOOST_FIXTURE_TEST_CASE(classes_must_have_images_and_agree, Tree) {
  std::filesystem::create_directory(directory / "train/emu");
  std::filesystem::create_directory(directory / "test/emu");
  check_error([&] { open(); }, {(directory / "train/emu").string(), "no images"});
  std::filesystem::remove(directory / "test/emu");
  check_error([&] { open(); }, {(directory / "test").string(), "'emu'", "missing"});
  check_error([&] { open(Split::test); }, {(directory / "test").string(), "'emu'", "missing"});
  std::filesystem::remove_all(directory / "train");
  check_error([&] { open(); }, {(directory / "train").string(), "the directory does not exist"});
  BOOST_TEST(open(Split::test)->size() == 4);
  std::filesystem::create_directory(directory / "train");
  check_error([&] { open(); }, {(directory / "train").string(), "no class directories"});
}

BOOST_FIXTURE_TEST_CASE(unreadable_images_are_named, Tree) {
  const auto bad = path("train", 1, 1);
  write_file(bad, {'n', 'o', 't', ' ', 'P', 'N', 'G'});
  check_error([&] { open(); }, {bad.string(), "not a readable PNG, JPEG, BMP or GIF"});
  write_file(bad, {});
  check_error([&] { open(); }, {bad.string()});
  const Bytes whole = read_bytes(path("train", 0, 1));
  write_file(bad, Bytes(whole.begin(), whole.begin() + 45));
  check_error([&] { open(); }, {bad.string(), "cannot be decoded"});
}

BOOST_FIXTURE_TEST_CASE(mixed_sizes_are_resized_by_the_loader, Tree) {
  write_image(path("train", 1, 0), pattern({1, 9, 4}, 0));
  const auto data = open();
  DataConfig config;
  config.mean = config.std = {};
  config.resize = "squash";
  Loader<double> loader(*data, all_images(4), config, {folder_size, 4, 1, false});
  loader.start(0);
  const Batch<double>& batch = *loader.next();
  const Image converted = convert(pattern({1, 9, 4}, 0), folder_size), kept = pattern(folder_size, 59);
  for (Index i = 0; i < folder_size.elements(); ++i) {
    BOOST_REQUIRE(batch.images[2 * folder_size.elements() + i] ==
                  converted.pixels[static_cast<std::size_t>(i)] / 255.0);
    BOOST_REQUIRE(batch.images[3 * folder_size.elements() + i] == kept.pixels[static_cast<std::size_t>(i)] / 255.0);
  }
}

// 33 headers of 8192 x 4096 grey pixels exceed the in-memory limit.
BOOST_FIXTURE_TEST_CASE(large_trees_are_decoded_as_they_are_read, Tree) {
  BOOST_TEST(open()->in_memory());
  for (int i = 0; i < 33; ++i) write_file(directory / "train/dog" / fmt::format("9{}.png", i), png_header(32, 16, 0));
  const auto data = open();
  BOOST_TEST(!data->in_memory());
  BOOST_TEST(data->size() == 37);
  Image image;
  data->read(1, image);
  BOOST_TEST(image.pixels == pattern(folder_size, 9).pixels, boost::test_tools::per_element());
  check_error([&] { data->read(20, image); }, {(directory / "train/dog").string(), "cannot be decoded"});
}

BOOST_AUTO_TEST_CASE(giant_images_are_refused_by_their_header) {
  const TemporaryDirectory directory;
  const std::string path = (directory / "giant.png").string();
  const auto write = [&](std::uint8_t width, std::uint8_t height) { write_file(path, png_header(width, height, 2)); };
  write(65, 1);
  check_error([&] { load_image(path); }, {path});
  write(64, 64);
  check_error([&] { load_image(path); }, {path, "16384x16384", "134217728"});
  write(64, 32);
  BOOST_TEST((image_file_size(path) == ImageSize{3, 8192, 16384}));  // exactly at both limits
  // The size of a photograph of 111 megapixels is accepted; this incomplete file cannot be decoded.
  write(47, 36);
  BOOST_TEST((image_file_size(path) == ImageSize{3, 9216, 12032}));
  check_error([&] { load_image(path); }, {path, "cannot be decoded"});
  const EnvironmentVariable limit("HEED_READ_LIMIT", "536870912");
  write(32, 17);
  check_error([&] { load_image(path); }, {path, "8192x4352", "33554432", "HEED_READ_LIMIT"});
  write(32, 16);
  BOOST_TEST((image_file_size(path) == ImageSize{3, 4096, 8192}));
}

BOOST_AUTO_TEST_CASE(truncated_images_are_refused_wherever_they_end) {
  const TemporaryDirectory directory;
  for (const std::string name : {"x.png", "x.jpg"}) {
    const auto path = directory / name;
    write_image(path, pattern({3, 12, 13}, 0));
    const Bytes whole = read_bytes(path);
    // Without its last 4 bytes, the checksum of an empty chunk, a PNG is still complete.
    for (std::size_t length = 0; length + 4 < whole.size(); length += 3) {
      write_file(path, Bytes(whole.begin(), whole.begin() + static_cast<Index>(length)));
      BOOST_TEST_CONTEXT(length << " of " << whole.size() << " bytes")
      check_error([&] { load_image(path.string()); }, {path.string()});
    }
  }
}

// The JPEG's first Huffman table (marker 0xff 0xc4, length, table number, 16 counts) gets 255 codes of each length.
BOOST_AUTO_TEST_CASE(jpeg_with_overlong_huffman_table_is_refused) {
  const TemporaryDirectory directory;
  const auto path = directory / "x.jpg";
  write_image(path, pattern({3, 12, 13}, 0));
  Bytes bytes = read_bytes(path);
  const Bytes marker = {0xff, 0xc4};
  const auto table = std::search(bytes.begin(), bytes.end(), marker.begin(), marker.end());
  BOOST_REQUIRE((table != bytes.end()));
  std::fill(table + 5, table + 21, std::uint8_t{255});
  write_file(path, bytes);
  check_error([&] { load_image(path.string()); }, {path.string(), "not a readable"});
  check_error([&] { image_file_size(path.string()); }, {path.string(), "not a readable"});
}

BOOST_AUTO_TEST_CASE(damaged_images_are_read_or_refused) {
  const TemporaryDirectory directory;
  for (const std::string name : {"x.png", "x.jpg"}) {
    const auto path = directory / name;
    write_image(path, pattern({3, 12, 13}, 0));
    const int refused = read_damaged(read_bytes(path), 1000, [&](const Bytes& bytes) {
      write_file(path, bytes);
      const Image image = load_image(path.string());
      BOOST_REQUIRE(static_cast<Index>(image.pixels.size()) == image.size.elements());
    });
    BOOST_TEST(refused > 100);
  }
}

// 33 headers of 8192 x 4096 pixels, without the pixels, exceed the in-memory limit. Transparent images have a white
// background whether or not the tree is in memory.
BOOST_FIXTURE_TEST_CASE(bad_images_of_large_trees_are_found_when_asked_for, Tree) {
  write_transparent(path("train", 1, 0), 2, {100, 255, 100, 0, 200, 51, 7, 255});
  DataConfig data;
  data.name = "folder", data.path = directory.path().string();
  const auto check = [&](const Dataset& set) {
    BOOST_TEST(set.size() == 4);
    Image image;
    for (int k = 0; k < 4; ++k) {
      set.read(k, image);
      BOOST_TEST(set.label(k) == k / 2);
      BOOST_TEST(
          image.pixels == (k == 2 ? Bytes{100, 255, 244, 7} : pattern(folder_size, 50 * (k / 2) + 9 * (k % 2)).pixels),
          boost::test_tools::per_element());
    }
  };
  check(*open_dataset(data, Split::train));
  for (int i = 0; i < 33; ++i) write_file(directory / "train/cat" / fmt::format("1{}.png", i), png_header(32, 16, 0));
  data.verify = true;
  check_error([&] { open_dataset(data, Split::train); },
              {"33 images cannot be read: ", "train/cat/10.png", "data.skip_bad=true"});
  for (const bool verify : {true, false}) {
    data.verify = verify, data.skip_bad = true;
    const auto set = open_dataset(data, Split::train);
    BOOST_TEST(!set->in_memory());
    check(*set);
  }
  take_warnings();
}

// Leaving out the first image does not change the sizes, pixels, labels and files of the others.
BOOST_FIXTURE_TEST_CASE(remaining_images_of_several_sizes, Tree) {
  const Image other = pattern({1, 9, 4}, 3);
  write_file(path("train", 0, 0), {'n', 'o'});
  write_image(path("train", 1, 0), other);
  DataConfig data;
  data.name = "folder", data.path = directory.path().string(), data.skip_bad = true;
  const auto set = open_dataset(data, Split::train);
  take_warnings();
  BOOST_REQUIRE(set->size() == 3);
  BOOST_TEST(set->in_memory());
  const Image expected[] = {pattern(folder_size, 9), other, pattern(folder_size, 59)};
  const std::filesystem::path files[] = {path("train", 0, 1), path("train", 1, 0), path("train", 1, 1)};
  Image image;
  for (int k = 0; k < 3; ++k) {
    set->read(k, image);
    BOOST_TEST((image.size == expected[k].size));
    BOOST_TEST(image.pixels == expected[k].pixels, boost::test_tools::per_element());
    BOOST_TEST(set->label(k) == (k > 0));
    BOOST_TEST(set->files()[static_cast<std::size_t>(k)] == files[k].string());
  }
  check_error([&] { set->image_size(); },
              {files[0].string() + " is 3x6x5 (channels, height, width), " + files[1].string() + " is 1x9x4"});
}

BOOST_AUTO_TEST_CASE(image_files_of_a_directory) {
  const TemporaryDirectory directory;
  for (const char* name : {"b/2.png", "a.PNG", "b/10.png", "c.txt", "b/.hidden.png"}) write_file(directory / name, {1});
  take_warnings();
  std::vector<std::string> expected;
  for (const char* name : {"a.PNG", "b/10.png", "b/2.png"}) expected.push_back(directory / name);
  BOOST_TEST(image_files(directory.path().string()) == expected, boost::test_tools::per_element());
  BOOST_TEST(
      take_warnings() == std::vector<std::string>{directory.path().string() +
                                                  ": 2 files are not read: 1 .txt (c.txt), 1 hidden (b/.hidden.png)"},
      boost::test_tools::per_element());
  check_error([&] { image_files(directory / "none"); }, {"none", ": cannot be read: No such file or directory"});
}

// All images are checked and then read, by several threads; unreadable ones count, too.
BOOST_FIXTURE_TEST_CASE(progress_counts_every_image_twice, Tree) {
  write_file(path("train", 0, 1), {'n', 'o'});
  std::mutex mutex;
  std::map<std::string, std::set<long>> counts;
  std::set<long> totals;
  show_progress([&](const char* what, long done, long all) {
    const std::lock_guard lock(mutex);
    counts[what].insert(done), totals.insert(all);
  });
  DataConfig data;
  data.name = "folder", data.path = directory.path().string(), data.skip_bad = true;
  BOOST_TEST(open_dataset(data, Split::train)->size() == 3);
  show_progress({});
  take_warnings();
  const std::set<long> each{1, 2, 3, 4};
  BOOST_TEST((counts == std::map<std::string, std::set<long>>{{"checking images", each}, {"reading images", each}}));
  BOOST_TEST((totals == std::set<long>{4}));
}

BOOST_AUTO_TEST_SUITE_END()
