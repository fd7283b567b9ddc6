// The record of a run's data, and its use.
#include "heed/train/runs/data_record.h"

#include "heed/base/warnings.h"
#include "heed/data/loader.h"
#include "heed/io/checksum.h"
#include "support/cli.h"
#include "support/images.h"
#include "support/temporary.h"

#include <tuple>

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
  // Equal files are counted one by one: each is renamed, removed or added once.
  const DataRecord one = record_of({{"a", "1"}}), two = record_of({{"a", "1"}, {"b", "1"}});
  BOOST_TEST(data_changes(one, two) == "1 added (b)");
  BOOST_TEST(data_changes(two, record_of({{"x", "1"}})) == "1 removed (b), 1 renamed (a to x)");
  BOOST_TEST(data_changes(one, record_of({{"x", "1"}, {"y", "1"}})) == "1 added (y), 1 renamed (a to x)");
  BOOST_TEST(data_changes(two, record_of({{"x", "1"}, {"y", "1"}})) == "2 renamed (a to x, b to y)");
}

// A directory for validation or testing that is added takes the place of the files that were set aside.
BOOST_AUTO_TEST_CASE(held_out_files_that_become_training_files_are_counted) {
  DataRecord before = record_of({{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}});
  before.recorded.validation = {"b"}, before.recorded.test = {"c", "d"};
  DataRecord now = before;
  BOOST_TEST(former_held_out(before, now) == 0);
  now.recorded.files["val/e"] = "5", now.recorded.validation = {};
  BOOST_TEST(former_held_out(before, now) == 1);
  now.recorded.files["test/f"] = "6", now.recorded.test = {"test/f"};
  BOOST_TEST(former_held_out(before, now) == 3);
  now.recorded.files.erase("d"), now.recorded.files["c"] = "7";  // d removed, c replaced by another file
  BOOST_TEST(former_held_out(before, now) == 1);
  BOOST_TEST(former_held_out(now, before) == 0);
  // A renamed file is counted unless it is held out under its new name.
  now = record_of({{"train/a", "1"}, {"train/b", "2"}, {"val/c", "3"}, {"test/d", "4"}});
  now.recorded.test = {"test/d"}, now.own_validation = {"val/c"};
  BOOST_TEST(former_held_out(before, now) == 1);
}

// The hash covers classes, files, checksums and test files, not the path or the validation split.
BOOST_AUTO_TEST_CASE(the_same_data_have_the_same_hash) {
  DataRecord data = record_of({{"a", "1"}, {"b", "2"}});
  data.path = "/one", data.recorded.classes = {"x", "y"}, data.recorded.test = {"b"};
  DataRecord same = data;
  same.path = "/two", same.recorded.validation = {"a"}, same.background = 7;
  BOOST_TEST(data_difference(data, same) == "");
  BOOST_TEST(data_hash(same) == data_hash(data));
  BOOST_TEST(data_hash(data).size() == 16u);
  BOOST_TEST(data_text(same, data) == "/two");
  std::set<std::string> hashes{data_hash(data)};
  const auto check = [&](const std::string& difference, const std::map<std::string, std::string>& files,
                         const std::vector<std::string>& classes, const std::vector<std::string>& test) {
    DataRecord other = same;
    other.recorded.files = files, other.recorded.classes = classes, other.recorded.test = test;
    BOOST_TEST(data_difference(data, other) == difference);
    BOOST_TEST(data_text(other, data) == "/two: " + difference);
    BOOST_TEST(hashes.insert(data_hash(other)).second, difference);
  };
  const auto& [classes, files, test] = std::tie(data.recorded.classes, data.recorded.files, data.recorded.test);
  check("2 renamed (b to a, a to b)", {{"a", "2"}, {"b", "1"}}, classes, test);  // as a correction of labels
  check("1 added (c)", {{"a", "1"}, {"b", "2"}, {"c", "3"}}, classes, test);
  check("1 renamed (b to c)", {{"a", "1"}, {"c", "2"}}, classes, test);
  check("2 removed (a, b)", {}, classes, test);
  check("other classes", files, {"y", "x"}, test);
  check("other classes", files, {"x", "y", "b"}, {});
  check("other test files", files, classes, {});
  check("other test files", files, classes, {"a", "b"});
  const TemporaryDirectory directory;
  const RunPaths paths(directory.path().string());
  BOOST_TEST(data_hash(paths) == "");
  write_file(paths.data(), data_json(same));
  BOOST_TEST(data_hash(paths) == data_hash(data));
}

// The present data are described as a run that starts now would describe them, without the files that it would leave
// out.
BOOST_AUTO_TEST_CASE(present_data_are_those_of_a_run_that_starts_now) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.model.classes = 2;
  x.data.name = "folder", x.data.path = workshop / "images", x.data.validation = 2, x.data.skip_bad = true;
  x.data.resize = "squash";
  x.train.batch = 4, x.train.max_steps = 1;
  int written = 0;
  for (const char* c : {"cat", "dog"})
    for (int i = 0; i < 6; ++i)
      write_image(workshop / fmt::format("images/{}/{}.png", c, i), pattern({1, 8, 8}, ++written));
  write_file(workshop / "images/cat/bad.png", "no image");
  run(x, workshop / "run");
  const auto present = [&] { return data_hash(describe_data_now(x)); };
  BOOST_TEST(describe_data_now(x).recorded.files.size() == 12u);
  BOOST_TEST(present() == data_hash(RunPaths(workshop / "run")));
  write_image(workshop / "images/cat/6.png", pattern({1, 8, 8}, ++written));
  BOOST_TEST(present() != data_hash(RunPaths(workshop / "run")));
  take_warnings();
}

// Files are matched by content first, then by name.
BOOST_AUTO_TEST_CASE(renumbered_files_are_renamed) {
  const DataRecord before = record_of({{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}});
  const auto changes = [&](const std::map<std::string, std::string>& now) {
    return data_changes(before, record_of(now));
  };
  BOOST_TEST(changes({{"a", "2"}, {"b", "3"}, {"c", "4"}}) == "1 removed (a), 3 renamed (b to a, c to b, d to c)");
  BOOST_TEST(changes({{"a", "2"}, {"b", "1"}, {"c", "3"}, {"d", "4"}}) == "2 renamed (b to a, a to b)");
  BOOST_TEST(changes({{"a", "9"}, {"b", "2"}, {"c", "1"}, {"d", "4"}}) ==
             "1 added (a), 1 removed (c), 1 renamed (a to c)");
  // A copy of an unchanged file is not a renamed file.
  BOOST_TEST(changes({{"a", "1"}, {"b", "1"}, {"c", "3"}, {"d", "4"}}) == "1 edited (b)");
}

// Among former files with a file's content, its own name comes first, then test files, then others, sorted by name.
BOOST_AUTO_TEST_CASE(former_names_of_equal_files) {
  const Checksums before{{"a", "1"}, {"b", "1"}, {"c", "1"}, {"d", "2"}};
  using Names = std::map<std::string, std::string>;
  BOOST_TEST((former_names(before, {{"x", "1"}, {"y", "1"}, {"z", "1"}, {"zz", "1"}}, {"c"}) ==
              Names{{"x", "c"}, {"y", "a"}, {"z", "b"}}));
  BOOST_TEST(
      (former_names(before, {{"b", "1"}, {"d", "1"}, {"x", "1"}}, {}) == Names{{"b", "b"}, {"d", "a"}, {"x", "c"}}));
  BOOST_TEST((former_names(before, {{"a", "3"}, {"d", "1"}}, {"c"}) == Names{{"a", "a"}, {"d", "c"}}));
  BOOST_TEST((former_names(before, {{"a", "2"}, {"d", "2"}}, {}) == Names{{"d", "d"}}));
}

BOOST_AUTO_TEST_CASE(a_record_is_read_as_it_was_written) {
  const TemporaryDirectory directory;
  const RunPaths paths(directory.path().string());
  BOOST_TEST(!read_data_record(paths).has_value());
  DataRecord record{"folder",
                    "mnist",
                    "/there",
                    {.classes = {"cat", "dög"},
                     .validation = {"train/cat/1.png"},
                     .test = {"test/cat/2.png"},
                     .files = {{"train/cat/1.png", "0-1"}},
                     .validation_removed = 2},
                    7,
                    {"after 3 steps: 1 added (x)"}};
  for (const std::optional<int> background : {std::optional(7), std::optional<int>()}) {
    record.background = background;
    write_file(paths.data(), data_json(record));
    const DataRecord read = *read_data_record(paths);
    BOOST_TEST(read.name == record.name);
    BOOST_TEST(read.source == record.source);
    BOOST_TEST(read.path == record.path);
    BOOST_TEST((read.recorded == record.recorded));
    BOOST_TEST((read.background == background));
    BOOST_TEST(read.changes == record.changes, boost::test_tools::per_element());
  }
  BOOST_TEST((describe_data({}, {.background = 7}).background == 7));
  BOOST_TEST(!describe_data({}, {}).background);
  Experiment x;
  x.data.name = "folder";
  use_record(x, record);
  BOOST_TEST((x.data.recorded == record.recorded));
  x.data = {};
  x.data.path = record.path;  // MNIST's data, now in a default directory
  DataRecord moved = record;
  moved.name = "mnist";
  const TemporaryDirectory places;
  write_file(places / "mnist/t10k-images-idx3-ubyte", Bytes{});
  {
    const EnvironmentVariable data("HEED_DATA", places.path().string());
    use_record(x, moved);
  }
  BOOST_TEST(x.data.path == "");
  x.data = {};  // another data set
  use_record(x, record);
  BOOST_TEST(x.data.recorded.classes.empty());
}

// A record applies to data of the same name and source only: neither its lists nor its path are used for other data.
BOOST_AUTO_TEST_CASE(the_record_of_other_data_is_not_used) {
  const TemporaryDirectory directory;
  DataRecord record = record_of({{"train-images-idx3-ubyte", "0-1"}});
  record.name = "pixels", record.source = "mnist", record.path = directory.path().string();
  record.recorded.classes = {"zero", "one"}, record.recorded.validation = {"a"}, record.recorded.test = {"b"};
  for (const auto& [name, source, same] : {std::tuple("pixels", "mnist", true),
                                           {"pixels", "fashion-mnist", false},
                                           {"scenes", "mnist", false},
                                           {"mnist", "mnist", false}}) {
    Experiment x;
    x.data.name = name, x.data.source = source;
    use_record(x, record);
    BOOST_TEST((x.data.recorded == (same ? record.recorded : RecordedData{})), name << " of " << source);
    BOOST_TEST(x.data.path == (same ? record.path : ""), name << " of " << source);
  }
}

// A path may end with a slash, or be the prefix of the names of a set's files. Only the data of a whole directory are
// looked up in a default directory.
BOOST_AUTO_TEST_CASE(the_paths_of_a_run) {
  const TemporaryDirectory directory, places;
  write_file(places / "mnist/t10k-images-idx3-ubyte", Bytes{});
  const std::string own = directory / "own", prefix = directory / "sets/emnist-digits";
  std::filesystem::create_directories(own);
  std::filesystem::create_directories(directory / "sets");
  const std::string file = prefix + "-train-images-idx3-ubyte";
  write_file(file, Bytes{});
  const EnvironmentVariable default_data("HEED_DATA", places.path().string());
  const auto used = [](const std::string& path, DataRecord record) {
    Experiment x;
    record.name = x.data.name, record.source = x.data.source;
    x.data.path = path;
    use_record(x, record);
    return x.data.path;
  };
  DataRecord whole = record_of({{"train-images-idx3-ubyte", "1"}}), part = record_of({});
  whole.path = own, part.path = prefix;
  DataConfig data;
  data.name = "mnist", data.path = prefix;
  part.recorded.files = describe_data(data, {.files = {file}}).recorded.files;
  for (const std::string& path : {std::string(), own, own + "/"})
    BOOST_TEST(used(path, whole) == (path.empty() ? own : path));
  for (const std::string& path : {std::string(), prefix}) BOOST_TEST(used(path, part) == prefix);
  std::filesystem::remove(own);
  std::filesystem::remove(file);
  for (const std::string& path : {own, own + "/"}) BOOST_TEST(used(path, whole) == "");
  BOOST_TEST(used(prefix, part) == prefix);
}

// Files that have only their checksums in common are not copies. The data may be a directory, or files whose names have
// a prefix.
BOOST_AUTO_TEST_CASE(copies_have_the_same_content) {
  const TemporaryDirectory directory;
  const std::string sets = directory / "sets";
  std::filesystem::create_directories(sets);
  const Bytes zeros(5), generator{0x41, 0x06, 0x71, 0xdb, 0x01};  // differ by the polynomial of CRC-32: equal checksums
  for (const auto& [name, content] :
       {std::pair("train", zeros), {"test", zeros}, {"other", generator}, {"train-labels-idx1-ubyte", zeros}})
    write_file(sets + "/digits-" + name, content);
  const std::string same = file_checksum(sets + "/digits-train");
  BOOST_TEST(file_checksum(sets + "/digits-other") == same);
  const auto copies = [&](const std::string& path, const std::string& start, const std::string& test) {
    DataRecord record = record_of({{start + "train", same}, {start + test, same}});
    record.path = path;
    record.recorded.test = {start + test};
    return copied_test_files(record);
  };
  for (const auto& [path, start] : {std::pair(sets, "digits-"), {sets + "/digits", "../digits-"}}) {
    BOOST_TEST(copies(path, start, "test") == fmt::format("1 of 1 test files are copies of training or validation "
                                                          "files: {}test is {}train",
                                                          start, start));
    BOOST_TEST(copies(path, start, "other") == "");
    BOOST_TEST(copies(path, start, "train-labels-idx1-ubyte") == "");
  }
  write_file(sets + "/digits-train", Bytes{1});  // edited since: only its checksum is known
  BOOST_TEST(copies(sets, "digits-", "other") != "");
}

// Three of four test files are copies: one of a, two of b. Nothing is a copy of c.
BOOST_AUTO_TEST_CASE(copies_are_counted_among_the_test_files) {
  const TemporaryDirectory directory;
  DataRecord record;
  record.path = directory.path().string();
  for (const auto& [name, content] :
       {std::pair("a", 1), {"b", 2}, {"c", 3}, {"test-1", 2}, {"test-2", 9}, {"test-3", 1}, {"test-4", 2}}) {
    write_file(directory / name, Bytes{static_cast<std::uint8_t>(content)});
    record.recorded.files[name] = file_checksum(directory / name);
    if (std::string(name).starts_with("test")) record.recorded.test.emplace_back(name);
  }
  const std::string found = "3 of 4 test files are copies of training or validation files: ";
  BOOST_TEST(copied_test_files(record) == found + "test-1 is b, test-3 is a, test-4 is b");
}

// Test files in another directory are compared with the run's files. "b" and "other" have the length of "a"; "b" is
// still recognised as a copy when "a" is deleted, by its recorded checksum. Copies of the run's test files do not
// count.
BOOST_AUTO_TEST_CASE(copies_in_other_data) {
  const TemporaryDirectory directory;
  DataRecord record;
  record.path = directory / "data";
  std::filesystem::create_directories(record.path);
  std::filesystem::create_directories(directory / "more");
  const auto write = [&](const std::string& name, const Bytes& content) { write_file(directory / name, content); };
  write("data/a", {1, 2}), write("data/test", {3, 3}), write("more/b", {1, 2});
  write("more/long", {1, 2, 3}), write("more/other", {9, 9}), write("more/t", {3, 3});
  for (const char* name : {"a", "test"}) record.recorded.files[name] = file_checksum(directory / "data" / name);
  std::vector<std::string> files;
  for (const char* name : {"b", "long", "other", "t"}) files.push_back(directory / "more" / name);
  BOOST_TEST(copied_test_files(record, files) == "");  // the record names no test files
  record.recorded.test = {"test"};
  const std::string found = "1 of 4 test files are copies of training or validation files: " + files[0] + " is a";
  BOOST_TEST(copied_test_files(record, files) == found);
  BOOST_TEST(copied_test_files(record, {files[1], files[2]}) == "");
  std::filesystem::remove(directory / "data/a");
  BOOST_TEST(copied_test_files(record, files) == found);
}

BOOST_AUTO_TEST_CASE(changes_of_files_at_a_path) {
  const TemporaryDirectory directory;
  std::filesystem::create_directories(directory / "sets");
  for (const char* name : {"sets/a", "sets/b", "sets/emnist-digits-train", "text"})
    write_file(directory / name, Bytes{1});
  const std::string same = file_checksum(directory / "text");
  const auto changes = [&](const std::string& path, const std::map<std::string, std::string>& files) {
    DataConfig data;
    data.path = path.empty() ? "" : directory / path;
    data.recorded.files = files;
    return changed_files(data, data.recorded.names());
  };
  BOOST_TEST(changes("sets", {{"a", same}, {"b", same}}) == "");
  DataConfig own;
  own.path = directory / "sets", own.recorded.files = {{"a", same}};
  const std::vector<std::string> read{directory / "sets/a", directory / "sets/b"};
  BOOST_TEST(changed_files(own, {"a"}, read) == "1 added (b)");
  own.recorded.files["b"] = same;
  BOOST_TEST(changed_files(own, {"a"}, read) == "");
  own.recorded.files = {{"c", same}};
  BOOST_TEST(changed_files(own, {"c"}, read) == "");  // other data
  BOOST_TEST(changes("sets/", {{"a", same}, {"b", "0-1"}, {"c", "0-2"}}) == "1 removed (c), 1 edited (b)");
  write_file(directory / "sets/b", Bytes{2});
  BOOST_TEST(changes("sets", {{"a", same}, {"b", same}, {"d", file_checksum(directory / "sets/b")}}) ==
             "1 removed (b), 1 renamed (d to b)");
  BOOST_TEST(changes("sets/emnist-digits", {{"../emnist-digits-train", "0-1"}}) == "1 edited (../emnist-digits-train)");
  BOOST_TEST(changes("text", {{"text", same}}) == "");
  BOOST_TEST(changes("text", {{"text", "0-1"}}) == "1 edited (text)");
  BOOST_TEST(changes("other", {{"a", "0-1"}, {"c", same}}) == "");  // other data
  const EnvironmentVariable default_data("HEED_DATA", directory.path().string());
  std::filesystem::create_directory(directory / "mnist");
  write_file(directory / "mnist/t10k-images-idx3-ubyte", Bytes{1});
  BOOST_TEST(changes("", {{"t10k-images-idx3-ubyte", same}}) == "");
  BOOST_TEST(changes("", {{"t10k-images-idx3-ubyte", "0-1"}}) == "1 edited (t10k-images-idx3-ubyte)");
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
  // A removed image is not replaced by a training image, even if a resumed run has recorded the changed data.
  std::filesystem::remove(*renamed.begin());
  renamed.erase(renamed.begin());
  for (int i = 0; i < 2; ++i) {
    data.recorded = describe_data(data, ImageSets(data, 3).facts()).recorded;
    BOOST_TEST(data.recorded.validation_removed == 1);
    BOOST_TEST((names(Part::validation) == renamed));
  }
  data.recorded.validation.clear();
  BOOST_TEST((names(Part::validation) != renamed));  // redrawn from all 20 images
}

// Two validation files, a and b, were renamed x and y. A training file of the same content, c, and a further copy, z,
// are not set aside.
BOOST_AUTO_TEST_CASE(equal_files_are_set_aside_as_often_as_they_were) {
  const TemporaryDirectory directory;
  std::vector<std::string> files;
  for (const char* name : {"c", "d", "x", "y", "z"}) {
    files.push_back(directory / name);
    write_file(directory / name, Bytes{static_cast<std::uint8_t>(*name == 'd' ? 2 : 1)});
  }
  DataConfig data;
  data.path = directory.path().string(), data.validation = 2;
  data.recorded.validation = {"a", "b"};
  for (const char* name : {"a", "b", "c"}) data.recorded.files[name] = file_checksum(files[0]);
  data.recorded.files["d"] = file_checksum(files[1]);
  BOOST_TEST((examples_of_files(files, Part::validation, data, 1) == std::vector<Index>{2, 3}));
  BOOST_TEST((examples_of_files(files, Part::train, data, 1) == std::vector<Index>{0, 1, 4}));
}

// One image of each class is deleted, and the others take the next smaller number: the same images stay in the test and
// validation parts, although every name now belongs to a different image.
BOOST_AUTO_TEST_CASE(renumbered_images_stay_in_their_parts) {
  const TemporaryDirectory directory;
  DataConfig data;
  data.name = "folder", data.path = directory.path().string(), data.validation = 3;
  const auto file = [&](const std::string& c, int i) { return directory / c / fmt::format("{:02}.png", i); };
  for (const char* c : {"a", "b"})
    for (int i = 0; i < 10; ++i) write_image(file(c, i), pattern({1, 2, 3}, 10 * (*c - 'a') + i + 1));
  const auto files = [&](Part part) {
    ImageSets sets(data, 3);
    std::set<std::string> all;
    for (const Index i : sets.images(part)) all.insert(sets.set(part).files()[static_cast<std::size_t>(i)]);
    return all;
  };
  const auto contents = [&](Part part) {
    std::set<std::string> all;
    for (const std::string& name : files(part)) all.insert(file_checksum(name));
    return all;
  };
  const Part parts[] = {Part::train, Part::validation, Part::test};
  std::vector<std::set<std::string>> before;
  for (const Part part : parts) before.push_back(contents(part));
  data.recorded = describe_data(data, ImageSets(data, 3).facts()).recorded;
  for (const char* c : {"a", "b"}) {
    for (std::set<std::string>& all : before) all.erase(file_checksum(file(c, 0)));
    for (int i = 0; i < 9; ++i) std::filesystem::rename(file(c, i + 1), file(c, i));
  }
  for (std::size_t i = 0; i < 3; ++i) BOOST_TEST((contents(parts[i]) == before[i]), i);
  // A copy of a training image under a test image's name is a training image.
  const std::string test = *files(Part::test).begin(), train = *files(Part::train).begin();
  std::filesystem::copy_file(train, test, std::filesystem::copy_options::overwrite_existing);
  BOOST_TEST(!files(Part::test).contains(test));
  BOOST_TEST(files(Part::train).contains(test));
}

// Class directories alone: every fifth image of a class is for testing, and stays so when images are added or renamed.
// With recorded.whole, another directory is tested as a whole, unless it has images with the content of the run's test
// images.
BOOST_AUTO_TEST_CASE(test_images_without_a_directory_stay_the_same) {
  const TemporaryDirectory directory, other;
  DataConfig data;
  data.name = "folder", data.path = directory.path().string(), data.validation = 0;
  int written = 0;
  const auto write = [&](const std::filesystem::path& path) { write_image(path, pattern({1, 2, 3}, ++written)); };
  for (const char* c : {"a", "b"})
    for (int i = 0; i < 6; ++i) write(directory / c / fmt::format("{}.png", i));
  for (const char* name : {"a/4.png", "a/5.png", "b/4.png"}) write(other / name);
  using Names = std::set<std::string>;
  const auto names = [&](Part part) {
    ImageSets sets(data, 3);
    Names names;
    for (const Index i : sets.images(part))
      names.insert(std::filesystem::relative(sets.set(part).files()[static_cast<std::size_t>(i)], data.path).string());
    return names;
  };
  BOOST_TEST((names(Part::test) == Names{"a/4.png", "b/4.png"}));
  data.recorded = describe_data(data, ImageSets(data, 3).facts()).recorded;
  write(directory / "a/00.png"), write(directory / "b/7.png");
  BOOST_TEST((names(Part::test) == Names{"a/4.png", "b/4.png"}));
  std::filesystem::rename(directory / "a/4.png", directory / "a/x.png");
  for (const bool whole : {false, true}) {
    data.recorded.whole = whole;
    BOOST_TEST((names(Part::test) == Names{"a/x.png", "b/4.png"}));
    BOOST_TEST(names(Part::train).size() == 12u);
  }
  data.path = other.path().string();
  BOOST_TEST((names(Part::test) == Names{"a/4.png", "a/5.png", "b/4.png"}));
  BOOST_CHECK_EXCEPTION(names(Part::train), Error, [&](const Error& error) {
    return error.what() ==
           data.path + ": has test images only; expected training images as well, or directories train/ and test/";
  });
}

BOOST_AUTO_TEST_SUITE_END()
