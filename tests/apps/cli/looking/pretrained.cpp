// External weights without a run: --weights FILE --model auto.
#include "support/cli.h"

#include "heed/data/images/image_write.h"
#include "heed/io/safetensors.h"
#include "heed/io/weights.h"
#include "heed/nn/vit.h"
#include "support/images.h"

#include <cstring>

using namespace heed;
using namespace heed::test;

namespace {

/// An image, and a file with the weights of a model with registers, without heed's metadata.
struct Downloaded : Workshop {
  std::string weights = *this / "w.safetensors", image = *this / "image.png";
  ModelConfig model;

  Downloaded() {
    model.image = 12, model.channels = 3, model.patch = 4, model.dim = 64, model.depth = 2, model.heads = 1;
    model.hidden = 10, model.classes = 3, model.registers = 2, model.block_scale = 0.5, model.embed_prefix = false;
    write("", weights);
    Image picture{{3, 20, 16}, {}};
    for (int i = 0; i < 3 * 20 * 16; ++i) picture.pixels.push_back(static_cast<std::uint8_t>(i * 37 % 256));
    save_png(image, picture);
  }

  Parameters<float> parameters() const {
    Parameters<float> drawn(VisionTransformer(model, {}).parameters());
    drawn.initialise(6);
    return drawn;
  }

  /// Writes the weights with `prefix` before all names.
  void write(const std::string& prefix, const std::string& path) const {
    const Parameters<float> drawn = parameters();
    SafetensorsWriter writer;
    for (ParameterId id = 0; id < drawn.list().size(); ++id) writer.add(prefix + drawn.list()[id].name, drawn[id]);
    writer.write(path);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_pretrained)

BOOST_AUTO_TEST_CASE(a_model_is_read_off_its_tensors) {
  const Downloaded given;
  const Finished predicted = heed_with({"predict", "--weights", given.weights, "--model", "auto", given.image});
  BOOST_TEST(predicted.status == 0, predicted.err);
  check_contains(predicted.out, {given.image + ": ", " %"});
  check_contains(predicted.err,
                 {"--preset imagenet: data.mean=[0.485,0.456,0.406]", "heads = 1 (64 channels per head)"});

  // A model file with --preset gives the same result as --model auto.
  Experiment x;
  x.model = given.model;
  write_file(given / "model.toml", to_toml(x).substr(0, to_toml(x).find("\n[data]")));
  const Finished by_file = heed_with({"predict", "--weights", given.weights, "--model", given / "model.toml",
                                      "--preset", "imagenet", "--set", "data.name=folder", given.image});
  BOOST_TEST(by_file.status == 0, by_file.err);
  BOOST_TEST(by_file.out == predicted.out);

  const Finished without_preset = heed_with({"predict", "--weights", given.weights, "--model", given / "model.toml",
                                             "--set", "data.resize=true", "--set", "data.name=folder", given.image});
  check_contains(without_preset.err, {"model.toml: gives no data.mean"});

  // Weights without a classifier have maps but no classes.
  const SafetensorsFile whole(given.weights);
  std::map<std::string, Tensor<float>> tensors;
  for (const std::string& name : whole.names())
    if (!name.starts_with("head.")) tensors[name] = whole.read<float>(name);
  SafetensorsWriter writer;
  for (const auto& [name, tensor] : tensors) writer.add(name, tensor.view());
  const std::string headless = given / "headless.safetensors", toml = given / "model.toml";
  writer.write(headless);
  const Finished drawn =
      heed_with({"maps", "--weights", headless, "--model", toml, given.image, "-o", given / "sheet.png"});
  BOOST_TEST(drawn.status == 0, drawn.err);
  check_refusal({"predict", "--weights", headless, "--model", toml, given.image},
                {"has no classifier; use its features with maps, features or eval --knn"});

  write_file(given / "names", "cat\ndog\r\ncow\n");
  const Finished named =
      heed_with({"predict", "--weights", given.weights, "--model", "auto", "--names", given / "names", given.image});
  check_contains(named.out, {"cat ", "dog ", "cow "});
  write_file(given / "names", "cat\n");
  check_contains(
      heed_with({"predict", "--weights", given.weights, "--model", "auto", "--names", given / "names", given.image})
          .err,
      {"has 1 name; the model has 3 classes"});
}

BOOST_AUTO_TEST_CASE(maps_show_any_token_before_the_patches) {
  const Downloaded given;
  const std::string sheet = given / "sheet.png";
  std::vector<std::string> sheets;
  for (const std::string token : {"cls", "reg1", "reg2"}) {
    const Finished run = heed_with({"maps", "--weights", given.weights, "--model", "auto", given.image, "-o", sheet,
                                    "--token", token, "--block", "2", "--mean-heads"});
    BOOST_TEST(run.status == 0, run.err);
    sheets.push_back(read_file(sheet));
  }
  BOOST_TEST(sheets[0] != sheets[1]);
  BOOST_TEST(sheets[1] != sheets[2]);
  check_contains(
      heed_with({"maps", "--weights", given.weights, "--model", "auto", given.image, "-o", sheet, "--token", "reg3"})
          .err,
      {"--token reg3: expected cls, reg1, reg2"});
  check_contains(
      heed_with({"maps", "--weights", given.weights, "--model", "auto", given.image, "-o", sheet, "--head", "2"}).err,
      {"--head 2: block 1 has head 1 to 1"});
}

BOOST_AUTO_TEST_CASE(maps_of_two_models_stand_side_by_side) {
  Downloaded given;
  const std::string plain = given / "plain.safetensors", sheet = given / "sheet.png";
  given.model.registers = 0;
  given.write("", plain);
  const auto drawn = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command{"maps", "--weights", plain, "--model", "auto", given.image, "-o", sheet};
    command.insert(command.end(), more.begin(), more.end());
    const Finished run = heed_with(command);
    BOOST_TEST(run.status == 0, run.err);
    return read_file(sheet);
  };
  BOOST_TEST((drawn({"--mean-heads", "--beside", given.weights}) != drawn({"--mean-heads"})));
  drawn({"--beside", plain, "--rollout"});
  given.model.depth = 1;
  given.write("", given / "shallow.safetensors");
  check_contains(heed_with({"maps", "--weights", plain, "--model", "auto", given.image, "-o", sheet, "--beside",
                            given / "shallow.safetensors"})
                     .err,
                 {"shallow.safetensors: has 1 maps per head; expected 2"});
  given.model.depth = 2, given.model.image = 16;
  given.write("", given / "larger.safetensors");
  check_refusal({"maps", "--weights", plain, "--model", "auto", given.image, "-o", sheet, "--beside",
                 given / "larger.safetensors"},
                {"larger.safetensors: the maps have 4 x 4 patches; expected 3 x 3"});
}

// --model auto interpolates positions in training, too.
BOOST_AUTO_TEST_CASE(training_at_another_size_keeps_the_positions) {
  const Downloaded given;
  const std::string run = given / "run";
  const Finished trained = heed_with({"train",   write_experiment(given, given.experiment()),
                                      "--run",   run,
                                      "--init",  given.weights,
                                      "--model", "auto",
                                      "--set",   "model.image=8",
                                      "--set",   "model.channels=3",
                                      "--set",   "model.classes=10",
                                      "--set",   "data.resize=true",
                                      "--set",   "train.init=matching",
                                      "--set",   "train.max_steps=1"});
  BOOST_TEST(trained.status == 0, trained.err);
  check_contains(trained.out, {"1 interpolated ('pos_embed')"});
}

BOOST_AUTO_TEST_CASE(prefixes_are_removed_and_networks_chosen) {
  const Downloaded given;
  const std::string wrapped = given / "wrapped.safetensors", both = given / "both.safetensors";
  given.write("module.backbone.", wrapped);
  const Finished plain = heed_with({"predict", "--weights", given.weights, "--model", "auto", given.image});
  const Finished run = heed_with({"predict", "--weights", wrapped, "--model", "auto", given.image});
  BOOST_TEST(run.out == plain.out);
  check_contains(run.err, {wrapped + ": prefix 'module.backbone.' removed"});

  const Parameters<float> drawn = given.parameters();
  SafetensorsWriter writer;
  for (const std::string prefix : {"student.", "teacher."})
    for (ParameterId id = 0; id < drawn.list().size(); ++id) writer.add(prefix + drawn.list()[id].name, drawn[id]);
  writer.write(both);
  check_contains(heed_with({"predict", "--weights", both, "--model", "auto", given.image}).err,
                 {"contains several networks, 'student.', 'teacher.'; " + both + ":student selects one of them"});
  BOOST_TEST(heed_with({"predict", "--weights", both + ":teacher", "--model", "auto", given.image}).out == plain.out);
  check_contains(heed_with({"predict", "--weights", both + ":other", "--model", "auto", given.image}).err,
                 {"no tensor name begins with 'other.'"});

  // All tensor names of a network have an unknown prefix.
  given.write("tower.", wrapped);
  check_refusal({"predict", "--weights", wrapped, "--model", "auto", given.image},
                {"contains a network with a prefix, 'tower.'; " + wrapped + ":tower selects it"});
  BOOST_TEST(heed_with({"predict", "--weights", wrapped + ":tower", "--model", "auto", given.image}).out == plain.out);
}

BOOST_AUTO_TEST_CASE(errors_name_the_keys_that_fit) {
  const Downloaded given;
  Experiment x = given.experiment();
  x.model = given.model;
  x.model.classes = 10, x.train.init_head = true;
  x.model.registers = 0, x.model.block_scale = 0, x.model.embed_prefix = true, x.model.qkv_bias = false;
  const Finished run = heed_with({"train", write_experiment(given, x), "--run", given / "run", "--init", given.weights,
                                  "--set", "data.resize=true"});
  BOOST_TEST(run.status == 2);
  BOOST_TEST(
      run.err.ends_with(
          "; --set model.registers=2 --set model.embed_prefix=false --set model.qkv_bias=true --set "
          "model.layer_scale=1e-05 fits the file; to load only matching tensors, add --set train.init=matching\n"),
      run.err);
}

BOOST_AUTO_TEST_CASE(contradictory_tensors_are_named) {
  const Downloaded given;
  const std::string file = given / "odd.safetensors";
  const SafetensorsFile whole(given.weights);
  const auto refused = [&](const std::string& name, const Shape& shape, const std::string& problem) {
    std::map<std::string, Tensor<float>> tensors;
    for (const std::string& tensor : whole.names()) tensors[tensor] = whole.read<float>(tensor);
    tensors[name] = Tensor<float>(shape);
    SafetensorsWriter writer;
    for (const auto& [tensor, values] : tensors) writer.add(tensor, values.view());
    writer.write(file);
    check_refusal({"predict", "--weights", file, "--model", "auto", given.image}, {file, problem});
  };
  refused("dist_token", {1, 1, 64}, "has 'dist_token' with 'reg_token'");
  refused("pos_embed", {1, 11, 64}, "'pos_embed' has 11 rows; expected a square number of patches");
  check_refusal({"train", write_experiment(given, given.experiment()), "--run", given / "run", "--init", given.weights,
                 "--model", "auto", "--set", "attention.mechanism=aft", "--set", "attention.variant=conv", "--set",
                 "model.class_token=false", "--set", "model.pool=mean", "--set", "model.channels=1"},
                {"without class token or registers"});
}

// A file that is truncated at any tensor, has a changed header, or is in a different format gives one line that names
// it.
BOOST_AUTO_TEST_CASE(damaged_files_are_refused) {
  const Downloaded given;
  const std::string whole = read_file(given.weights), file = given / "damaged.safetensors", out = given / "out";
  const SafetensorsFile read(given.weights);
  std::uint64_t length = 0;
  std::memcpy(&length, whole.data(), sizeof length);
  const auto refused = [&](const std::string& bytes, const std::string& problem) {
    write_file(file, bytes);
    check_refusal({"maps", "--weights", file, "--model", "auto", given.image, "-o", out + ".png"}, {file, problem});
    check_refusal({"convert", file, out}, {file, problem});
    BOOST_TEST((!std::filesystem::exists(out) && !std::filesystem::exists(out + ".png")));
  };
  const auto with_length = [&](std::uint64_t claimed) {
    return std::string(reinterpret_cast<const char*>(&claimed), sizeof claimed) + whole.substr(sizeof claimed);
  };
  const auto with_header = [&](const std::string& what, const std::string& by) {
    std::string header = whole.substr(sizeof length, length);
    header.replace(header.find(what), what.size(), by);
    const std::uint64_t changed = header.size();
    return std::string(reinterpret_cast<const char*>(&changed), sizeof changed) + header +
           whole.substr(sizeof length + length);
  };
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{7}, std::size_t{8}, std::size_t{8} + length - 1})
    refused(whole.substr(0, bytes), "");
  for (const std::string& name : read.names()) refused(whole.substr(0, read.info(name).offset), "data_offsets");
  refused(with_length(0), "header");
  refused(with_length(std::uint64_t{1} << 63), "header claims 9223372036854775808 bytes");
  refused(with_header("\"norm.bias\"", "\"norm.weight\""), "has the key 'norm.weight' twice");
  refused(with_header("\"norm.bias\"", "\"a\x1b\n\""), "not valid JSON");
  refused(with_header("[64],\"data_offsets\"", "[63],\"data_offsets\""), "takes 252");
  refused(with_header("\"F32\"", "\"F16\""), "span");
  refused(with_header("\"F32\"", "\"F8_E4M3\""), "dtype 'F8_E4M3' is not supported");
  refused(std::string("PK\3\4") + whole, "pth-to-safetensors");
  refused("\x80\x02" + whole, "pth-to-safetensors");
  refused("<!DOCTYPE html><html>404</html>", "");
}

BOOST_AUTO_TEST_CASE(what_is_missing_is_said) {
  const Downloaded given;
  check_refusal({"predict", given.image}, {"contains no run"});
  check_refusal({"eval"}, {"RUN is required"});
  check_refusal({"predict", "--model", "auto", given.image}, {"--model", "--weights"});
  check_refusal({"train", "experiments/mnist.toml", "--run", given / "run", "--model", "auto"}, {"--init"});
}

BOOST_AUTO_TEST_SUITE_END()
