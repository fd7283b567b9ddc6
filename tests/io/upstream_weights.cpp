// Constructed files with the authors' names, loaded into heed's models.
#include "heed/io/upstream_weights.h"

#include "heed/base/random.h"
#include "heed/io/weights.h"
#include "heed/nn/families.h"
#include "support/command.h"
#include "support/temporary.h"
#include "tests/io/hugging_face.h"

#include <boost/test/unit_test.hpp>

#include <deque>

using namespace heed;
using namespace heed::test;

namespace {

/// A file of copied tensors under the authors' names.
class Upstream {
 public:
  /// Adds rows [first, last) of a model's tensor under another name; without `last`, all rows from `first` on.
  void add(const std::string& theirs, View<const float> of, Index first = 0, Index last = -1) {
    const Index rows = last < 0 ? of.shape()[0] : last;
    const View<const float> part = of.part(first, rows - first);
    Tensor<float>& copy = kept_.emplace_back(part.shape());
    std::copy(part.begin(), part.end(), copy.begin());
    writer_.add(theirs, std::as_const(copy).view());
  }
  void add_count(const std::string& name) { writer_.add(name, std::as_const(count_).view()); }
  void write(const std::string& path) const { writer_.write(path); }

 private:
  std::deque<Tensor<float>> kept_;
  Tensor<std::int64_t> count_{Shape{}, {7}};
  SafetensorsWriter writer_;
};

std::string with(std::string name, const std::string& ours, const std::string& theirs) {
  const std::size_t at = name.find(ours);
  return at == std::string::npos ? name : name.replace(at, ours.size(), theirs);
}

/// Checks that converting a file of a model's random tensors, no two of which are equal, restores them. `add_tensor`
/// writes each tensor under the authors' names.
void check_converted(const std::string& model_file, const std::vector<std::string>& sets, const auto& add_tensor) {
  const TemporaryDirectory directory;
  const std::string theirs = directory / "theirs.safetensors", ours = directory / "ours.safetensors";
  const auto model = make_model(load_experiment(model_file, sets));
  Parameters<float> drawn(model->parameters()), read(model->parameters());
  drawn.initialise(3), read.initialise(4);
  add_noise(drawn);
  Upstream upstream;
  for (ParameterId id = 0; id < drawn.list().size(); ++id) {
    const std::string& name = drawn.list()[id].name;
    if (drawn.list()[id].prepared) continue;
    add_tensor(upstream, name, std::as_const(drawn)[id]);
  }
  upstream.write(theirs);
  convert_weights(theirs, ours);
  load_weights(SafetensorsFile(ours), read);
  BOOST_TEST(
      (std::vector(read.data(), read.data() + read.size()) == std::vector(drawn.data(), drawn.data() + drawn.size())));
}

/// Names and shapes in an author's code, listed by hand.
class Listing {
 public:
  std::vector<std::pair<std::string, Shape>> tensors;

  void add(const std::string& name, Shape shape) { tensors.emplace_back(name, shape); }
  /// Adds NAME.weight and NAME.bias: of a norm, or of a layer whose weight has this shape.
  void add_norm(const std::string& name, Index width) { add_layer(name, {width}); }
  void add_layer(const std::string& name, Shape weight) {
    add(name + ".weight", weight);
    add(name + ".bias", {weight[0]});
  }
  void add_batch_norm(const std::string& name, Index width) {
    add_norm(name, width);
    add(name + ".running_mean", {width});
    add(name + ".running_var", {width});
    add(name + ".num_batches_tracked", {});
  }
  void add_mlp(const std::string& name, Index width, Index hidden) {
    add_layer(name + ".fc1", {hidden, width});
    add_layer(name + ".fc2", {width, hidden});
  }
};

/// Returns the tensors of models/xcit-micro.toml in timm.
Listing timm_xcit() {
  Listing l;
  l.add("patch_embed.proj.0.0.weight", {32, 1, 3, 3}), l.add_batch_norm("patch_embed.proj.0.1", 32);
  l.add("patch_embed.proj.2.0.weight", {64, 32, 3, 3}), l.add_batch_norm("patch_embed.proj.2.1", 64);
  l.add_layer("pos_embed.token_projection", {64, 64, 1, 1});
  l.add("cls_token", {1, 1, 64});
  for (const std::string b : {"blocks.0", "blocks.1", "blocks.2", "blocks.3"}) {
    for (const char* norm : {".norm1", ".norm2", ".norm3"}) l.add_norm(b + norm, 64);
    for (const char* gamma : {".gamma1", ".gamma2", ".gamma3"}) l.add(b + gamma, {64});
    l.add(b + ".attn.temperature", {4, 1, 1});
    l.add_layer(b + ".attn.qkv", {192, 64}), l.add_layer(b + ".attn.proj", {64, 64});
    for (const char* conv : {".local_mp.conv1", ".local_mp.conv2"}) l.add_layer(b + conv, {64, 1, 3, 3});
    l.add_batch_norm(b + ".local_mp.bn", 64);
    l.add_mlp(b + ".mlp", 64, 128);
  }
  const std::string c = "cls_attn_blocks.0";
  for (const char* norm : {".norm1", ".norm2"}) l.add_norm(c + norm, 64);
  for (const char* gamma : {".gamma1", ".gamma2"}) l.add(c + gamma, {64});
  for (const char* part : {".attn.q", ".attn.k", ".attn.v", ".attn.proj"}) l.add_layer(c + part, {64, 64});
  l.add_mlp(c + ".mlp", 64, 128);
  l.add_norm("norm", 64), l.add_layer("head", {10, 64});
  return l;
}

/// Returns the tensors of models/cvt-micro.toml in CvT's code.
Listing authors_cvt() {
  Listing l;
  const Index dim[] = {32, 64, 96}, depth[] = {1, 1, 2};
  for (int s = 0; s < 3; ++s) {
    const std::string stage = fmt::format("stage{}", s);
    const Index D = dim[s];
    l.add_layer(stage + ".patch_embed.proj", {D, s == 0 ? 1 : dim[s - 1], 3, 3});
    l.add_norm(stage + ".patch_embed.norm", D);
    for (Index j = 0; j < depth[s]; ++j) {
      const std::string b = fmt::format("{}.blocks.{}", stage, j);
      l.add_norm(b + ".norm1", D), l.add_norm(b + ".norm2", D);
      for (const char* part : {"q", "k", "v"}) {
        l.add(fmt::format("{}.attn.conv_proj_{}.conv.weight", b, part), {D, 1, 3, 3});
        l.add_batch_norm(fmt::format("{}.attn.conv_proj_{}.bn", b, part), D);
        l.add_layer(fmt::format("{}.attn.proj_{}", b, part), {D, D});
      }
      l.add_layer(b + ".attn.proj", {D, D});
      l.add_mlp(b + ".mlp", D, 2 * D);
    }
  }
  l.add("stage2.cls_token", {1, 1, 96});
  l.add_norm("norm", 96), l.add_layer("head", {10, 96});
  return l;
}

/// Checks that a file of these tensors is loaded without conversion, each under its own name.
void check_read_as_it_is(const std::string& model_file, const Listing& listing) {
  const TemporaryDirectory directory;
  const std::string path = directory / "theirs.safetensors";
  Upstream upstream;
  float number = 0;
  for (const auto& [name, shape] : listing.tensors) {
    if (name.ends_with("num_batches_tracked")) {
      upstream.add_count(name);
      continue;
    }
    Tensor<float> values(shape);
    for (float& value : values) value = ++number;
    upstream.add(name, std::as_const(values).view());
  }
  upstream.write(path);
  const SafetensorsFile file(path);
  Parameters<float> read(make_model(load_experiment(model_file))->parameters());
  load_weights(file, read);
  for (const auto& [name, shape] : listing.tensors) {
    if (name.ends_with("num_batches_tracked")) continue;
    const ParameterId id = read.list().find(name);
    BOOST_REQUIRE_MESSAGE(id >= 0, name);
    const View<const float> got = std::as_const(read)[id];
    const Tensor<float> given = file.read<float>(name);
    BOOST_TEST(std::equal(got.begin(), got.end(), given.begin(), given.end()), name);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(io_upstream_weights)

BOOST_AUTO_TEST_CASE(xcit_and_cvt_as_they_are) {
  check_read_as_it_is("models/xcit-micro.toml", timm_xcit());
  check_read_as_it_is("models/cvt-micro.toml", authors_cvt());
}

BOOST_AUTO_TEST_CASE(soft) {
  const auto add = [](Upstream& to, const std::string& name, View<const float> values) {
    const bool last_stage = name.starts_with("block3."), block = name.starts_with("block");
    const Index rows = values.shape()[0];
    if (name.ends_with("running_mean")) to.add_count(with(name, "running_mean", "num_batches_tracked"));
    if (name.find(".attn.qkv.") != std::string::npos) {
      const Index q = last_stage ? rows / 3 : rows / 2;
      to.add(with(name, ".attn.qkv.", last_stage ? ".attn.kv." : ".att.mha.W_v."), values, q);
      return to.add(with(name, ".attn.qkv.", last_stage ? ".attn.q." : ".att.mha.W_q."), values, 0, q);
    }
    if (!block || last_stage) return to.add(name, values);
    std::string theirs = with(name, ".attn.landmark.", ".att.mha.attn.Qlandmark_op.");
    theirs = with(theirs, ".attn.landmark_norm.", ".att.mha.attn.Qnorm_act.0.");
    theirs = with(theirs, ".attn.vconv.", ".att.mha.attn.conv.");
    theirs = with(theirs, ".attn.proj.", ".att.mha.ff.");
    theirs = with(theirs, ".norm1.", ".att.norm1.");
    theirs = with(theirs, ".norm2.", ".att.norm2.");
    theirs = with(theirs, ".mlp.fc1.", ".att.ff1.");
    to.add(with(theirs, ".mlp.fc2.", ".att.ff2."), values);
  };
  check_converted("models/soft-micro.toml", {}, add);
}

// If one tensor has doubles, it keeps all digits, and the values of the other tensors do not change.
BOOST_AUTO_TEST_CASE(doubles_stay_doubles) {
  const TemporaryDirectory directory;
  const std::string in = directory / "in.safetensors", out = directory / "out.safetensors";
  const Tensor<float> halves(Shape{2, 2}, {0.5F, 1.5F, 2.5F, 3.5F});
  const Tensor<double> thirds(Shape{2}, {1.0 / 3, 2.0 / 3});
  SafetensorsWriter writer;
  writer.add("a.weight", halves.view());
  writer.add("b.bias", thirds.view());
  writer.add("c.weight", halves.view());
  writer.write(in);
  convert_weights(in, out);
  const SafetensorsFile file(out);
  BOOST_TEST(file.names().size() == 3u);
  BOOST_TEST(file.read<double>("b.bias")[0] == 1.0 / 3);
  BOOST_TEST(file.read<double>("b.bias")[1] == 2.0 / 3);
  for (const char* name : {"a.weight", "c.weight"})
    for (Index i = 0; i < 4; ++i) BOOST_TEST(file.read<double>(name)[i] == halves[i], name);
}

BOOST_AUTO_TEST_CASE(older_xcit) {
  // In older files, q, k and v of class attention are one tensor.
  const TemporaryDirectory directory;
  const std::string theirs = directory / "theirs.safetensors", ours = directory / "ours.safetensors";
  Tensor<float> qkv(Shape{6, 2}), bias(Shape{6}), position(Shape{2, 3});
  for (Index i = 0; i < 12; ++i) qkv[i] = static_cast<float>(i);
  for (Index i = 0; i < 6; ++i) bias[i] = static_cast<float>(-i), position[i] = static_cast<float>(i * i);
  Upstream upstream;
  upstream.add("cls_attn_blocks.0.attn.qkv.weight", std::as_const(qkv).view());
  upstream.add("cls_attn_blocks.0.attn.qkv.bias", std::as_const(bias).view());
  upstream.add("blocks.0.attn.qkv.weight", std::as_const(qkv).view());
  upstream.add("pos_embeder.token_projection.weight", std::as_const(position).view());
  upstream.write(theirs);
  convert_weights(theirs, ours);
  const SafetensorsFile file(ours);
  BOOST_TEST(file.names().size() == 8u);
  BOOST_TEST(file.contains("blocks.0.attn.qkv.weight"));
  BOOST_TEST(file.contains("pos_embed.token_projection.weight"));
  const Tensor<float> k = file.read<float>("cls_attn_blocks.0.attn.k.weight");
  BOOST_TEST((k.shape() == Shape{2, 2}));
  BOOST_TEST(k[0] == 4);
  BOOST_TEST(file.read<float>("cls_attn_blocks.0.attn.v.bias")[1] == -5);
}

// The time is linear in the number of tensors: comparing all pairs of names would take minutes.
BOOST_AUTO_TEST_CASE(very_many_tensors, *boost::unit_test::precondition(without_sanitizer)) {
  const TemporaryDirectory directory;
  const std::string in = directory / "in.safetensors", out = directory / "out.safetensors";
  const Tensor<float> none(Shape{0});
  SafetensorsWriter file;
  for (int i = 0; i < 200'000; ++i) file.add("t" + std::to_string(i), none.view());
  file.write(in);
  BOOST_TEST(run_command("timeout 20 " + heed_program() + " convert " + in + " " + out).status == 0);
}

// DINOv2's registers have no positions, and its class token has one.
BOOST_AUTO_TEST_CASE(registers_of_dinov2) {
  const TemporaryDirectory directory;
  const std::string theirs = directory / "theirs.safetensors", ours = directory / "ours.safetensors";
  const Tensor<float> cls(Shape{1, 1, 2}, {1, 2}), registers(Shape{1, 1, 2}, {5, 6}), mask(Shape{1, 2}, {7, 7});
  const Tensor<float> positions(Shape{1, 3, 2}, {10, 20, 3, 4, 5, 6});
  Upstream upstream;
  upstream.add("mask_token", mask.view());
  upstream.add("register_tokens", registers.view());
  upstream.add("pos_embed", positions.view());
  upstream.add("cls_token", cls.view());
  upstream.write(theirs);
  convert_weights(theirs, ours);
  const SafetensorsFile file(ours);
  BOOST_TEST(file.names().size() == 3u);
  const auto values = [&](const char* name) {
    const Tensor<float> tensor = file.read<float>(name);
    return std::vector<float>(tensor.begin(), tensor.end());
  };
  BOOST_TEST(values("cls_token") == (std::vector<float>{11, 22}), boost::test_tools::per_element());
  BOOST_TEST(values("pos_embed") == (std::vector<float>{3, 4, 5, 6}), boost::test_tools::per_element());
  BOOST_TEST(values("reg_token") == (std::vector<float>{5, 6}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_does_not_fit) {
  const TemporaryDirectory directory;
  const std::string theirs = directory / "theirs.safetensors", ours = directory / "ours.safetensors";
  const Tensor<float> four(Shape{4, 2});
  const auto refusal = [&](const std::string& name) -> std::string {
    Upstream upstream;
    upstream.add(name, four.view());
    upstream.write(theirs);
    try {
      convert_weights(theirs, ours);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  BOOST_TEST(refusal("cls_attn_blocks.0.attn.qkv.weight") ==
             theirs + ": tensor 'cls_attn_blocks.0.attn.qkv.weight' has shape [4, 2]; expected the rows of q, k and v");
  BOOST_TEST(refusal("block1.0.att.mha.W_q.weight") ==
             theirs +
                 ": 'block1.0.att.mha.W_q.weight' has the first rows of 'block1.0.attn.qkv.weight'; the tensor with "
                 "the last rows is missing");
  BOOST_TEST(refusal("block1.0.att.mha.W_v.weight") ==
             theirs +
                 ": 'block1.0.att.mha.W_v.weight' has the last rows of 'block1.0.attn.qkv.weight'; the tensor with the "
                 "first rows is missing");
  BOOST_TEST(refusal("anything") == "");

  const std::string before = read_file(theirs);
  BOOST_CHECK_EXCEPTION(convert_weights(theirs, directory / "./theirs.safetensors"), Error, [](const Error& error) {
    return std::string(error.what()).ends_with("output and input are the same file; give another output");
  });
  BOOST_TEST(error_of([&] { convert_weights(theirs + ":block1", theirs); }, theirs) ==
             ": output and input are the same file; give another output");
  BOOST_TEST((read_file(theirs) == before));
  const Tensor<float> wider(Shape{4, 3});
  Upstream unequal, misplaced;
  unequal.add("block1.0.att.mha.W_q.weight", four.view()), unequal.add("block1.0.att.mha.W_v.weight", wider.view());
  unequal.write(theirs);
  BOOST_TEST(error_of([&] { convert_weights(theirs, ours); }, theirs) ==
             ": 'block1.0.attn.qkv.weight' cannot be joined from shapes [4, 2] and [4, 3]");
  const Tensor<float> token(Shape{1, 1, 2}), rows(Shape{1, 5, 3});
  misplaced.add("cls_token", token.view()), misplaced.add("register_tokens", token.view());
  misplaced.add("pos_embed", rows.view());
  misplaced.write(theirs);
  BOOST_TEST(error_of([&] { convert_weights(theirs, ours); }, theirs) ==
             ": the position embedding has shape [1, 5, 3]; expected rows of 2 values, for the class token and the "
             "patches");
  Upstream twice;
  twice.add("block1.0.att.mha.ff.weight", four.view());
  twice.add("block1.0.attn.proj.weight", four.view());
  twice.write(theirs);
  BOOST_CHECK_EXCEPTION(convert_weights(theirs, ours), Error, [&](const Error& error) {
    return error.what() == theirs +
                               ": 'block1.0.att.mha.ff.weight' and 'block1.0.attn.proj.weight' are both renamed to "
                               "'block1.0.attn.proj.weight'; expected one of them";
  });
}

// FILE:PREFIX is divided at the last colon, since paths may have colons.
BOOST_AUTO_TEST_CASE(a_prefix_follows_the_last_colon) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "a:b");
  const Tensor<float> one(Shape{1}, {1}), two(Shape{1}, {2});
  for (const char* name : {"w.safetensors", "a:b/w.safetensors", "a:b/w:x.safetensors"}) {
    const std::string path = directory / name;
    Upstream both, single;
    both.add("student.norm.weight", one.view()), both.add("teacher.norm.weight", two.view());
    both.write(path);
    for (const auto& [network, value] : {std::pair("student", 1), {"teacher", 2}}) {
      const OpenedWeights opened = open_weights(fmt::format("{}:{}", path, network));
      BOOST_TEST(opened.file.path() == path);
      BOOST_TEST(opened.prefix == fmt::format("{}.", network));
      BOOST_TEST(opened.file.read<float>("norm.weight")[0] == value);
    }
    single.add("norm.weight", one.view());
    single.write(path);
    BOOST_TEST(open_weights(path).prefix == "");
  }
}

// The message names a wrapper's common prefix, and the command in it removes the prefix.
BOOST_AUTO_TEST_CASE(prefixes_of_wrappers_are_named_and_removed) {
  const TemporaryDirectory directory;
  const std::string wrapped = directory / "wrapped.safetensors", plain = directory / "plain.safetensors";
  const auto model = make_model(load_experiment("models/vit-micro.toml"));
  Parameters<float> drawn(model->parameters()), read(model->parameters());
  drawn.initialise(3);
  Upstream upstream;
  for (ParameterId id = 0; id < drawn.list().size(); ++id)
    upstream.add("module.model." + drawn.list()[id].name, std::as_const(drawn)[id]);
  upstream.write(wrapped);
  const std::string expected = wrapped +
                               ": all tensor names begin with 'module.model.', the prefix of a wrapper of the "
                               "model; `heed convert " +
                               wrapped + " OUT` removes it";
  BOOST_TEST(error_of([&] { load_weights(SafetensorsFile(wrapped), read); }) == expected);
  BOOST_TEST(error_of([&] { load_matching(SafetensorsFile(wrapped), read, {}); }) == expected);
  convert_weights(wrapped, plain);
  load_weights(SafetensorsFile(plain), read);
  BOOST_TEST(std::equal(read.data(), read.data() + read.size(), drawn.data()));
}

// A classifier beside the backbone has no prefix. If other tensors lack the prefix, too, no wrapper has added it.
BOOST_AUTO_TEST_CASE(each_wrapper_is_known_with_each_classifier) {
  const TemporaryDirectory directory;
  const std::string path = directory / "w.safetensors";
  const Tensor<float> one(Shape{1}, {1});
  const auto opened = [&](const std::vector<std::string>& names) {
    Upstream file;
    for (const std::string& name : names) file.add(name, one.view());
    file.write(path);
    const OpenedWeights weights = open_weights(path);
    std::string text = weights.prefix + ":";
    for (const std::string& name : weights.file.names()) text += " " + name;
    return text;
  };
  for (const std::string wrapper : {"module.", "model.", "_orig_mod.", "backbone.", "net.", "encoder.", "student.",
                                    "teacher.", "visual.", "state_dict."})
    BOOST_TEST(opened({wrapper + "norm.bias"}) == wrapper + ": norm.bias");
  for (const std::string classifier : {"head.bias", "head_dist.bias", "fc.bias", "classifier.bias"})
    BOOST_TEST(opened({classifier, "net.norm.bias"}) == "net.: " + classifier + " norm.bias");
  BOOST_TEST(opened({"heads.bias", "net.norm.bias"}) == ": heads.bias net.norm.bias");
  BOOST_TEST(error_of(
                 [&] {
                   opened({"head.bias", "net.head.bias", "net.norm.bias"});
                 },
                 path) == ": tensor 'head.bias' exists with and without the prefix 'net.'");
}

BOOST_AUTO_TEST_SUITE_END()
