// heed cost from the command line and for scripts.
#include "support/cli.h"
#include "tests/apps/cli/measuring/made_up_machine.h"
#include "support/command.h"

#include "heed/attention/mechanism.h"
#include "heed/io/file.h"

#include <nlohmann/json.hpp>

using namespace heed;
using namespace heed::test;

namespace {

using Strings = std::vector<std::string>;

std::string cost(Strings arguments) {
  arguments.insert(arguments.begin(), "cost");
  const Finished run = heed_with(arguments);
  BOOST_TEST(run.status == 0, run.err);
  BOOST_TEST(run.err == "");
  return run.out;
}

nlohmann::json cost_json(Strings arguments) {
  arguments.emplace_back("--json");
  return nlohmann::json::parse(cost(arguments));
}

Index total(const nlohmann::json& json, const char* kind) { return json["total"][kind].get<Index>(); }

nlohmann::json layer(const nlohmann::json& json, const std::string& name) {
  for (const nlohmann::json& row : json["layers"])
    if (row["name"] == name) return row;
  BOOST_ERROR("no layer " << name);
  return {};
}

Index occurrences(const std::string& text, const std::string& part) {
  Index count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

// vit-micro: tokens, width, channels per head, heads, feed-forward width, depth; patches, pixels per patch, classes.
constexpr Index N = 50, D = 64, d = 16, H = 4, F = 128, L = 4, P = 49, pixels = 16, classes = 10;

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_cost)

BOOST_AUTO_TEST_CASE(operations_as_a_list_and_as_a_graph) {
  const std::string list = cost({"models/vit-micro.toml", "--operations", "list", "--set", "model.depth=1"});
  BOOST_TEST(list.find(" [1, 1, 28, 28], patch_embed.proj.weight [64, 1, 4, 4], patch_embed.proj.bias [64])  forward "
                       "50176 mul, ") != std::string::npos,
             list);
  BOOST_TEST(list.find(" in blocks.0.attn.qkv\n") != std::string::npos, list);
  const std::string dot = cost({"models/vit-micro.toml", "--operations", "dot", "--set", "model.depth=1"});
  BOOST_TEST(dot.starts_with("digraph tape {\n"));
  BOOST_TEST(occurrences(dot, "shape = box") == occurrences(list, "\n"));
}

BOOST_AUTO_TEST_CASE(contractions_of_vit_micro_by_hand) {
  const Index embedding = P * pixels * D, head = D * classes, attention = 2 * H * N * N * d;
  const Index forward = embedding + L * (3 * N * D * D + attention + N * D * D + 2 * N * D * F) + head;
  const nlohmann::json json = cost_json({"models/vit-micro.toml"});
  BOOST_TEST(json["params"] == 139'018);
  BOOST_TEST(json["counted"].get<std::string>().find("by the textbook algorithm") != std::string::npos);
  BOOST_TEST(total(json, "mul") == forward);
  BOOST_TEST(total(json, "add") == forward);
  for (const char* kind : {"div", "sqrt", "exp", "log", "erf", "other", "cmp"}) BOOST_TEST(total(json, kind) == 0);
  BOOST_TEST(json["total"]["energy_pj"].get<double>() == 4.6 * static_cast<double>(forward),
             boost::test_tools::tolerance(1e-14));
  BOOST_TEST(json["attention_exp"] == L * H * N * N);
  BOOST_TEST(layer(json, "blocks.0.attn.qkv")["mul"] == 3 * N * D * D);
  BOOST_TEST(layer(json, "blocks.3.attn")["add"] == attention);
  BOOST_TEST(layer(json, "blocks.3.mlp.fc1")["mul"] == N * D * F);
  // The backward pass has two products for each forward one, except that images get no gradient.
  BOOST_TEST(total(cost_json({"models/vit-micro.toml", "--pass", "backward"}), "mul") == 2 * forward - embedding);
  BOOST_TEST(total(cost_json({"models/vit-micro.toml", "--pass", "step"}), "add") == 3 * forward - embedding);
}

// Textbook operations: a product of m x k by k x n takes m n k mul and m n (k - 1) add, and a bias m n further add.
BOOST_AUTO_TEST_CASE(all_operations_of_vit_micro_by_hand) {
  const nlohmann::json json = cost_json({"models/vit-micro.toml", "--convention", "all"});
  const Index rows = H * N, pairs = rows * N, norms = 2 * L * N + 1;
  const Index products = P * pixels * D + L * (4 * N * D * D + 2 * pairs * d + 2 * N * D * F) + D * classes;
  // Norms and gelu multiply three times per element, and softmax scales each score.
  BOOST_TEST(total(json, "mul") == products + norms * 3 * D + L * (pairs + 3 * N * F));
  const Index linear_outputs = P * D + L * (5 * N * D + N * F) + classes;  // the bias of each takes one add
  const Index linear_adds = P * pixels * D + L * (4 * N * D * D + 2 * N * D * F) + D * classes - linear_outputs;
  const Index residuals = L * 2 * N * D, positions = N * D;
  const Index attention = L * (pairs * (d - 1) + 2 * pairs - rows + rows * d * (N - 1));
  BOOST_TEST(total(json, "add") ==
             linear_adds + linear_outputs + residuals + positions + attention + norms * (5 * D - 1) + L * N * F);
  BOOST_TEST(total(json, "div") == norms * 3 + L * pairs);
  BOOST_TEST(total(json, "sqrt") == norms);
  BOOST_TEST(total(json, "exp") == L * pairs);
  BOOST_TEST(total(json, "erf") == L * N * F);
  BOOST_TEST(total(json, "cmp") == L * (pairs - rows));
  BOOST_TEST(total(json, "log") == 0);
}

// Costs equal the figures of Shu et al. 2021, Table 1, to the printed digits. Only the table's 2.38 G additions
// differ: they were computed from rounded figures, as 2 x 1.25 - 0.12.
BOOST_AUTO_TEST_CASE(figures_of_the_adder_paper) {
  const nlohmann::json mul = cost_json({"models/deit-tiny.toml"}), adder = cost_json({"models/deit-tiny-adder.toml"});
  const auto hundredths = [](const nlohmann::json& json, const char* kind) {
    return std::lround(json["total"][kind].get<double>() / 1e7);
  };
  BOOST_TEST(hundredths(mul, "mul") == 125);
  BOOST_TEST(hundredths(mul, "add") == 125);
  BOOST_TEST(std::lround(mul["total"]["energy_pj"].get<double>() / 1e8) == 58);
  BOOST_TEST(hundredths(adder, "mul") == 12);
  BOOST_TEST(total(adder, "add") == 2 * total(mul, "mul") - total(adder, "mul"));
  BOOST_TEST(std::lround(adder["total"]["energy_pj"].get<double>() / 1e8) == 26);
}

BOOST_AUTO_TEST_CASE(layers_add_up_and_batches_share_weights) {
  const nlohmann::json one =
      cost_json({"models/vit-micro.toml", "--pass", "step", "--convention", "all", "--by", "block"});
  for (const auto& [kind, value] : one["total"].items()) {
    if (value.is_object()) continue;
    double sum = 0;
    for (const nlohmann::json& row : one["layers"]) sum += row[kind].get<double>();
    BOOST_TEST(sum == value.get<double>(), boost::test_tools::tolerance(1e-12));
  }
  const nlohmann::json many =
      cost_json({"models/vit-micro.toml", "--pass", "step", "--convention", "all", "--batch", "8"});
  BOOST_TEST(total(many, "mul") == total(one, "mul"));
  BOOST_TEST(many["activation_bytes"] == 8 * one["activation_bytes"].get<Index>());
  BOOST_TEST(many["total"]["bytes"].get<double>() < one["total"]["bytes"].get<double>());
}

BOOST_AUTO_TEST_CASE(an_energy_table_of_ones_own) {
  const TemporaryDirectory directory;
  const std::string table = directory / "t.toml";
  write_file(table, "name = \"mine\"\nnumber_bytes = 2\n[operations]\nexp = { pj = 10, source = \"a guess\" }\n");
  const nlohmann::json json = cost_json({"models/vit-micro.toml", "--convention", "all", "--energy", table});
  BOOST_TEST(json["total"]["energy_pj"] == 10.0 * static_cast<double>(L * H * N * N));
  BOOST_TEST(json["total"]["bytes"].get<double>() * 2 ==
             cost_json({"models/vit-micro.toml"})["total"]["bytes"].get<double>());
  const std::string text = cost({"models/vit-micro.toml", "--convention", "all", "--energy", table});
  BOOST_TEST(text.find("mine: exp 10 pJ; mul, add, div, sqrt, erf, cmp without a price") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(models_side_by_side) {
  const std::string text =
      cost({"models/deit-tiny.toml", "--attention", "softmax,sima:order=qk_first,soft:landmarks=49"});
  for (const char* piece : {"softmax ", "sima:order=qk_first ", "soft:landmarks=49 ", "1.397 M", "5.767 G"})
    BOOST_TEST(text.find(piece) != std::string::npos, piece << " is not in\n" << text);
  const nlohmann::json json = cost_json({"--compare", "models/deit-tiny.toml", "models/deit-tiny-adder.toml"});
  BOOST_TEST(json["models"].size() == 2);
  BOOST_TEST(total(json["models"][1], "mul") == 118'509'312);
}

// The commas within a list, which has an item for each stage, do not separate mechanisms.
BOOST_AUTO_TEST_CASE(mechanisms_with_an_option_for_each_stage) {
  const nlohmann::json both = cost_json({"models/cvt-micro.toml", "--attention", "linformer:length=[49,16,8],softmax"});
  BOOST_TEST_REQUIRE(both["models"].size() == 2);
  BOOST_TEST(both["models"][0]["model"] == "linformer:length=[49,16,8]");
  BOOST_TEST(both["models"][0]["total"] == cost_json({"models/cvt-micro.toml", "--set", "attention.mechanism=linformer",
                                                      "--set", "attention.length=[49,16,8]"})["total"]);
  BOOST_TEST(both["models"][1]["total"] == cost_json({"models/cvt-micro.toml"})["total"]);
}

// experiments/tools/paper-costs ends with status 1 if a published figure is unexplained.
BOOST_AUTO_TEST_CASE(published_figures) {
  const CommandResult papers = run_command("/usr/bin/python3 experiments/tools/paper-costs --heed " + heed_program());
  BOOST_TEST(papers.status == 0, papers.output << papers.errors);
  for (const char* piece : {"81 figures agree as printed", " 0 remain unexplained"})
    BOOST_TEST(papers.output.find(piece) != std::string::npos, piece << " is not in\n" << papers.output);
}

// SimA's two orders of multiplication cost the same for equal numbers of tokens and channels per head, here N = 16 and
// d = 16 without a class token: 2 N^2 d and 2 N d^2 per head.
BOOST_AUTO_TEST_CASE(growth) {
  const std::string csv = cost({"models/vit-micro.toml", "--set", "model.pool=mean", "--attention",
                                "sima:order=qk_first,sima:order=kv_first", "--scale", "tokens=16..64"});
  std::map<std::string, Index> attention_mul;
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  BOOST_TEST(line.starts_with("model,tokens,dim,params,mul,add,"));
  const std::string header = line;
  const auto field = [](const std::string& row, Index column) {
    std::istringstream fields(row);
    std::string text;
    for (Index i = 0; i <= column; ++i) std::getline(fields, text, ',');
    return text;
  };
  Index column = 0;
  while (field(header, column) != "attention_mul") ++column;
  while (std::getline(lines, line))
    attention_mul[field(line, 0) + " " + field(line, 1)] = std::stol(field(line, column));
  BOOST_TEST(attention_mul["sima:order=qk_first 16"] == L * H * 2 * 16 * 16 * d);
  BOOST_TEST(attention_mul["sima:order=kv_first 16"] == attention_mul["sima:order=qk_first 16"]);
  BOOST_TEST(attention_mul["sima:order=kv_first 64"] == L * H * 2 * 64 * d * d);
  BOOST_TEST(attention_mul["sima:order=qk_first 64"] == L * H * 2 * 64 * 64 * d);
  const std::string dims = cost({"models/vit-micro.toml", "--scale", "dim=64..64"});
  BOOST_TEST(dims.find("models/vit-micro.toml,49,64,139018,") != std::string::npos, dims);
}

// The costs of SimA's orders cross where a head has as many channels as there are tokens: at 64 tokens with heads of 64
// channels, and at width 3 x 196 with 196 tokens and 3 heads.
BOOST_AUTO_TEST_CASE(growth_is_drawn) {
  if (run_command("/usr/bin/python3 -c 'import matplotlib'").status != 0) {
    BOOST_TEST_MESSAGE("skipped: python3-matplotlib is not installed");
    return;
  }
  const TemporaryDirectory directory;
  const std::string picture = directory / "costs.png",
                    script = "/usr/bin/python3 experiments/tools/plot_costs.py --heed ";
  const std::string orders = " --attention sima:order=qk_first,sima:order=kv_first";
  const CommandResult crossed = run_command(script + heed_program() + orders + " -o '" + picture + "'");
  BOOST_TEST(crossed.status == 0, crossed.errors);
  for (const char* piece : {"qk_first at tokens = 64.0\n", "qk_first at dim = 588.0\n"})
    BOOST_TEST(crossed.output.find(piece) != std::string::npos, crossed.output);
  const std::string svg = directory / "costs.svg";
  const CommandResult all = run_command(script + heed_program() + " -o '" + svg + "'");
  BOOST_TEST(all.status == 0, all.errors);
  const std::string drawn = read_file(svg);
  for (const MechanismEntry& entry : mechanisms())
    for (const MechanismSetting& setting : entry.settings())
      BOOST_TEST((drawn.find("<!-- " + setting.label + " -->") != std::string::npos ||
                  all.output.find(setting.label + " is left out: ") != std::string::npos),
                 setting.label << " is neither drawn nor left out with a reason");
  const CommandResult refused = run_command(script + heed_program() + " models/none.toml -o '" + picture + "'");
  BOOST_TEST(refused.status == 2);
  BOOST_TEST(is_line_with(refused.errors, "models/none.toml: cannot open"), refused.errors);
}

BOOST_AUTO_TEST_CASE(bad_arguments) {
  check_refusal({"cost"}, {"no model is given"});
  check_refusal({"cost", "models/none.toml"}, {"models/none.toml: cannot open"});
  check_refusal({"cost", "models/vit-micro.toml", "--set", "model.family=vut"},
                {"[model] family = 'vut'; did you mean 'vit'?"});
  check_refusal({"cost", "models/vit-micro.toml", "--pass", "sideways"}, {"--pass", "sideways"});
  check_refusal({"cost", "models/vit-micro.toml", "--attention", "softmax,simma"}, {"'simma'; did you mean 'sima'?"});
  check_refusal({"cost", "models/vit-micro.toml", "--attention", "sima:order"}, {"NAME:OPTION=VALUE"});
  check_refusal({"cost", "models/vit-micro.toml", "--scale", "depth=1..2"},
                {"expected tokens=FROM..TO or dim=FROM..TO"});
  check_refusal({"cost", "models/vit-micro.toml", "--scale", "tokens=17..20"}, {"no square number of patches"});
  check_refusal({"cost", "models/vit-micro.toml", "--energy", "none.toml"}, {"none.toml: cannot open"});
}

// heed cost gives the same error as heed train for an invalid model.
BOOST_AUTO_TEST_CASE(impossible_models_are_refused_as_by_train) {
  const Workshop workshop;
  const std::string file = write_experiment(workshop, workshop.experiment()), run = workshop / "run";
  for (const char* set :
       {"model.patch=3", "model.heads=5", "model.dimm=3", "model.linear=[\"mul\",\"mul\",\"adder\"]", "model.depth=0",
        "attention.mechanism=sotfmax", "attention.casual=true", "attention.causal=perhaps", "base=none.toml"}) {
    const Finished train = heed_with({"train", file, "--run", run, "--set", set});
    const Finished cost = heed_with({"cost", file, "--set", set});
    BOOST_TEST(cost.status == 2);
    BOOST_TEST(cost.err == train.err);
    BOOST_TEST(cost.out == "");
  }
  const Strings aft{"--set", "attention.mechanism=aft", "--set", "attention.variant=conv"};
  Strings train{"train", file, "--run", run}, cost{"cost", file};
  train.insert(train.end(), aft.begin(), aft.end());
  cost.insert(cost.end(), aft.begin(), aft.end());
  BOOST_TEST(heed_with(cost).err == heed_with(train).err);
  BOOST_TEST(heed_with(cost).status == 2);
}

BOOST_AUTO_TEST_CASE(time_by_a_made_up_machine) {
  const TemporaryDirectory directory;
  const std::string path = directory / "bench.json";
  write_file(path, made_up_machine());
  const nlohmann::json json = cost_json({"models/vit-micro.toml", "--time", "--measured", path, "--batch", "16"});
  // In a run, the last block's layers after attention process only the class token.
  const Index attention = 2 * H * N * N * d, rest = D * D + 2 * D * F;
  const double forward =
      static_cast<double>(P * pixels * D + L * (3 * N * D * D + attention) + ((L - 1) * N + 1) * rest + D * classes);
  BOOST_TEST(json["infer"]["ms"].get<double>() == 16 * forward / 1e9, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(json["infer"]["img_s"].get<double>() == 1e12 / forward, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(json["infer"]["joules"] == "unavailable: none");
  double shares = 0;
  for (const nlohmann::json& row : json["train"]["layers"]) shares += row["share"].get<double>();
  BOOST_TEST(shares == 1, boost::test_tools::tolerance(1e-9));
  check_contains(cost({"models/vit-micro.toml", "--time", "--measured", path}),
                 {"batch 128, predicted for 1 thread of made up", "blocks.*.attn.qkv", "share of a step"});
  check_contains(cost({"models/text-micro.toml", "--time", "--measured", path}), {"sequences/s", "tokens/s"});
}

// With more than d = 16 tokens, N^2 d multiply-adds cost more than N d^2. The smallest grid with 16 patches or more is
// 4 x 4.
BOOST_AUTO_TEST_CASE(mechanisms_overtake_each_other) {
  const TemporaryDirectory directory;
  const std::string path = directory / "bench.json";
  write_file(path, made_up_machine());
  const Strings both{"models/vit-micro.toml", "--time", "--measured", path, "--attention", "softmax,linear"};
  check_contains(cost(both), {"linear is faster than softmax at all sizes from 16 to 4096 tokens in training"});
  Strings scaled = both;
  scaled.insert(scaled.end(), {"--scale", "tokens=16..64"});
  check_contains(cost(scaled), {"model,tokens,train_img_s,infer_img_s\n", "softmax,16,", "linear,64,"});
}

BOOST_AUTO_TEST_CASE(refusals_of_time) {
  const TemporaryDirectory directory;
  const std::string path = directory / "bench.json", model = "models/vit-micro.toml";
  check_refusal({"cost", model, "--time", "--measured", path},
                {path, "does not exist", "heed bench --only times --json >" + path});
  write_file(path, "{}");
  check_refusal({"cost", model, "--time", "--measured", path}, {path, "not a measurement for --time"});
  write_file(path, made_up_machine());
  check_refusal({"cost", model, "--measured", path}, {"--measured requires --time"});
  check_refusal({"cost", model, "--time", "--measured", path, "--pass", "step"}, {"--time combines with MODEL"});
  check_refusal({"cost", model, "--time", "--measured", path, "--set", "train.dtype=bf16"}, {"float32", "bf16"});
  check_refusal(
      {"cost", model, "--time", "--measured", path, "--set", "train.method=dino", "--set", "dino.local_size=16"},
      {"method = 'dino'"});
  check_refusal({"cost", "--time", "--measured", path}, {"no model is given"});
  check_refusal({"cost", "models/cvt-micro.toml", "--time", "--measured", path, "--attention", "softmax,sima"},
                {"one resolution"});
}

BOOST_AUTO_TEST_SUITE_END()
