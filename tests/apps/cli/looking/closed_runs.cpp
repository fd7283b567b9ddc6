// Commands use the record of a run's data, even if the data have changed since.
#include "support/cli.h"
#include "support/images.h"
#include "support/lines.h"

using namespace heed;
using namespace heed::test;

namespace {

namespace fs = std::filesystem;

/// A run on images of three classes. Each image has a single grey level, from 20 to 35, 120 to 135 or 220 to 235
/// depending on its class.
struct ThreeGreys {
  TemporaryDirectory directory;
  std::string data = directory / "data", run = directory / "run", fox = directory / "fox.png";

  ThreeGreys() {
    for (const char* split : {"train", "test"})
      for (int c = 0; c < 3; ++c)
        for (int i = 0; i < 8; ++i)
          write(fmt::format("{}/{}/{}.png", split, names[c], i), 20 + 100 * c + 2 * i + (split[1] == 'e'));
    write_image(fox, level(222));
    train({});
  }
  void train(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"train", "--images",       data,    "--run",          run,
                                          "--set", "train.epochs=6", "--set", "data.augment=[]"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    output_of(arguments);
  }
  static Image level(int grey) { return {{1, 8, 8}, Bytes(64, static_cast<std::uint8_t>(grey))}; }
  void write(const std::string& name, int grey) const { write_image(data + "/" + name, level(grey)); }
  std::string predicted(const std::string& of) const { return output_of({"predict", of, fox}); }

  static constexpr const char* names[] = {"ant", "bee", "fox"};
};

std::string resume_error(const std::string& run, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"train", "--run", run, "--resume", "--set", "train.epochs=8"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Finished finished = heed_with(arguments);
  return finished.status == 0 ? "" : finished.err;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_closed_runs)

BOOST_FIXTURE_TEST_CASE(classes_and_data_are_those_of_the_run, ThreeGreys) {
  const std::string before = predicted(run);
  check_contains(before, {"fox.png: fox "});
  const std::string accuracy = lines_of(output_of({"eval", run}))[1];
  // Labels are matched by name; the error for an unknown name lists the classes of the data and of the model.
  for (const char* split : {"train", "test"}) fs::rename(data + "/" + split + "/ant", data + "/" + split + "/zebra");
  BOOST_TEST(predicted(run) == before);
  check_refusal(
      {"eval", run},
      {"the model has no class 'zebra'; the data has classes 'bee', 'fox', 'zebra', the model 'ant', 'bee', 'fox'"});
  // Data with a subset of the classes keep their labels.
  const std::string some = directory / "some";
  fs::create_directories(some + "/test");
  fs::rename(data + "/test/fox", some + "/test/fox");
  const std::string evaluated = output_of({"eval", run, "--path", some});
  check_contains(evaluated, {"8 images", "2 fox"});
  // If the run is moved and its data are removed, it gives the same predictions.
  fs::remove_all(data);
  fs::rename(run, directory / "moved");
  BOOST_TEST(predicted(directory / "moved") == before);
  output_of({"maps", directory / "moved", fox, "-o", directory / "maps.png"});
  const Finished report = heed_with({"report", directory / "moved"});
  BOOST_TEST(report.status == 0);
  BOOST_TEST(accuracy.starts_with("top-1 accuracy"));
}

// Every directory beside the class directories is a class, so a run's directory is refused there. Beside train/ and
// test/ it is accepted, and is not a class.
BOOST_FIXTURE_TEST_CASE(a_run_does_not_become_a_class, ThreeGreys) {
  const std::string classes = data + "/train";
  check_refusal({"train", "experiments/images.toml", "--set", "data.path=" + classes, "--run", classes + "/run"},
                {classes + "/run: is inside " + classes});
  BOOST_TEST(!fs::exists(classes + "/run"));
  run = data + "/run";
  train({});
  check_contains(heed_with({"eval", run}).out, {"24 images"});
}

// Labels are matched by class name in other data sets, too.
BOOST_FIXTURE_TEST_CASE(other_data_sets_need_the_classes_of_the_run, ThreeGreys) {
  const std::string cifar = directory / "cifar";
  fs::create_directory(cifar);
  write_file(cifar + "/test_batch.bin", Bytes(2 * (1 + 3 * 32 * 32)));
  const Finished finished = heed_with({"eval", run, "--data", "cifar10", "--path", cifar});
  BOOST_TEST(finished.status == 2);
  check_contains(finished.err, {cifar + ": the model has no class 'airplane'; the data has classes 'airplane', ",
                                ", the model 'ant', 'bee', 'fox'"});
}

// Without data.json, as in runs of heed 0.2.0, names come from the data, with a warning.
BOOST_FIXTURE_TEST_CASE(runs_without_a_record_say_what_they_take_from_the_data, ThreeGreys) {
  fs::remove(run + "/data.json");
  for (const char* split : {"train", "test"}) fs::rename(data + "/" + split + "/fox", data + "/" + split + "/gnu");
  const Finished finished = heed_with({"predict", run, fox});
  BOOST_TEST(finished.status == 0);
  check_contains(finished.out, {"fox.png: gnu "});
  BOOST_TEST(finished.err == "heed: warning: " + run +
                                 ": data.json is missing, as in runs of heed 0.2.0; class names and the images' "
                                 "background are read from the current data\n");
}

BOOST_FIXTURE_TEST_CASE(changed_data_are_noticed_on_resuming, ThreeGreys) {
  const auto files = [&] {
    std::map<std::string, std::string> all;
    for (const fs::directory_entry& entry : fs::directory_iterator(run))
      all[entry.path().filename()] = read_file(entry.path());
    return all;
  };
  const std::map<std::string, std::string> before = files();
  const auto refused = [&](const std::string& changes) {
    check_contains(resume_error(run), {data + ": the data files have changed since the run was started: " + changes,
                                       "to resume it with the changed data, add --changed-data"});
    BOOST_TEST((files() == before));
  };
  fs::rename(data + "/train/ant/0.png", data + "/train/ant/zero.png");
  refused("1 renamed (train/ant/0.png to train/ant/zero.png);");
  fs::rename(data + "/train/ant/zero.png", data + "/train/ant/0.png");
  write("test/bee/3.png", 99);
  refused("1 edited (test/bee/3.png);");
  write("test/bee/3.png", 127);
  write("train/bee/9.png", 124);
  refused("1 added (train/bee/9.png);");
  for (const char* split : {"train", "test"}) fs::rename(data + "/" + split + "/ant", data + "/" + split + "/zebra");
  check_contains(
      resume_error(run),
      {"the model has no class 'zebra'; the data has classes 'bee', 'fox', 'zebra', the model 'ant', 'bee', 'fox'"});
  for (const char* split : {"train", "test"}) fs::rename(data + "/" + split + "/zebra", data + "/" + split + "/ant");
  BOOST_TEST(resume_error(run, {"--changed-data"}) == "");
  // data.json then describes the changed data, and records the change.
  const std::string record = files().at("data.json");
  check_contains(record, {"after 132 steps: 1 added (train/bee/9.png)", "\"train/bee/9.png\""});
  BOOST_TEST(heed_with({"train", "--run", run, "--resume", "--set", "train.epochs=9"}).err == "");
  BOOST_TEST(files().at("data.json") == record);
}

// The first six epochs have no validation row. The second resumption finds the data unchanged.
BOOST_FIXTURE_TEST_CASE(changed_data_may_add_validation_examples, ThreeGreys) {
  fs::remove_all(run);
  train({"--set", "data.validation=0"});
  for (int c = 0; c < 3; ++c) write(fmt::format("val/{}/0.png", names[c]), 25 + 100 * c);
  BOOST_TEST(resume_error(run, {"--changed-data"}) == "");
  BOOST_TEST(heed_with({"train", "--run", run, "--resume", "--set", "train.epochs=9"}).err == "");
  const std::string metrics = read_file(run + "/metrics.csv");
  BOOST_TEST(metrics.find("\nvalid,6,") == std::string::npos);
  check_contains(metrics, {"\nvalid,7,", "\nvalid,8,", "\nvalid,9,"});
}

// The first images of the classes move to a new test directory; the images tested before are now training images.
BOOST_FIXTURE_TEST_CASE(files_that_change_their_role_are_reported_on_resuming, ThreeGreys) {
  fs::remove_all(run);
  fs::remove_all(data + "/test");
  for (const char* name : names) fs::rename(data + "/train/" + name, data + "/" + name);
  fs::remove(data + "/train");
  train({});
  for (const char* part : {"train", "test"}) fs::create_directory(data + "/" + part);
  for (const char* name : names) {
    fs::rename(data + "/" + name, data + "/train/" + name);
    fs::create_directory(data + "/test/" + name);
    fs::rename(data + "/train/" + name + "/0.png", data + "/test/" + name + "/0.png");
  }
  check_contains(resume_error(run), {"; 3 of its validation and test files are now training files; to resume it"});
  const Finished resumed = heed_with({"train", "--run", run, "--resume", "--changed-data", "--set", "train.epochs=8"});
  BOOST_TEST(resumed.status == 0);
  check_contains(resumed.err,
                 {"; 3 of its validation and test files are now training files\n",
                  "3 of 3 test files are copies of training or validation files: test/ant/0.png is ant/0.png, "});
}

BOOST_FIXTURE_TEST_CASE(the_new_path_of_moved_data_is_recorded_on_resuming, ThreeGreys) {
  const std::string moved = directory / "moved";
  fs::rename(data, moved);
  BOOST_TEST(resume_error(run, {"--set", "data.path=" + moved}) == "");
  check_contains(read_file(run + "/data.json"), {"\"path\": \"" + moved + "\""});
}

BOOST_FIXTURE_TEST_CASE(changed_data_are_noticed_by_evaluations, ThreeGreys) {
  const std::vector<std::string> classifier{"eval", run}, neighbours{"eval", run, "--knn"};
  for (const auto& command : {classifier, neighbours}) BOOST_TEST(heed_with(command).err == "");
  write("test/bee/3.png", 99);
  fs::remove(data + "/test/fox/1.png");
  const std::string warning = "heed: warning: " + run + ": data files have changed since the run was started: ";
  for (const auto& command : {classifier, neighbours})
    BOOST_TEST(heed_with(command).err == warning + "1 removed (test/fox/1.png), 1 edited (test/bee/3.png)\n");
  write("test/ant/8.png", 77);
  BOOST_TEST(heed_with(classifier).err ==
             warning + "1 added (test/ant/8.png), 1 removed (test/fox/1.png), 1 edited (test/bee/3.png)\n");
  write("train/bee/3.png", 99);
  BOOST_TEST(heed_with(classifier).err.find("train") == std::string::npos);
  check_contains(heed_with(neighbours).err, {"train/bee/3.png"});
}

// Test files that are copies of training images are reported, even after the run's data are deleted.
BOOST_FIXTURE_TEST_CASE(training_images_in_other_data_are_noticed, ThreeGreys) {
  const std::string other = directory / "other", copy = other + "/test/ant/a.png";
  for (const char* split : {"train", "test"})
    for (int c = 0; c < 3; ++c) write_image(fmt::format("{}/{}/{}/b.png", other, split, names[c]), level(10 + c));
  const std::vector<std::string> classifier{"eval", run, "--path", other},
      neighbours{"eval", run, "--path", other, "--knn", "--k", "1"};
  for (const auto& command : {classifier, neighbours}) check_contains(output_of(command), {"3 images\n"});
  fs::copy_file(data + "/train/ant/3.png", copy);
  for (const bool there : {true, false}) {
    if (!there) fs::remove_all(data);
    for (const auto& command : {classifier, neighbours}) {
      const Finished finished = heed_with(command);
      BOOST_TEST(finished.status == 0);
      BOOST_TEST(finished.err == "heed: warning: " + run +
                                     ": 1 of 4 test files are copies of training or validation files: " + copy +
                                     " is train/ant/3.png\n");
    }
  }
}

// If the data have no test directory, the run's test images stay the same when files are added. If --path names a
// different directory, all its images are evaluated, or only the run's test images if it has copies of them.
BOOST_FIXTURE_TEST_CASE(test_images_stay_the_same, ThreeGreys) {
  fs::remove_all(run);
  fs::remove_all(data + "/test");
  for (const char* name : names) fs::rename(data + "/train/" + name, data + "/" + name);
  fs::remove_all(data + "/train");
  train({});
  check_contains(output_of({"eval", run}), {"3 images"});
  const std::string before = output_of({"predict", run, "--index", "0,1"});
  for (const char* name : names) write(fmt::format("{}/00.png", name), 20);
  BOOST_TEST(output_of({"predict", run, "--index", "0,1"}) == before);
  check_contains(output_of({"eval", run}), {"3 images"});
  const std::string copy = directory / "copy", other = directory / "other";
  fs::copy(data, copy, fs::copy_options::recursive);
  check_contains(output_of({"eval", run, "--path", copy}), {"3 images"});
  for (const char* name : names)
    for (int i = 0; i < 8; ++i) write_image(fmt::format("{}/{}/{}.png", other, name, i), level(7 + i));
  check_contains(output_of({"eval", run, "--path", other}), {"24 images"});
  check_refusal({"eval", run, "--path", other, "--split", "train"}, {other + ": has test images only; "});
  // If the directory of --path has a subdirectory train/, only the images in train/ are evaluated.
  const std::string parts = directory / "parts";
  fs::create_directory(parts);
  for (const char* part : {"train", "val"}) fs::copy(other, parts + "/" + part, fs::copy_options::recursive);
  write_image(fmt::format("{}/val/{}/8.png", parts, names[0]), level(3));
  check_contains(output_of({"eval", run, "--path", parts}), {"24 images"});
  // heed features and --index distinguish training and test images: every fifth image of a class is for testing.
  check_contains(output_of({"features", run, "--path", other, "-o", directory / "x"}), {" 3 images, test\n"});
  check_contains(output_of({"features", run, "--path", other, "--split", "train", "-o", directory / "x"}),
                 {" 21 images, train\n"});
  // Other data have no validation images, even if a file has the name of one of the run's.
  check_refusal({"eval", run, "--path", other, "--knn", "--k", "1", "--split", "val"}, {"set aside for validation"});
  check_contains(output_of({"features", run, "--path", copy, "--split", "val", "-o", directory / "x"}),
                 {" images, val\n"});
  check_contains(output_of({"predict", run, "--path", other, "--index", "2"}), {"folder test 2 (label 2 (fox)): "});
  check_refusal({"predict", run, "--path", other, "--index", "3"}, {"--index 3: folder has 3 test images"});
}

BOOST_FIXTURE_TEST_CASE(names_that_are_not_utf8_are_refused_before_training, ThreeGreys) {
  fs::remove_all(run);
  write("train/ant/caf\xe9.png", 20);
  const Finished finished = heed_with({"train", "--images", data, "--run", run});
  BOOST_TEST(finished.status == 2);
  check_contains(finished.err, {"train/ant/caf", ": the name is not UTF-8; rename it"});
  BOOST_TEST(!fs::exists(run));
}

// If a resumed run is rejected because a file cannot be written, no file changes.
BOOST_FIXTURE_TEST_CASE(a_refused_resume_changes_no_file, ThreeGreys) {
  fs::remove(run + "/cost.json");
  fs::create_directory(run + "/cost.json");
  const auto contents = [&] {
    std::string all;
    for (const char* file : {"environment.json", "config.toml", "metrics.csv", "gradients.csv", "last.safetensors"})
      all += read_file(run + "/" + file);
    return all;
  };
  const std::string before = contents();
  check_contains(resume_error(run), {"cost.json: cannot write"});
  BOOST_TEST((contents() == before));
}

// The run records the absolute path of the data, so that it can be used from any directory.
BOOST_AUTO_TEST_CASE(a_relative_path_is_recorded_in_full) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.train.epochs = 1;
  const std::string data = fs::relative(workshop.data()), run = workshop / "run";
  output_of({"train", write_experiment(workshop, x), "--run", run, "--set", "data.path=" + data});
  check_contains(read_file(run + "/config.toml"),
                 {"path = \"" + fs::absolute(workshop.data()).lexically_normal().string()});
}

BOOST_AUTO_TEST_SUITE_END()
