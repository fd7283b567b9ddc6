// Exchange of weights between heed and timm: names, shapes, number types, and errors.
#include "heed/io/weights.h"

#include "heed/nn/vit.h"
#include "heed/train/runs/run.h"
#include "support/training.h"

#include <bit>
#include <cstring>
#include <sstream>

using namespace heed;
using namespace heed::test;

namespace {

/// Reads tests/io/deit_tiny_patch16_224.txt: a name and a shape per line.
std::map<std::string, std::string> recorded() {
  std::map<std::string, std::string> shapes;
  std::istringstream lines(read_file("tests/io/deit_tiny_patch16_224.txt"));
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("#")) shapes[line.substr(0, line.find(' '))] = line.substr(line.find(' ') + 1);
  return shapes;
}

Parameters<float> small_model(Index classes = 10, bool distilled = false) {
  ModelConfig config = Workshop(10, 10).experiment().model;
  config.classes = classes, config.distilled = distilled;
  Parameters<float> parameters(VisionTransformer(config, {}).parameters());
  parameters.initialise(1);
  return parameters;
}

/// A tensor in another program's file.
struct Entry {
  std::string name, dtype;
  Shape shape;
  std::string bytes;
};

void write_safetensors(const std::string& path, const std::vector<Entry>& entries) {
  std::string header = "{", data;
  for (const Entry& entry : entries) {
    const std::size_t begin = data.size();
    data += entry.bytes;
    header += fmt::format("{}\"{}\":{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}",
                          header.size() > 1 ? "," : "", entry.name, entry.dtype, entry.shape, begin, data.size());
  }
  header += "}";
  const std::uint64_t length = header.size();
  write_file(path, std::string(reinterpret_cast<const char*>(&length), 8) + header + data);
}

/// Returns the F16 bits of a number that F16 and BF16 represent exactly: k / 64 with |k| < 128.
std::uint16_t half_bits(float value) {
  if (value == 0) return 0;
  int exponent = 0;
  const float fraction = std::frexp(std::abs(value), &exponent);  // in [1/2, 1)
  const auto mantissa = static_cast<unsigned>((2 * fraction - 1) * 1024);
  return static_cast<std::uint16_t>((value < 0 ? 0x8000u : 0u) | static_cast<unsigned>(exponent - 1 + 15) << 10 |
                                    mantissa);
}

/// Returns all tensors of the model in a number type; element i is ((i + name length) mod 255 - 127) / 64.
std::vector<Entry> entries_of(const Parameters<float>& parameters, const std::string& dtype) {
  std::vector<Entry> entries;
  for (const ParameterSpec& spec : parameters.list()) {
    Entry entry{spec.name, dtype, spec.shape, {}};
    for (Index i = 0; i < spec.shape.elements(); ++i) {
      const float value = static_cast<float>((i + static_cast<Index>(spec.name.size())) % 255 - 127) / 64;
      const double wide = value;
      const auto bits = std::bit_cast<std::uint32_t>(value);
      const auto upper = static_cast<std::uint16_t>(bits >> 16);
      const std::uint16_t half = half_bits(value);
      if (dtype == "F32") entry.bytes.append(reinterpret_cast<const char*>(&value), 4);
      if (dtype == "F64") entry.bytes.append(reinterpret_cast<const char*>(&wide), 8);
      if (dtype == "F16") entry.bytes.append(reinterpret_cast<const char*>(&half), 2);
      if (dtype == "BF16") entry.bytes.append(reinterpret_cast<const char*>(&upper), 2);
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

Entry& entry_named(std::vector<Entry>& entries, const std::string& name) {
  return *std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.name == name; });
}

/// Returns the error of loading the small model's file after `change`, or "no error"; checks that an error leaves the
/// model unchanged.
std::string refusal(void (*change)(std::vector<Entry>&)) {
  const TemporaryDirectory directory;
  const std::string path = directory / "w.safetensors";
  Parameters<float> parameters = small_model();
  std::vector<Entry> entries = entries_of(parameters, "F32");
  change(entries);
  write_safetensors(path, entries);
  const Parameters<float> before = parameters;
  const std::string message = error_of([&] { load_weights(SafetensorsFile(path), parameters); }, path);
  if (message != "no error")
    BOOST_TEST(std::equal(before.data(), before.data() + before.size(), parameters.data()),
               "a refusal changed weights");
  return message;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(weights)

BOOST_AUTO_TEST_CASE(deit_tiny_has_timms_names_and_shapes) {
  const Experiment x = load_experiment("models/deit-tiny.toml");
  const VisionTransformer model(x.model, x.attention);
  const std::map<std::string, std::string> expected = recorded();
  BOOST_TEST(expected.size() == 152u);
  BOOST_TEST(model.parameters().size() == 152);
  BOOST_TEST(model.parameters().trainable_elements() == 5'717'416);
  for (const ParameterSpec& spec : model.parameters()) {
    const auto found = expected.find(spec.name);
    BOOST_TEST((found != expected.end()), spec.name << " is no name of timm's");
    if (found != expected.end()) BOOST_TEST(to_string(spec.shape) == found->second, spec.name);
  }
}

// Weight decay applies to matrices and the patch embedding only.
BOOST_AUTO_TEST_CASE(decay_applies_to_weights_of_products_only) {
  const Parameters<float> parameters = small_model();
  for (const ParameterSpec& spec : parameters.list()) {
    const bool product = spec.name.ends_with(".weight") && spec.name.find("norm") == std::string::npos;
    BOOST_TEST(spec.decay == product, spec.name);
  }
}

BOOST_AUTO_TEST_CASE(every_float_type_loads) {
  for (const std::string dtype : {"F32", "F16", "BF16", "F64"}) {
    const TemporaryDirectory directory;
    const std::string path = directory / "w.safetensors";
    Parameters<float> parameters = small_model();
    write_safetensors(path, entries_of(parameters, dtype));
    load_weights(SafetensorsFile(path), parameters);
    for (ParameterId id = 0; id < parameters.list().size(); ++id)
      for (Index i = 0; i < parameters[id].size(); ++i) {
        const Index length = static_cast<Index>(parameters.list()[id].name.size());
        BOOST_REQUIRE_MESSAGE(parameters[id][i] == static_cast<float>((i + length) % 255 - 127) / 64,
                              dtype << " " << parameters.list()[id].name << "[" << i << "]");
      }
  }
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_named) {
  BOOST_TEST(refusal([](std::vector<Entry>&) {}) == "no error");
  BOOST_TEST(refusal([](std::vector<Entry>& e) { e.erase(e.begin() + 2); }) ==
             ": tensors of the model are missing from the file: 'patch_embed.proj.weight'");
  BOOST_TEST(refusal([](std::vector<Entry>& e) { e.clear(); }) ==
             ": tensors of the model are missing from the file: 'cls_token', 'pos_embed', 'patch_embed.proj.weight', "
             "'patch_embed.proj.bias' and 28 more");
  BOOST_TEST(refusal([](std::vector<Entry>& e) {
               e.push_back({"dist_token", "F32", {1}, std::string(4, '\0')});
             }) == ": tensors of the file are missing from the model: 'dist_token'");
  BOOST_TEST(refusal([](std::vector<Entry>& e) {
               entry_named(e, "blocks.1.attn.qkv.weight").shape = {16, 48};
             }) == ": tensor 'blocks.1.attn.qkv.weight' has shape [16, 48]; the model expects [48, 16]");
  BOOST_TEST(refusal([](std::vector<Entry>& e) {
               const float nan = std::nanf("");
               std::memcpy(entry_named(e, "norm.bias").bytes.data() + 12, &nan, 4);
             }) == ": tensor 'norm.bias' has value nan at element 3 of shape [16]; expected finite numbers");
  BOOST_TEST(refusal([](std::vector<Entry>& e) { entry_named(e, "norm.bias").dtype = "I32"; }) ==
             ": tensor 'norm.bias': dtype is I32; expected F16, BF16, F32 or F64");
}

BOOST_AUTO_TEST_CASE(a_variance_is_not_below_zero) {
  const TemporaryDirectory directory;
  ParameterList list;
  list.add({.name = "bn.running_var",
            .shape = {2},
            .initial = Initial::constant(1),
            .trainable = false,
            .nonnegative = true});
  Parameters<float> parameters(list);
  parameters.initialise(1);
  parameters[0][1] = -1;
  const std::string path = directory / "negative.safetensors";
  SafetensorsWriter file;
  add_weights(file, parameters);
  file.write(path);
  BOOST_CHECK_EXCEPTION(load_weights(SafetensorsFile(path), parameters, {}), Error, [&](const Error& error) {
    return error.what() == path + ": tensor 'bn.running_var' contains -1; expected variances of 0 or more";
  });
}

BOOST_AUTO_TEST_CASE(training_state_is_not_weights) {
  BOOST_TEST(refusal([](std::vector<Entry>& e) {
               e.push_back({"heed.mean.norm.bias", "F32", {2}, std::string(8, '\1')});
             }) == "no error");
}

// Published files of backbones also contain tensors of pretraining, and counters.
BOOST_AUTO_TEST_CASE(tensors_of_pretraining_are_not_weights) {
  BOOST_TEST(refusal([](std::vector<Entry>& e) {
               for (const char* name : {"mask_token", "head.mlp.0.weight", "head.last_layer.weight_g",
                                        "head.last_layer.weight_v", "norm.num_batches_tracked"})
                 e.push_back({name, "F32", {1}, std::string(4, '\1')});
             }) == "no error");
  BOOST_TEST(refusal([](std::vector<Entry>& e) {
               for (const char* name : {"mask_tokens", "head.mlp2.weight", "blocks.heed.x"})
                 e.push_back({name, "F32", {1}, std::string(4, '\1')});
             }) ==
             ": tensors of the file are missing from the model: 'mask_tokens', 'head.mlp2.weight', 'blocks.heed.x'");
}

BOOST_AUTO_TEST_CASE(a_head_of_other_classes_is_replaced_when_asked) {
  const TemporaryDirectory directory;
  const std::string path = directory / "w.safetensors";
  const Parameters<float> seven = small_model(7);
  write_safetensors(path, entries_of(seven, "F32"));
  Parameters<float> ten = small_model(10);
  const Parameters<float> before = ten;
  BOOST_TEST(error_of([&] { load_weights(SafetensorsFile(path), ten); }, path) ==
             ": tensor 'head.weight' has shape [7, 16]; the model expects [10, 16]; for a new head, add --set "
             "train.init_head=true");
  load_weights(SafetensorsFile(path), ten, {.new_head = true});
  for (ParameterId id = 0; id < ten.list().size(); ++id) {
    const bool head = ten.list()[id].name.starts_with("head.");
    const bool kept = std::equal(ten[id].begin(), ten[id].end(), before[id].begin());
    BOOST_TEST(kept == head, ten.list()[id].name);
  }
}

BOOST_AUTO_TEST_CASE(both_heads_of_a_distilled_model_are_replaced) {
  const TemporaryDirectory directory;
  const std::string path = directory / "w.safetensors";
  write_safetensors(path, entries_of(small_model(7, true), "F32"));
  Parameters<float> ten = small_model(10, true);
  std::vector<std::string> fresh;
  for (const TakenTensor& tensor : load_weights(SafetensorsFile(path), ten, {.new_head = true}).tensors)
    if (tensor.status == TakenTensor::Status::fresh) fresh.push_back(tensor.name);
  const std::vector<std::string> heads{"head.weight", "head.bias", "head_dist.weight", "head_dist.bias"};
  BOOST_TEST(fresh == heads, boost::test_tools::per_element());
}

// A new head is suggested only if all tensors that are missing or have a different shape belong to the head.
BOOST_AUTO_TEST_CASE(each_error_names_a_remedy) {
  const TemporaryDirectory directory;
  const std::string path = directory / "w.safetensors";
  Parameters<float> parameters = small_model();
  const auto refusal = [&](auto change) {
    std::vector<Entry> entries = entries_of(parameters, "F32");
    change(entries);
    write_safetensors(path, entries);
    const std::string message = error_of(
        [&] { load_weights(SafetensorsFile(path), parameters, {.cure = "; cure", .positions_cure = "; grid"}); });
    return message.substr(message.rfind(';') + 1);
  };
  const auto without = [](std::vector<std::string> names) {
    return [=](std::vector<Entry>& entries) {
      std::erase_if(entries, [&](const Entry& e) { return std::count(names.begin(), names.end(), e.name) > 0; });
    };
  };
  const auto resized = [](const char* name, const Shape& shape) {
    return [=](std::vector<Entry>& entries) {
      entry_named(entries, name).shape = shape;
      entry_named(entries, name).bytes = std::string(static_cast<std::size_t>(4 * shape.elements()), '\0');
    };
  };
  const std::string new_head = " for a new head, add --set train.init_head=true";
  BOOST_TEST(refusal(without({"head.bias", "head.weight"})) == new_head);
  BOOST_TEST(refusal(without({"head.bias", "norm.bias"})) == " cure");
  BOOST_TEST(refusal(without({"norm.bias"})) == " cure");
  BOOST_TEST(refusal([](std::vector<Entry>& entries) {
               entries.push_back({"head_dist.bias", "F32", {1}, std::string(4, '\0')});
             }) == " cure");
  BOOST_TEST(refusal(resized("head.bias", {9})) == new_head);
  BOOST_TEST(refusal(resized("norm.bias", {9})) == " cure");
  BOOST_TEST(refusal(resized("pos_embed", {1, 17, 16})) == " grid");
  BOOST_TEST(refusal(resized("pos_embed", {1, 18, 16})) == " cure");
}

// A run starts from the weights in another run's checkpoint, which also has its training state.
BOOST_AUTO_TEST_CASE(a_run_begins_with_given_weights) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  run(x, workshop / "first");
  x.optim.lr = 0;
  x.train.max_steps = 1;
  run(x, workshop / "second", false, workshop / "first/last.safetensors");
  const SafetensorsFile first(workshop / "first/last.safetensors"), second(workshop / "second/last.safetensors");
  for (const std::string& name : first.names()) {
    if (name.starts_with("heed.")) continue;
    const Tensor<float> a = first.read<float>(name), b = second.read<float>(name);
    BOOST_TEST(std::equal(a.begin(), a.end(), b.begin()), name);
  }
  x.model.dim = 32;
  BOOST_TEST(error_of([&] {
               run(x, workshop / "third", false, workshop / "first/last.safetensors");
             }).find("tensor 'cls_token' has shape [1, 1, 16]; the model expects [1, 1, 32]") != std::string::npos);
  BOOST_TEST(!std::filesystem::exists(workshop / "third"));
}

BOOST_AUTO_TEST_CASE(best_weights_are_the_model_alone) {
  const Workshop workshop;
  const Experiment x = workshop.experiment();
  run(x, workshop / "run");
  const SafetensorsFile best(workshop / "run/best.safetensors");
  BOOST_TEST(best.names().size() == 32u);
  BOOST_TEST(best.metadata().size() == 2u);  // the version and the checksum
  Parameters<float> parameters = small_model();
  load_weights(best, parameters);
  const std::string copy = workshop / "copy.safetensors";
  SafetensorsWriter writer;
  add_weights(writer, parameters);
  add_version(writer);
  writer.write(copy);
  BOOST_TEST((read_file(copy) == read_file(workshop / "run/best.safetensors")));
}

// A grid of 4 x 4 with values f(column) + 10 f(row) is resized to 2 rows and 4 or 2 columns. Output i of 2 is at 2 i +
// 1/2 among inputs 0 to 3. Its weights, mirrored for i = 1:
//   bilinear (stages)         1/2, 1/2
//   bicubic, a = -3/4         w(1/2) = 19/32 and w(3/2) = -3/32; the first pixel has the sum of both, since it is
//                             repeated beyond the edge
//   bicubic, antialiased      a = -1/2 and distances halved: w(1/4) = 111/128, w(3/4) = 29/128 and w(5/4) = -9/128,
//                             without pixels beyond the edge, divided by their sum, 242/128
// An axis of unchanged size keeps its values: all three weight functions are 1 at distance 0, and 0 at 1, 2 and 3.
BOOST_AUTO_TEST_CASE(positions_of_another_grid_by_hand) {
  const std::vector<double> f{1, 5, -2, 3};
  const struct {
    const char* name;
    bool antialias;
    std::array<double, 4> weights;
  } kinds[] = {{"stage1.pos_embed", false, {0.5, 0.5, 0, 0}},
               {"stage1.pos_embed", true, {0.5, 0.5, 0, 0}},
               {"pos_embed", false, {0.5, 19.0 / 32, -3.0 / 32, 0}},
               {"pos_embed", true, {111.0 / 242, 111.0 / 242, 29.0 / 242, -9.0 / 242}}};
  const TemporaryDirectory directory;
  const std::string path = directory / "w.safetensors";
  for (const auto& [name, antialias, weights] : kinds)
    for (const Index front : {0, 2})
      for (const Index columns : {4, 2}) {
        Tensor<double> theirs(Shape{1, front + 16, 2});
        for (Index i = 0; i < 2 * front; ++i) theirs[i] = static_cast<double>(100 + i);
        for (Index y = 0; y < 4; ++y)
          for (Index x = 0; x < 4; ++x)
            for (Index d = 0; d < 2; ++d)
              theirs[2 * (front + 4 * y + x) + d] =
                  f[static_cast<std::size_t>(x)] + 10 * f[static_cast<std::size_t>(y)] + 1000 * static_cast<double>(d);
        SafetensorsWriter writer;
        writer.add(name, std::as_const(theirs).view());
        writer.write(path);
        ParameterList list;
        list.add({.name = name, .shape = {1, front + 2 * columns, 2}, .positions = {front, 2, columns}});
        const auto shrunk = [&f, &weights = weights](Index i) {
          double sum = 0;
          for (std::size_t k = 0; k < 4; ++k) sum += weights[k] * f[i == 0 ? k : 3 - k];
          return sum;
        };
        for (const bool matching : {false, true}) {
          Parameters<double> parameters(list);
          const TakenWeights taken =
              matching ? load_matching(SafetensorsFile(path), parameters, {.positions = true, .antialias = antialias})
                       : load_weights(SafetensorsFile(path), parameters, {.positions = true, .antialias = antialias});
          BOOST_TEST((taken.tensors[0].status == TakenTensor::Status::interpolated));
          BOOST_TEST(taken.tensors[0].rows == 1);
          BOOST_TEST(taken.numbers == list.trainable_elements());
          const View<const double> found = std::as_const(parameters)[0];
          for (Index i = 0; i < 2 * front; ++i) BOOST_TEST(found[i] == static_cast<double>(100 + i));
          for (Index y = 0; y < 2; ++y)
            for (Index x = 0; x < columns; ++x)
              for (Index d = 0; d < 2; ++d) {
                const double across = columns == 4 ? f[static_cast<std::size_t>(x)] : shrunk(x);
                // Weights whose denominator is not a power of two are rounded; they multiply values up to 1055.
                BOOST_TEST(
                    std::abs(found[2 * (front + columns * y + x) + d] -
                             (across + 10 * shrunk(y) + 1000 * static_cast<double>(d))) < 1e-11,
                    name << ", antialias = " << antialias << ", matching = " << matching << ": " << y << " " << x);
              }
        }
      }
}

// The values are row indices of the file's grid, 2 x 8; in a square grid with as many patches they would not be. A grid
// that does not fit the file is ignored.
BOOST_AUTO_TEST_CASE(positions_of_a_known_grid) {
  const TemporaryDirectory directory;
  const std::string path = directory / "w.safetensors";
  Tensor<double> theirs(Shape{1, 17, 1});
  for (Index i = 0; i < 17; ++i) theirs[i] = i < 9 ? 0 : 1;
  SafetensorsWriter writer;
  writer.add("pos_embed", std::as_const(theirs).view());
  writer.write(path);
  for (const auto& [height, width] : {std::pair<Index, Index>{2, 4}, {2, 16}, {4, 4}}) {
    ParameterList list;
    list.add({.name = "pos_embed", .shape = {1, 1 + height * width, 1}, .positions = {1, height, width}});
    for (const bool matching : {false, true}) {
      Parameters<double> parameters(list);
      const PositionRows from{1, 2, 8};
      const TakenWeights taken =
          matching ? load_matching(SafetensorsFile(path), parameters, {.positions = true, .from = from})
                   : load_weights(SafetensorsFile(path), parameters, {.positions = true, .from = from});
      BOOST_TEST((taken.tensors[0].status == TakenTensor::Status::interpolated));
      const View<const double> found = std::as_const(parameters)[0];
      for (Index i = 1; i < found.size(); ++i) {
        const bool upper = i <= found.size() / 2;
        BOOST_TEST((found[i] < 0.5) == upper, height << " x " << width << ": " << i);
        if (height == 2) BOOST_TEST(std::abs(found[i] - (upper ? 0 : 1)) < 1e-12);
      }
    }
    Parameters<double> parameters(list);
    BOOST_TEST(error_of([&] {
                 load_weights(SafetensorsFile(path), parameters, {.from = {1, 2, 8}, .positions_cure = "; grid"});
               }).ends_with(height == 4 ? "is for a grid of 2 x 8 patches; the model has 4 x 4; grid" : "; grid"));
    if (height == 4) load_weights(SafetensorsFile(path), parameters, {.from = {1, 3, 3}});
  }
}

// Tensors computed each step or used in training only are in no file, and keep their values.
BOOST_AUTO_TEST_CASE(prepared_and_training_tensors_are_neither_written_nor_read) {
  const TemporaryDirectory directory;
  const std::string path = directory / "w.safetensors";
  ParameterList list;
  list.add({.name = "weight", .shape = {2}, .initial = Initial::constant(1)});
  list.add({.name = "computed", .shape = {2}, .initial = Initial::constant(2), .trainable = false, .prepared = true});
  list.add({.name = "projector", .shape = {2}, .initial = Initial::constant(3), .training_only = true});
  list.add({.name = "buffer", .shape = {2}, .initial = Initial::constant(4), .trainable = false});
  Parameters<float> written(list);
  written.initialise(1);
  SafetensorsWriter writer;
  add_weights(writer, written);
  writer.write(path);
  std::vector<std::string> names = SafetensorsFile(path).names();
  std::sort(names.begin(), names.end());
  BOOST_TEST(names == (std::vector<std::string>{"buffer", "weight"}), boost::test_tools::per_element());
  for (const bool matching : {false, true}) {
    Parameters<float> read(list);
    std::fill(read.data(), read.data() + read.size(), 9.0F);
    const SafetensorsFile file(path);
    const TakenWeights taken = matching ? load_matching(file, read, {}) : load_weights(file, read);
    BOOST_TEST(taken.tensors.size() == 2u);
    BOOST_TEST(taken.numbers == 4);
    for (const auto& [name, value] : {std::pair("weight", 1), {"computed", 9}, {"projector", 9}, {"buffer", 4}})
      for (const float x : read[read.list().find(name)]) BOOST_TEST(x == value, name);
  }
}

// Buffers of integers, such as indices, are converted; weights of integers are refused.
BOOST_AUTO_TEST_CASE(integers_are_read_into_buffers_only) {
  const TemporaryDirectory directory;
  const std::string path = directory / "w.safetensors";
  const Tensor<std::int64_t> indices(Shape{3}, {5, 0, 1'000'003});
  const Tensor<float> weight(Shape{2}, {0.25F, -4});
  SafetensorsWriter writer;
  writer.add("weight", weight.view());
  writer.add("order", indices.view());
  writer.write(path);
  for (const bool trainable : {false, true})
    for (const bool matching : {false, true}) {
      ParameterList list;
      list.add({.name = "order", .shape = {3}, .trainable = trainable});
      list.add({.name = "weight", .shape = {2}});
      Parameters<double> read(list);
      const auto load = [&] {
        const SafetensorsFile file(path);
        matching ? load_matching(file, read, {}) : load_weights(file, read);
      };
      if (trainable) {
        BOOST_TEST(error_of(load, path) == ": tensor 'order': dtype is I64; expected F16, BF16, F32 or F64");
        continue;
      }
      load();
      for (Index i = 0; i < 3; ++i) BOOST_TEST(read[0][i] == static_cast<double>(indices[i]));
      for (Index i = 0; i < 2; ++i) BOOST_TEST(read[1][i] == weight[i]);
    }
}

BOOST_AUTO_TEST_SUITE_END()
