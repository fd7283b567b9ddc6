// The tables of heed cost, computed by hand for vit-micro on an invented energy table and an invented machine.
#include "support/cli.h"
#include "support/lines.h"
#include "tests/apps/cli/measuring/made_up_machine.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <map>
#include <regex>

using namespace heed;
using namespace heed::test;

namespace {

/// Sizes of vit-micro: tokens, width, heads, channels per head, feed-forward width, blocks; patches, pixels per patch,
/// classes.
struct Sizes {
  double N = 50, D = 64, H = 4, d = 16, F = 128, L = 4, P = 49, pixels = 16, classes = 10;

  double embedding() const { return P * pixels * D; }
  double qkv() const { return L * 3 * N * D * D; }
  double attention() const { return L * 2 * H * N * N * d; }
  double projection() const { return L * N * D * D; }
  double hidden() const { return L * N * D * F; }
  /// Returns the multiplications of a forward pass.
  double forward() const { return embedding() + qkv() + attention() + projection() + 2 * hidden() + D * classes; }
  /// Returns the fraction of the token rows that a run processes in the layers after attention: in the last block,
  /// these layers process only the class token.
  double share_as_run() const { return ((L - 1) * N + 1) / (L * N); }
  double forward_as_run() const {
    return embedding() + qkv() + attention() + share_as_run() * (projection() + 2 * hidden()) + D * classes;
  }
  /// Returns the multiplications of a training step: the backward pass has two products for each of the forward pass,
  /// except that the images get no gradient.
  double step_as_run() const { return 3 * forward_as_run() - embedding(); }
};

/// Reads "7.373 M", "1.277 MB", "3.0 %" or "12.5".
double read(const std::string& text) {
  std::size_t end = 0;
  const double number = std::stod(text, &end);
  const std::string unit = text.substr(std::min(text.size(), end + 1));
  const std::map<char, double> prefixes{{'k', 1e3}, {'M', 1e6}, {'G', 1e9}, {'T', 1e12}};
  const auto prefix = unit.empty() ? prefixes.end() : prefixes.find(unit[0]);
  return prefix == prefixes.end() ? number : number * prefix->second;
}

/// Checks a number rounded to four digits: an error of at most 0.5 in a value of at least 1000.
void check_digits(const std::string& text, double expected, const std::string& what) {
  BOOST_TEST(std::abs(read(text) - expected) <= 5.1e-4 * std::abs(expected),
             what << ": " << text << ", expected " << expected);
}

/// Checks a number with `decimals` decimals.
void check_decimals(const std::string& text, double expected, int decimals, const std::string& what) {
  BOOST_TEST(std::abs(read(text) - expected) <= 0.501 * std::pow(10, -decimals),
             what << ": " << text << ", expected " << expected);
}

/// A printed table: cells by row and column.
struct Printed {
  std::map<std::string, std::map<std::string, std::string>> rows;

  /// Reads the table whose first column has the title `first`.
  Printed(const std::string& text, const std::string& first) {
    std::vector<std::string> titles;
    static const std::regex gap("  +");
    for (const std::string& line : lines_of(text)) {
      std::vector<std::string> cells(std::sregex_token_iterator(line.begin(), line.end(), gap, -1), {});
      if (cells[0] == first) titles = cells;
      if (cells[0] == first || titles.empty()) continue;
      if (cells.size() != titles.size()) break;
      for (std::size_t i = 1; i < cells.size(); ++i) rows[cells[0]][titles[i]] = cells[i];
    }
  }
  std::string at(const std::string& row, const std::string& column) const {
    const auto found = rows.find(row);
    BOOST_REQUIRE_MESSAGE(found != rows.end() && found->second.contains(column), row << ", " << column);
    return found->second.at(column);
  }
};

/// Multiplications cost 3 pJ, exps 10 pJ and divisions 20 pJ; numbers have two bytes, and moving a byte costs 100 pJ.
struct Costs : TemporaryDirectory {
  std::string energy = *this / "mine.toml", machine = *this / "bench.json";
  Sizes sizes;

  Costs() {
    write_file(energy,
               "name = \"mine\"\nnumber_bytes = 2\n[operations]\nmul = { pj = 3, source = \"a guess\" }\n"
               "exp = { pj = 10, source = \"a guess\" }\ndiv = { pj = 20, source = \"a guess\" }\n"
               "[memory]\nstore = { pj = 100, source = \"a guess\" }\n");
    // Besides the products, a training step takes 0.5 ms and a pass in inference 0.25 ms, all at 50 watts.
    nlohmann::json json = nlohmann::json::parse(made_up_machine());
    json["times"]["watts"] = 50;
    json["times"]["training"]["step_us"] = 500;
    json["times"]["inference"]["step_us"] = 250;
    write_file(machine, json.dump());
  }
  static std::string cost(std::vector<std::string> more) {
    more.insert(more.begin(), "cost");
    return output_of(more);
  }
  static nlohmann::json json(std::vector<std::string> more) {
    more.emplace_back("--json");
    return nlohmann::json::parse(cost(more));
  }
  std::vector<std::string> timed(std::vector<std::string> more) const {
    more.insert(more.end(), {"--time", "--measured", machine});
    return more;
  }
};

/// Returns the time of `multiplications` in milliseconds, at 10^9 multiplications per millisecond.
double ms(double multiplications) { return 1e-9 * multiplications; }

constexpr const char* micro = "models/vit-micro.toml";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cli_cost_tables, Costs)

BOOST_AUTO_TEST_CASE(layers_of_a_model) {
  const std::string text = cost({micro, "--energy", energy, "--batch", "3"});
  const Printed table(text, "layer");
  const Sizes& s = sizes;
  const std::map<std::string, double> multiplications{{"patch_embed.proj", s.embedding()},
                                                      {"blocks.0-3.attn.qkv", s.qkv()},
                                                      {"blocks.0-3.attn", s.attention()},
                                                      {"blocks.0-3.attn.proj", s.projection()},
                                                      {"blocks.0-3.mlp.fc1", s.hidden()},
                                                      {"blocks.0-3.mlp.fc2", s.hidden()},
                                                      {"blocks.0-3.norm1", 0},
                                                      {"head", s.D * s.classes},
                                                      {"total", s.forward()}};
  for (const auto& [layer, mul] : multiplications) {
    check_digits(table.at(layer, "mul"), mul, layer);
    check_digits(table.at(layer, "add"), mul, layer);
    check_digits(table.at(layer, "energy, pJ"), 3 * mul, layer);
    check_decimals(table.at(layer, "share"), 100 * mul / s.forward(), 1, layer);
    check_digits(table.at(layer, "store, pJ"), 100 * read(table.at(layer, "bytes moved")), layer);
  }
  // Two bytes are moved for each input and output. Weights and biases are read once for three images, so each counts a
  // third.
  const std::map<std::string, double> moved{{"blocks.0-3.attn.qkv", s.L * (s.N * 4 * s.D + (s.D + 1) * 3 * s.D / 3)},
                                            {"blocks.0-3.mlp.fc1", s.L * (s.N * (s.D + s.F) + (s.D + 1) * s.F / 3)},
                                            {"head", s.D + s.classes + (s.D + 1) * s.classes / 3}};
  for (const auto& [layer, numbers] : moved) check_digits(table.at(layer, "bytes moved"), 2 * numbers, layer);
  check_contains(text,
                 {"\nlargest shares           attn.qkv 31.2 %, mlp.fc1 20.8 %, mlp.fc2 20.8 %, attn 16.2 %\n",
                  "\nparameters               139,018\n", "\nexponentials in attention 40,000 in a forward pass\n",
                  " saved for the backward pass of a "
                  "batch of 3\n",
                  ": mul 3 pJ; add without a price, counted as 0\n", " store (100 pJ/B)\n"});
  const std::string activations = text.substr(text.find("\nactivations") + 26);
  check_digits(activations.substr(0, activations.find('B')),
               json({micro, "--energy", energy, "--batch", "3"})["activation_bytes"].get<double>(), "activations");
}

// Rows of blocks and of kinds of operations, in each pass; rows of unequal blocks are not joined.
BOOST_AUTO_TEST_CASE(blocks_kinds_and_passes) {
  const Sizes& s = sizes;
  const double block = s.forward() - s.embedding() - s.D * s.classes, linear = block - s.attention() + s.D * s.classes;
  const struct {
    const char *by, *row;
    double forward, backward;
  } rows[] = {{"block", "blocks.0-3", block, 2 * block},
              {"block", "patch_embed", s.embedding(), s.embedding()},
              {"block", "total", s.forward(), 2 * s.forward() - s.embedding()},
              {"kind", "softmax", s.attention(), 2 * s.attention()},
              {"kind", "linear", linear, 2 * linear},
              {"kind", "patch_embedding", s.embedding(), s.embedding()}};
  std::map<std::string, Printed> tables;
  for (const std::string by : {"block", "kind"})
    for (const std::string pass : {"forward", "backward", "step"})
      tables.emplace(by + pass, Printed(cost({micro, "--by", by, "--pass", pass}), by));
  for (const auto& row : rows) {
    const std::string by = row.by;
    check_digits(tables.at(by + "forward").at(row.row, "mul"), row.forward, row.row);
    check_digits(tables.at(by + "backward").at(row.row, "mul"), row.backward, row.row);
    check_digits(tables.at(by + "step").at(row.row, "mul"), row.forward + row.backward, row.row);
  }
  const Printed mixed(cost({micro, "--set", "attention.mechanism=[\"softmax\",\"sima\",\"sima\",\"softmax\"]"}),
                      "layer");
  check_digits(mixed.at("blocks.1-2.attn", "mul"), 2 * 2 * s.H * s.N * s.d * s.d, "sima");
  for (const char* const row : {"blocks.0.attn", "blocks.3.attn"})
    check_digits(mixed.at(row, "mul"), s.attention() / s.L, row);
}

// Rows of several blocks are sums over the blocks of one stage: "blocks.0-3.attn", or "blocks.*.attn" in tables of
// times. The largest shares are those of sums over all stages.
BOOST_AUTO_TEST_CASE(rows_of_blocks_are_sums_within_their_stage) {
  static const std::regex joined(R"((.*\.)(\d+)-(\d+)(.*))"), in_block(R"(.*?block[^.]*\.\d+\.?(.*))");
  for (const std::string name : {"cvt-micro", "xcit-micro", "soft-micro"}) {
    const std::string model = fmt::format("models/{}.toml", name), text = cost({model});
    const nlohmann::json one = json({model}), time = json(timed({model, "--batch", "1600"}));
    const auto layers = [](const nlohmann::json& list, const char* key) {
      std::map<std::string, double> values;
      for (const auto& layer : list) values[layer["name"].get<std::string>()] = layer[key].get<double>();
      return values;
    };
    const std::map<std::string, double> mul = layers(one["layers"], "mul"), moved = layers(one["layers"], "bytes"),
                                        forward = layers(time["train"]["layers"], "forward_ms");
    std::size_t seen = 0;
    for (const auto& [row, cells] : Printed(text, "layer").rows) {
      std::smatch match;
      double multiplications = 0, bytes = 0;
      const bool several = std::regex_match(row, match, joined);
      for (int i = several ? std::stoi(match[2]) : 0, last = several ? std::stoi(match[3]) : 0; i <= last; ++i) {
        const std::string layer = several ? match[1].str() + std::to_string(i) + match[4].str() : row;
        if (layer == "total") continue;
        BOOST_TEST_REQUIRE(mul.contains(layer), layer);
        multiplications += mul.at(layer), bytes += moved.at(layer), ++seen;
      }
      if (row == "total") continue;
      check_digits(cells.at("mul"), multiplications, row);
      check_digits(cells.at("bytes moved"), bytes, row);
    }
    BOOST_TEST(seen == mul.size());

    seen = 0;
    for (const auto& [row, cells] : Printed(cost(timed({model, "--batch", "1600"})), "layer").rows) {
      const std::size_t star = row.find('*');
      const std::string begin = row.substr(0, star), end = star == std::string::npos ? "" : row.substr(star + 1);
      double ms = 0;
      for (const auto& [layer, one_ms] : forward) {
        const bool long_enough = star != std::string::npos && layer.size() > begin.size() + end.size();
        const bool own = star == std::string::npos
                             ? layer == row
                             : long_enough && layer.starts_with(begin) && layer.ends_with(end) &&
                                   layer.substr(begin.size(), layer.size() - begin.size() - end.size())
                                           .find_first_not_of("0123456789") == std::string::npos;
        if (own) ms += one_ms, ++seen;
      }
      check_decimals(cells.at("forward, ms"), ms, 3, row);
    }
    BOOST_TEST(seen == forward.size());

    std::map<std::string, double> shares;
    for (const auto& [layer, energy] : layers(one["layers"], "energy_pj")) {
      std::smatch match;
      const bool inside = std::regex_match(layer, match, in_block);
      shares[!inside                 ? layer
             : match[1].length() > 0 ? match[1].str()
                                     : "blocks"] += 100 * energy / one["total"]["energy_pj"].get<double>();
    }
    const std::string::size_type at = text.find("\nlargest shares");
    const std::string most = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
    static const std::regex part(R"(([a-z_0-9.]+) ([\d.]+) %)");
    std::vector<double> printed;
    for (std::sregex_iterator i(most.begin(), most.end(), part), end; i != end; ++i) {
      BOOST_TEST_REQUIRE(shares.contains((*i)[1]), most);
      check_decimals((*i)[2], shares[(*i)[1]], 1, most);
      printed.push_back(shares[(*i)[1]]);
      shares.erase((*i)[1]);
    }
    BOOST_TEST(printed.size() == 4u, most);
    BOOST_TEST(std::ranges::is_sorted(printed, std::greater<>()), most);
    for (const auto& [layer, share] : shares) BOOST_TEST(share <= printed.back() + 1e-9, layer << " " << most);
  }
}

// Memory of a batch, energy relative to the first model, and exps of a forward pass.
BOOST_AUTO_TEST_CASE(models_are_compared) {
  const std::string other = "models/deit-tiny.toml";
  const std::vector<std::string> more{"--energy", energy, "--batch", "3", "--pass", "step"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const Printed table(cost(with({"--compare", micro, other})), "model");
  const double first = 3 * (3 * sizes.forward() - sizes.embedding());
  for (const std::string& model : {std::string(micro), other}) {
    const nlohmann::json one = json(with({model}));
    const nlohmann::json& total = one["total"];
    check_digits(table.at(model, "parameters"), one["params"].get<double>(), model);
    check_digits(table.at(model, "mul"), total["mul"].get<double>(), model);
    check_digits(table.at(model, "add"), total["add"].get<double>(), model);
    check_digits(table.at(model, "attention exp"), one["attention_exp"].get<double>(), model);
    check_digits(table.at(model, "energy, pJ"), 3 * total["mul"].get<double>(), model);
    check_decimals(table.at(model, "to the first"), 3 * total["mul"].get<double>() / first, 2, model);
    check_digits(table.at(model, "bytes moved"), total["bytes"].get<double>(), model);
    check_digits(table.at(model, "activations, batch of 3"), one["activation_bytes"].get<double>(), model);
  }
  check_digits(table.at(micro, "energy, pJ"), first, micro);
  check_digits(table.at(micro, "attention exp"), 40'000, micro);
  // Several mechanisms are compared with the first one.
  const Printed mechanisms(cost(with({micro, "--attention", "sima,softmax"})), "attention");
  const double sima = sizes.attention() * sizes.d / sizes.N;
  const double ratio = first / (first - 3 * 3 * (sizes.attention() - sima));
  check_decimals(mechanisms.at("softmax", "to the first"), ratio, 2, "softmax");
  BOOST_TEST(mechanisms.at("sima", "to the first") == "1.00");
  check_digits(mechanisms.at("softmax", "activations, batch of 3"),
               json(with({micro}))["activation_bytes"].get<double>(), "softmax");
}

// Each size has the same values in all columns as a model of this size.
BOOST_AUTO_TEST_CASE(sizes_as_csv) {
  const std::vector<std::string> more{"--energy", energy, "--batch", "3", "--pass", "step", "--convention", "all"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const struct {
    const char* scale;
    std::vector<std::string> set;
    double tokens, dim;
  } sizes_of[] = {{"tokens=25..25", {"--set", "model.image=20"}, 25, 64},
                  {"dim=96..96", {"--set", "model.dim=96", "--set", "model.hidden=192"}, 49, 96}};
  for (const auto& size : sizes_of) {
    const std::vector<std::string> lines = lines_of(cost(with({micro, "--scale", size.scale})));
    BOOST_TEST_REQUIRE(lines.size() == 2u);
    std::map<std::string, double> found;
    std::istringstream keys(lines[0]), values(lines[1]);
    for (std::string key, value; std::getline(keys, key, ',') && std::getline(values, value, ',');)
      if (key != "model") found[key] = std::stod(value);
    std::vector<std::string> words{micro};
    words.insert(words.end(), size.set.begin(), size.set.end());
    const nlohmann::json model = json(with(words));
    std::map<std::string, double> expected{{"tokens", size.tokens}, {"dim", size.dim}};
    expected["params"] = model["params"], expected["activation_bytes"] = model["activation_bytes"];
    expected["energy_pj"] = model["total"]["energy_pj"], expected["bytes"] = model["total"]["bytes"];
    double attention_energy = 0;
    for (const char* kind : {"mul", "add", "div", "sqrt", "exp", "log", "erf", "other", "cmp"}) {
      expected[kind] = model["total"][kind];
      double& attention = expected[std::string("attention_") + kind];
      for (const auto& layer : model["layers"])
        if (layer["name"].get<std::string>().ends_with(".attn")) attention += layer[kind].get<double>();
    }
    for (const auto& layer : model["layers"])
      if (layer["name"].get<std::string>().ends_with(".attn")) attention_energy += layer["energy_pj"].get<double>();
    expected["attention_energy_pj"] = attention_energy;
    expected["attention_exp"] = model["attention_exp"];
    for (const auto& [key, value] : expected) {
      BOOST_TEST_REQUIRE(found.contains(key), key);
      BOOST_TEST(found[key] == value, boost::test_tools::tolerance(1e-12));
    }
  }
}

// Patches of 4 x 8 pixels on images of 28 x 56 are a grid of 7 x 7. Scaling to 49 tokens gives this grid of such
// patches for images of any shape.
BOOST_AUTO_TEST_CASE(sizes_of_images_that_are_not_square) {
  const auto rows = [&](const std::string& image, const std::string& scale) {
    return lines_of(cost({micro, "--set", "model.image=" + image, "--set", "model.patch=[4, 8]", "--scale", scale}));
  };
  const std::vector<std::string> widths = rows("[28, 56]", "dim=64..64");
  BOOST_TEST(widths.at(1).starts_with("models/vit-micro.toml,49,64,"), widths.at(1));
  BOOST_TEST(rows("[12, 64]", "tokens=49..49") == widths, boost::test_tools::per_element());
  BOOST_TEST(rows("[12, 64]", "dim=64..64").at(1).starts_with("models/vit-micro.toml,24,64,"));
}

BOOST_AUTO_TEST_CASE(predicted_times_of_layers) {
  const Sizes& s = sizes;
  constexpr double batch = 1600;
  const std::string text = cost(timed({micro, "--batch", "1600"}));
  const Printed table(text, "layer");
  const double step = batch * ms(s.step_as_run()) + 0.5, pass = batch * ms(s.forward_as_run()) + 0.25;
  const std::map<std::string, double> forward{{"patch_embed.proj", s.embedding()},
                                              {"blocks.*.attn.qkv", s.qkv()},
                                              {"blocks.*.attn", s.attention()},
                                              {"blocks.*.attn.proj", s.share_as_run() * s.projection()},
                                              {"blocks.*.mlp.fc1", s.share_as_run() * s.hidden()},
                                              {"blocks.*.mlp.fc2", s.share_as_run() * s.hidden()},
                                              {"head", s.D * s.classes}};
  for (const auto& [layer, mul] : forward) {
    const double f = batch * ms(mul), b = (layer == "patch_embed.proj" ? 1 : 2) * f;
    check_decimals(table.at(layer, "forward, ms"), f, 3, layer);
    check_decimals(table.at(layer, "backward, ms"), b, 3, layer);
    check_decimals(table.at(layer, "share of a step"), 100 * (f + b) / step, 1, layer);
    check_decimals(table.at(layer, "of inference"), 100 * f / pass, 1, layer);
  }
  BOOST_TEST(table.at("rest", "forward, ms") == "0.000");
  BOOST_TEST(table.at("rest", "backward, ms") == "0.500");
  check_decimals(table.at("rest", "share of a step"), 100 * 0.5 / step, 1, "rest");
  check_decimals(table.at("rest", "of inference"), 100 * 0.25 / pass, 1, "rest");
  static const std::regex rates(
      "\ntraining   ([\\d.]+ k) images/s, ([\\d.]+) ms\ninference  ([\\d.]+ k) images/s, ([\\d.]+) ms\n"
      "energy     ([\\d.]+) mJ per image in training, ([\\d.]+) (m|u)J in inference\n");
  std::smatch found;
  BOOST_TEST_REQUIRE(std::regex_search(text, found, rates), text);
  check_digits(found[1], 1e3 * batch / step, "training");
  check_decimals(found[2], step, 2, "training");
  check_digits(found[3], 1e3 * batch / pass, "inference");
  check_decimals(found[4], pass, 2, "inference");
  check_digits(found[5], 50 * step / batch, "joules of training");  // watts times milliseconds
  check_digits(found[6], (found[7] == "u" ? 1000 : 1) * 50 * pass / batch, "joules of inference");

  const nlohmann::json json_form = json(timed({micro, "--batch", "1600"}));
  BOOST_TEST(json_form["train"]["ms"].get<double>() == step, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(json_form["train"]["rest_ms"].get<double>() == 0.5, boost::test_tools::tolerance(1e-6));
  BOOST_TEST(json_form["train"]["joules"].get<double>() == 50e-3 * step / batch, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(json_form["infer"]["joules"].get<double>() == 50e-3 * pass / batch, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(json_form["batch"] == 1600);
  for (const auto& layer : json_form["train"]["layers"])
    if (layer["name"] == "blocks.0.attn.qkv") {
      BOOST_TEST(layer["forward_ms"].get<double>() == batch * ms(s.qkv() / s.L), boost::test_tools::tolerance(1e-9));
      BOOST_TEST(layer["backward_ms"].get<double>() == 2 * batch * ms(s.qkv() / s.L),
                 boost::test_tools::tolerance(1e-9));
    }
  // An example is a sequence of 128 tokens, or a pair of sequences of 256 tokens each.
  const std::vector<std::string> one{"models/text-micro.toml"},
      pair{"models/sequence-micro.toml", "--set", "model.task=pair"};
  for (const auto& [model, tokens] : {std::pair{one, 128}, {pair, 512}}) {
    const nlohmann::json sequences = json(timed(model));
    for (const char* pass_name : {"train", "infer"})
      BOOST_TEST(sequences[pass_name]["tokens_s"].get<double>() == tokens * sequences[pass_name]["img_s"].get<double>(),
                 boost::test_tools::tolerance(1e-12));
  }
}

// Without --batch, the experiment's batch is used; ratios are computed from the rates.
BOOST_AUTO_TEST_CASE(predicted_times_are_compared) {
  const Sizes& s = sizes;
  const std::string wide = *this / "wide.toml";
  write_file(wide, fmt::format("base = \"{}\"\n[model]\nhidden = 512\n[train]\nbatch = 40\n",
                               std::filesystem::absolute(micro).string()));
  Sizes w;
  w.F = 512;
  const auto rate = [](const Sizes& of, double batch, bool training) {
    return 1e3 * batch / (batch * ms(training ? of.step_as_run() : of.forward_as_run()) + (training ? 0.5 : 0.25));
  };
  const std::vector<std::string> lines = lines_of(cost(timed({"--compare", micro, wide})));
  for (const bool second : {false, true}) {
    static const std::regex gap("  +");
    const std::string& line = lines.at(second ? 2 : 1);
    const std::vector<std::string> cells(std::sregex_token_iterator(line.begin(), line.end(), gap, -1), {});
    const Sizes& of = second ? w : s;
    const double batch = second ? 40 : 128;
    BOOST_TEST_REQUIRE(cells.size() == 6u, line);
    BOOST_TEST(cells[0] == (second ? wide : micro));
    BOOST_TEST(cells[1] == (second ? "40" : "128"));
    check_digits(cells[2], rate(of, batch, true), "training");
    check_decimals(cells[3], rate(of, batch, true) / rate(s, 128, true), 2, "training");
    check_digits(cells[4], rate(of, batch, false), "inference");
    check_decimals(cells[5], rate(of, batch, false) / rate(s, 128, false), 2, "inference");
  }
  // There are sixteen patches and a class token.
  Sizes small;
  small.N = 17, small.P = 16;
  const std::vector<std::string> csv = lines_of(cost(timed({micro, "--scale", "tokens=16..16", "--batch", "16"})));
  BOOST_TEST(csv.at(1) == fmt::format("{},16,{:.2f},{:.2f}", micro, rate(small, 16, true), rate(small, 16, false)));
}

// A model has the same figures in a table of several models as in a separate table, in every form, with options in any
// order.
BOOST_AUTO_TEST_CASE(each_of_several_models_is_as_alone) {
  using Words = std::vector<std::string>;
  const auto joined = [](Words a, const Words& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const std::string small = *this / "small.toml";
  write_file(small, fmt::format("base = \"{}\"\n[model]\ndim = 32\nheads = 2\nhidden = 48\n[train]\nbatch = 40\n",
                                std::filesystem::absolute(micro).string()));
  const auto without_name = [](nlohmann::json json) {
    json.erase("model");
    return json;
  };
  // Returns the rows without the first column, which has the name, and without the header.
  const auto rows_of = [](const std::string& csv) {
    Words rows;
    for (const std::string& line : lines_of(csv)) rows.push_back(line.substr(line.find(',')));
    rows.erase(rows.begin());
    return rows;
  };
  const Words models{small, micro, "models/deit-tiny.toml"};
  const Words variants[] = {{"--set", "attention.mechanism=sima", "--set", "attention.sima.order=kv_first"},
                            {"--set", "attention.mechanism=softmax"},
                            {"--set", "attention.mechanism=sima", "--set", "attention.sima.order=qk_first"}};
  const Words mechanisms{small, "--set", "attention.mechanism=xca", "--attention",
                         "sima:order=kv_first,softmax,sima:order=qk_first"};
  for (const Words& options :
       {Words{"--batch", "3", "--by", "kind", "--pass", "step", "--energy", energy, "--set", "model.depth=2"},
        Words{"--convention", "all", "--by", "block"}, timed({}), timed({"--batch", "7", "--set", "model.depth=2"})}) {
    const nlohmann::json compared = json(joined({"--compare", models[0], models[1], models[2]}, options))["models"];
    const nlohmann::json varied = json(joined(mechanisms, options))["models"];
    BOOST_REQUIRE((compared.size() == 3u && varied.size() == 3u));
    for (std::size_t i = 0; i < 3; ++i) {
      BOOST_TEST(compared[i]["model"] == models[i]);
      BOOST_TEST((without_name(compared[i]) == without_name(json(joined({models[i]}, options)))), models[i]);
      BOOST_TEST((without_name(varied[i]) == without_name(json(joined(joined({small}, variants[i]), options)))), i);
    }
  }
  for (const Words& options : {Words{"--scale", "tokens=16..49", "--batch", "2"},
                               Words{"--scale", "dim=60..80", "--pass", "step"}, timed({"--scale", "tokens=16..49"})}) {
    Words alone, varied;
    for (const std::string& model : models) alone = joined(alone, rows_of(cost(joined({model}, options))));
    for (const Words& set : variants) varied = joined(varied, rows_of(cost(joined(joined({small}, set), options))));
    BOOST_TEST(rows_of(cost(joined({"--compare", models[0], models[1], models[2]}, options))) == alone,
               boost::test_tools::per_element());
    BOOST_TEST(rows_of(cost(joined(mechanisms, options))) == varied, boost::test_tools::per_element());
  }
}

// The first and the last possible size are included; between them, each size is at least a sixth larger than the
// previous one. The width is a multiple of the number of heads and, in XCiT, of half the patch size.
BOOST_AUTO_TEST_CASE(sizes_from_one_end_to_the_other) {
  const char* const xcit = "models/xcit-tiny-12-p16.toml";
  for (const auto& [of, scale, expected] : {std::tuple(micro, "tokens=16..36", "16 25 36 "),
                                            {micro, "tokens=17..35", "25 "},
                                            {micro, "dim=8..16", "8 12 16 "},
                                            {micro, "dim=9..15", "12 "},
                                            {micro, "dim=96..111", "96 108 "},
                                            {micro, "dim=97..112", "100 112 "},
                                            {xcit, "dim=60..84", "64 80 "}}) {
    std::string found;
    for (const std::string& line : lines_of(cost({of, "--scale", scale}))) {
      std::istringstream cells(line);
      std::string model, tokens, dim;
      std::getline(cells, model, ','), std::getline(cells, tokens, ','), std::getline(cells, dim, ',');
      if (model != "model") found += (scale[0] == 'd' ? dim : tokens) + " ";
    }
    BOOST_TEST(found == expected, scale);
  }
}

// With 32 channels per head and more than 32 tokens, SimA has fewer multiplications if it multiplies keys and values
// first. The square numbers next to 32 are 25 and 36.
BOOST_AUTO_TEST_CASE(the_number_of_tokens_from_which_one_is_faster) {
  const std::vector<std::string> both = timed({micro, "--set", "model.heads=2", "--set", "model.pool=mean",
                                               "--attention", "sima:order=qk_first,sima:order=kv_first"});
  check_contains(cost(both),
                 {"\nsima:order=kv_first is faster than sima:order=qk_first from 36 tokens in training, from "
                  "36 tokens in inference\n"});
  const nlohmann::json overtakes = json(both)["overtakes"];
  BOOST_TEST_REQUIRE(overtakes.size() == 1u);
  BOOST_TEST(overtakes[0]["faster"] == "sima:order=kv_first");
  BOOST_TEST(overtakes[0]["slower"] == "sima:order=qk_first");
  BOOST_TEST(overtakes[0]["inference"] == "from 36 tokens");
}

// Each pair of mechanisms has one sentence, the same in any order of the mechanisms.
BOOST_AUTO_TEST_CASE(the_faster_one_may_come_first) {
  const auto overtakes = [&](const std::string& mechanisms) {
    std::map<std::string, std::string> found;
    const nlohmann::json all =
        json(timed({micro, "--set", "model.heads=2", "--set", "model.pool=mean", "--attention", mechanisms}));
    for (const auto& one : all["overtakes"])
      BOOST_TEST(found
                     .emplace(one["faster"].get<std::string>() + " " + one["slower"].get<std::string>(),
                              one["training"].get<std::string>() + ", " + one["inference"].get<std::string>())
                     .second);
    return found;
  };
  const std::string q = "sima:order=qk_first", k = "sima:order=kv_first", a = "aft:variant=simple";
  BOOST_TEST((overtakes(k + "," + q) == overtakes(q + "," + k)));
  const std::map<std::string, std::string> three = overtakes(k + "," + a + "," + q);
  BOOST_TEST((three == overtakes(q + "," + a + "," + k)));
  BOOST_TEST(three.size() == 3u);
  // AFT-simple's attention has no matrix products.
  const std::string always = "at all sizes from 16 to 4096 tokens";
  for (const std::string& other : {q, k}) BOOST_TEST(three.at(a + " " + other) == always + ", " + always);
  BOOST_TEST(three.at(k + " " + q) == "from 36 tokens, from 36 tokens");
}

// Sizes that one of the mechanisms does not support are left out: cells of 7 x 7 divide only grids such as 7 x 7 and 21
// x 21 (14 x 14 is not among the sizes), and a chunk of 197 tokens fits only the model's own grid, which is not among
// the sizes, either.
BOOST_AUTO_TEST_CASE(mechanisms_that_support_some_sizes) {
  check_contains(
      cost(timed({micro, "--set", "model.pool=mean", "--attention", "softmax,window:dims=2:window=7"})),
      {"\nwindow:dims=2:window=7 is faster than softmax from 441 tokens in training, from 441 tokens in inference\n"});
  const std::string none =
      cost(timed({micro, "--set", "model.image=56", "--attention", "softmax,reformer:rounds=1:buckets=2:chunk=197"}));
  check_contains(none, {"\nsoftmax ", "\nreformer:rounds=1:buckets=2:chunk=197 "});
  BOOST_TEST(none.find("faster") == std::string::npos, none);
}

BOOST_AUTO_TEST_SUITE_END()
