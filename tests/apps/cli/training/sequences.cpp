// Commands with sequences: training, evaluation and generation from a small text, probes, generated data, errors.
#include "heed/data/images/image_write.h"
#include "heed/data/sequences/pixels.h"
#include "heed/io/safetensors.h"
#include "heed/train/runs/history.h"
#include "heed/train/runs/run.h"
#include "support/cli.h"
#include "support/command.h"
#include "support/images.h"

#include <cmath>
#include <deque>
#include <filesystem>
#include <set>

using namespace heed;
using namespace heed::test;

namespace {

/// A repetitive text and an experiment on it.
struct SmallText {
  TemporaryDirectory directory;

  SmallText() {
    std::string text;
    for (int i = 0; i < 300; ++i) text += "the cat sat on the mat, and ";
    write_file(path("text"), text);
    write_file(path("x.toml"),
               "[model]\nfamily = \"sequence\"\ntask = \"lm\"\nvocab = 256\ncontext = 16\ndim = 16\ndepth = 1\n"
               "heads = 2\nhidden = 24\n[attention]\nmechanism = \"aft\"\n[attention.aft]\nvariant = \"local\"\n"
               "window = 4\nrank = 3\n[data]\nname = \"text\"\npath = \"" +
                   path("text") + "\"\n[optim]\nlr = 1e-2\n[train]\nepochs = 2\nbatch = 8\nmicrobatch = 3\n");
  }
  std::string path(const std::string& name) const { return directory / name; }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_sequences)

// One line lists the number of training, validation and test examples of each class.
BOOST_AUTO_TEST_CASE(classes_are_counted_in_every_part) {
  const TemporaryDirectory directory;
  const auto lines = [](int few, int many) {
    std::string text;
    for (int i = 0; i < few; ++i) text += fmt::format("few\ttext {}\n", i);
    for (int i = 0; i < many; ++i) text += fmt::format("many\ttext {}\n", i);
    return text;
  };
  std::filesystem::create_directory(directory / "data");
  write_file(directory / "data/train.tsv", lines(8, 9));
  write_file(directory / "data/val.tsv", lines(1, 4));
  write_file(directory / "data/test.tsv", lines(2, 3));
  write_file(directory / "x.toml",
             "[model]\nfamily = \"sequence\"\ntask = \"classify\"\nvocab = 256\ncontext = 8\ndim = 4\ndepth = 1\n"
             "heads = 1\nhidden = 4\nclasses = 2\npool = \"mean\"\n[data]\nname = \"documents\"\npath = \"" +
                 (directory / "data").string() + "\"\n[train]\nepochs = 1\nbatch = 4\n");
  const std::string text = output_of({"train", directory / "x.toml", "--run", directory / "run"});
  check_contains(text, {"17 sequences to train on, 5 to validate, 5 to test", "classes     'few' 8+1+2, 'many' 9+4+3"});
  std::filesystem::remove(directory / "data/val.tsv");
  check_refusal({"eval", directory / "run", "--split", "val", "--set", "data.validation=0"},
                {"no examples of documents are set aside for validation"});
}

// An untrained model gives each of 256 bytes about the same probability: 60 tokens drawn independently have about 54
// different values.
BOOST_FIXTURE_TEST_CASE(each_token_is_drawn_by_itself, SmallText) {
  output_of({"train", path("x.toml"), "--run", path("run"), "--set", "optim.lr=0", "--set", "train.epochs=1"});
  const std::string text = output_of({"generate", path("run"), "--tokens", "60"});
  BOOST_TEST(std::set<char>(text.begin(), text.end()).size() > 40U);
}

BOOST_FIXTURE_TEST_CASE(a_text_is_learned_and_written, SmallText) {
  const std::string trained = output_of({"train", path("x.toml"), "--run", path("run")});
  check_contains(trained, {"generate " + path("run") + "\n"});
  const double loss = read_history(RunPaths(path("run"))).test_loss.value();
  check_contains(trained, {fmt::format("loss {:.4f} ({:.4f} bits)\n", loss, loss / std::log(2.0))});
  const std::string eval = output_of({"eval", path("run")});
  // The test part is the last 5 % of 8400 bytes; its first byte is not predicted.
  check_contains(eval, {"text, test, 419 bytes", fmt::format("bits per character {:.4f}\n", loss / std::log(2.0)),
                        fmt::format("loss {:.4f} nats\n", loss)});
  const std::string one = output_of({"generate", path("run"), "--prompt", "the c", "--tokens", "60", "--threads", "1"});
  BOOST_TEST(one.size() == 65u);
  BOOST_TEST(one.starts_with("the c"));
  BOOST_TEST(one == output_of({"generate", path("run"), "--prompt", "the c", "--tokens", "60", "--seed", "1",
                               "--threads", "2"}));
  BOOST_TEST(one != output_of({"generate", path("run"), "--prompt", "the c", "--tokens", "60", "--seed", "2"}));
  BOOST_TEST(output_of({"generate", path("run"), "--tokens", "5"}).size() == 5u);
  // Temperature 0 or one candidate gives the most likely token, whatever the seed. The text drawn from two candidates
  // differs from that drawn from all 256.
  const auto drawn = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"generate", path("run"), "--prompt", "the c", "--tokens", "60"});
    return output_of(options);
  };
  const std::string likeliest = drawn({"--temperature", "0"});
  for (const std::vector<std::string>& same : {std::vector<std::string>{"--temperature", "0", "--seed", "5"},
                                               {"--top-k", "1"},
                                               {"--top-k", "1", "--seed", "5"},
                                               {"--temperature", "1e-6", "--seed", "9"}})
    BOOST_TEST(drawn(same) == likeliest);
  BOOST_TEST(drawn({"--top-k", "256"}) == one);
  BOOST_TEST(drawn({"--temperature", "1e6"}) != one);
  BOOST_TEST(drawn({"--top-k", "2", "--temperature", "1e6"}) != drawn({"--temperature", "1e6"}));
  // The output fits in a buffer, so the failure occurs only when it is flushed.
  const CommandResult lost =
      run_command(heed_program() + " generate " + path("run") + " --prompt the --tokens 5 >/dev/full");
  BOOST_TEST(lost.status == 2);
  check_contains(lost.errors, {"standard output cannot be written"});
  const Finished stats = heed_with({"generate", path("run"), "--tokens", "5", "--stats"});
  BOOST_TEST(stats.status == 0);
  // After five inputs, four of them in the window, the state has (3 + 2 x 4) 16 floats.
  check_contains(stats.err, {"prompt: 1 token,", "written: 5, ", "tokens/s", "state 704 bytes after 5 inputs"});
  // With a single token, both times and the rate are that token's; with two tokens, both times are the slower token's.
  for (const int tokens : {1, 2}) {
    const std::string text = heed_with({"generate", path("run"), "--tokens", fmt::format("{}", tokens), "--stats"}).err;
    const auto before = [&](const std::string& unit) {
      const std::size_t end = text.find(unit);
      BOOST_TEST_REQUIRE(end != std::string::npos, text);
      return std::stod(text.substr(text.rfind(' ', end - 1)));
    };
    const double first = before(" us per token at the first"), last = before(" us at the last positions");
    BOOST_TEST(first == last);
    const double share = before(" tokens/s") * first / 1e6;
    BOOST_TEST((0.98 < share && share < 1.02 * tokens), text);
  }
  const Finished none = heed_with({"generate", path("run"), "--prompt", "the", "--tokens", "0", "--stats"});
  BOOST_TEST(none.out == "the");
  check_contains(none.err, {"prompt: 3 tokens,", "written: 0; state "});
  const std::string prompt = read_file(path("text")).substr(0, 700);
  write_file(path("prompt"), prompt);
  const std::string file = output_of({"generate", path("run"), "--prompt-file", path("prompt"), "--tokens", "20"});
  BOOST_TEST(file.size() == 720u);
  BOOST_TEST(file == output_of({"generate", path("run"), "--prompt", prompt, "--tokens", "20"}));
  const std::string generate = heed_program() + " generate " + path("run") + " --prompt-file - --tokens 20 ";
  BOOST_TEST(file == run_command(generate + "<" + path("prompt")).output);
  const CommandResult directory_given = run_command(generate + "</");
  BOOST_TEST(directory_given.status == 2);
  check_contains(directory_given.errors, {"standard input cannot be read"});
  check_refusal({"generate", path("run"), "-o", path("x.png")}, {"--output requires --complete"});
  check_refusal({"generate", path("run"), "--zoom", "2"}, {"--zoom requires --complete"});
  check_contains(output_of({"eval", path("run"), "--data", "text", "--path", path("prompt")}), {"34 bytes"});
  const std::string image = "experiments/pictures/sneaker.png";
  for (const std::vector<std::string>& of_images : {std::vector<std::string>{"maps", path("run"), image},
                                                    {"predict", path("run")},
                                                    {"predict", path("run"), image}})
    check_refusal(of_images, {"expects sequences of tokens, not images; evaluate it with heed eval", "heed generate"});

  // Large weights make the products overflow.
  const SafetensorsFile best(path("run/best.safetensors"));
  SafetensorsWriter large;
  std::deque<Tensor<float>> tensors;
  for (const std::string& name : best.names()) {
    Tensor<float>& tensor = tensors.emplace_back(best.read<float>(name));
    for (float& x : tensor) x *= 1e30f;
    large.add(name, std::as_const(tensor).view());
  }
  large.write(path("large.safetensors"));
  const Finished wild = heed_with({"generate", path("run"), "--weights", path("large.safetensors"), "--tokens", "5"});
  BOOST_TEST(wild.status == 3);
  BOOST_TEST(wild.out == "");
  check_contains(wild.err, {"the model's outputs are not finite: a logit is"});
}

// The picture has three rows: the model's input images, the kept part, and the completion.
BOOST_AUTO_TEST_CASE(images_are_completed) {
  const TemporaryDirectory directory;
  const std::string run = directory / "run", sheet = directory / "sheet.png", images = directory / "data";
  write_patterns(images, 30, 10, 28);
  const std::string trained = output_of({"train", "experiments/density-micro.toml",
                                         "--run", run,
                                         "--set", "data.path=" + images,
                                         "--set", "data.validation=10",
                                         "--set", "data.side=7",
                                         "--set", "model.context=49",
                                         "--set", "model.dim=8",
                                         "--set", "model.depth=1",
                                         "--set", "model.hidden=8",
                                         "--set", "attention.window=8",
                                         "--set", "attention.rank=2",
                                         "--set", "train.batch=2",
                                         "--set", "train.epochs=1"});
  check_contains(trained, {"generate " + run + " --complete IMAGE... -o OUT.png\n"});
  for (const auto& [set, said] : {std::pair("data.levels=8", "vocab = 16; expected [data] levels, 8"),
                                  {"data.augment=['flip', 'flip']", "'flip' is given twice"}})
    check_refusal(
        {"train", "experiments/density-micro.toml", "--run", directory / "none", "--set", "data.path=" + images,
         "--set", "data.side=7", "--set", "model.context=49", "--set", "data.validation=10", "--set", set},
        {said});
  DataConfig data;
  data.side = 7, data.levels = 16;
  std::vector<std::string> files;
  std::vector<Image> seen;
  for (const int first : {3, 90}) {
    files.push_back(directory / (std::to_string(first) + ".png"));
    const Image image = pattern({1, 28, 28}, first);
    write_image(files.back(), image);
    seen.push_back(image_of_tokens(pixel_tokens(image, data), {1, 7, 7}, 16));
  }
  const auto completed = [&](const std::string& keep, const std::string& seed) {
    output_of({"generate", run, "--complete", files[0], files[1], "--keep", keep, "--seed", seed, "-o", sheet});
    return load_image(sheet);
  };
  const Image half = completed("0.5", "1");
  BOOST_REQUIRE((half.size == ImageSize{1, 21, 14}));
  const auto at = [](const Image& image, Index y, Index x) {
    return image.pixels[static_cast<std::size_t>(y * image.size.width + x)];
  };
  Index changed = 0;
  for (Index y = 0; y < 7; ++y)
    for (Index x = 0; x < 14; ++x) {
      const std::uint8_t whole = at(seen[static_cast<std::size_t>(x / 7)], y, x % 7);
      BOOST_TEST(at(half, y, x) == whole);
      BOOST_TEST(at(half, 7 + y, x) == (y < 3 ? whole : 0));  // floor(7 / 2) rows are kept
      if (y < 3) BOOST_TEST(at(half, 14 + y, x) == whole);
      changed += at(half, 14 + y, x) != whole;
    }
  BOOST_TEST(changed > 14);  // out of 56 pixels, drawn by an almost untrained model
  BOOST_TEST(completed("0.5", "1").pixels == half.pixels);
  BOOST_TEST(completed("0.5", "2").pixels != half.pixels);
  const Image all = completed("1", "1");
  BOOST_TEST(std::equal(all.pixels.begin(), all.pixels.begin() + 98, all.pixels.begin() + 196));
  check_refusal({"generate", run, "--complete", files[0]}, {"--complete requires -o OUT.png"});
  check_refusal({"generate", run, "--complete", files[0], "-o", directory / "x.txt"},
                {"expected a name that ends in .png"});
  const std::string before = read_file(files[1]);
  check_refusal({"generate", run, "--complete", files[0], files[1], "-o", files[1]},
                {files[1] + ": is also IMAGE; expected another file"});
  BOOST_TEST((read_file(files[1]) == before));
  check_refusal({"generate", run, "--complete", files[0], "-o", sheet, "--prompt", "x"},
                {"--complete excludes --prompt"});
  check_refusal({"generate", run, "--complete", files[0], "-o", sheet, "--tokens", "9"},
                {"--complete excludes --tokens"});
  const std::string one = directory / "one.png", large = directory / "large.png";
  BOOST_TEST(output_of({"generate", run, "--complete", files[0], "-o", one}).starts_with(one + ": the originals"));
  output_of({"generate", run, "--complete", files[0], "-o", large, "--zoom", "3"});
  const Image small = load_image(one), zoomed = load_image(large);
  BOOST_REQUIRE((zoomed.size == ImageSize{1, 63, 21}));
  for (Index y = 0; y < 63; ++y)
    for (Index x = 0; x < 21; ++x) BOOST_TEST(at(zoomed, y, x) == at(small, y / 3, x / 3));
  // With no row kept, the most likely completion is the same for all images: it depends neither on the other images nor
  // on earlier completions. --stats counts the tokens of both images.
  const auto likeliest = [&](const std::vector<std::string>& of, const std::string& keep) {
    std::vector<std::string> words{"generate", run, "-o", sheet, "--temperature", "0", "--keep", keep, "--stats"};
    words.emplace_back("--complete");
    words.insert(words.end(), of.begin(), of.end());
    const Finished finished = heed_with(words);
    const Index rows = keep == "0" ? 0 : 4, count = std::ssize(of);
    check_contains(finished.err, {fmt::format("prompt: {} tokens, ", count * rows * 7),
                                  fmt::format("written: {}, ", count * (7 - rows) * 7)});
    return load_image(sheet);
  };
  for (const std::string keep : {"0", "0.6"}) {
    const Image both = likeliest(files, keep), alone[]{likeliest({files[0]}, keep), likeliest({files[1]}, keep)};
    for (Index y = 0; y < 21; ++y)
      for (Index x = 0; x < 14; ++x) BOOST_TEST(at(both, y, x) == at(alone[x / 7], y, x % 7));
    for (Index y = 0; y < 7 && keep == "0"; ++y)
      for (Index x = 0; x < 7; ++x)
        BOOST_TEST((at(both, 7 + y, x) == 0 && at(both, 14 + y, x) == at(both, 14 + y, 7 + x)));
  }
  check_refusal({"generate", run, "--complete", files[0], "-o", sheet, "--set", "data.levels=8"},
                {"levels = 8", "tokens 0 to 15", "16"});
}

// A pixel has three tokens, R, G and B. Cell (y, x) of the image has the constant value v = 5 (12 y + 3 x + c) in
// channel c, which 16 levels represent as 16 floor(v / 16) + 8.
BOOST_AUTO_TEST_CASE(completed_images_keep_their_rows_in_all_colours) {
  const TemporaryDirectory directory;
  const std::string run = directory / "run", sheet = directory / "sheet.png", file = directory / "a.png",
                    images = directory / "data";
  for (int i = 0; i < 6; ++i) {
    Bytes record{static_cast<std::uint8_t>(i)};
    const Image image = pattern({3, 32, 32}, 40 * i);
    record.insert(record.end(), image.pixels.begin(), image.pixels.end());
    write_file(images + (i == 5 ? "/test_batch.bin" : fmt::format("/data_batch_{}.bin", i + 1)), record);
  }
  std::vector<std::string> words{"train", "experiments/density-micro.toml", "--run", run};
  for (const std::string& set :
       {"data.path=" + images, std::string("data.source=cifar10"), std::string("data.validation=0"),
        std::string("data.side=4"), std::string("model.context=48"), std::string("model.dim=8"),
        std::string("model.depth=1"), std::string("model.hidden=8"), std::string("attention.window=8"),
        std::string("attention.rank=2"), std::string("train.batch=5"), std::string("train.epochs=1")})
    words.insert(words.end(), {"--set", set});
  output_of(words);
  const auto value = [](Index c, Index y, Index x) { return 5 * (12 * y + 3 * x + c); };
  Image whole{{3, 32, 32}, {}};
  for (Index c = 0; c < 3; ++c)
    for (Index y = 0; y < 32; ++y)
      for (Index x = 0; x < 32; ++x) whole.pixels.push_back(static_cast<std::uint8_t>(value(c, y / 8, x / 8)));
  write_image(file, whole);
  for (const auto& [keep, rows] : {std::pair<std::string, Index>{"0.25", 1}, {"0.6", 2}, {"1", 4}}) {
    const Finished finished = heed_with({"generate", run, "--complete", file, "--keep", keep, "-o", sheet, "--stats"});
    BOOST_TEST(finished.status == 0, finished.err);
    if (rows < 4)
      check_contains(finished.err,
                     {fmt::format("prompt: {} tokens, ", rows * 12), fmt::format("written: {}, ", (4 - rows) * 12)});
    const Image found = load_image(sheet);
    BOOST_REQUIRE((found.size == ImageSize{3, 12, 4}));
    for (Index c = 0; c < 3; ++c)
      for (Index y = 0; y < 4; ++y)
        for (Index x = 0; x < 4; ++x) {
          const auto at = [&](Index row) {
            return Index{found.pixels[static_cast<std::size_t>((c * 12 + row) * 4 + x)]};
          };
          const Index shown = value(c, y, x) / 16 * 16 + 8;
          BOOST_TEST(at(y) == shown);
          BOOST_TEST(at(4 + y) == (y < rows ? shown : 0));
          if (y < rows) BOOST_TEST(at(8 + y) == shown);
        }
  }
  // Images of CIFAR-100, the other data set in colour, have the same size.
  const std::string other = directory / "other.png";
  output_of({"generate", run, "--complete", file, "--keep", "1", "-o", other, "--set", "data.source=cifar100"});
  BOOST_TEST(read_bytes(other) == read_bytes(sheet));
}

// A Greek letter has two bytes in UTF-8, or three with some diacritics.
BOOST_FIXTURE_TEST_CASE(bits_of_other_letters_are_per_byte, SmallText) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "Ἐν ἀρχῇ ἦν ὁ λόγος. ";
  write_file(path("text"), text);
  check_contains(output_of({"train", path("x.toml"), "--run", path("run"), "--set", "train.epochs=1"}),
                 {"\n  bits per byte ", "bits)"});
  check_contains(output_of({"eval", path("run")}), {"\nbits per byte "});
}

// 26 windows make an epoch of 3 steps, and 800 one of 100 steps, although the text has room for only 472 adjacent
// windows.
BOOST_FIXTURE_TEST_CASE(an_epoch_of_a_text_has_so_many_windows, SmallText) {
  for (const auto& [windows, steps] : {std::pair("26", "6"), std::pair("800", "200")}) {
    const std::string run = path(windows);
    output_of({"train", path("x.toml"), "--run", run, "--set", std::string("data.windows=") + windows});
    check_contains(read_file(run + "/metrics.csv"), {std::string("\ntrain,2,") + steps + ","});
  }
  check_refusal({"train", "experiments/listops-micro.toml", "--run", path("none"), "--set", "data.windows=64"},
                {"[data] windows is not a key of name = \"listops\""});
}

BOOST_FIXTURE_TEST_CASE(interrupted_training_goes_on_to_the_same_bits, SmallText) {
  output_of({"train", path("x.toml"), "--run", path("whole"), "--threads", "2"});
  output_of({"train", path("x.toml"), "--run", path("parts"), "--threads", "1", "--set", "train.max_steps=20"});
  output_of({"train", "--run", path("parts"), "--resume", "--set", "train.max_steps=0"});
  BOOST_TEST(read_file(path("whole/last.safetensors")) == read_file(path("parts/last.safetensors")));
}

BOOST_FIXTURE_TEST_CASE(probes_of_a_whole_sequence_and_token_by_token_agree, SmallText) {
  output_of({"train", path("x.toml"), "--run", path("run"), "--set", "train.max_steps=2"});
  Tensor<std::int64_t> tokens(Shape{2, 16}), targets(Shape{2, 16});
  for (Index i = 0; i < tokens.size(); ++i) tokens[i] = 97 + i % 5, targets[i] = i % 3 == 0 ? -1 : 98;
  const auto write = [&](const std::string& name, bool with_targets) {
    SafetensorsWriter file;
    file.add("tokens", std::as_const(tokens).view());
    if (with_targets) file.add("targets", std::as_const(targets).view());
    file.write(path(name));
  };
  write("in", true);
  write("tokens", false);
  const std::string weights = path("run/last.safetensors");
  output_of(
      {"probe", "model", path("x.toml"), "--weights", weights, path("in"), path("out"), "--trace", path("trace")});
  BOOST_TEST(SafetensorsFile(path("trace")).metadata().at("heed.step") == "2");  // the weights' step, for heed diff
  output_of({"probe", "decode", path("x.toml"), "--weights", weights, path("tokens"), path("decoded")});
  const Tensor<float> full = SafetensorsFile(path("out")).read<float>("logits"),
                      decoded = SafetensorsFile(path("decoded")).read<float>("logits");
  BOOST_CHECK(full.shape() == (Shape{2, 16, 256}));
  BOOST_REQUIRE(full.shape() == decoded.shape());
  float largest = 0, difference = 0;
  for (Index i = 0; i < full.size(); ++i) {
    largest = std::max(largest, std::abs(full[i]));
    difference = std::max(difference, std::abs(full[i] - decoded[i]));
  }
  BOOST_TEST(difference < 1e-5f * largest);
  BOOST_TEST(SafetensorsFile(path("out")).contains("grad.tok_embed.weight"));

  // The model is rejected before anything else is read.
  for (const std::string probe : {"model", "decode"})
    check_refusal({"probe", probe, path("x.toml"), "--weights", path("none"), path("in"), path("out"), "--set",
                   "attention.mechanism=sima"},
                  {"sima", "causal"});
  check_refusal(
      {"probe", "decode", "experiments/listops-micro.toml", "--weights", path("none"), path("in"), path("out")},
      {"only family = \"sequence\" with task = \"lm\" predicts tokens"});

  const auto refused = [&](const std::vector<std::string>& pieces) {
    write("in", true);
    std::filesystem::remove(path("out"));
    check_refusal({"probe", "model", path("x.toml"), "--weights", weights, path("in"), path("out")}, pieces);
    BOOST_TEST(!std::filesystem::exists(path("out")));
  };
  tokens[3] = 256;
  refused({"'tokens'", "256", "0 to 255"});
  tokens[3] = 0, targets[5] = -2;
  refused({"'targets'", "-2", "-1 to 255"});
  std::fill(targets.begin(), targets.end(), -1);
  refused({"'targets'", "are -1; expected at least one target"});
  tokens = targets = Tensor<std::int64_t>(Shape{1, 17});
  refused({"'tokens'", "[1, 17]", "context, 16"});
}

BOOST_FIXTURE_TEST_CASE(what_does_not_fit_is_refused_by_name, SmallText) {
  const auto refused = [&](const std::vector<std::string>& sets, const std::vector<std::string>& pieces) {
    std::vector<std::string> arguments{"train", path("x.toml"), "--run", path("none")};
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    check_refusal(arguments, pieces);
    BOOST_TEST(!std::filesystem::exists(path("none")));
  };
  refused({"model.pool=mean"}, {"--set", "[model] pool is not a key of family = \"sequence\" with task = \"lm\""});
  refused({"model.image=28"}, {"[model] image is not a key"});
  refused({"model.task=ml"}, {"task", "'ml'", "lm"});
  refused({"data.augment=['crop']"}, {"augment", "crop", "text"});
  refused({"data.mean=[0.5]"}, {"[data] mean is not a key of name = \"text\""});
  refused({"data.resize=false"}, {"[data] resize is not a key"});
  refused({"attention.mechanism=sima"}, {"sima", "causal"});
  refused({"attention.causal=false"}, {"causal", "lm"});
  refused({"model.vocab=100"}, {"vocab = 100", "256"});
  refused({"model.vocab=300"}, {"vocab = 300", "256"});
  refused({"data.stride=17"}, {"stride = 17", "16"});
  refused({"data.windows=7"}, {"[data] windows = 7; expected at least 8, one batch"});
  refused({"data.windows=473", "data.shuffle=false"}, {"[data] windows = 473", "at most 472"});  // training: 7560 bytes
  refused({"data.path=" + path("nothing")}, {path("nothing"), "the file does not exist (data.path of text)"});
  refused({"data.path=" + path("datasets/bible/bible.txt")},
          {"(data.path of text); `datasets/fetch.sh bible` writes it"});
  refused({"data.limit=10"}, {"9 of 10 bytes", "17"});
  write_file(path("empty"), "");
  refused({"data.path=" + path("empty")}, {path("empty"), "empty"});
  refused({"data.name=listops"}, {"listops", "lm"});
  refused({"data.name=mnist"}, {"mnist"});
  refused({"model.task=classify"}, {"[model] lacks classes, pool"});
  check_refusal({"train", "experiments/mnist.toml", "--run", path("none"), "--set", "data.name=text"}, {"[data] mean"});
  check_refusal({"train", "experiments/mnist.toml", "--run", path("none"), "--set", "model.vocab=256"},
                {"[model] vocab is not a key of family = \"vit\""});
  check_refusal({"cost", "models/vit-micro.toml", "--set", "model.pool=last"}, {"last"});
}

BOOST_FIXTURE_TEST_CASE(made_data_are_learned_from, SmallText) {
  BOOST_TEST(output_of({"listops", "--out", path("listops"), "--train", "200", "--valid", "20", "--test", "20",
                        "--depth", "3", "--args", "3", "--min", "4", "--max", "20"}) ==
             path("listops") + ": 200 expressions to train on, 20 to validate, 20 to test\n");
  BOOST_TEST(output_of({"pairs", "--out", path("pairs"), "--train", "40", "--valid", "8", "--test", "8"}) ==
             path("pairs") + ": 40 pairs to train on, 8 to validate, 8 to test\n");
  const auto train = [&](const std::string& experiment, const std::string& data, const std::string& mechanism,
                         const std::vector<std::string>& options = {}) {
    std::vector<std::string> command{"train", experiment, "--run", path(data + "-" + mechanism)};
    for (const std::string& set : {"data.path=" + path(data), std::string("train.epochs=1"),
                                   std::string("train.batch=8"), "attention.mechanism=" + mechanism})
      command.insert(command.end(), {"--set", set});
    for (const std::string& option : options) command.insert(command.end(), {"--set", option});
    return output_of(command);
  };
  // The expressions are shorter than the context of 32 tokens.
  const std::string listops = in_one_line(train("experiments/listops-micro.toml", "listops", "softmax"));
  check_contains(listops, {"FLOP per training sequence of 32 tokens; shorter ones need fewer, so no rate is computed ",
                           "J per training sequence of 32 tokens by the table"});
  BOOST_TEST(listops.find("FLOP/s") == std::string::npos);
  output_of({"listops", "--out", path("equal"), "--train", "99", "--valid", "8", "--test", "8", "--args", "3", "--min",
             "4", "--max", "6"});
  check_contains(train("experiments/listops-micro.toml", "equal", "softmax", {"model.context=5"}),
                 {"FLOP per training sequence; ", "FLOP/s, "});
  check_contains(output_of({"eval", path("listops-softmax")}), {"20 sequences", "top-1 accuracy", "confusion"});
  train("experiments/pairs-micro.toml", "pairs", "sima");
  check_contains(output_of({"eval", path("pairs-sima")}), {"8 pairs"});

  // Maps of sequences of different lengths differ in size, so they have no common spectrum. heed residual examines each
  // inverted matrix separately.
  check_refusal({"spectrum", path("listops-softmax")}, {"blocks.0.attn: ", "expected examples of equal length"});
  check_refusal({"spectrum", path("listops-softmax"), "--set", "train.batch=1"},
                {"blocks.0.attn: maps of ", " have no common spectrum; expected examples of equal length"});
  train("experiments/listops-micro.toml", "listops", "soft", {"attention.soft.landmarks=16", "attention.soft.dims=1"});
  check_contains(output_of({"residual", path("listops-soft"), "--iterations", "3"}), {"of 20 test sequences"});
  check_refusal(
      {"listops", "--out", path("few"), "--train", "1000", "--depth", "2", "--args", "2", "--min", "1", "--max", "5"},
      {"found only"});
}

BOOST_AUTO_TEST_CASE(costs_are_those_of_a_sequence) {
  const std::string text = output_of({"cost", "models/text-micro.toml", "--json"});
  BOOST_TEST(text.find("875520") != std::string::npos, text);
  const auto rates =
      heed_with({"bench", "models/text-micro.toml", "--batch", "1", "--set", "model.context=64", "--seconds", "0.1"});
  check_contains(rates.out, {" sequences/s, ", " tokens/s"});
}

BOOST_AUTO_TEST_SUITE_END()
