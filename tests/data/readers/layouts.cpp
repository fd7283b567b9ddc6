// Common directory layouts, ignored files, unreadable images.
#include "heed/base/warnings.h"
#include "heed/data/loader.h"

#include "src/data/readers/parts.h"
#include "src/data/readers/tree.h"
#include "support/images.h"

#include <map>

using namespace heed;
using namespace heed::test;

namespace {

constexpr ImageSize tiny{1, 2, 3};

/// A directory of distinct images, and the data set that it contains.
struct Layout {
  TemporaryDirectory directory;
  DataConfig data;
  int written = 0;

  Layout() {
    data.name = "folder";
    data.path = directory.path().string();
    data.validation = 0;
    take_warnings();
  }
  void images(const std::string& where, int count) {
    for (int i = 0; i < count; ++i) write_image(directory / where / fmt::format("{}.png", i), pattern(tiny, ++written));
  }

  /// Returns the files of a part, relative to the directory, with their labels.
  std::map<std::string, int> part(Part part) {
    ImageSets sets(data, 1);
    const Dataset& set = sets.set(part);
    std::map<std::string, int> found;
    for (const Index i : sets.images(part))
      found[std::filesystem::relative(set.files()[static_cast<std::size_t>(i)], directory.path())] = set.label(i);
    return found;
  }
  std::size_t count(Part of) { return part(of).size(); }
  std::string only_warning() {
    const std::vector<std::string> lines = take_warnings();
    BOOST_REQUIRE(lines.size() == 1u);
    return lines[0];
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(data_layouts)

// All images of a validation directory are used for validation, and no others.
BOOST_AUTO_TEST_CASE(directories_for_validation_are_used) {
  for (const char* name : {"val", "valid", "validation", "Val"})
    for (const bool test : {true, false}) {
      Layout layout;
      for (const char* c : {"cat", "dog"}) {
        layout.images(fmt::format("train/{}", c), 10);
        layout.images(fmt::format("{}/{}", name, c), 3);
        if (test) layout.images(fmt::format("test/{}", c), 2);
      }
      layout.data.validation = 4;  // only used without a validation directory
      BOOST_TEST_CONTEXT(name << " " << test) {
        BOOST_TEST(layout.count(Part::train) == (test ? 20u : 16u));
        BOOST_TEST(layout.count(Part::test) == 4u);
        const std::map<std::string, int> validation = layout.part(Part::validation);
        BOOST_TEST(validation.size() == 6u);
        for (const auto& [file, label] : validation) {
          BOOST_TEST(file.starts_with(std::string(name) + "/"));
          BOOST_TEST(label == (file.find("dog") != std::string::npos));
        }
        BOOST_TEST(take_warnings().empty());
      }
    }
}

// Validation may lack a class; labels are the same as for the training images.
BOOST_FIXTURE_TEST_CASE(validation_may_lack_classes_but_has_no_others, Layout) {
  for (const char* where : {"train/ant", "train/bee", "val/bee", "test/ant", "test/bee"}) images(where, 2);
  BOOST_TEST(part(Part::validation).at("val/bee/0.png") == 1);
  images("val/cow", 1);
  check_error([&] { part(Part::train); }, {"train: class 'cow' of ", "val is missing"});
}

BOOST_AUTO_TEST_CASE(classes_named_like_parts_are_reported) {
  for (const char* name : {"val", "dev", "test", "Validation"}) {
    Layout layout;
    for (const char* where : {"cat", "dog", name}) layout.images(where, 6);
    check_error([&] { layout.part(Part::train); },
                {"train: the directory does not exist, and '" + std::string(name) + "' is taken for a split"});
  }
  Layout both;
  for (const char* where : {"cat", "test", "val"}) both.images(where, 6);
  check_error([&] { both.part(Part::train); }, {"'test', 'val' are taken for splits, not for classes; "});
}

// A letter with an accent is encoded as one code point or as two, a letter with two accents (Vietnamese) as one or as
// three.
BOOST_FIXTURE_TEST_CASE(classes_that_differ_in_unicode_form_are_reported, Layout) {
  const std::string composed = "caf\u00e9 \u1ebf", decomposed = "cafe\u0301 e\u0302\u0301";
  const std::string note = "; one class differs from it in Unicode form only (composed or decomposed accents)";
  for (const auto& [train, test] : {std::pair(composed, decomposed), {decomposed, composed}}) {
    for (const std::string& where : std::vector<std::string>{"train/dog", "test/dog", "train/" + train, "test/" + test})
      images(where, 1);
    check_error([&] { part(Part::train); }, {"train: class '" + test + "' of ", "test is missing" + note});
    std::filesystem::remove_all(directory / "test" / test);
    images("test/" + train, 1);
    BOOST_TEST(count(Part::test) == 2u);
    data.recorded.classes = {test, "dog"};
    check_error([&] { part(Part::test); }, {"the model has no class '" + train + "'", "the model '" + test, note});
    data.recorded.classes.clear();
    for (const char* split : {"train", "test"}) std::filesystem::remove_all(directory / split / train);
  }
  using Names = std::vector<std::string>;
  for (const Names& others : {Names{}, Names{composed}, Names{"cafe"}, Names{"caf\u00e9"}, Names{"coffee", "tea"}})
    BOOST_TEST(data::unicode_form_note(composed, others) == "");
  BOOST_TEST(data::unicode_form_note("e\u0301", {"e\u0300"}) == "");
  BOOST_TEST(data::unicode_form_note("e\u0301", {"e"}) == "");
}

BOOST_FIXTURE_TEST_CASE(training_and_test_directories_and_training_alone, Layout) {
  images("Training/a", 5), images("Training/b", 5);
  BOOST_TEST(count(Part::train) == 8u);
  BOOST_TEST(part(Part::test).at("Training/b/4.png") == 1);
  images("Testing/a", 1), images("Testing/b", 1);
  BOOST_TEST(count(Part::train) == 10u);
  BOOST_TEST(count(Part::test) == 2u);
  images("test/a", 1);
  check_error([&] { part(Part::test); }, {"'Testing', 'test' name the same split"});
}

BOOST_FIXTURE_TEST_CASE(directories_below_a_class_belong_to_it, Layout) {
  images("cat", 2), images("cat/old/1999", 3), images("dog", 5);
  BOOST_TEST(part(Part::train).at("cat/old/1999/0.png") == 0);
  BOOST_TEST(count(Part::train) == 8u);
  BOOST_TEST(take_warnings().empty());
  std::filesystem::create_directory_symlink(directory.path(), directory / "cat/all");
  check_error([&] { part(Part::train); }, {"directories are nested 32 deep"});
}

BOOST_FIXTURE_TEST_CASE(files_that_are_left_out_are_counted_and_named, Layout) {
  images("train/cat", 2), images("test/cat", 1);
  for (const char* name :
       {"._0.png", ".DS_Store", "Thumbs.db", "a.webp", "b.webp", "notes", "__MACOSX/0.png", "__MACOSX/more/1.png"})
    write_file(directory / "train/cat" / name, {1});
  BOOST_TEST(count(Part::train) == 2u);
  const std::string line = only_warning();
  for (const char* text : {"train: 8 files are not read: ", "2 .webp (cat/a.webp, cat/b.webp)", "5 hidden (cat/",
                           "1 without an extension", "mogrify"})
    BOOST_TEST(line.find(text) != std::string::npos, line << " lacks " << text);
  BOOST_TEST(count(Part::train) == 2u);
  BOOST_TEST(take_warnings().empty());  // the same line is not repeated
}

// Files and hidden directories beside split or class directories are counted like those within classes.
BOOST_FIXTURE_TEST_CASE(files_outside_the_classes_are_said, Layout) {
  images("train/cat", 2), images("test/cat", 1), images("unlabelled", 3), images("train", 1), images("train/.none", 2);
  for (const char* name : {"train/a.webp", "unlabelled/b.webp", "labels.csv", "test/.ipynb_checkpoints/0.png"})
    write_file(directory / name, {1});
  const auto said = [&](Part part) {
    count(part);
    return take_warnings();
  };
  const std::string where = directory.path();
  const std::string beside = where +
                             ": 5 files are not read: 4 in a directory that is not a split "
                             "(unlabelled/0.png, unlabelled/1.png, unlabelled/2.png, unlabelled/b.webp), 1 outside "
                             "the class directories (labels.csv)";
  BOOST_TEST(said(Part::train) == (std::vector<std::string>{
                                      where + "/train: 4 files are not read: 2 hidden (.none/0.png, .none/1.png), 2 "
                                              "outside the class directories (0.png, a.webp)",
                                      beside}),
             boost::test_tools::per_element());
  BOOST_TEST(said(Part::test) ==
                 std::vector<std::string>{where + "/test: 1 file is not read: 1 hidden (.ipynb_checkpoints/0.png)"},
             boost::test_tools::per_element());
}

// The advice to convert files is for images only.
BOOST_FIXTURE_TEST_CASE(texts_are_not_to_be_converted_to_images, Layout) {
  images("cat", 2);
  write_file(directory / "cat/notes.txt", {1});
  count(Part::train);
  BOOST_TEST(only_warning() == directory.path().string() + ": 1 file is not read: 1 .txt (cat/notes.txt)");
  write_file(directory / "cat/b.TIFF", {1});
  count(Part::train);
  BOOST_TEST(only_warning().ends_with("; convert the images with ImageMagick: mogrify -format png FILE..."));
}

// A broken link is refused: it may be a class or a split on a disk that is not mounted. Other links are followed.
BOOST_FIXTURE_TEST_CASE(broken_links_are_refused, Layout) {
  images("train/cat", 2), images("train/dog", 2), images("away/fox", 2);
  const auto link = [&](const char* to, const char* name) {
    std::filesystem::remove(directory / name);
    std::filesystem::create_directory_symlink(to, directory / name);
  };
  for (const char* name : {"train/fox", "test"}) {
    for (const char* to : {"/nonexistent", name + std::string_view(name).rfind('/') + 1}) {
      link(to, name);
      check_error([&] { part(Part::train); },
                  {(directory / name).string() + ": a broken link to '" + to + "'; restore its target or remove the"});
    }
    std::filesystem::remove(directory / name);
  }
  link("../away/fox", "train/fox");
  BOOST_TEST(count(Part::train) == 3u);
}

// A file system's own directory, lost+found, cannot be listed by users.
BOOST_FIXTURE_TEST_CASE(directories_of_disks_are_no_classes, Layout) {
  images("cat", 2), images("dog", 2);
  const std::filesystem::path own = directory / "lost+found";
  std::filesystem::create_directory(own);
  std::filesystem::permissions(own, std::filesystem::perms::none);
  BOOST_TEST(count(Part::train) == 2u);
  for (const std::string& line : take_warnings())  // none for root, who can list it
    BOOST_TEST(line.ends_with(": 1 file is not read: 1 hidden (lost+found)"), line);
  std::filesystem::permissions(own, std::filesystem::perms::owner_all);
}

// Split directories within a class are refused, not merged. Directories that look like classes but are splits under
// unknown names are refused, too.
BOOST_FIXTURE_TEST_CASE(parts_below_classes_and_by_other_names_are_refused, Layout) {
  for (const char* name : {"cat/Train", "cat/test", "dog/train", "dog/test"}) images(name, 2);
  check_error(
      [&] { part(Part::train); },
      {"cat: this class contains 'Train', 'test'; expected splits above the classes: train/CLASS, val/CLASS, test/CL"});
  const auto renamed = [&](const char* from, const char* to) {
    std::filesystem::rename(directory / from, directory / to);
  };
  renamed("cat/test", "cat/two"), renamed("dog/test", "dog/two");
  renamed("cat/Train", "cat/one"), renamed("dog/train", "dog/one");
  BOOST_TEST(count(Part::train) == 6u);  // 'one' and 'two' are below the classes
  renamed("cat", "Training_set"), renamed("dog", "test_set");
  check_error([&] { part(Part::train); },
              {": 'Training_set', 'test_set' contain the same directories, 'one', 'two', and no images beside them; if "
               "these are the classes, rename the directories above them to train, val and test"});
  images("test_set", 1);
  BOOST_TEST(count(Part::train) == 7u);
}

// Kaggle's archives unpack to directories within directories of the same name.
BOOST_FIXTURE_TEST_CASE(doubled_parts_by_other_names_are_refused, Layout) {
  for (const char* name : {"seg_train/seg_train/sea", "seg_train/seg_train/street", "seg_test/seg_test/sea"})
    images(name, 2);
  BOOST_TEST(count(Part::train) == 4u);  // only 'sea' is in both, so the two may be classes
  images("seg_test/seg_test/street", 2), images("seg_pred/seg_pred", 2);
  const std::string line =
      ": 'seg_test/seg_test', 'seg_train/seg_train' contain the same directories, 'sea', 'street'" +
      (", and no images beside them; if these are the classes, move the directories above them to " +
       (directory / "train, val and test").string());
  check_error([&] { part(Part::train); }, {line});
  images("seg_pred", 2);  // images beside a directory, so all three may be classes
  BOOST_TEST(count(Part::train) == 9u);
}

BOOST_FIXTURE_TEST_CASE(images_without_classes_are_refused_by_number, Layout) {
  images(".", 3);
  check_error([&] { part(Part::train); }, {"there are no class directories; 3 images are directly in it"});
}

// The top directory of an archive is not a class.
BOOST_FIXTURE_TEST_CASE(trees_below_a_directory_are_named, Layout) {
  images("archive/train/a", 2), images("archive/train/b", 2), images("archive/test/a", 1), images("archive/test/b", 1);
  check_error([&] { part(Part::train); }, {"archive: contains train/, so it is not a class; give " +
                                           (directory / "archive").string() + " as the directory"});
  std::filesystem::rename(directory / "archive/train", directory / "once");
  std::filesystem::remove_all(directory / "archive");
  check_error([&] { part(Part::train); }, {"contains one class, 'once', with 2 directories and no images"});
}

// Labels are matched by name if a run's classes are given.
BOOST_FIXTURE_TEST_CASE(labels_go_by_the_names_of_a_run, Layout) {
  images("test/dog", 1), images("test/ant", 1);
  data.recorded.classes = {"dog", "cow", "ant"};
  const std::map<std::string, int> found = part(Part::test);
  BOOST_TEST(found.at("test/dog/0.png") == 0);
  BOOST_TEST(found.at("test/ant/0.png") == 2);
  data.recorded.classes = {"dog", "cow"};
  check_error([&] { part(Part::test); },
              {"the model has no class 'ant'; the data has classes 'ant', 'dog', the model 'dog', 'cow'"});
  data.recorded.classes = {"dog", "ant", "dog"};
  check_error([&] { part(Part::test); }, {"test: several classes of the model are called 'dog'"});
}

// The bad images of all splits are listed together, or skipped.
BOOST_FIXTURE_TEST_CASE(bad_images_are_listed_together_and_left_out, Layout) {
  images("train/a", 3), images("train/b", 3), images("test/a", 2), images("test/b", 2);
  write_file(directory / "train/a/1.png", {'n', 'o'});
  const Bytes whole = read_bytes(directory / "train/b/0.png");
  write_file(directory / "train/b/0.png", Bytes(whole.begin(), whole.begin() + 45));
  write_file(directory / "test/b/1.png", {});
  check_error([&] { part(Part::train); }, {"3 images cannot be read: ", "train/a/1.png: ", "; ",
                                           "train/b/0.png: ", "test/b/1.png: ", "data.skip_bad=true"});
  data.skip_bad = true;
  BOOST_TEST(count(Part::train) == 4u);
  const std::string line = only_warning();
  BOOST_TEST(line.find("2 of 6 images cannot be read and are left out") != std::string::npos, line);
  // The other images are unchanged.
  ImageSets sets(data, 1);
  Image image;
  sets.set(Part::train).read(3, image);
  BOOST_TEST(image.pixels == pattern(tiny, 6).pixels, boost::test_tools::per_element());
  BOOST_TEST(sets.set(Part::train).label(3) == 1);
}

// data.limit applies to training images only; validation images depend on the seed, unless they have a directory.
BOOST_AUTO_TEST_CASE(limits_and_recorded_files_of_parts) {
  for (const bool own : {false, true}) {
    Layout layout;
    for (const char* c : {"ant", "bee"}) {
      layout.images(fmt::format("train/{}", c), 6);
      if (own) layout.images(fmt::format("val/{}", c), 4);
      layout.images(fmt::format("test/{}", c), 5);
    }
    layout.data.validation = 5, layout.data.limit = 3;
    const std::map<std::string, int> train = layout.part(Part::train), validation = layout.part(Part::validation);
    BOOST_TEST(train.size() == 3u);
    BOOST_TEST(validation.size() == (own ? 8u : 5u));
    BOOST_TEST(layout.count(Part::test) == 10u);
    for (const auto& [file, label] : train) BOOST_TEST(!validation.contains(file), file);
    if (own)
      BOOST_TEST((train ==
                  std::map<std::string, int>{{"train/ant/0.png", 0}, {"train/ant/1.png", 0}, {"train/ant/2.png", 0}}));
    // Each opened file is listed once, in the order training, validation, test. Without a validation directory, the
    // validation files are some of the training files.
    ImageSets sets(layout.data, 1);
    const DataFacts facts = sets.facts();
    BOOST_TEST(facts.classes == (std::vector<std::string>{"ant", "bee"}), boost::test_tools::per_element());
    BOOST_REQUIRE(facts.files.size() == (own ? 12 + 8 + 10u : 12 + 10u));
    BOOST_TEST(facts.files.front() == (layout.directory / "train/ant/0.png").string());
    BOOST_TEST(facts.files[12] == (layout.directory / (own ? "val/ant/0.png" : "test/ant/0.png")).string());
    BOOST_TEST(facts.files.back() == (layout.directory / "test/bee/4.png").string());
    std::vector<std::string> validated;
    for (const auto& [file, label] : validation) validated.push_back((layout.directory / file).string());
    BOOST_TEST(facts.sets_aside == !own);
    BOOST_TEST(facts.test == std::vector<std::string>(facts.files.end() - 10, facts.files.end()),
               boost::test_tools::per_element());
    BOOST_TEST(facts.validation == validated, boost::test_tools::per_element());
    ImageSets other(layout.data, 2);
    BOOST_TEST((other.images(Part::validation) != sets.images(Part::validation)) == !own);
  }
}

// The recorded background is computed from the test images.
BOOST_FIXTURE_TEST_CASE(the_recorded_background_is_that_of_test_images, Layout) {
  for (const auto& [part, level] : {std::pair("train", 0), {"val", 128}, {"test", 255}})
    write_image(directory / part / "cat/0.png", {tiny, Bytes(6, static_cast<std::uint8_t>(level))});
  BOOST_TEST((ImageSets(data, 1).facts().background == std::optional(255)));
}

BOOST_AUTO_TEST_CASE(system_files_are_hidden) {
  for (const char* name : {".DS_Store", "._x", "Thumbs.db", "THUMBS.DB", "ehthumbs.db", "desktop.ini", "__MACOSX",
                           "@eaDir", "$RECYCLE.BIN", "Icon\r", "lost+found", "System Volume Information"})
    BOOST_TEST(data::is_hidden(name), name);
  for (const char* name : {"thumbs", "a.db", "0.png", "Icon", "RECYCLE.BIN", "found"})
    BOOST_TEST(!data::is_hidden(name), name);
}

BOOST_AUTO_TEST_SUITE_END()
