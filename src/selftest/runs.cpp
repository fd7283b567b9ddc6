// Runs of the self-test and their data.
#include "heed/base/random.h"
#include "heed/data/images/image_write.h"
#include "heed/data/sequences/listops.h"
#include "heed/data/sequences/pairs.h"
#include "heed/io/file.h"
#include "heed/selftest/selftest.h"

#include <fmt/format.h>

#include <filesystem>

namespace heed {

namespace {

namespace fs = std::filesystem;

// Common settings of the experiments: `base = "common.toml"` and so on. Microbatches of 2 divide a batch of 7 into four
// lanes, the last of which is smaller. Widths are not multiples of the 16 floats of an AVX-512 vector.
constexpr SelftestRun bases[] = {
    {"common", R"(
        optim = {lr = 1e-2}
        train = {epochs = 2, batch = 7, microbatch = 2, checkpoint_steps = 1})"},
    {"mnist", R"(
        base = "common.toml"
        model = {image = 28, channels = 1, classes = 10}
        data = {name = "mnist", validation = 5, augment = []})"},
    {"grey", R"(
        base = "mnist.toml"
        model = {patch = 4, dim = 40, depth = 2, heads = 2, hidden = 72})"},
    {"colour", R"(
        base = "common.toml"
        model = {image = 32, channels = 3, patch = 4, dim = 40, depth = 2, heads = 2, hidden = 72, classes = 2}
        data = {name = "folder", validation = 5, mean = [0.5, 0.4, 0.3], std = [0.2]})"},
    {"sequences", R"(
        base = "common.toml"
        model = {family = "sequence", vocab = 256, context = 100, dim = 40, depth = 2, heads = 2, hidden = 72}
        data = {augment = []})"},
};

constexpr SelftestRun runs[] = {
    {"mechanisms", R"(
        base = "grey.toml"
        model = {patch = 2, depth = 17, pool = "mean"}
        [attention]
        mechanism = ["softmax", "sima", "aft", "pointwise", "soft", "adder", "efficient", "linear", "linformer",
          "nystrom", "cosformer", "synthesizer", "window", "xca", "lambda", "performer", "reformer"]
        aft = {variant = "conv"}
        soft = {landmarks = 16}
        linformer = {length = 19}
        nystrom = {landmarks = 14}
        cosformer = {reweight = "2d"}
        window = {window = 7}
        lambda = {key_dim = 12}
        performer = {features = 21}
        reformer = {rounds = 2, buckets = 6, chunk = 28})"},
    {"vit", R"(
        base = "colour.toml"
        model.image = 28
        model.dim = 136
        model.depth = 3
        model.heads = 4
        model.hidden = 520
        model.pool = "mean"
        model.act = "gelu_tanh"
        model.qk_norm = true
        model.gate = true
        model.gate_act = "silu"
        data.resize = true
        data.augment = ["crop", "flip", "mixup", "cutmix", "erase", "randaugment"]
        data.erase_probability = 0.5
        optim = {name = "sgd", schedule = "linear", warmup_epochs = 0.5}
        train.label_smoothing = 0.1
        train.dropout = 0.1
        train.drop_path = 0.2
        train.ema = 0.9
        train.recompute = true
        train.on_nonfinite = "skip")"},
    {"published", R"(
        base = "colour.toml"
        model.image = [24, 28]
        model.distilled = true
        model.embed_prefix = false
        model.pool_norm = "after"
        model.layer_scale = 0.5
        model.qkv_bias = false
        model.pre_norm = true
        model.norm_eps = 1e-5
        model.act = "quick_gelu"
        data = {resize = "crop", crop_fraction = 0.9, interpolation = "bilinear", augment = ["flip"]}
        attention = {mechanism = ["softmax", "sima"]})"},
    {"adder", R"(
        base = "grey.toml"
        model = {linear = ["mul", "adder"], ffn_act = "gelu", input_grad = "sign", weight_scale = "adaptive"}
        attention = {mechanism = "adder"}
        data = {shuffle = false}
        optim = {schedule = "constant"})"},
    {"adder-sign", R"(
        base = "grey.toml"
        model = {heads = 1, linear = "adder", ffn_act = "relu", weight_grad = "sign"}
        attention = {mechanism = "aft", rank = 9})"},
    {"adder-hardtanh", R"(
        base = "grey.toml"
        model = {linear = ["adder", "mul"], weight_grad = "hardtanh"}
        attention = {mechanism = "adder", score_grad = "hardtanh"})"},
    {"xcit", R"(
        base = "grey.toml"
        model = {family = "xcit"}
        attention = {mechanism = "xca"})"},
    {"xcit-sima", R"(
        base = "xcit.toml"
        model = {act = "relu", cls_attention = "sima", tokens_norm = false, lpi = false}
        attention = {mechanism = "sima", norm = "l2"})"},
    {"cvt", R"(
        base = "mnist.toml"
        model.family = "cvt"
        model.patch = [5, 3]
        model.stride = [2, 2]
        model.padding = [2, 1]
        model.dim = [20, 40]
        model.depth = [1, 2]
        model.heads = [1, 2]
        model.hidden = [40, 72])"},
    {"cvt-width", R"(
        base = "cvt.toml"
        model = {pool = "mean", kv_stride = 1, qk_scale = "width", bn_group = 3}
        attention = {mechanism = ["linear", "efficient"]}
        train = {batch = 6})"},
    {"soft-pyramid", R"(
        base = "mnist.toml"
        model.family = "soft-pyramid"
        model.image = 32
        model.stem = 12
        model.stride = [4, 2]
        model.dim = [20, 40]
        model.depth = [1, 2]
        model.heads = [1, 2]
        model.hidden = [40, 72]
        model.pool = "mean"
        model.act = ["relu", "quick_gelu"]
        attention = {mechanism = "soft", ratio = 2}
        data = {resize = true})"},
    {"scenes", R"(
        base = "common.toml"
        model.image = 56
        model.channels = 1
        model.classes = 11
        model.output = "tokens"
        model.patch = 8
        model.dim = 40
        model.depth = 2
        model.heads = 2
        model.hidden = 72
        data = {name = "scenes", limit = 21, validation = 5}
        train = {max_steps = 2})"},
    {"dino", R"(
        base = "colour.toml"
        data = {augment = ["flip", "jitter", "grey", "blur", "solarise"]}
        train = {method = "dino"}
        dino = {out_dim = 50, hidden = 36, bottleneck = 20, local_crops = 2, local_size = 16, freeze_last_layer = 0})"},
    {"dino-xcit", R"(
        base = "dino.toml"
        model = {family = "xcit"}
        attention = {mechanism = "xca"}
        dino = {norm_last_layer = false, freeze_last_layer = 1})"},
    {"text", R"(
        base = "sequences.toml"
        model = {task = "lm", depth = 6, start = true, tied = true}
        data = {name = "text", windows = 21}
        optim = {schedule = "rsqrt", warmup_steps = 2}
        [attention]
        mechanism = ["softmax", "aft", "pointwise", "linear", "synthesizer", "performer"]
        causal = true
        aft = {variant = "local", window = 7, rank = 9}
        performer = {features = 21})"},
    {"text-aft", R"(
        base = "sequences.toml"
        model = {task = "lm", heads = 1}
        attention = {mechanism = "aft", param = "dense", causal = true}
        data = {name = "text", windows = 21})"},
    {"pixels", R"(
        base = "sequences.toml"
        model = {task = "lm", vocab = 17, context = 196, start = true}
        data = {name = "pixels", validation = 5, side = 14, levels = 17, augment = ["flip", "shift"]})"},
    {"listops", R"(
        base = "sequences.toml"
        model = {task = "classify", pool = "cls", vocab = 15, classes = 10}
        data = {name = "listops"})"},
    {"documents", R"(
        base = "sequences.toml"
        model = {task = "classify", pool = "last", pos_embed = false, classes = 2}
        data = {name = "documents"})"},
    {"pairs", R"(
        base = "sequences.toml"
        model = {task = "pair", pool = "mean", context = 128, classes = 2, head = "mlp"}
        data = {name = "pairs"})"},
    {"pairs-concat", R"(
        base = "pairs.toml"
        model = {head = "linear", pair = "concat"})"},
};

/// Writes MNIST's four files, with images of random pixels.
void write_mnist(const fs::path& directory) {
  const auto word = [](std::string& bytes, Index value) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  };
  for (const auto& [part, count] : {std::pair("train", Index{26}), std::pair("t10k", Index{9})}) {
    std::string images, labels;
    for (const Index value : {Index{0x803}, count, Index{28}, Index{28}}) word(images, value);
    for (const Index value : {Index{0x801}, count}) word(labels, value);
    const RandomStream random = RandomStream(1).derive(part);
    for (Index i = 0; i < count; ++i) {
      labels += static_cast<char>(i % 10);
      for (Index p = 0; p < 28 * 28; ++p) images += static_cast<char>(random.derive(i).below(p, 256));
    }
    write_file((directory / part).string() + "-images-idx3-ubyte", images);
    write_file((directory / part).string() + "-labels-idx1-ubyte", labels);
  }
}

/// Writes a folder of colour images in two classes.
void write_folder(const fs::path& directory) {
  for (const auto& [part, count] : {std::pair("train", Index{27}), std::pair("test", Index{5})})
    for (Index i = 0; i < count; ++i) {
      const RandomStream random = RandomStream(2).derive(part).derive(static_cast<std::uint64_t>(i));
      Image image{{3, 32, 32}, std::vector<std::uint8_t>(3 * 32 * 32)};
      for (std::size_t p = 0; p < image.pixels.size(); ++p)
        image.pixels[p] = static_cast<std::uint8_t>(random.below(static_cast<Index>(p), 256));
      const fs::path place = directory / part / (i % 2 ? "odd" : "even");
      fs::create_directories(place);
      save_png((place / fmt::format("{:02}.png", i)).string(), image);
    }
}

/// Writes documents of two classes, one per line.
void write_documents(const fs::path& directory) {
  for (const auto& [part, count] :
       {std::pair("train", Index{21}), std::pair("val", Index{5}), std::pair("test", Index{9})}) {
    std::string text;
    for (Index i = 0; i < count; ++i) {
      const RandomStream random = RandomStream(3).derive(part).derive(static_cast<std::uint64_t>(i));
      text += i % 2 ? "odd\t" : "even\t";
      for (Index c = 0; c < 20 + random.below(0, 80); ++c) text += static_cast<char>('a' + random.below(c + 1, 26));
      text += "\n";
    }
    write_file((directory / part).string() + ".tsv", text);
  }
}

}  // namespace

std::span<const SelftestRun> selftest_runs() { return runs; }

void prepare_selftest(const std::string& directory) {
  const fs::path data = selftest_data("mnist", directory), documents = selftest_data("documents", directory);
  fs::create_directories(documents);
  write_mnist(data);
  write_folder(selftest_data("folder", directory));
  write_documents(documents);
  write_listops({.train = 21, .valid = 5, .test = 9, .depth = 5, .args = 5, .min = 20, .max = 99}, data.string());
  write_pairs({.train = 21, .valid = 5, .test = 9}, data.string());
  for (const std::span<const SelftestRun> list : {std::span<const SelftestRun>(bases), selftest_runs()})
    for (const SelftestRun& x : list) write_file((fs::path(directory) / x.name).string() + ".toml", x.toml);
}

std::string selftest_data(const std::string& name, const std::string& directory) {
  const fs::path all = fs::path(directory) / "data";
  return (name == "text"                            ? all / "documents/train.tsv"
          : name == "folder" || name == "documents" ? all / name
                                                    : all)
      .string();
}

Experiment selftest_experiment(const SelftestRun& run, const std::string& directory) {
  Experiment experiment = load_experiment((fs::path(directory) / run.name).string() + ".toml");
  experiment.data.path = selftest_data(experiment.data.name, directory);
  return experiment;
}

}  // namespace heed
