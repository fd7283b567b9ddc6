// heed bench: one model, and the whole suite.
#include "support/cli.h"
#include "support/command.h"
#include "support/temporary.h"

#include "heed/base/parallel.h"
#include "heed/nn/families.h"
#include "heed/train/processes/core_count.h"

#include <nlohmann/json.hpp>

#include <bit>
#include <cmath>
#include <regex>

using namespace heed;
using namespace heed::test;

namespace {

using Strings = std::vector<std::string>;

double number(const nlohmann::json& entry, const char* key) { return entry.at(key).get<double>(); }

/// Returns the JSON output of a run; ignores warnings about narrow instructions on stderr.
nlohmann::json json_of(Strings arguments) {
  arguments.push_back("--json");
  const Finished run = heed_with(std::move(arguments));
  BOOST_TEST_REQUIRE(run.status == 0, run.err);
  return nlohmann::json::parse(run.out);
}

/// Checks that each rate is positive and within its spread.
[[maybe_unused]] void check_rates(const nlohmann::json& entries) {
  BOOST_TEST(!entries.empty());
  for (const nlohmann::json& entry : entries) {
    const auto name = entry.at("name").get<std::string>();
    BOOST_TEST(!entry.at("unit").get<std::string>().empty(), name);
    BOOST_TEST(number(entry, "low") > 0, name);
    BOOST_TEST(number(entry, "low") <= number(entry, "rate"), name);
    BOOST_TEST(number(entry, "rate") <= number(entry, "high"), name);
  }
}

/// Checks that fractions of a limit have the right unit: they exceed 1 only by the variation between two short
/// measurements, whereas a wrong unit gives a factor of a thousand.
[[maybe_unused]] void check_fractions(const nlohmann::json& entries) {
  for (const nlohmann::json& entry : entries) {
    BOOST_TEST(number(entry, "fraction") > 0, entry.at("name"));
    BOOST_TEST(number(entry, "fraction") < 100, entry.at("name") << " " << entry.at("fraction"));
  }
}

/// Returns the size of a model's gradient in bytes.
double gradient_bytes_of(const Experiment& x) {
  return sizeof(float) * static_cast<double>(Gradients<float>(Parameters<float>(make_model(x)->parameters())).size());
}

/// Returns the numbers of a table by line, below the line that starts with `title`, without units. Columns are
/// separated by two or more spaces.
[[maybe_unused]] std::vector<std::vector<double>> numbers_below(const std::string& text, const std::string& title) {
  std::vector<std::vector<double>> rows;
  std::istringstream lines(text.substr(text.find("\n" + title) + 1));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && !line.empty()) {
    static const std::regex gap("  +");
    rows.emplace_back();
    for (std::sregex_token_iterator cell(line.begin(), line.end(), gap, -1), end; cell != end; ++cell)
      rows.back().push_back(std::stod(*cell));
  }
  return rows;
}

const Strings quick{"bench", "--threads", "1", "--seconds", "0.02"};

[[maybe_unused]] Strings quick_with(const Strings& more) {  // builds without fast kernels have no suite
  Strings all = quick;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Checks the predictions for one, two and four hosts that share a batch of 16 in 4 lanes. h hosts exchange `messages`
/// messages in each of log2 h levels, and 2 (1 - 1/h) times the gradients' bytes: the step times on two networks differ
/// by the time of this exchange. One host exchanges nothing. Without the exchange, a step takes the time of the update
/// and of the rounds in which a host's threads process its lanes. Printed rates are rounded by at most 0.5.
void check_hosts(const std::string& printed, double bytes, double messages) {
  const double bits[] = {1e9, 1e10, 1e11}, latency[] = {50e-6, 20e-6, 3e-6}, batch = 16;
  const std::vector<std::vector<double>> hosts = numbers_below(printed, "hosts of ");
  BOOST_TEST_REQUIRE(hosts.size() == 3u);
  const double threads = std::stod(printed.substr(printed.find("\nhosts of ") + 10));
  double alone[3], rounds[3], off = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const double count = hosts[i].at(0), levels = static_cast<double>(i);
    BOOST_TEST(count == std::exp2(levels));
    const auto exchange = [&](std::size_t n) {
      return 8 * 2 * bytes * (1 - 1 / count) / bits[n] + messages * levels * latency[n];
    };
    for (const std::size_t n : {1, 2}) {
      const double slow = hosts[i].at(n), fast = hosts[i].at(n + 1);
      const double rounding = 0.5 * batch / (slow * slow) + 0.5 * batch / (fast * fast);
      BOOST_TEST(std::abs(batch / slow - batch / fast - (exchange(n - 1) - exchange(n))) < 1.1 * rounding + 1e-12,
                 printed);
    }
    const double rate = hosts[i].at(3);
    alone[i] = batch / rate - exchange(2);
    rounds[i] = std::ceil(std::ceil(4 / count) / threads);
    off = std::max(off, 1.1 * 0.5 * batch / (rate * rate));
  }
  const double first = rounds[0] - rounds[1], second = rounds[1] - rounds[2];
  BOOST_TEST(std::abs((alone[0] - alone[1]) * second - (alone[1] - alone[2]) * first) <= 2 * off * (first + second),
             printed);
  if (first == 0) BOOST_TEST(std::abs(alone[0] - alone[1]) <= 2 * off, printed);
  if (second == 0) BOOST_TEST(std::abs(alone[1] - alone[2]) <= 2 * off, printed);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_bench, *boost::unit_test::precondition(without_sanitizer))

BOOST_AUTO_TEST_CASE(model_as_json) {
  const Workshop workshop(10, 10);
  const std::string file = write_experiment(workshop, workshop.experiment());
  for (const std::string mode : {"train", "infer"}) {
    const nlohmann::json json =
        json_of({"bench", file, "--mode", mode, "--seconds", "0.05", "--batch", "8", "--threads", "1"});
    for (const char* key : {"img_s", "best_img_s", "low_img_s", "high_img_s", "ms", "peak_mb"})
      BOOST_TEST(number(json, key) > 0, key);
    BOOST_TEST(json.at("steps").get<int>() >= 5);
    BOOST_TEST(json.at("threads").get<int>() == 1);
    BOOST_TEST(!json.at("blas").get<std::string>().empty());
    // Joules, or the reason for their absence; never zero.
    const nlohmann::json& package = json.at("package_j");
    BOOST_TEST((package.is_number() || package.get<std::string>().starts_with("unavailable: ")));
    BOOST_TEST(number(json, "low_img_s") <= number(json, "img_s"));
    BOOST_TEST(number(json, "img_s") <= number(json, "high_img_s"));
    BOOST_TEST(number(json, "high_img_s") <= number(json, "best_img_s"));
    BOOST_TEST(json.at("batch") == 8);
    BOOST_TEST(json.at("processes") == 1);
    BOOST_TEST(number(json, "img_s") * number(json, "ms") == 8e3, boost::test_tools::tolerance(1e-9));
    if (mode == "infer") continue;
    BOOST_TEST(number(json, "gradient_bytes") == gradient_bytes_of(workshop.experiment()));
    BOOST_TEST(json.at("sums_over_batch") == 0);
    BOOST_TEST(number(json, "update_ms") > 0);
    BOOST_TEST(number(json, "update_ms") < number(json, "mean_ms"));
    // At least one thread is busy whenever a loop is open.
    BOOST_TEST(number(json, "loops_open_ms") < number(json, "mean_ms"));
    BOOST_TEST(number(json, "loops_busy_ms") >= number(json, "loops_open_ms"));
    BOOST_TEST(number(json, "divisible_by_32") <= 1);
  }
}

#ifdef _OPENMP
// OMP_PROC_BIND binds the first thread to a single core; the number of threads must remain that of all cores of the
// process.
BOOST_AUTO_TEST_CASE(threads_bound_to_cores_are_as_many_as_others) {
  const Workshop workshop(10, 10);
  const Strings words{"bench", write_experiment(workshop, workshop.experiment()), "--json", "--seconds", "0.02"};
  const double threads = number(nlohmann::json::parse(output_of(words)), "threads");
  const EnvironmentVariable binding("OMP_PROC_BIND", "true");
  const double bound = number(nlohmann::json::parse(output_of(words)), "threads");
  BOOST_TEST(bound == threads);
}

BOOST_AUTO_TEST_CASE(the_divisible_share_is_measured_on_one_thread_only) {
  const Workshop workshop(10, 10);
  const std::string file = write_experiment(workshop, workshop.experiment());
  for (const char* count : {"1", "2"})
    BOOST_TEST(json_of({"bench", file, "--seconds", "0.05", "--threads", count}).contains("divisible_by_32") ==
               (*count == '1'));
}

// OMP_NUM_THREADS determines the largest number of threads, whatever the number of cores.
BOOST_AUTO_TEST_CASE(growth_up_to_a_number_of_threads) {
  const Workshop workshop(10, 10);
  const EnvironmentVariable limit("OMP_NUM_THREADS", "3");
  check_contains(
      output_of({"bench", write_experiment(workshop, workshop.experiment()), "--scaling", "--seconds", "0.02"}),
      {"; up to 3 threads: OMP_NUM_THREADS\n", "\n3 "});
}
#endif

// Rows for one, two, four and more threads up to the core count. The shares of a row add up to 100 %.
BOOST_AUTO_TEST_CASE(growth_with_threads) {
  const Workshop workshop(10, 10);
  const std::string picture = workshop / "growth.svg";
  const std::string printed = output_of({"bench", write_experiment(workshop, workshop.experiment()), "--scaling",
                                         "--seconds", "0.02", "--draw", picture});
  const std::regex row(
      "\\n(\\d+) +[\\d.]+ +[\\d.]+ +[\\d.]+ +(-?[\\d.]+) % +(-?[\\d.]+) % +(-?[\\d.]+) % +(-?[\\d.]+) %");
  const Index most = std::min(threads(), default_threads().count);
  Index expected = 1, rows = 0;
  for (std::sregex_iterator r(printed.begin(), printed.end(), row); r != std::sregex_iterator(); ++r, ++rows) {
    BOOST_TEST(std::stoll((*r)[1]) == expected);
    expected = std::min<Index>(2 * expected, most);
    double sum = 0;
    for (int share = 2; share <= 5; ++share) sum += std::stod((*r)[share]);
    BOOST_TEST(std::abs(sum - 100) <= 0.25, printed);  // four shares with one decimal
  }
  BOOST_TEST(rows == static_cast<Index>(std::bit_width(static_cast<unsigned>(most - 1))) + 1, printed);
  // Ratios match the printed rates, whose last digit is rounded.
  const std::vector<std::vector<double>> table = numbers_below(printed, "threads ");
  BOOST_TEST_REQUIRE(static_cast<Index>(table.size()) == rows);
  double fastest = 0;
  for (const std::vector<double>& of : table) {
    BOOST_TEST_REQUIRE(of.size() == 10u);
    BOOST_TEST(std::abs(of[2] - of[1] / table[0][1]) < 0.0051 + 0.51 * (1 + of[2]) / table[0][1]);
    fastest = std::max(fastest, of[1]);
  }
  // With one thread, the measured and the expected speed-up are 1, the efficiency is 100 %, and the other shares are 0.
  BOOST_TEST(table[0][2] == 1);
  BOOST_TEST(table[0][3] == 1);
  BOOST_TEST(table[0][4] == 100);
  for (const std::size_t share : {5, 6, 7}) BOOST_TEST(table[0][share] == 0);
  check_hosts(printed, gradient_bytes_of(workshop.experiment()), 4);
  const std::vector<std::vector<double>> hosts = numbers_below(printed, "hosts of ");
  for (const std::size_t n : {1, 2, 3}) BOOST_TEST(hosts[0][n] == fastest);
  check_contains(printed, {"independent"});
  const std::string svg = read_file(picture);
  check_contains(svg, {"<svg", "measured", "expected"});
  // The first two lines show the measured and the expected speedup, on a logarithmic scale. The third line, the ideal
  // speedup, starts at 1 and determines the height of a doubling.
  std::vector<std::vector<double>> heights;
  const std::regex path("<path d=\"([^\"]*)\" fill=\"none\""), point("[ML][\\d.]+ ([\\d.]+)");
  for (std::sregex_iterator line(svg.begin(), svg.end(), path), end; line != end; ++line) {
    const std::string drawn = (*line)[1];
    heights.emplace_back();
    for (std::sregex_iterator at(drawn.begin(), drawn.end(), point); at != end; ++at)
      heights.back().push_back(std::stod((*at)[1]));
  }
  BOOST_TEST_REQUIRE(heights.size() == 3u);
  for (const std::vector<double>& line : heights) BOOST_TEST_REQUIRE(line.size() == table.size());
  if (rows > 1) {
    const double doubling = (heights[2].front() - heights[2].back()) / std::log2(table.back()[0]);
    BOOST_TEST(doubling > 0);
    for (const std::size_t line : {0, 1})
      for (std::size_t i = 0; i < table.size(); ++i) {
        // Speed-ups have two decimals; one printed as 0.00 has no least height. Coordinates have one decimal, which
        // also affects `doubling`.
        const double height = heights[2][0] - heights[line][i], shown = table[i][2 + line];
        const double most = std::log2(shown + 0.0051), least = std::log2(std::max(shown - 0.0051, 0.0));
        BOOST_TEST(height < doubling * most + 0.2 + 0.1 * std::abs(most), printed);
        BOOST_TEST(height > doubling * least - 0.2 - 0.1 * std::abs(least), printed);
      }
  }
  check_refusal({"bench", "models/vit-micro.toml", "--draw", picture}, {"--scaling"});
  check_refusal({"bench", "models/vit-micro.toml", "--scaling", "--draw", workshop / "x.png"},
                {"x.png: expected a name that ends in .svg"});
}

// A step has four norms, two of them in the stem; each has three sums over the batch, which are exchanged one by one.
BOOST_AUTO_TEST_CASE(hosts_exchange_sums_over_the_batch) {
  const Strings sets{"model.image=12", "model.dim=6",    "model.depth=2",
                     "model.heads=2",  "model.hidden=5", "train.microbatch=4"};
  Strings words{"bench", "models/xcit-micro.toml", "--scaling", "--seconds", "0.01", "--batch", "16"};
  for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
  check_hosts(output_of(words), gradient_bytes_of(load_experiment("models/xcit-micro.toml", sets)), 4 + 3 * 4);
}

// A single lane cannot be divided, so no MPI times are printed. The size of this model's gradients is printed in MB.
BOOST_AUTO_TEST_CASE(a_single_lane_is_not_divided_among_processes) {
  const Workshop workshop(10, 10);
  Experiment x = workshop.experiment();
  x.model.hidden = 8000;
  const std::string file = write_experiment(workshop, x);
  const std::string printed = output_of({"bench", file, "--scaling", "--seconds", "0.001", "--batch", "1"});
  check_contains(printed, {"batch 1, 1 lane;", "several processes: the batch has a single lane"});
  BOOST_TEST(printed.find("MPI") == std::string::npos, printed);
  check_contains(printed, {fmt::format("gradients of {:.1f} MB;", gradient_bytes_of(x) / (1 << 20))});
}

BOOST_AUTO_TEST_CASE(model_with_profile) {
  const Workshop workshop;
  const std::string file = write_experiment(workshop, workshop.experiment());
  const Strings arguments{"bench", file, "--profile", "--seconds", "0.01", "--batch", "8"};
  check_contains(heed_with(arguments).out, {"backward, ms", "linear", "all operations", "100.0 %"});
  BOOST_TEST(number(json_of(arguments).at("profile_ms").at("linear"), "backward") > 0);
  check_refusal({"bench", file, "--profile", "--mode", "infer"}, {"--profile requires --mode train"});
}

// The recorded rate of 1e12 is above any spread.
BOOST_AUTO_TEST_CASE(model_compared) {
  const Workshop workshop;
  const std::string file = write_experiment(workshop, workshop.experiment()), old = workshop / "old.json";
  const Strings arguments{"bench", file, "--seconds", "0.01", "--batch", "8"};
  nlohmann::json before = json_of(arguments);
  for (const char* key : {"img_s", "low_img_s", "high_img_s"}) before[key] = 1e12;
  write_file(old, before.dump());
  Strings compared = arguments;
  compared.insert(compared.end(), {"--compare", old});
  check_contains(heed_with(compared).out, {"images/s (median", "compared with " + old, "0.00  slower"});
  const nlohmann::json change = json_of(compared).at("compare").at(0);
  BOOST_TEST(change.at("change") == "slower");
  BOOST_TEST(number(change, "ratio") == number(change, "new") / number(change, "old"));
  // Rates of a different model, mode or batch size are not comparable; nothing is measured.
  const std::string copy = workshop / "copy.toml";
  std::filesystem::copy(file, copy);
  for (const auto& [model, mode, batch] : {std::tuple(copy, "train", "8"), {file, "infer", "8"}, {file, "train", "4"}})
    check_refusal({"bench", model, "--mode", mode, "--batch", batch, "--seconds", "0.01", "--compare", old},
                  {old, "has none of the current measurements; expected the same model, mode and batch"});
}

BOOST_AUTO_TEST_CASE(slow_models_have_rates_with_decimals) {
  const Finished run = heed_with(
      {"bench", "models/deit-small.toml", "--mode", "infer", "--batch", "1", "--seconds", "0.001", "--threads", "1"});
  static const std::regex rates("batch 1: \\d+\\.\\d+ images/s \\(median of \\d+\\), best \\d+\\.\\d+;");
  BOOST_TEST(std::regex_search(run.out, rates), run.out);
}

// --batch overrides --set, which overrides the file.
BOOST_AUTO_TEST_CASE(batches_and_sequences) {
  const Workshop workshop;
  const std::string file = write_experiment(workshop, workshop.experiment());
  for (const std::string mode : {"train", "infer"})
    for (const auto& [more, batch] :
         {std::pair(Strings{}, 16), {{"--set", "train.batch=4"}, 4}, {{"--batch", "2", "--set", "train.batch=4"}, 2}}) {
      Strings words{"bench", file, "--mode", mode, "--seconds", "0.001", "--threads", "1"};
      words.insert(words.end(), more.begin(), more.end());
      const nlohmann::json json = json_of(words);
      BOOST_TEST(json.at("batch") == batch);
      BOOST_TEST(number(json, "img_s") * number(json, "ms") == 1e3 * batch, boost::test_tools::tolerance(1e-9));
      const std::string text = heed_with(words).out;
      check_contains(text, {fmt::format("{} {}, batch {}: ", file, mode, batch), " images/s (median"});
      std::smatch of;
      BOOST_TEST_REQUIRE(
          std::regex_search(
              text, of,
              std::regex(": ([\\d.]+) images/s \\(median of \\d+\\), best ([\\d.]+); ([\\d.]+) ms per step, "
                         "10 % to 90 %: ([\\d.]+) to ([\\d.]+)")),
          text);
      const double rate = std::stod(of[1]), best = std::stod(of[2]), ms = std::stod(of[3]), low = std::stod(of[4]),
                   high = std::stod(of[5]);
      BOOST_TEST(std::abs(rate * ms - 1e3 * batch) <= 0.51 * ms + 0.0051 * rate, text);
      BOOST_TEST((low <= ms && ms <= high && rate <= best), text);
    }
  // A pair has the tokens of both sequences.
  for (const auto& [model, sequences] :
       {std::pair("models/sequence-micro.toml", 1), {"experiments/pairs-micro.toml", 2}}) {
    const nlohmann::json json = json_of({"bench", model, "--mode", "infer", "--seconds", "0.001", "--batch", "2"});
    const auto context = static_cast<double>(load_experiment(model).model.context);
    BOOST_TEST(number(json, "tokens_s") == sequences * context * number(json, "img_s"),
               boost::test_tools::tolerance(1e-9));
  }
}

BOOST_AUTO_TEST_CASE(bad_files_to_compare_with) {
  const TemporaryDirectory directory;
  const std::string old = directory / "old.json";
  for (const char* text : {"", "[]", "{}", "{\"limits\": 3}", "{\"img_s\": 3}", "not JSON",
                           "{\"limits\": [{\"name\": \"gemm\"}], \"kernels\": [], \"models\": []}"}) {
    write_file(old, text);
    check_refusal({"bench", "--compare", old}, {old, "not a measurement", "heed bench --json"});
    check_refusal({"bench", "models/vit-micro.toml", "--compare", old}, {old, "not a measurement"});
  }
  write_file(
      old, R"({"limits": [{"name": "l1", "unit": "x", "rate": 1, "low": 2, "high": 3}], "kernels": [], "models": []})");
  check_refusal({"bench", "--compare", old}, {old, "'l1'", "the rate 1 between 2 and 3"});
  check_refusal({"bench", "--compare", directory / "none"}, {"none: cannot open"});
}

// Incremental generation of a sequence by a language model.
BOOST_AUTO_TEST_CASE(writing) {
  const nlohmann::json json = json_of({"bench", "models/text-micro.toml", "--mode", "write", "--seconds", "0.01"});
  BOOST_TEST(json.at("batch") == 1);
  BOOST_TEST(number(json, "tokens_s") == 128 * number(json, "img_s"), boost::test_tools::tolerance(1e-9));
  check_refusal({"bench", "models/vit-micro.toml", "--mode", "write"}, {"task = \"lm\""});
  check_refusal({"bench", "models/text-micro.toml", "--mode", "write", "--batch", "2"}, {"writes one sequence"});
}

BOOST_AUTO_TEST_CASE(bad_shares_to_compare_with) {
  const TemporaryDirectory directory;
  const std::string old = directory / "shares.json";
  write_file(old, R"({"cpu": "a", "shares": [{"name": "x", "share": 0}]})");
  check_refusal({"bench", "--compare", old}, {old, "'x' has a share of 0"});
  write_file(old, R"({"shares": [{"name": "x"}]})");
  check_refusal({"bench", "--compare", old}, {old, "not a measurement"});
  write_file(old, R"({"cpu": "a", "shares": []})");
  check_refusal({"bench", "models/vit-micro.toml", "--compare", old}, {old, "holds measurements of kernels"});
  check_refusal({"bench", "--shares", "--json"}, {"--shares prints JSON of kernels"});
}

BOOST_AUTO_TEST_CASE(options_that_do_not_go_together) {
  check_refusal({"bench", "--mode", "infer"}, {"--mode requires a MODEL"});
  check_refusal({"bench", "--batch", "3"}, {"--batch requires a MODEL"});
  check_refusal({"bench", "--scaling", "--draw", "x.svg"}, {"--scaling requires a MODEL"});
  check_refusal({"bench", "models/vit-micro.toml", "--only", "limits"}, {"--only and --match", "without a MODEL"});
  check_refusal({"bench", "--only", "kernels", "--match", "vit-micro sima"},
                {"--match 'vit-micro sima'", "no selected kernel"});
  check_refusal({"bench", "--only", "limits,kernel"}, {"--only", "kernel"});
}

#ifdef HEED_NO_SIMD

BOOST_AUTO_TEST_CASE(suite_needs_fast_kernels) { check_refusal({"bench"}, {"KERNELS=reference", "MODEL"}); }

#else

// Kernels of one layer: products, distances and their gradients; then a comparison with invented results.
BOOST_AUTO_TEST_CASE(limits_and_kernels) {
  const Strings arguments = quick_with({"--only", "kernels", "--match", "vit-micro qkv"});
  nlohmann::json json = json_of(arguments);
  check_rates(json.at("limits"));
  for (const char* name : {"multiply-add", "gemm", "l1", "clamp", "exp", "L1 cache, triad", "memory, read"})
    BOOST_TEST(std::any_of(json["limits"].begin(), json["limits"].end(),
                           [=](const nlohmann::json& limit) { return limit.at("name") == name; }),
               name);
  check_rates(json.at("kernels"));
  check_fractions(json.at("kernels"));
  BOOST_TEST(json["kernels"].size() == 6u);
  // If a kernel and its limit have the same unit, the kernel's fraction is the quotient of both rates.
  int by_work = 0;
  for (const nlohmann::json& kernel : json["kernels"])
    for (const nlohmann::json& limit : json["limits"]) {
      if (limit.at("name") != kernel.at("limit") || limit.at("unit") != kernel.at("unit")) continue;
      BOOST_TEST(number(kernel, "fraction") == number(kernel, "rate") / number(limit, "rate"),
                 boost::test_tools::tolerance(1e-9));
      ++by_work;
    }
  BOOST_TEST(by_work > 0);
  BOOST_TEST(json.at("models").empty());

  json["kernels"][0]["name"] = "a kernel of the past";
  for (const char* key : {"rate", "low", "high"}) {
    json["kernels"][1][key] = 1e12;  // above the rate of any machine; the next one is below
    json["kernels"][2][key] = 1e-6;
  }
  const TemporaryDirectory directory;
  const std::string old = directory / "old.json";
  write_file(old, json.dump());
  Strings compared = arguments;
  compared.insert(compared.end(), {"--compare", old});
  const nlohmann::json result = json_of(compared), changes = result.at("compare");
  const auto change = [&](const std::string& name) {
    for (const nlohmann::json& entry : changes)
      if (entry.at("name") == name) return entry.at("change").get<std::string>();
    return std::string("not compared");
  };
  BOOST_TEST(change("gemm forward, vit-micro qkv") == "not compared");
  BOOST_TEST(change(json["kernels"][1]["name"]) == "slower");
  BOOST_TEST(change(json["kernels"][2]["name"]) == "faster");
  BOOST_TEST(change("l1") != "not compared");
  // A kernel or a limit counts as faster or slower if its old and new ranges do not overlap.
  for (const nlohmann::json& entry : result.at("compare")) {
    const auto named = [&](const nlohmann::json& of) {
      for (const char* section : {"limits", "kernels"})
        for (const nlohmann::json& one : of.at(section))
          if (one.at("name") == entry.at("name") && one.at("unit") == entry.at("unit")) return one;
      return nlohmann::json();
    };
    const nlohmann::json before = named(json), now = named(result);
    BOOST_TEST(number(entry, "old") == number(before, "rate"));
    BOOST_TEST(number(entry, "new") == number(now, "rate"));
    BOOST_TEST(number(entry, "ratio") == number(now, "rate") / number(before, "rate"));
    BOOST_TEST(entry.at("change") == (number(now, "low") > number(before, "high")   ? "faster"
                                      : number(now, "high") < number(before, "low") ? "slower"
                                                                                    : ""));
  }
}

// Each line has the shares of all parts of a pass over long rows, in whole percents. There is no line if a part was not
// measured.
BOOST_AUTO_TEST_CASE(shares_of_long_rows) {
  const nlohmann::json all = json_of(quick_with({"--only", "kernels", "--match", "4096 tokens"})).at("long_rows");
  BOOST_TEST_REQUIRE(all.size() == 2u);
  const std::regex share(" ([0-9]+) %");
  for (const auto& [line, parts] : {std::pair(all[0].get<std::string>(), 3), {all[1].get<std::string>(), 7}}) {
    int found = 0, sum = 0;
    for (std::sregex_iterator i(line.begin(), line.end(), share), end; i != end; ++i)
      ++found, sum += std::stoi((*i)[1]);
    BOOST_TEST(found == parts, line);
    BOOST_TEST(std::abs(sum - 100) <= parts / 2, line);  // each is rounded by at most one half
  }
  BOOST_TEST(json_of(quick_with({"--only", "kernels", "--match", "block exp"})).at("long_rows").empty());
}

// The recorded share is first one that no kernel reaches, then one that every kernel reaches.
BOOST_AUTO_TEST_CASE(kernels_that_have_lost_their_share) {
  const Strings chosen{"--match", "softmax forward, vit-micro"};
  const TemporaryDirectory directory;
  const std::string path = directory / "shares.json";
  write_file(path, R"({"cpu": "a", "shares": [{"name": "x", "share": 0.5}]})");
  check_refusal({"bench", "--only", "kernels", "--match", chosen[1], "--seconds", "0.01", "--compare", path},
                {path, "has none of the current measurements"});
  Strings shares = quick_with(chosen);
  shares.push_back("--shares");
  const Finished run = heed_with(shares);
  BOOST_TEST_REQUIRE(run.status == 0, run.err);
  nlohmann::json old = nlohmann::json::parse(run.out);
  BOOST_TEST_REQUIRE(old.at("shares").size() == 1u);
  BOOST_TEST(number(old["shares"][0], "share") > 0);
  for (const auto& [share, change] : {std::pair{1e6, "slower"}, {1e-6, "faster"}}) {
    old["shares"][0]["share"] = share;
    write_file(path, old.dump());
    Strings compared = quick_with(chosen);
    compared.insert(compared.end(), {"--only", "kernels", "--compare", path});
    const Finished result = heed_with(compared);
    BOOST_TEST(result.status == 0);
    check_contains(result.out, {"compared with " + path, change, "more than a tenth"});
    BOOST_TEST((result.err.find("% of the limit (exp), 100000000 % in " + path) != std::string::npos) == (share > 1));
    BOOST_TEST(result.err.find("another processor") == std::string::npos);
  }
  old["cpu"] = "another one";
  write_file(path, old.dump());
  Strings compared = quick_with(chosen);
  compared.insert(compared.end(), {"--only", "kernels", "--compare", path});
  check_contains(heed_with(compared).err, {"was measured on another processor, another one"});
  // Shares are those of the fastest tenth of calls, in percent.
  const nlohmann::json result = json_of(compared), &kernel = result.at("kernels").at(0),
                       &change = result.at("compare").at(0);
  const double share = number(kernel, "fraction") * number(kernel, "high") / number(kernel, "rate");
  BOOST_TEST(change.at("name") == kernel.at("name"));
  BOOST_TEST(number(change, "old") == 100 * number(old["shares"][0], "share"), boost::test_tools::tolerance(1e-9));
  BOOST_TEST(number(change, "new") == 100 * share, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(number(change, "ratio") == number(change, "new") / number(change, "old"),
             boost::test_tools::tolerance(1e-9));
}

// Measures the data that heed cost --time needs, on only a few of the models.
BOOST_AUTO_TEST_CASE(times_and_what_is_predicted_of_them) {
  const TemporaryDirectory directory;
  const std::string path = directory / "bench.json";
  write_file(path,
             json_of({"bench", "--only", "times", "--match", "sequence aft-simple", "--seconds", "0.001"}).dump());
  const nlohmann::json json = json_of({"cost", "models/vit-micro.toml", "--time", "--measured", path});
  for (const char* mode : {"train", "infer"}) BOOST_TEST(number(json.at(mode), "img_s") > 0);
}

// Each model is measured in a separate process, so its peak memory, below 60 MB with one thread, excludes that of the
// suite, which fills three times the largest cache.
BOOST_AUTO_TEST_CASE(models) {
  const nlohmann::json json = json_of(quick_with({"--only", "models", "--match", "vit-micro sima"}));
  BOOST_TEST(json.at("kernels").empty());
  check_rates(json.at("models"));
  check_fractions(json.at("models"));
  BOOST_TEST_REQUIRE(json["models"].size() == 2u);
  for (const nlohmann::json& model : json["models"]) {
    BOOST_TEST(number(model, "peak_mb") > 1);
    BOOST_TEST(number(model, "peak_mb") < 60);
    BOOST_TEST(model.at("batch") == 128);
  }
  BOOST_TEST(json["models"][0].at("mode") == "train");
  BOOST_TEST(number(json["models"][0].at("profile_ms").at("linear"), "backward") > 0);
  // The limit is the rate of gemm: a forward pass has two operations per multiplication, and a training step has six.
  const double products = nlohmann::json::parse(
      output_of({"cost", "models/vit-micro.toml", "--attention", "sima", "--json"}))["models"][0]["total"]["mul"];
  double gemm = 0;  // in 1e9 operations per second
  for (const nlohmann::json& limit : json["limits"])
    if (limit.at("name") == "gemm" && limit.at("threads") == 1) gemm = std::max(gemm, number(limit, "rate"));
  for (const nlohmann::json& model : json["models"])
    BOOST_TEST(number(model, "fraction") ==
                   (model.at("mode") == "train" ? 3 : 1) * 2 * products / 1e9 / gemm * number(model, "rate"),
               boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(tables_and_a_warning) {
#ifdef __x86_64__
  if (!__builtin_cpu_supports("avx512vl")) {
    BOOST_TEST_MESSAGE("skipped: Haswell kernels are not narrower than this CPU");
    return;
  }
  const CommandResult run =
      run_command("OPENBLAS_CORETYPE=Haswell " + heed_program() +
                  " bench --threads 1 --seconds 0.02 --only kernels --match 'softmax forward, vit-micro'");
  BOOST_TEST(run.status == 0, run.errors);
  check_contains(run.errors, {"heed: warning: OpenBLAS uses its Haswell kernels with vectors of 256 bits",
                              "this CPU has 512", "unset OPENBLAS_CORETYPE, which is Haswell"});
  check_contains(run.output, {"Haswell", "limit", "Gelem/s", "softmax forward, vit-micro head", "50 x 50", "exp"});
#endif
}

#endif

BOOST_AUTO_TEST_SUITE_END()
