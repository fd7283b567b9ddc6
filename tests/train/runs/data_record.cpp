// The record of a run's data, and its use.
#include "heed/train/runs/data_record.h"

#include "heed/data/loader.h"
#include "support/cli.h"
#include "support/images.h"

using namespace heed;
using namespace heed::test;

namespace {

DataRecord record_of(std::map<std::string, std::string> files) {
  DataRecord record;
  record.recorded.files = std::move(files);
  return record;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(data_record)

BOOST_AUTO_TEST_CASE(changes_are_told_by_names_and_checksums) {
  const DataRecord before = record_of({{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}});
  BOOST_TEST(data_changes(before, before) == "");
  BOOST_TEST(data_changes(before, record_of({{"a", "1"}, {"b", "9"}, {"x", "3"}, {"y", "7"}})) ==
             "1 added (y), 1 removed (d), 1 renamed (c to x), 1 edited (b)");
  BOOST_TEST(data_changes(record_of({}), before) == "4 added (a, b, c, ...)");
}

BOOST_AUTO_TEST_CASE(a_record_is_read_as_it_was_written) {
  const TemporaryDirectory directory;
  const RunPaths paths(directory.path().string());
  BOOST_TEST(!read_data_record(paths).has_value());
  DataRecord record{
      "folder", "mnist", "/there", {{"cat", "dög"}, {"train/cat/1.png"}, {{"train/cat/1.png", "0-1"}}}, 7};
  for (const std::optional<int> background : {std::optional(7), std::optional<int>()}) {
    record.background = background;
    write_file(paths.data(), data_json(record));
    const DataRecord read = *read_data_record(paths);
    BOOST_TEST(read.name == record.name);
    BOOST_TEST(read.path == record.path);
    BOOST_TEST((read.recorded == record.recorded));
    BOOST_TEST((read.background == background));
  }
  Experiment x;
  x.data.name = "folder";
  use_record(x, record);
  BOOST_TEST((x.data.recorded == record.recorded));
  x.data = {};
  x.data.path = record.path;  // MNIST's, now in a default directory
  DataRecord moved = record;
  moved.name = "mnist";
  const TemporaryDirectory places;
  write_file(places / "mnist/t10k-images-idx3-ubyte", Bytes{});
  setenv("HEED_DATA", places.path().c_str(), 1);
  use_record(x, moved);
  unsetenv("HEED_DATA");
  BOOST_TEST(x.data.path == "");
  x.data = {};  // another data set
  use_record(x, record);
  BOOST_TEST(x.data.recorded.classes.empty());
}

// Added images are used for training: the validation images stay the same, even if files are renamed.
BOOST_AUTO_TEST_CASE(images_set_aside_stay_the_same) {
  const TemporaryDirectory directory;
  DataConfig data;
  data.name = "folder";
  data.path = directory.path().string();
  data.validation = 5;
  int written = 0;
  const auto write = [&](const std::string& name) { write_image(directory / name, pattern({1, 2, 3}, ++written)); };
  for (int i = 0; i < 10; ++i)
    for (const char* c : {"train/a", "train/b", "test/a", "test/b"}) write(fmt::format("{}/{}.png", c, i));
  const auto names = [&](Part part) {
    ImageSets sets(data, 3);
    std::set<std::string> names;
    for (const Index i : sets.images(part)) names.insert(sets.set(part).files()[static_cast<std::size_t>(i)]);
    return names;
  };
  const std::set<std::string> aside = names(Part::validation);
  data.recorded = describe_data(data, ImageSets(data, 3).facts()).recorded;
  BOOST_TEST(data.recorded.validation.size() == 5u);
  BOOST_TEST((names(Part::validation) == aside));
  write("train/a/00.png");
  BOOST_TEST((names(Part::validation) == aside));
  BOOST_TEST(names(Part::train).size() == 16u);
  BOOST_TEST(names(Part::train).contains((directory / "train/a/00.png").string()));
  std::set<std::string> renamed;
  for (const std::string& file : aside)
    std::filesystem::rename(file, *renamed.insert(file.substr(0, file.size() - 4) + "x.png").first);
  const std::string of_training = *names(Part::train).begin();
  std::filesystem::rename(of_training, of_training + ".png");
  BOOST_TEST((names(Part::validation) == renamed));
  BOOST_TEST(names(Part::train).size() == 16u);
  data.recorded.validation.clear();
  BOOST_TEST((names(Part::validation) != aside));  // redrawn from all 21 images
}

BOOST_AUTO_TEST_SUITE_END()
