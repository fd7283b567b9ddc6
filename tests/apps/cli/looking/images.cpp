// Images by index, images unlike the training set's, unreadable files, and the user's own images in one command.
#include "support/cli.h"
#include "support/command.h"
#include "support/lines.h"

#include "heed/data/images/image_write.h"
#include "support/images.h"

#include <cmath>

using namespace heed;
using namespace heed::test;

namespace {

/// Returns an image of grey `ground` with a square of grey `thing` in the middle.
Image square(Index side, std::uint8_t ground, std::uint8_t thing) {
  Image image{{1, side, side}, Bytes(static_cast<std::size_t>(side * side), ground)};
  for (Index row = 2; row < side - 2; ++row)
    for (Index column = 2; column < side - 2; ++column)
      image.pixels[static_cast<std::size_t>(row * side + column)] = thing;
  return image;
}

/// Images of squares on dark ground, in two classes by the squares' brightness, as DIR/CLASS.
struct OwnImages {
  TemporaryDirectory directory;
  std::string tree = directory / "tree", run = directory / "run";

  explicit OwnImages(int count = 30) {
    for (int i = 0; i < count; ++i) {
      write_image(tree + fmt::format("/dim/{:02}.png", i), square(14, 0, static_cast<std::uint8_t>(90 + i)));
      write_image(tree + fmt::format("/lit/{:02}.png", i), square(14, 0, static_cast<std::uint8_t>(200 + i)));
    }
  }
  std::vector<std::string> train(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"train", "--images", tree, "--run", run};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_images)

BOOST_AUTO_TEST_CASE(an_image_of_a_data_set_becomes_a_file) {
  const Workshop workshop;
  const std::string seven = workshop / "seven.png", again = workshop / "again.png";
  check_contains(output_of({"image", "--data", "mnist", "--path", workshop.data(), "--index", "7", "-o", seven}),
                 {seven, "mnist test 7", "8 x 8", "label 7"});
  output_of({"image", "--index", "7", "-o", again, "--set", "data.path=" + workshop.data()});
  Image expected;
  open_dataset("mnist", workshop.data(), Split::test)->read(7, expected);
  BOOST_TEST(load_image(seven).pixels == expected.pixels, boost::test_tools::per_element());
  BOOST_TEST((read_file(seven) == read_file(again)));
  // A value of --set may be a quoted TOML string.
  BOOST_TEST(output_of({"image", "--index", "7", "-o", again, "--set", "data.path=\"" + workshop.data() + "\""}) ==
             again + ": mnist test 7, 8 x 8 pixels, label 7\n");
  check_contains(output_of({"image", "--path", workshop.data(), "--part", "train", "--index", "131", "-o", again}),
                 {"mnist train 131", "label 1"});
  const auto refused = [&](const std::string& index, const std::string& piece) {
    check_refusal({"image", "--path", workshop.data(), "--index", index, "-o", workshop / "x.png"}, {piece});
  };
  refused("30", "--index 30: mnist has 30 test images");
  refused("-1", "--index -1");
  for (const char* text : {"", "010", "0x1", " 1", "1.0", "99999999999999999999"})
    refused(text, fmt::format("--index: '{}'; expected a whole number", text));
  check_refusal({"image", "--path", workshop.data(), "-o", workshop / "x.jpg"}, {"expected a name that ends in .png"});
  check_refusal({"image", "-o", workshop / "x.png", "--set", "data.limit=1"}, {"data.limit: expected data.name or"});
  BOOST_TEST(!std::filesystem::exists(workshop / "x.png"));
}

// The description has width before height, and the class by number and name.
BOOST_AUTO_TEST_CASE(an_image_is_described_by_its_size_and_class) {
  const TemporaryDirectory directory;
  const std::string tree = directory / "tree", out = directory / "out.png";
  for (const char* const part : {"train", "test"})
    for (int i = 0; i < 3; ++i) {
      const int first = 40 * i + (part[1] == 'r' ? 3 : 90);
      write_image(tree + fmt::format("/{}/ant/{}.png", part, i), pattern({1, 10, 14}, first));
      write_image(tree + fmt::format("/{}/bee/{}.png", part, i), pattern({3, 9, 7}, first));
    }
  for (const auto& [split, index, size, label] : {std::tuple("test", 1, ImageSize{1, 10, 14}, "0 (ant)"),
                                                  {"test", 4, ImageSize{3, 9, 7}, "1 (bee)"},
                                                  {"train", 5, ImageSize{3, 9, 7}, "1 (bee)"}}) {
    BOOST_TEST(
        output_of({"image", "--data", "folder", "--path", tree, "--split", split, "--index", std::to_string(index),
                   "-o", out}) ==
        fmt::format("{}: folder {} {}, {} x {} pixels, label {}\n", out, split, index, size.width, size.height, label));
    const Image expected = pattern(size, 40 * (index % 3) + (split[1] == 'r' ? 3 : 90));
    BOOST_TEST((load_image(out).size == size));
    BOOST_TEST(load_image(out).pixels == expected.pixels, boost::test_tools::per_element());
  }
}

// heed runs in a directory other than the program's, as when installed.
BOOST_AUTO_TEST_CASE(data_that_are_missing_say_what_can_be_run_here) {
  const TemporaryDirectory elsewhere;
  const auto said = [&](const std::string& arguments) {
    const CommandResult result = run_command(heed_program() + " " + arguments, elsewhere / "");
    BOOST_TEST(result.status == 2);
    return result.errors;
  };
  const std::string script = std::filesystem::current_path() / "datasets/fetch.sh";
  const std::string missing = said("image --data cifar100 -o x.png");
  check_contains(missing,
                 {"run `" + script + " cifar100 datasets/cifar100`", "or name its directory: --path DIRECTORY"});
  BOOST_TEST(missing.find("data.path") == std::string::npos);
  check_contains(said("image --data folder -o x.png"), {"folder needs --path"});
  check_contains(said("image --data mnist --path nowhere -o x.png"), {"nowhere: the directory does not exist (--path"});
  check_contains(said("train experiments/mnist.toml --run r --set data.name=cifar100"),
                 {script, "or name its directory: --set data.path=DIRECTORY"});
}

BOOST_FIXTURE_TEST_CASE(images_of_a_directory_are_predicted_in_order, Trained) {
  const std::string pictures = *this / "pictures/", empty = *this / "empty";
  std::filesystem::create_directories(pictures + "below");
  std::filesystem::create_directory(empty);
  for (const char* name : {"b.png", "a.png"})
    output_of({"image", "--path", data(), "--index", "7", "-o", pictures + name});
  for (const char* name : {"C.PNG", ".hidden.png", "below/d.png"})
    std::filesystem::copy_file(pictures + "a.png", pictures + name);
  write_file(pictures + "notes.txt", "no image");
  const std::string left_out =
      "heed: warning: " + pictures + ": 2 files are not read: 1 .txt (notes.txt), 1 hidden (.hidden.png)\n";
  const Finished all = heed_with({"predict", run, pictures, pictures + "a.png"});
  BOOST_TEST(all.status == 0);
  BOOST_TEST(all.err == left_out);
  std::vector<std::string> files;
  for (const std::string& line : lines_of(all.out)) files.push_back(line.substr(0, line.find(": ")));
  BOOST_TEST(files == (std::vector<std::string>{pictures + "C.PNG", pictures + "a.png", pictures + "b.png",
                                                pictures + "below/d.png", pictures + "a.png"}),
             boost::test_tools::per_element());
  write_file(pictures + "aa.jpg", "no image");
  const Finished some = heed_with({"predict", run, pictures});
  BOOST_TEST(some.status == 2);
  BOOST_TEST(lines_of(some.out).size() == 4u);
  BOOST_TEST(some.err == "heed: " + pictures + "aa.jpg: not a readable PNG, JPEG, BMP or GIF image\n" + left_out);
  // A symbolic link to itself is unreadable, too.
  std::filesystem::remove(pictures + "aa.jpg");
  std::filesystem::create_symlink("aa.jpg", pictures + "aa.jpg");
  const Finished loop = heed_with({"predict", run, pictures});
  BOOST_TEST(loop.status == 2);
  BOOST_TEST(loop.out == some.out);
  check_refusal(
      {"predict", run, empty},
      {"empty: contains no images; expected files that end in one of .png, .jpg, .jpeg, .jfif, .jpe, .bmp, .gif"});
}

BOOST_FIXTURE_TEST_CASE(images_by_number_are_predicted_and_mapped, Trained) {
  const std::string file = *this / "seven.png";
  output_of({"image", "--path", data(), "--index", "7", "-o", file});
  const std::string by_file = output_of({"predict", run, file}),
                    by_number = output_of({"predict", run, "--index", "7,8"});
  check_contains(by_number, {"mnist test 7 (label 7): ", "mnist test 8 (label 8): "});
  BOOST_TEST(by_number.substr(by_number.find(": "), by_file.size() - by_file.find(": ")) ==
             by_file.substr(by_file.find(": ")));
  BOOST_TEST(output_of({"predict", run, "--data", "mnist", "--path", data(), "--index", "7,8"}) == by_number);
  BOOST_TEST(output_of({"predict", run, "--index", "7", "--invert"}) != output_of({"predict", run, "--index", "7"}));
  for (const char* list : {"7,", ",7", "7,,8", ","})
    check_refusal({"predict", run, "--index", list}, {"--index: ''; expected a whole number"});
  check_refusal({"predict", run, "--index", "7,x"}, {"--index: 'x'; expected a whole number"});
  check_refusal({"predict", run, "--index", "30"}, {"--index 30: mnist has 30 test images"});
  BOOST_TEST(output_of({"maps", run, "--index", "7"}) == run + "/test-7-maps.png\n");
  BOOST_TEST(output_of({"maps", run, file}) == run + "/seven-maps.png\n");
  check_refusal({"maps", run, file, "--index", "7"}, {"expected IMAGE or --index"});
  // The default output for an image of the same name in another directory is the same file.
  const std::string other = *this / "other/seven.png", sheet = run + "/seven-maps.png";
  write_image(other, pattern({1, 8, 8}, 3));
  const std::string before = read_file(sheet);
  const Finished replaced = heed_with({"maps", run, other});
  BOOST_TEST(replaced.status == 0);
  BOOST_TEST(replaced.out == sheet + "\n");
  BOOST_TEST(replaced.err ==
             "heed: warning: " + sheet + ": the existing picture is replaced; -o FILE.png chooses another name\n");
  BOOST_TEST((read_file(sheet) != before));
  BOOST_TEST(output_of({"maps", run, file, "-o", sheet}) == sheet + "\n");
  BOOST_TEST((read_file(sheet) == before));
}

// With a mean of 3e38, the normalised pixels overflow.
BOOST_FIXTURE_TEST_CASE(answers_that_are_not_finite_are_no_answers, Trained) {
  const Finished result = heed_with({"predict", run, "--index", "7", "--set", "data.mean=[3e38]"});
  BOOST_TEST(result.status == 3);
  BOOST_TEST(result.out == "");
  BOOST_TEST(is_line_with(result.err, "the model's outputs are not finite: a logit is"), result.err);
}

// A sheet of several images has a row for each chosen block of each image, all of the same height.
BOOST_FIXTURE_TEST_CASE(maps_of_several_images_stand_in_one_sheet, Trained) {
  BOOST_TEST(output_of({"maps", run, "--index", "7,8", "--block", "1"}) == run + "/test-7-8-maps.png\n");
  const std::string one = *this / "one.png", two = *this / "two.png", all = *this / "all.png";
  output_of({"maps", run, "--index", "7,8", "-o", all});
  output_of({"maps", run, "--index", "7,8", "--block", "1", "-o", two});
  output_of({"maps", run, "--index", "7", "--block", "1", "-o", one});
  const Index depth = load_experiment(run + "/config.toml").model.depth;
  const Image sheet = load_image(two);
  const Index row = load_image(all).size.height - sheet.size.height;  // height of the rows of the other blocks
  BOOST_TEST(row > 0);
  BOOST_TEST(row % (2 * (depth - 1)) == 0);
  BOOST_TEST(load_image(one).size.width != sheet.size.width);
  check_refusal({"maps", run, "--index", "7", "--query", "1,1", "--set", "attention.mechanism=sima", "--show", "keys"},
                {"--query 1,1: 'keys' of this model is the same for all queries"});
  check_refusal({"maps", run, "--index", "7", "--block", std::to_string(depth + 1)},
                {fmt::format("--block {}: this model has blocks 1 to {}", depth + 1, depth)});
}

BOOST_FIXTURE_TEST_CASE(files_that_cannot_be_read_do_not_silence_the_others, Trained) {
  const std::string good = *this / "a.png", broken = *this / "b.png", other = *this / "c.png";
  write_image(good, pattern({1, 8, 8}, 3));
  write_image(other, pattern({1, 8, 8}, 5));
  heed::write_file(broken, "no image");
  const Finished result = heed_with({"predict", run, good, broken, *this / "none.png", other});
  BOOST_TEST(result.status == 2);
  check_contains(result.out, {good + ": ", other + ": "});
  BOOST_TEST(std::count(result.out.begin(), result.out.end(), '\n') == 2);
  check_contains(result.err, {broken + ": not a readable", "none.png: the file does not exist"});
  BOOST_TEST(std::count(result.err.begin(), result.err.end(), '\n') == 2);
}

// A file name may contain terminal control sequences.
BOOST_FIXTURE_TEST_CASE(names_are_printed_without_control_characters, Trained) {
  const std::string red = *this / "\033[31mred.png";
  write_image(red, pattern({1, 8, 8}, 3));
  for (const std::string& printed : {output_of({"predict", run, red}), output_of({"maps", run, red})}) {
    BOOST_TEST(printed.find('\033') == std::string::npos);
    check_contains(printed, {"\\x1b[31mred"});
  }
}

// Class names are directory names, so they may contain control sequences, too. U+009B is a control character.
BOOST_FIXTURE_TEST_CASE(classes_are_printed_without_control_characters, OwnImages) {
  std::filesystem::rename(tree + "/dim", tree + "/dim\033[31m");
  std::filesystem::rename(tree + "/lit", tree + "/lit\xc2\x9b\x33\x31m");
  run += "\033[7m";
  std::string printed = output_of(train({"--set", "train.epochs=1"}));
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"eval", run},
                                                    {"predict", run, "--index", "0"},
                                                    {"spectrum", run},
                                                    {"compare", run},
                                                    {"report", run},
                                                    {"train", "--run", run, "--resume", "--set", "train.epochs=2"}})
    printed += output_of(arguments);
  BOOST_TEST(printed.find('\033') == std::string::npos);
  BOOST_TEST(printed.find('\x9b') == std::string::npos);
  check_contains(output_of({"eval", run}), {"dim\\x1b[31m    ", "lit\\xc2\\x9b31m    "});
}

BOOST_AUTO_TEST_CASE(evaluation_that_does_not_arrive_is_an_error) {
  const Trained trained;
  const std::string line = heed_program() + " eval " + trained.run + " >/dev/full";
  BOOST_TEST(WEXITSTATUS(std::system((line + " 2>/dev/null").c_str())) == 2);
}

BOOST_FIXTURE_TEST_CASE(ones_own_images_in_one_command, OwnImages) {
  const std::string printed = output_of(train({"--set", "train.epochs=2", "--set", "train.batch=4"}));
  check_contains(in_one_line(printed), {"2 classes, 'dim', 'lit'", "44 images to train on, 4 to validate, 12 to test",
                                        "without test/, every fifth image of a class is for testing", "grey",
                                        "equivalent command: ", "--set model.classes=2", "test accuracy"});
  const Experiment x = load_experiment(run + "/config.toml");
  BOOST_TEST(x.data.name == "folder");
  BOOST_TEST(x.data.path == tree);
  BOOST_TEST(x.data.validation == 4);
  BOOST_TEST(x.model.classes == 2);
  BOOST_TEST(x.model.channels == 1);
  BOOST_TEST(x.model.image == 12);
  BOOST_TEST(x.train.batch == 4);  // --set has precedence
  BOOST_TEST(x.data.mean[0] > 0.1);
  BOOST_TEST(x.data.mean[0] < 0.6);

  // The printed command trains the same model.
  const std::size_t start = printed.find("train ", printed.find("equivalent command: "));
  std::string again = printed.substr(start, printed.find('\n', start) - start);
  again.replace(again.find(run), run.size(), directory / "again");
  BOOST_TEST(std::system((heed_program() + " " + again + " >/dev/null").c_str()) == 0);
  check_same_run(run, directory / "again");
}

// The printed command starts from the weights of --init, and has the settings of --model auto.
BOOST_FIXTURE_TEST_CASE(the_equivalent_command_starts_from_the_same_weights, OwnImages) {
  output_of(train({"--set", "train.epochs=1"}));
  const Index heads = load_experiment(run + "/config.toml").model.heads;
  const std::string weights = directory / "the weights.safetensors";
  std::filesystem::copy_file(run + "/best.safetensors", weights);
  const auto after = [](const std::string& text, const std::string& start, char end) {
    const std::size_t at = text.find(start);
    BOOST_REQUIRE_MESSAGE(at != std::string::npos, text);
    return text.substr(at + start.size(), text.find(end, at) - at - start.size());
  };
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--init", run},
        {"--init", weights, "--model", "auto", "--set", fmt::format("model.heads={}", heads)}}) {
    std::vector<std::string> arguments{"train", "--images", tree, "--check"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const std::string printed = output_of(arguments);
    const CommandResult again = run_command(after(printed, "equivalent command: ", '\n') + " --check");
    BOOST_TEST(again.status == 0, again.errors);
    for (const auto& [start, end] : {std::pair("from ", '\n'), {"first step  loss ", ','}})
      BOOST_TEST(after(again.output, start, end) == after(printed, start, end));
  }
}

// ".." after a link is the parent of the link's target, not of the link.
BOOST_FIXTURE_TEST_CASE(parents_of_links_are_those_of_their_targets, OwnImages) {
  std::filesystem::create_directories(directory / "away/inner");
  std::filesystem::rename(tree, directory / "away/tree");
  std::filesystem::create_directory_symlink("away/inner", directory / "link");
  write_image(tree + "/other/0.png", square(14, 0, 100));
  const std::string away = std::filesystem::canonical(directory / "away/tree"), given = directory / "link/../tree";
  check_contains(output_of({"train", "--check", "--images", given}), {"'dim' ", " --set data.path=" + away + " "});
  check_contains(output_of({"train", "--check", "--images", directory / "link/../../away/./tree/"}), {"'dim' "});
  // Paths without ".." after a link are normalised, but links in them are kept.
  std::filesystem::create_directory_symlink("away/tree", directory / "current");
  check_contains(output_of({"train", "--check", "--images", directory / "away/../current"}),
                 {" --set data.path=" + (directory / "current").string() + " "});
  output_of({"train", "experiments/images.toml", "--run", run, "--set", "train.epochs=1", "--set", "data.name=folder",
             "--set", "data.path=" + given, "--set", "data.resize=true", "--set", "data.validation=0", "--set",
             "model.classes=2", "--set", "train.batch=8"});
  BOOST_TEST(load_recorded(run + "/config.toml").data.path == away);
}

// heed train, with or without --check, warns of a class without training images, of data.validation beside a directory
// of validation images, of training images that each epoch leaves out, and of test images that are also training or
// validation images.
BOOST_FIXTURE_TEST_CASE(examples_without_use_are_named, OwnImages) {
  for (const char* const name : {"dim", "lit"}) {
    const std::string all = tree + "/" + name, train = tree + "/train/" + name;
    std::filesystem::create_directories(tree + "/train");
    std::filesystem::rename(all, train);
    for (const char* const part : {"val", "test"})
      for (int i = 0; i < 3; ++i) {
        const std::string image = fmt::format("/{:02}.png", *part == 'v' ? i : 10 + i), place = tree + "/" + part;
        std::filesystem::create_directories(place + "/" + name);
        std::filesystem::rename(train + image, place + "/" + name + image);
      }
  }
  const auto warnings = [&](const std::vector<std::string>& sets) {
    std::filesystem::remove_all(run);
    std::vector<std::string> arguments = train({"--set", "train.epochs=1"});
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    const Finished finished = heed_with(arguments);
    BOOST_TEST(finished.status == 0, finished.err);
    std::filesystem::remove_all(run);
    arguments.emplace_back("--check");
    const Finished checked = heed_with(arguments);
    BOOST_TEST(checked.status == 0, checked.err);
    BOOST_TEST(checked.err == finished.err);
    return finished.err;
  };
  BOOST_TEST(warnings({"data.validation=6"}) == "");
  BOOST_TEST(warnings({"data.limit=25"}) == "");
  BOOST_TEST(warnings({"data.validation=4"}) ==
             "heed: warning: data.validation=4 has no effect: the data have 6 validation images of their own\n");
  BOOST_TEST(warnings({"data.limit=24"}) ==
             "heed: warning: 1 of 2 classes have no training images: 'lit'; data.limit=24 takes the first\n");
  // There are 48 training images.
  const auto left_out = [](int batch, const std::string& count) {
    return fmt::format(
        "heed: warning: train.batch={}: each epoch leaves out {} training images, an incomplete batch; a smaller batch "
        "leaves out fewer\n",
        batch, count);
  };
  BOOST_TEST(warnings({"train.batch=22"}) == "");
  BOOST_TEST(warnings({"train.batch=20"}) == left_out(20, "8 of 48"));
  BOOST_TEST(warnings({"data.limit=40", "train.batch=36"}) == "");
  BOOST_TEST(warnings({"data.limit=39", "train.batch=35"}) == left_out(35, "4 of 39"));
  BOOST_TEST(warnings({"train.batch=24", "data.shuffle=false"}) == "");
  BOOST_TEST(
      warnings({"train.batch=22", "data.shuffle=false"}) ==
      "heed: warning: train.batch=22: training never uses the last 4 of 48 training images, an incomplete batch, "
      "since data.shuffle=false; a smaller batch leaves out fewer\n");
  std::filesystem::copy_file(tree + "/train/lit/29.png", tree + "/test/dim/99.png");
  std::filesystem::copy_file(tree + "/val/dim/01.png", tree + "/test/dim/98.png");
  std::filesystem::copy_file(tree + "/test/dim/10.png", tree + "/test/lit/10 (1).png");
  BOOST_TEST(warnings({}) == "heed: warning: " + tree +
                                 ": 2 of 9 test files are copies of training or validation files: test/dim/98.png is "
                                 "val/dim/01.png, test/dim/99.png is train/lit/29.png\n");
}

// In the mean and the deviation, all images have equal weights, whatever their sizes. The side is the median of the
// square roots of the areas. The batch size is the largest power of two, up to 64, with which an epoch has at least
// sixteen batches, or 1 if there is none.
BOOST_AUTO_TEST_CASE(settings_for_own_images_are_measured) {
  struct Case {
    Index channels, first, image, patch, batch;
    int count;
  };
  for (const Case& c : {Case{1, 9, 8, 4, 1, 15}, {3, 21, 20, 4, 2, 20}, {1, 40, 40, 8, 2, 18}, {3, 90, 64, 8, 1, 10}}) {
    const TemporaryDirectory directory;
    const std::string tree = directory / "tree";
    std::vector<double> sum(3), squares(3);
    std::vector<double> sides;
    for (int i = 0; i < c.count; ++i)
      for (const char* const name : {"a", "b"}) {
        // Most images have the median size; the others are smaller or larger, and not square.
        const Index height = i % 6 == 0   ? c.first - 3
                             : i % 6 == 1 ? c.first + 9
                                          : c.first,
                    width = i % 6 < 2 ? height + 1 : height;
        // In colour data sets, only the first image of each class is in colour.
        const Index channels = c.channels == 3 && i == 0 ? 3 : 1;
        const Image image = pattern({channels, height, width}, 31 * i + (*name == 'a' ? 0 : 90));
        write_image(tree + fmt::format("/train/{}/{:02}.png", name, i), image);
        if (i < 3)
          write_image(tree + fmt::format("/test/{}/{:02}.png", name, i),
                      pattern(image.size, 31 * i + (*name == 'a' ? 1 : 91)));
        const Index n = height * width;
        for (Index ch = 0; ch < c.channels; ++ch)
          for (Index p = 0; p < n; ++p) {
            const double level = image.pixels[static_cast<std::size_t>((channels == 3 ? ch * n : 0) + p)] / 255.0;
            sum[static_cast<std::size_t>(ch)] += level / static_cast<double>(n);
            squares[static_cast<std::size_t>(ch)] += level * level / static_cast<double>(n);
          }
        sides.push_back(std::sqrt(static_cast<double>(n)));
      }
    const std::string printed = output_of({"train", "--images", tree, "--check"});
    std::string mean, deviation;
    for (std::size_t ch = 0; ch < static_cast<std::size_t>(c.channels); ++ch) {
      const double m = sum[ch] / (2 * c.count), s = std::sqrt(squares[ch] / (2 * c.count) - m * m);
      mean += fmt::format("{}{:.4f}", ch == 0 ? "" : ",", m),
          deviation += fmt::format("{}{:.4f}", ch == 0 ? "" : ",", s);
    }
    std::ranges::sort(sides);
    const Index validation = 2 * c.count / 10;
    check_contains(in_one_line(printed),
                   {fmt::format("2 classes, 'a', 'b'; {} images to train on, {} to validate, 6 to test; {}, about {} "
                                "pixels along a side, trained at {}",
                                2 * c.count - validation, validation, c.channels == 1 ? "grey" : "in colour",
                                std::lround(sides[sides.size() / 2]), c.image)});
    check_contains(printed, {fmt::format(" --set data.validation={} ", validation), " --set model.classes=2 ",
                             fmt::format(" --set model.channels={} --set model.image={} --set model.patch={} --set "
                                         "train.batch={} --set 'data.mean=[{}]' --set 'data.std=[{}]'\n",
                                         c.channels, c.image, c.patch, c.batch, mean, deviation)});
  }
}

// Only the first twenty classes are listed, with the number of images in each.
BOOST_AUTO_TEST_CASE(many_classes_are_counted) {
  const TemporaryDirectory directory;
  const std::string tree = directory / "tree";
  for (int c = 0; c < 22; ++c)
    for (int i = 0; i < 5; ++i) write_image(tree + fmt::format("/{:02}/{}.png", c, i), pattern({1, 8, 8}, 11 * c + i));
  const std::string text = in_one_line(output_of({"train", "--images", tree, "--check", "--set", "data.validation=0"}));
  check_contains(text, {"; 88 images to train on, 0 to validate, 22 to test", "classes '00' 4+1, '01' 4+1, ",
                        "'19' 4+1 and 2 more classes (images to train on + to test)"});
  BOOST_TEST(text.find("'20' 4+1") == std::string::npos);
}

// The line about the directory counts images by the settings in use; data.skip_bad may be in the experiment file.
BOOST_AUTO_TEST_CASE(own_images_are_counted_by_the_settings) {
  const OwnImages own;
  const auto counts = [&](const std::vector<std::string>& words) {
    std::vector<std::string> all{"train", "--images", own.tree, "--check"};
    all.insert(all.end(), words.begin(), words.end());
    return in_one_line(heed_with(all).out);
  };
  check_contains(counts({}), {"'lit'; 44 images to train on, 4 to validate, 12 to test"});
  check_contains(counts({"--set", "data.validation=0"}), {"'lit'; 48 images to train on, 0 to validate, 12 to test"});
  check_contains(counts({"--set", "data.validation=8", "--set", "data.limit=30"}),
                 {"'lit'; 30 images to train on, 8 to validate, 12 to test"});
  write_file(own.tree + "/lit/bad.png", "no image");
  const std::string file = own.directory / "own.toml";
  write_file(file, "base = \"experiments/images.toml\"\n[data]\nskip_bad = true\n[train]\nbatch = 4\n");
  check_contains(counts({file}), {"'lit'; 44 images to train on, 4 to validate, 12 to test"});
}

// At most a thousand images are measured, evenly spaced: in each class, the number of measured images deviates from its
// share by less than one. The deviation is at least 0.01, even of images with a single grey level.
BOOST_AUTO_TEST_CASE(statistics_of_very_many_and_of_equal_images) {
  const TemporaryDirectory directory;
  const std::string many = directory / "many", equal = directory / "equal";
  const auto level = [](int grey) {
    return square(8, static_cast<std::uint8_t>(grey), static_cast<std::uint8_t>(grey));
  };
  for (const auto& [name, grey, count] : {std::tuple("dark", 10, 501), {"light", 210, 1501}}) {
    for (int i = 0; i < count; ++i) write_image(many + fmt::format("/train/{}/{:04}.png", name, i), level(grey));
    write_image(many + fmt::format("/test/{}/0.png", name), level(grey + 1));
    for (int i = 0; i < 5; ++i) write_image(equal + fmt::format("/{}/{}.png", name, i), level(100));
  }
  const auto measured = [](const std::string& tree, const std::string& key) {
    const Finished finished = heed_with({"train", "--images", tree, "--check"});
    BOOST_TEST(finished.status == 0, finished.err);
    return std::stod(finished.out.substr(finished.out.find("'" + key + "=[") + key.size() + 3));
  };
  const double mean = (501 * 10 + 1501 * 210) / 2002.0 / 255;
  BOOST_TEST(std::abs(measured(many, "data.mean") - mean) < 200.0 / 1000 / 255 + 5e-5);  // data.mean has four decimals
  BOOST_TEST(measured(equal, "data.mean") == 0.3922);                                    // 100 / 255
  BOOST_TEST(measured(equal, "data.std") == 0.01);
}

// Images are turned upright by their EXIF orientation, here 3 (upside down), unless data.orientation = false.
BOOST_FIXTURE_TEST_CASE(photos_are_seen_upright, OwnImages) {
  output_of(train({"--set", "train.epochs=1"}));
  const std::string photo = directory / "photo/a.jpg", plain = directory / "plain/a.jpg",
                    turned = directory / "turned/a.jpg";
  write_image(plain, pattern({1, 16, 16}, 3));
  constexpr std::string_view exif(
      "\xff\xe1\0\x22"
      "Exif\0\0II\x2a\0\x08\0\0\0"                // the directory begins at byte 8
      "\x01\0\x12\x01\x03\0\x01\0\0\0\x03\0\0\0"  // one entry: tag 0x0112, one short, 3
      "\0\0\0\0",
      36);
  const std::string bytes = read_file(plain);
  std::filesystem::create_directory(directory / "photo");
  heed::write_file(photo, bytes.substr(0, 2) + std::string(exif) + bytes.substr(2));
  Image image = load_image(plain);
  const auto pixels = static_cast<std::ptrdiff_t>(image.size.pixels());
  for (Index c = 0; c < image.size.channels; ++c)
    std::reverse(image.pixels.begin() + c * pixels, image.pixels.begin() + (c + 1) * pixels);
  write_image(directory / "turned/a.png", image);
  std::filesystem::rename(directory / "turned/a.png", turned);
  const auto drawn = [&](const std::string& file, const std::string& upright) {
    const std::string sheet = directory / "sheet.png";
    output_of({"maps", run, file, "-o", sheet, "--set", "data.orientation=" + upright});
    return read_file(sheet);
  };
  BOOST_TEST((drawn(photo, "true") == drawn(turned, "true")));
  BOOST_TEST((drawn(photo, "false") == drawn(plain, "true")));
  BOOST_TEST((drawn(photo, "true") != drawn(plain, "true")));
}

BOOST_FIXTURE_TEST_CASE(what_own_images_must_be, OwnImages) {
  check_refusal({"train", "--images", tree, "--run", run, "--resume"}, {"--resume", "--images"});
  check_refusal({"train", "--images", directory / "none", "--run", run},
                {"none: the directory does not exist (--images"});
  for (const std::string set : {"data.path=elsewhere", "data.name=mnist"})
    check_refusal(train({"--set", set}),
                  {"--set '" + set + "' and --images '" + tree + "' both name the data; expected one of them"});
  std::filesystem::remove_all(tree + "/lit");
  check_refusal(train({}), {"--images " + tree + ": found one class, 'dim'"});
  std::filesystem::remove_all(tree + "/dim");
  check_refusal(train({}), {tree + ": there are no class directories"});
  BOOST_TEST(!std::filesystem::exists(run));
}

// Dark objects on white paper, for a model of bright objects on black.
BOOST_FIXTURE_TEST_CASE(backgrounds_unlike_the_training_sets_are_said, OwnImages) {
  output_of(train({"--set", "train.epochs=1"}));
  const std::string like = directory / "like.png", paper = directory / "paper.png";
  save_png(like, square(20, 10, 200));
  save_png(paper, square(20, 245, 55));
  output_of({"predict", run, like});
  const Finished said = heed_with({"predict", run, like, paper});
  BOOST_TEST(said.status == 0);
  check_contains(said.err, {"paper.png: the background is bright, but that of the run's images is dark; try --invert"});
  BOOST_TEST(std::count(said.err.begin(), said.err.end(), '\n') == 1);
  const std::string inverted = output_of({"predict", run, paper, "--invert"}),
                    plain = output_of({"predict", run, like});
  BOOST_TEST(inverted.substr(inverted.rfind(": ")) == plain.substr(plain.rfind(": ")));
  check_contains(heed_with({"maps", run, like, "--invert"}).err, {"the background is bright", "try without --invert"});
  // Without a record, the background is computed from the test images, if they are available.
  std::filesystem::remove(run + "/data.json");
  check_contains(heed_with({"predict", run, paper}).err,
                 {"paper.png: the background is bright, but that of the run's images is dark; try --invert"});
  BOOST_TEST(heed_with({"predict", run, like}).err.find("background is bright") == std::string::npos);
}

// An image with transparency is predicted like the opaque image over the training set's background, which is dark; with
// --invert, over that background after the inversion.
BOOST_FIXTURE_TEST_CASE(transparent_pixels_show_the_background_of_the_training_images, OwnImages) {
  output_of(train({"--set", "train.epochs=1"}));
  const std::string drawing = directory / "drawing.png", opaque = directory / "opaque.png";
  for (const bool invert : {false, true})
    for (const int opacity : {255, 102}) {
      Bytes pixels;
      for (int row = 0; row < 20; ++row)
        for (int column = 0; column < 20; ++column) {
          const bool inside = row >= 2 && row < 18 && column >= 2 && column < 18;
          pixels.insert(pixels.end(), {static_cast<std::uint8_t>(invert ? 20 : 235),
                                       static_cast<std::uint8_t>(inside ? opacity : 0)});
        }
      write_transparent(drawing, 20, pixels);
      save_png(opaque, square(20, 0, static_cast<std::uint8_t>(235 * opacity / 255)));
      std::vector<std::string> arguments{"predict", run, drawing};
      if (invert) arguments.emplace_back("--invert");
      const std::string found = output_of(arguments), expected = output_of({"predict", run, opaque});
      BOOST_TEST(found.substr(found.rfind(": ")) == expected.substr(expected.rfind(": ")));
    }
}

// Transparent pixels get the training set's dark background: dark objects become invisible unless inverted.
BOOST_FIXTURE_TEST_CASE(things_as_dark_as_the_background_behind_them_are_said, OwnImages) {
  output_of(train({"--set", "train.epochs=1"}));
  const std::string drawing = directory / "drawing.png", empty = directory / "empty.png",
                    black = directory / "black.png", same = directory / "same.png";
  const auto write = [](const std::string& path, std::uint8_t thing, std::uint8_t opacity) {
    Bytes pixels;
    for (int row = 0; row < 20; ++row)
      for (int column = 0; column < 20; ++column) {
        const bool inside = row >= 2 && row < 18 && column >= 2 && column < 18;
        pixels.insert(pixels.end(), {thing, inside ? opacity : std::uint8_t{0}});
      }
    write_transparent(path, 20, pixels);
  };
  write(drawing, 20, 255);
  write(empty, 20, 0);
  write(same, 230, 255);
  save_png(black, square(20, 0, 0));
  const Finished said = heed_with({"predict", run, drawing, empty, black, same});
  BOOST_TEST(said.status == 0);
  BOOST_TEST(said.err ==
             "heed: " + drawing +
                 ": the visible pixels are as dark as the background behind the transparent ones; try --invert\n");
  output_of({"predict", run, drawing, "--invert"});
  check_contains(heed_with({"predict", run, same, "--invert"}).err,
                 {"as dark as the background", "try without --invert"});
}

BOOST_AUTO_TEST_SUITE_END()
