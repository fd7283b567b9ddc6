// Keys of family = "vit" for published Vision Transformers, compared in double with a plain implementation of timm's
// definition.
#include "heed/config/experiment.h"
#include "heed/nn/vit.h"
#include "heed/ops/tokens.h"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <cmath>
#include <functional>

using namespace heed;

namespace {

using Rows = std::vector<std::vector<double>>;

ModelConfig tiny_vit() {
  ModelConfig m;
  m.image = 8, m.channels = 2, m.patch = 4, m.dim = 6, m.depth = 2, m.heads = 2, m.hidden = 7, m.classes = 3;
  return m;
}

/// timm's VisionTransformer for one image, token by token.
class PlainVit {
 public:
  PlainVit(const ModelConfig& config, const Parameters<double>& parameters) : c_(config), p_(parameters) {}

  std::vector<double> logits(const Tensor<double>& image) const {
    Rows x = tokens(image);
    if (c_.pre_norm) x = norm(x, "norm_pre");
    for (Index i = 0; i < c_.depth; ++i) {
      const std::string block = fmt::format("blocks.{}.", i);
      add(x, scaled(attention(norm(x, block + "norm1"), block + "attn."), block + "ls1.gamma"));
      Rows hidden = linear(norm(x, block + "norm2"), block + "mlp.fc1");
      for (auto& row : hidden)
        for (double& h : row)
          h = c_.act == "quick_gelu" ? h / (1 + std::exp(-1.702 * h)) : h / 2 * (1 + std::erf(h / std::sqrt(2.0)));
      add(x, scaled(linear(hidden, block + "mlp.fc2"), block + "ls2.gamma"));
    }
    const auto prefix = static_cast<std::size_t>(c_.prefix_tokens());
    const std::string last = c_.pool_norm == "after" ? "fc_norm" : "norm";
    if (c_.pool == "cls") {
      x = norm(x, last);
      std::vector<double> y = linear({x[0]}, "head")[0];
      if (!c_.distilled) return y;
      const std::vector<double> other = linear({x[1]}, "head_dist")[0];
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = (y[i] + other[i]) / 2;
      return y;
    }
    if (c_.pool_norm == "before") x = norm(x, last);
    std::vector<double> mean(x[0].size());
    for (std::size_t n = prefix; n < x.size(); ++n)
      for (std::size_t d = 0; d < mean.size(); ++d) mean[d] += x[n][d] / static_cast<double>(x.size() - prefix);
    return linear(c_.pool_norm == "after" ? norm({mean}, last) : Rows{mean}, "head")[0];
  }

 private:
  bool has(const std::string& name) const { return p_.list().find(name) >= 0; }
  double at(const std::string& name, Index i) const { return has(name) ? p_[p_.list().find(name)][i] : 0; }

  Rows tokens(const Tensor<double>& image) const {
    const Index h = c_.patch.height, w = c_.patch.width, H = c_.image.height, W = c_.image.width, D = c_.dim;
    Rows x;
    for (Index y0 = 0; y0 < H; y0 += h)
      for (Index x0 = 0; x0 < W; x0 += w) {
        std::vector<double>& row = x.emplace_back();
        for (Index d = 0; d < D; ++d) {
          double sum = at("patch_embed.proj.bias", d);
          for (Index c = 0; c < c_.channels; ++c)
            for (Index i = 0; i < h; ++i)
              for (Index j = 0; j < w; ++j)
                sum += at("patch_embed.proj.weight", ((d * c_.channels + c) * h + i) * w + j) *
                       image[(c * H + y0 + i) * W + x0 + j];
          row.push_back(sum);
        }
      }
    if (!c_.embed_prefix) add_positions(x);
    Rows prefix;
    for (const char* name : {"cls_token", "dist_token", "reg_token"})
      for (Index i = 0; has(name) && i < p_.list()[p_.list().find(name)].shape[1]; ++i) {
        std::vector<double>& row = prefix.emplace_back();
        for (Index d = 0; d < D; ++d) row.push_back(at(name, i * D + d));
      }
    x.insert(x.begin(), prefix.begin(), prefix.end());
    if (c_.embed_prefix) add_positions(x);
    return x;
  }

  void add_positions(Rows& x) const {
    for (std::size_t n = 0; n < x.size(); ++n)
      for (Index d = 0; d < c_.dim; ++d)
        x[n][static_cast<std::size_t>(d)] += at("pos_embed", static_cast<Index>(n) * c_.dim + d);
  }

  Rows norm(Rows x, const std::string& name) const {
    for (auto& row : x) {
      double mean = 0, variance = 0;
      for (const double v : row) mean += v / static_cast<double>(row.size());
      for (const double v : row) variance += (v - mean) * (v - mean) / static_cast<double>(row.size());
      for (std::size_t d = 0; d < row.size(); ++d)
        row[d] = (row[d] - mean) / std::sqrt(variance + c_.norm_eps) * at(name + ".weight", static_cast<Index>(d)) +
                 at(name + ".bias", static_cast<Index>(d));
    }
    return x;
  }

  Rows linear(const Rows& x, const std::string& name) const {
    const Shape& shape = p_.list()[p_.list().find(name + ".weight")].shape;
    Rows y;
    for (const auto& row : x) {
      std::vector<double>& out = y.emplace_back();
      for (Index o = 0; o < shape[0]; ++o) {
        double sum = at(name + ".bias", o);
        for (Index i = 0; i < shape[1]; ++i)
          sum += at(name + ".weight", o * shape[1] + i) * row[static_cast<std::size_t>(i)];
        out.push_back(sum);
      }
    }
    return y;
  }

  Rows attention(const Rows& x, const std::string& name) const {
    const auto D = static_cast<std::size_t>(c_.dim), H = static_cast<std::size_t>(c_.heads), d = D / H;
    const Rows qkv = linear(x, name + "qkv");
    Rows out(x.size(), std::vector<double>(D));
    for (std::size_t h = 0; h < H; ++h)
      for (std::size_t i = 0; i < x.size(); ++i) {
        std::vector<double> weights;
        double sum = 0;
        for (std::size_t j = 0; j < x.size(); ++j) {
          double dot = 0;
          for (std::size_t k = h * d; k < (h + 1) * d; ++k) dot += qkv[i][k] * qkv[j][D + k];
          sum += weights.emplace_back(std::exp(dot / std::sqrt(static_cast<double>(d))));
        }
        for (std::size_t j = 0; j < x.size(); ++j)
          for (std::size_t k = h * d; k < (h + 1) * d; ++k) out[i][k] += weights[j] / sum * qkv[j][2 * D + k];
      }
    return linear(out, name + "proj");
  }

  Rows scaled(Rows x, const std::string& gamma) const {
    for (auto& row : x)
      for (std::size_t d = 0; has(gamma) && d < row.size(); ++d) row[d] *= at(gamma, static_cast<Index>(d));
    return x;
  }

  static void add(Rows& x, const Rows& y) {
    for (std::size_t n = 0; n < x.size(); ++n)
      for (std::size_t d = 0; d < x[n].size(); ++d) x[n][d] += y[n][d];
  }

  const ModelConfig& c_;
  const Parameters<double>& p_;
};

/// Returns values of order one in all tensors, so that every term matters.
Parameters<double> random_parameters(const VisionTransformer& model) {
  Parameters<double> parameters(model.parameters());
  for (ParameterId id = 0; id < parameters.list().size(); ++id) {
    const RandomStream random = RandomStream(3).derive(parameters.list()[id].name);
    const View<double> values = parameters[id];
    for (Index i = 0; i < values.size(); ++i) values[i] = random.normal(i);
  }
  return parameters;
}

Tensor<double> random_images(const ModelConfig& m, Index count) {
  Tensor<double> images(Shape{count, m.channels, m.image.height, m.image.width});
  for (Index i = 0; i < images.size(); ++i) images[i] = RandomStream(2).normal(i);
  return images;
}

using Change = std::function<void(ModelConfig&)>;

struct Keys {
  const char* label;
  Change set;
};

/// Each key alone, and keys that affect each other.
const Keys all_keys[] = {
    {"defaults", [](ModelConfig&) {}},
    {"layer_scale", [](ModelConfig& m) { m.block_scale = 0.5; }},
    {"pool_norm", [](ModelConfig& m) { m.pool_norm = "after"; }},
    {"pool_norm of a mean", [](ModelConfig& m) { m.pool = "mean", m.pool_norm = "after"; }},
    {"mean beside a class token", [](ModelConfig& m) { m.pool = "mean", m.class_token = true; }},
    {"qkv_bias", [](ModelConfig& m) { m.qkv_bias = false; }},
    {"registers", [](ModelConfig& m) { m.registers = 3; }},
    {"registers alone", [](ModelConfig& m) { m.registers = 2, m.pool = "mean"; }},
    {"embed_prefix", [](ModelConfig& m) { m.embed_prefix = false; }},
    {"embed_prefix and registers", [](ModelConfig& m) { m.embed_prefix = false, m.registers = 2; }},
    {"distilled", [](ModelConfig& m) { m.distilled = true; }},
    {"distilled, embed_prefix", [](ModelConfig& m) { m.distilled = true, m.embed_prefix = false; }},
    {"pre_norm", [](ModelConfig& m) { m.pre_norm = true; }},
    {"norm_eps", [](ModelConfig& m) { m.norm_eps = 0.1; }},
    {"quick_gelu", [](ModelConfig& m) { m.act = "quick_gelu"; }},
    {"wide image", [](ModelConfig& m) { m.image = Sides(4, 8), m.patch = Sides(4, 2); }},
    {"tall patch", [](ModelConfig& m) { m.patch = Sides(4, 2); }},
    {"all", [](ModelConfig& m) {
       m.block_scale = 0.1, m.pool = "mean", m.class_token = true, m.pool_norm = "after", m.qkv_bias = false;
       m.registers = 2, m.embed_prefix = false, m.pre_norm = true, m.norm_eps = 0.01, m.act = "quick_gelu";
       m.image = Sides(8, 4), m.patch = Sides(4, 2);
     }}};

std::string refusal(const Change& change) {
  ModelConfig m = tiny_vit();
  change(m);
  try {
    const VisionTransformer model(m, {});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(vit_keys)

BOOST_AUTO_TEST_CASE(logits_are_timms) {
  for (const Keys& keys : all_keys) {
    ModelConfig m = tiny_vit();
    keys.set(m);
    const VisionTransformer model(m, {});
    Parameters<double> parameters = random_parameters(model);
    const Tensor<double> images = random_images(m, 1);
    Tape<double> tape({.parameters = &parameters});
    const Var<double> logits = model.logits<double>(tape, {images.view()});
    const std::vector<double> expected = PlainVit(m, parameters).logits(images);
    // Sums of about a dozen terms of order 1 to 10.
    for (Index i = 0; i < m.classes; ++i)
      BOOST_TEST(std::abs(logits.data()[i] - expected[static_cast<std::size_t>(i)]) < 1e-11, keys.label);
  }
}

// With the tensors of a model for images of twice the side, positions of patches are interpolated from 4 x 4 to 2 x 2;
// those of the tokens before the patches do not change.
BOOST_AUTO_TEST_CASE(positions_of_larger_images) {
  const Change changes[] = {[](ModelConfig&) {}, [](ModelConfig& m) { m.registers = 3; },
                            [](ModelConfig& m) { m.registers = 2, m.embed_prefix = false; },
                            [](ModelConfig& m) { m.pool = "mean"; }};
  for (const Change& change : changes) {
    ModelConfig m = tiny_vit();
    change(m);
    ModelConfig larger = m;
    larger.image = 16;
    const VisionTransformer model(m, {}), large(larger, {});
    Parameters<double> given = random_parameters(large), expected(model.parameters());
    for (ParameterId id = 0; id < expected.list().size(); ++id) {
      const ParameterSpec& spec = expected.list()[id];
      const View<double> from = given[given.list().find(spec.name)], to = expected[id];
      if (spec.name != "pos_embed") {
        std::copy(from.begin(), from.end(), to.begin());
        continue;
      }
      const Index front = (m.embed_prefix ? m.prefix_tokens() : 0) * m.dim;
      BOOST_REQUIRE(from.size() == front + 16 * m.dim);
      Tape<double> tape;
      const Var<double> grid =
          interpolate_positions(tape.constant({from.data() + front, Shape{1, 16, m.dim}}), 0, 4, 2);
      std::copy_n(from.begin(), front, to.begin());
      std::copy_n(grid.data(), grid.size(), to.begin() + front);
    }
    const Tensor<double> images = random_images(m, 1);
    Tape<double> tape({.parameters = &given});
    const Var<double> logits = model.logits<double>(tape, {images.view()});
    const std::vector<double> plain = PlainVit(m, expected).logits(images);
    for (Index i = 0; i < m.classes; ++i)
      BOOST_TEST(std::abs(logits.data()[i] - plain[static_cast<std::size_t>(i)]) < 1e-11,
                 m.registers << " registers, pool = " << m.pool);
  }
}

// Features are the classifier's input. With two classifiers they are the mean of both inputs, so if the classifiers are
// equal, the logits follow from the features as with a single one.
BOOST_AUTO_TEST_CASE(features_are_what_the_classifier_reads) {
  for (const Keys& keys : all_keys) {
    ModelConfig m = tiny_vit();
    keys.set(m);
    const VisionTransformer model(m, {});
    Parameters<double> parameters = random_parameters(model);
    const auto tensor_called = [&](const std::string& name) { return parameters[parameters.list().find(name)]; };
    const View<double> weight = tensor_called("head.weight"), bias = tensor_called("head.bias");
    if (m.distilled)
      std::copy(weight.begin(), weight.end(), tensor_called("head_dist.weight").begin()),
          std::copy(bias.begin(), bias.end(), tensor_called("head_dist.bias").begin());
    const Tensor<double> images = random_images(m, 2);
    Tape<double> tape({.parameters = &parameters}), other({.parameters = &parameters});
    const Var<double> logits = model.logits<double>(tape, {images.view()});
    std::vector<Var<double>> features(2);
    model.features(other, ModelInput<double>{images.view()}, std::span(features));
    BOOST_TEST_REQUIRE(to_string(features[1].shape()) == "[2, 6]");
    for (Index i = 0; i < logits.size(); ++i) {
      double expected = bias[i % 3];
      for (Index d = 0; d < 6; ++d) expected += weight[i % 3 * 6 + d] * features[1].data()[i / 3 * 6 + d];
      BOOST_TEST(std::abs(logits.data()[i] - expected) < 1e-11, keys.label);
    }
  }
}

// Compares gradients with central differences along a random direction in each tensor.
BOOST_AUTO_TEST_CASE(gradients_are_derivatives) {
  for (const Keys& keys : all_keys)
    for (const bool recompute : {false, true}) {
      ModelConfig m = tiny_vit();
      keys.set(m);
      const VisionTransformer model(m, {});
      Parameters<double> parameters = random_parameters(model);
      const Tensor<double> images = random_images(m, 2);
      Tensor<double> cotangent(Shape{2, m.classes});
      for (Index i = 0; i < cotangent.size(); ++i) cotangent[i] = RandomStream(5).normal(i);
      const auto value = [&] {
        Tape<double> tape({.parameters = &parameters});
        const Var<double> logits = model.logits<double>(tape, {images.view()});
        double sum = 0;
        for (Index i = 0; i < cotangent.size(); ++i) sum += logits.data()[i] * cotangent[i];
        return sum;
      };
      Gradients<double> gradients(parameters);
      gradients.reset();
      Pass<double> pass;
      pass.parameters = &parameters, pass.gradients = &gradients, pass.training = true;
      pass.execution.recompute = recompute;
      Tape<double> tape(pass);
      tape.backward(model.logits<double>(tape, {images.view()}), cotangent.view());
      gradients.complete();
      constexpr double step = 1e-5;
      for (ParameterId id = 0; id < parameters.list().size(); ++id) {
        const View<double> values = parameters[id];
        const RandomStream direction = RandomStream(7).derive(parameters.list()[id].name);
        double along = 0;
        const auto move = [&](double by) {
          for (Index i = 0; i < values.size(); ++i) values[i] += by * direction.normal(i);
        };
        for (Index i = 0; i < values.size(); ++i) along += gradients[id][i] * direction.normal(i);
        move(step);
        const double above = value();
        move(-2 * step);
        const double difference = (above - value()) / (2 * step);
        move(step);
        BOOST_TEST(std::abs(difference - along) < 1e-5 * (1 + std::abs(along)),
                   keys.label << ": " << parameters.list()[id].name << ": " << along << " is not " << difference);
      }
    }
}

BOOST_AUTO_TEST_CASE(tensors_and_their_initial_values) {
  ModelConfig m = tiny_vit();
  m.block_scale = 0.25, m.registers = 2, m.pool_norm = "after", m.pre_norm = true, m.qkv_bias = false;
  const VisionTransformer model(m, {});
  const ParameterList& list = model.parameters();
  const auto check = [&](const char* name, const Shape& shape, const Initial& initial) {
    const ParameterId id = list.find(name);
    BOOST_REQUIRE_MESSAGE(id >= 0, name);
    BOOST_TEST((list[id].shape == shape && list[id].initial == initial && !list[id].decay), name);
  };
  check("reg_token", {1, 2, 6}, Initial::normal(0.02));
  check("blocks.1.ls1.gamma", {6}, Initial::constant(0.25));
  check("blocks.0.ls2.gamma", {6}, Initial::constant(0.25));
  check("norm_pre.weight", {6}, Initial::constant(1));
  check("fc_norm.bias", {6}, Initial::constant(0));
  check("pos_embed", {1, 7, 6}, Initial::truncated_normal(0.02));
  for (const char* name : {"norm.weight", "patch_embed.proj.bias", "blocks.0.attn.qkv.bias"})
    BOOST_TEST(list.find(name) == -1, name);
  m = tiny_vit(), m.distilled = true;
  const VisionTransformer distilled(m, {});
  const ParameterList& both = distilled.parameters();
  BOOST_TEST((both[both.find("dist_token")].initial == Initial::normal(0.02)));
  BOOST_TEST((both[both.find("head_dist.weight")].initial == both[both.find("head.weight")].initial));
  BOOST_TEST((both[both.find("head_dist.weight")].decay && !both[both.find("head_dist.bias")].decay));
}

// Numbers of parameters as counted by timm, plus 385,000 for DINOv2's classifier of 1000 classes, which timm's models
// lack.
BOOST_AUTO_TEST_CASE(published_models_have_timms_parameters) {
  for (const auto& [name, parameters] :
       {std::pair("deit3-small", 22'059'496), std::pair("deit-tiny-distilled", 5'910'800),
        std::pair("dinov2-small", 22'056'192 + 385'000), std::pair("dinov2-small-reg4", 22'057'344 + 385'000),
        std::pair("augreg-tiny", 5'717'416)}) {
    const Experiment x = load_experiment(fmt::format("models/{}.toml", name));
    BOOST_TEST(VisionTransformer(x.model, x.attention).parameters().trainable_elements() == parameters, name);
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_go_together_is_refused) {
  BOOST_TEST(refusal([](ModelConfig& m) { m.class_token = false; }) ==
             "[model] class_token = false; pool = \"cls\" classifies the class token: set pool = \"mean\"");
  BOOST_TEST(refusal([](ModelConfig& m) { m.distilled = true, m.pool = "mean"; }) ==
             "[model] distilled = true; expected pool = \"cls\", not 'mean'");
  BOOST_TEST(refusal([](ModelConfig& m) { m.distilled = true, m.registers = 1; }) ==
             "[model] distilled = true; expected registers = 0, not 1");
  BOOST_TEST(refusal([](ModelConfig& m) { m.distilled = true, m.output = "tokens"; }).find("distilled = true") !=
             std::string::npos);
  BOOST_TEST(refusal([](ModelConfig& m) { m.image = Sides(8, 6); }) ==
             "[model] patch = 4 does not divide image = [8, 6]");
  BOOST_TEST(refusal([](ModelConfig& m) { m.norm_eps = 0; }) == "[model] norm_eps = 0; expected more than 0");
  BOOST_TEST(refusal([](ModelConfig& m) { m.pool_norm = "never"; }).find("[model] pool_norm = 'never'") == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
