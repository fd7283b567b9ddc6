// Bad input: one line on stderr naming the cause, exit status 2, no partial output.
#include "support/cli.h"

#include "heed/io/safetensors.h"

#include "support/images.h"

#include <cmath>

using namespace heed;
using namespace heed::test;

namespace {

using Strings = std::vector<std::string>;

/// A valid experiment file and its data; tests check that heed train rejects changes of them and leaves no run
/// directory.
struct Training : Workshop {
  std::string file = write_experiment(*this, experiment()), run = *this / "run";

  void refuse(const Strings& more, const Strings& pieces) const {
    Strings arguments = {"train", file, "--run", run};
    arguments.insert(arguments.end(), more.begin(), more.end());
    check_refusal(arguments, pieces);
    BOOST_TEST(!std::filesystem::exists(run));
  }
  void refuse_set(const std::string& set, const Strings& pieces) const { refuse({"--set", set}, pieces); }

  std::string images() const { return data() + "/train-images-idx3-ubyte"; }
  std::string labels() const { return data() + "/train-labels-idx1-ubyte"; }
  void change(const std::string& path, std::size_t at, char byte) const {
    std::string bytes = read_file(path);
    bytes[at] = byte;
    heed::write_file(path, bytes);
  }
};

/// Tensors for the probe; tests corrupt them and check that the probe refuses the file.
struct Probe {
  TemporaryDirectory directory;
  std::string in = directory / "in.safetensors", out = directory / "out.safetensors";
  std::map<std::string, Tensor<double>> tensors;

  Probe() {
    for (const char* name : {"q", "k", "v", "grad_out"}) {
      Tensor<double>& tensor = tensors[name] = Tensor<double>(Shape{1, 2, 5, 3});
      for (Index i = 0; i < tensor.size(); ++i) tensor[i] = RandomStream(name[0]).uniform(i, -1, 1);
    }
  }
  void write() const {
    SafetensorsWriter writer;
    for (const auto& [name, tensor] : tensors) writer.add(name, tensor.view());
    writer.write(in);
  }
  void refuse(const Strings& more, const Strings& pieces) const {
    write();
    Strings arguments = {"probe", "attention", "--mechanism", "softmax", in, out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    check_refusal(arguments, pieces);
    BOOST_TEST(!std::filesystem::exists(out));
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_bad_input)

BOOST_AUTO_TEST_CASE(unknown_commands_and_options) {
  check_refusal({}, {"subcommand is required"});
  check_refusal({"trian"}, {"unknown command 'trian'; did you mean 'train'?"});
  check_refusal({"train", "--rum", "x"}, {"train: unknown option '--rum'; did you mean '--run'?"});
  check_refusal({"train", "experiments/mnist.toml"}, {"--run is missing"});
  check_refusal({"train", "mnist", "--run", "x"}, {"mnist: cannot open", "did you mean 'experiments/mnist.toml'?"});
  check_refusal({"train", "experiments/mnits.toml", "--run", "x"},
                {"cannot open", "did you mean 'experiments/mnist.toml'?"});
  check_refusal({"probe", "model", "x"}, {"see heed probe model --help"});
  check_refusal({"list", "softmax", "sima"}, {"list: unknown argument 'sima'"});
  check_refusal({"gradcheck", "softmx"}, {"'softmx'; did you mean 'softmax'?"});
  check_refusal({"two\nlines"}, {"unknown command"});
  check_refusal({"train", "two\nlines", "--run", "x"}, {"two lines: cannot open"});
  for (const std::string threads : {"0", "-1", "two", "99999999999"})
    check_refusal({"bench", "models/vit-micro.toml", "--threads", threads}, {"--threads", threads, "1 to 1024"});
  check_refusal({"bench", "models/vit-micro.toml", "--batch", "0"}, {"--batch"});
  check_refusal({"bench", "models/vit-micro.toml", "--mode", "both"}, {"--mode", "both"});
  check_refusal({"bench", "models/none.toml"}, {"models/none.toml"});
}

BOOST_FIXTURE_TEST_CASE(configurations, Training) {
  refuse_set("optim.learning_rate=1", {"--set: unknown key 'optim.learning_rate'; did you mean 'optim.lr'?"});
  refuse_set("rubbish", {"--set 'rubbish': expected table.key=value"});
  refuse_set("model.patch=3", {"[model] patch = 3 does not divide image = 8"});
  refuse_set("model.heads=5", {"[model] heads = 5 does not divide dim = 16"});
  refuse_set("model.depth=1000000", {"[model] depth = 1000000; expected at least 1 and at most 10000"});
  refuse({"--set", "attention.mechanism=aft", "--set", "attention.variant=local", "--set",
          "attention.window=9223372036854775807"},
         {"[aft] window is '9223372036854775807'; expected a whole number from 0 to 1000000000000"});
  refuse_set("attention.mechanism=sotfmax", {"unknown mechanism 'sotfmax'; did you mean 'softmax'?"});
  refuse_set("attention.casual=true",
             {"--set: no mechanism of this model has an option 'casual'; did you mean 'causal'?"});
  refuse_set("attention.causal=perhaps", {"--set: [softmax] causal is 'perhaps'; expected true or false"});
  refuse_set("attention.mechansim=sima",
             {"--set: no mechanism of this model has an option 'mechansim'; did you mean 'mechanism'?"});
  refuse_set("train.batch=113",
             {"112 training images do not fill one batch of 113; expected a train.batch of at most 112"});
  refuse_set("data.validation=132", {"data.validation sets aside 132 of 132 training examples; expected 0 to 131"});
  refuse_set("data.limit=15", {"15 training images do not fill one batch of 16"});
  refuse_set("model.classes=9", {"[model] classes = 9, but mnist has 10 classes"});
  refuse_set("model.image=16", {"1x8x8", "1x16x16", "data.resize"});
  refuse_set("data.augment=[\"filp\"]", {"'filp'", "did you mean 'flip'?"});
  refuse_set("data.mean=[0.1, 0.2]", {"[data] mean has 2 values"});
  refuse_set("base=none.toml", {"base 'none.toml' does not exist"});
  refuse_set("data.path=" + run, {run});
  const auto refuse_lines = [&](const std::string& added, const std::string& error) {
    const std::string own = *this / "own.toml";
    heed::write_file(own, fmt::format("base = \"{}\"\n[attention]\n{}", file, added));
    check_refusal({"train", own, "--run", run}, {own + error});
  };
  refuse_lines("mechanism = \"sima\"\norder = 3\n", ":4: [sima] order is '3'; expected one of auto, qk_first");
  refuse_lines("mechanism = \"pointwise\"\nalpha = \"abc\"\n", ":4: [pointwise] alpha is 'abc'; expected a number");
  refuse_lines("mechanism = \"pointwise\"\nalpha = 2\n", ":4: [pointwise] alpha is 2; expected 0 to 1");
  refuse_lines("mechanism = \"sima\"\norder = \"auto\"\n[attention.sima]\norder = \"aouto\"\n",
               ":6: [sima] order is 'aouto'; did you mean 'auto'?");
  refuse_lines("[attention.sima]\norder = \"auto\"\n", ":3: 'attention.sima': no block uses this mechanism");
  heed::write_file(file, "[model]\nimage = 8\ndimm = 3\n");
  refuse({}, {file + ":3: unknown key 'model.dimm'; did you mean 'model.dim'?"});
  heed::write_file(file, "[model\n");
  refuse({}, {file + ":1: not valid TOML"});
  std::filesystem::remove(file);
  refuse({}, {file + ": cannot open: No such file or directory"});
}

BOOST_FIXTURE_TEST_CASE(run_directories, Training) {
  heed::write_file(*this / "plain", "");
  check_refusal({"train", file, "--run", *this / "plain/run"}, {*this / "plain/run", "Not a directory"});
  check_refusal({"train", file, "--run", *this / "plain"}, {*this / "plain"});
  check_refusal({"train", file, "--run", "/proc/heed"}, {"/proc/heed"});
  check_refusal({"train", file, "--run", ""}, {"--run: ''; expected DIR"});
  check_refusal({"train", file, "--run", std::string(5000, 'x')}, {"File name too long"});
  check_refusal({"train", "--run", run}, {"no experiment is given"});
  check_refusal({"train", "--run", run, "--resume"}, {run});
  check_refusal({"eval", run}, {run + ": contains no run"});
  BOOST_TEST(read_file(*this / "plain") == "");
}

BOOST_FIXTURE_TEST_CASE(damaged_data, Training) {
  change(labels(), 8 + 17, 10);
  refuse({}, {labels(), "label 17 is 10"});
  change(images(), 3, 1);
  refuse({}, {images(), "0x00000801"});
  change(images(), 3, 3);
  const std::string whole = read_file(images());
  heed::write_file(images(), whole.substr(0, whole.size() - 1));
  refuse({}, {images(), "expected"});
  std::filesystem::remove(images());
  refuse({}, {data()});
}

BOOST_FIXTURE_TEST_CASE(damaged_image_trees, Training) {
  const std::string tree = *this / "tree";
  const Strings folder = {"--set", "data.name=folder", "--set", "data.path=" + tree, "--set", "data.validation=0",
                          "--set", "model.classes=2",  "--set", "train.batch=1"};
  for (const char* place : {"train/a/0.png", "train/b/0.png", "test/a/0.png", "test/b/0.png"})
    write_image(tree + "/" + place, pattern({1, 8, 8}, 3));
  std::filesystem::create_directory(tree + "/train/empty");
  write_image(tree + "/test/empty/0.png", pattern({1, 8, 8}, 3));
  refuse(folder, {tree + "/train/empty", "no images"});
  std::filesystem::remove(tree + "/train/empty");
  refuse(folder, {"class 'empty'", tree + "/t"});
  std::filesystem::remove_all(tree + "/test/empty");
  write_image(tree + "/train/b/1.png", pattern({1, 8, 9}, 3));
  refuse(folder, {tree + "/train/a/0.png", tree + "/train/b/1.png", "data.resize"});
  heed::write_file(tree + "/train/b/1.png", "no image");
  refuse(folder, {tree + "/train/b/1.png"});
}

BOOST_FIXTURE_TEST_CASE(damaged_weights, Training) {
  const std::string weights = *this / "w.safetensors";
  refuse({"--init", weights}, {weights, "No such file"});
  heed::write_file(weights, "short");
  refuse({"--init", weights}, {weights});
  test::run(experiment(), *this / "good");
  const std::string best = *this / "good/best.safetensors", whole = read_file(best);
  heed::write_file(weights, whole.substr(0, whole.size() - 4));
  refuse({"--init", weights}, {weights});
  std::string poisoned = whole;
  const float nan = std::nanf("");
  std::memcpy(poisoned.data() + poisoned.size() - 4, &nan, 4);
  heed::write_file(weights, poisoned);
  refuse({"--init", weights}, {weights, "is damaged"});
  check_refusal({"eval", *this / "good", "--weights", weights}, {weights, "is damaged"});
  poisoned.replace(poisoned.find("heed.checksum"), 13, "no.checksum..");  // files of other programs have no checksum
  heed::write_file(weights, poisoned);
  refuse({"--init", weights}, {weights, "tensor 'head.bias' has value nan at element 9"});
  refuse({"--init", best, "--set", "model.dim=32"},
         {best, "'cls_token' has shape [1, 1, 16]; the model expects [1, 1, 32]"});
  check_refusal({"eval", *this / "good", "--weights", weights}, {weights, "nan"});
  check_refusal({"eval", *this / "good", "--data", "mnst"}, {"'mnst'; did you mean 'mnist'?"});
  check_refusal({"generate", *this / "good", "--preset", "clip"}, {"--preset clip is for models of images"});
  check_refusal({"generate", *this / "good", "--temperature", "nan"}, {"'nan'; expected a number from 0 to 1000000"});
  check_refusal({"lr", file, "--from", "0"}, {"--from: '0'; expected a number from 1e-30"});
  check_refusal({"eval", *this / "good", "--data", "cifar100"}, {"name its directory: --path DIRECTORY"});
  check_refusal({"eval", *this / "good", "--path", "2024"}, {"2024: the directory does not exist (--path of mnist)"});
  check_refusal({"eval", *this / "good", "--split", "tset"}, {"--split"});

  const std::string good = *this / "a.png", broken = *this / "b.png";
  write_image(good, pattern({1, 8, 8}, 3));
  heed::write_file(broken, read_file(good).substr(0, 60));
  check_refusal({"predict", *this / "good", broken}, {broken});
  check_refusal({"predict", *this / "good", *this / "good"}, {*this / "good: contains no images"});
  check_refusal({"predict", *this / "good"}, {"expected IMAGE or --index"});

  SafetensorsWriter bright;
  Tensor<float> images(Shape{1, 1, 8, 8});
  std::fill(images.begin(), images.end(), 3e38f);
  const std::int64_t label[] = {0};
  bright.add("images", std::as_const(images).view());
  bright.add("labels", View<const std::int64_t>{label, Shape{1}});
  const std::string in = *this / "bright.safetensors", out = *this / "out.safetensors";
  bright.write(in);
  check_refusal({"probe", "model", *this / "good/config.toml", "--weights", best, in, out},
                {"'logits' is not finite", "too large for F32"});
  BOOST_TEST(!std::filesystem::exists(out));
  std::filesystem::remove(*this / "good/best.safetensors");
  std::filesystem::remove(*this / "good/last.safetensors");
  check_refusal({"eval", *this / "good"}, {"good/last.safetensors", "No such file"});
}

BOOST_FIXTURE_TEST_CASE(probed_tensors, Probe) {
  refuse({"--mechanism", "linformer"}, {"--mechanism"});  // specified twice
  refuse({"--set", "casual=true"}, {"[softmax] has no option 'casual'; did you mean 'causal'?"});
  refuse({"--set", "causal"}, {"--set 'causal': expected OPTION=VALUE"});
  for (const std::string grid : {"2", "0x5", "2x2x2", "axb", "3x3", "2x-2", "4294967296x4294967296"})
    refuse({"--grid", grid}, {"--grid", grid});
  const std::map<std::string, Tensor<double>> good = tensors;
  const auto with = [&](auto change, const Strings& pieces) {
    tensors = good;
    change();
    refuse({}, pieces);
  };
  with([&] { tensors.erase("k"); }, {in, "tensor 'k' is missing"});
  with([&] { tensors["surplus"] = Tensor<double>(Shape{1}); }, {in, "tensor 'surplus' is not used"});
  with([&] { tensors["q"] = Tensor<double>(Shape{2, 5, 3}); }, {in, "tensor 'q' has shape [2, 5, 3]; expected 4 axes"});
  with([&] { tensors["k"] = Tensor<double>(Shape{1, 2, 5, 4}); }, {in, "tensor 'k' has shape [1, 2, 5, 4]; expected"});
  with([&] { tensors["v"] = Tensor<double>(Shape{1, 2, 6, 3}); }, {in, "[1, 2, 5, 3]", "[1, 2, 6, 3]"});
  with([&] { tensors["grad_out"] = Tensor<double>(Shape{1, 2, 5, 4}); }, {in, "'grad_out' has shape", "[1, 2, 5, 3]"});
  with(
      [&] {
        for (double& x : tensors["q"]) x *= 1e200;
        for (double& x : tensors["k"]) x *= 1e200;
      },
      {"'out' is not finite", "too large for F64"});
  with([&] { tensors["v"][3] = INFINITY; }, {in, "tensor 'v' has value inf at element 3"});
  with(
      [&] {
        tensors["q"] = Tensor<double>(Shape{1, 3, 5, 3});
      },
      {in, "tensor 'v' has shape [1, 2, 5, 3]; expected [B, 3, M, D], since 'q' has 3 heads"});
  tensors = good;
  write();
  check_refusal({"probe", "attention", "--mechanism", "aft", in, out},
                {in, "tensor 'q' has shape [1, 2, 5, 3]; aft has one head: expected [B, 1, tokens, D]"});
  check_refusal({"probe", "attention", "--mechanism", "lambda", in, out},
                {in, "tensor 'v' has shape [1, 2, 5, 3]; expected [B, 1, M, D], since 'q' has 2 heads"});
  // Sizes that only the missing tensor's shape determines are named in the error, not given as numbers.
  for (const auto& [mechanism, tensor, expected] : {std::tuple("performer", "omega", "[features, d]"),
                                                    {"linformer", "e", "[length, M]"},
                                                    {"reformer", "rotations", "[rounds, d, buckets / 2]"}}) {
    const Strings probe{"probe", "attention", "--mechanism", mechanism, in, out};
    tensors = good;
    write();
    check_refusal(probe, {fmt::format("{}: tensor '{}' is missing; expected {}", in, tensor, expected)});
    tensors[tensor] = Tensor<double>(Shape{4});
    write();
    check_refusal(probe, {fmt::format("{}: tensor '{}' has shape [4]; expected {}", in, tensor, expected)});
  }
  tensors = good;
  tensors["omega"] = Tensor<double>(Shape{4, 3});
  write();
  check_refusal({"probe", "attention", "--mechanism", "performer", in, out, "--set", "features=0"},
                {"[performer] features is 0; expected 1 to 65536"});
  tensors = good;
  write();
  SafetensorsWriter mixed;
  const Tensor<float> single(Shape{1, 2, 5, 3});
  for (const auto& [name, tensor] : tensors)
    if (name == "k")
      mixed.add(name, single.view());
    else
      mixed.add(name, tensor.view());
  check_refusal({"probe", "attention", "--mechanism", "sotfmax", in, out}, {"'sotfmax'; did you mean 'softmax'?"});
  check_refusal({"probe", "linear", "--set", "kind=mull", in, out}, {"kind is 'mull'"});
  check_refusal({"probe", "model", "models/vit-micro.toml", "--weights", in, in, out}, {in, "'cls_token'"});
  mixed.write(in);
  check_refusal({"probe", "attention", "--mechanism", "softmax", in, out}, {in, "'k'", "F32", "F64"});
  check_refusal({"probe", "attention", "--mechanism", "softmax", directory / "none", out}, {"none", "No such file"});
  write();
  check_refusal({"probe", "attention", "--mechanism", "softmax", in, directory / "no/out"}, {"no/out"});
  BOOST_TEST(!std::filesystem::exists(out));
}

BOOST_AUTO_TEST_SUITE_END()
