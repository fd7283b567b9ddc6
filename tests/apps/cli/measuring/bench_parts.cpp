// Output and comparison of results of heed bench, here invented. Includes the tested source files.
#include "src/apps/cli/measuring/bench_compare.cpp"
#include "src/apps/cli/measuring/bench_report.cpp"
#include "support/lines.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <functional>
#include <iostream>
#include <memory>
#include <sstream>

using namespace heed;
using namespace heed::test;

namespace {

/// A suite of two kernels, a limit and a model; kernel x reaches 50 % of its limit in the fastest tenth of its calls.
struct InventedSuite {
  TemporaryDirectory directory;
  std::string path = directory / "old.json", cpu = Json::parse(environment_json()).at("cpu").text();
  cli::SuiteResult suite;

  InventedSuite() {
    using bench::Resource;
    suite.limits.push_back({Resource::gemm, 3, {"gemm", "GF/s", 90.5, 80.5, 99.5}, "wide", "a product"});
    suite.kernels.push_back({"none", "4 x 5", 2.5, {"x", "Gelem/s", 200, 120.25, 250}, Resource::exp, 0.4});
    suite.kernels.push_back({"none", "6", 3.5, {"y", "GF/s", 0.25, 0.12, 0.25}, Resource::gemm, 0.123456});
    suite.models.push_back({.measured = {"vit sima train", "img/s", 50.5, 40.5, 60.5},
                            .model = "vit",
                            .mode = "train",
                            .limit = "l1",
                            .batch = 128,
                            .fraction = 0.25,
                            .megabytes = 12.5,
                            .profile = Json::parse(R"({"a": {"forward": 1.5, "backward": 1.5},
                              "b": {"forward": 4.25, "backward": 0.25}, "c": {"forward": 0.25, "backward": 0.5},
                              "d": {"forward": 0.5, "backward": 19.5}, "e": {"forward": 0.75, "backward": 4.5}})")});
  }

  /// Returns what f() prints.
  static std::string printed(const std::function<void()>& f) {
    std::ostringstream text;
    const std::unique_ptr<std::streambuf, void (*)(std::streambuf*)> before(
        std::cout.rdbuf(text.rdbuf()), [](std::streambuf* buffer) { std::cout.rdbuf(buffer); });
    f();
    return text.str();
  }

  /// Returns the first change of a result against the file.
  Json change(const Json& result) const {
    const cli::Baseline old(path);
    const Json json = Json::parse(printed([&] { old.print_json(result); }));
    return json.at("compare").items().at(0);
  }

  static bool near(double x, double y) { return std::abs(x - y) < 1e-9; }
};

Json one_model(int batch, double low, double rate, double high) {
  return Json::object({{"model", "m"},
                       {"mode", "train"},
                       {"batch", batch},
                       {"unit", "img/s"},
                       {"img_s", rate},
                       {"low_img_s", low},
                       {"high_img_s", high}});
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cli_bench_parts, InventedSuite)

// A kernel is slower if its share is below 0.9 times the recorded one, and faster if the recorded share is below 0.9
// times its own.
BOOST_AUTO_TEST_CASE(changes_of_shares) {
  for (const auto& [share, is_lost, change_of_x] : {std::tuple(0.44, false, "faster"),
                                                    {0.46, false, ""},
                                                    {0.55, false, ""},
                                                    {0.56, true, "slower"},
                                                    {0.8, true, "slower"}}) {
    write_file(path, fmt::format(R"({{"cpu": "{}", "shares": [{{"name": "z", "share": 0.9}}, )"
                                 R"({{"name": "x", "share": {}}}]}})",
                                 cpu, share));
    const cli::Baseline old(path);
    BOOST_TEST(old.holds_shares());
    BOOST_TEST(old.lost(suite.kernels[0]) == is_lost, share);
    BOOST_TEST(!old.lost(suite.kernels[1]));
    const std::vector<std::string> warnings = old.warnings(suite);
    BOOST_TEST_REQUIRE(warnings.size() == (is_lost ? 1u : 0u));
    if (is_lost)
      BOOST_TEST(warnings[0] == fmt::format("x: 50 % of the limit (exp), {:.0f} % in {}", 100 * share, path));
    const Json found = change(cli::suite_json(suite));
    BOOST_TEST(found.at("name").text() == "x");
    BOOST_TEST(found.at("change").text() == change_of_x, share);
    BOOST_TEST(near(found.at("old").number(), 100 * share));
    BOOST_TEST(near(found.at("new").number(), 50));
    BOOST_TEST(near(found.at("ratio").number(), 0.5 / share));
  }
  BOOST_TEST(!cli::Baseline("").lost(suite.kernels[0]));
  BOOST_TEST(cli::Baseline("").warnings(suite).empty());
}

// Recorded shares have three decimals.
BOOST_AUTO_TEST_CASE(shares_to_record) {
  const Json json = cli::shares_json(suite);
  BOOST_TEST(json.at("cpu").text() == cpu);
  BOOST_TEST(json.at("shares").dump() == Json::parse(R"([{"name": "x", "limit": "exp", "share": 0.5},
                                                         {"name": "y", "limit": "gemm", "share": 0.123}])")
                                             .dump());
}

// Spreads that only touch do not count as a change.
BOOST_AUTO_TEST_CASE(changes_of_one_model) {
  write_file(path, one_model(8, 90, 100, 110).dump());
  for (const auto& [low, rate, high, expected] : {std::tuple(111, 120, 130, "faster"),
                                                  {110, 120, 130, ""},
                                                  {80, 85, 90, ""},
                                                  {80, 85, 89, "slower"},
                                                  {80, 100, 120, ""}}) {
    const Json found = change(one_model(8, low, rate, high));
    BOOST_TEST(found.at("name").text() == "m train, batch 8");
    BOOST_TEST(found.at("unit").text() == "img/s");
    BOOST_TEST(found.at("change").text() == expected, rate);
    BOOST_TEST(found.at("old").number() == 100);
    BOOST_TEST(found.at("new").number() == rate);
    BOOST_TEST(near(found.at("ratio").number(), rate / 100.0));
  }
  const std::string text = printed([&] { cli::Baseline(path).print(one_model(8, 111, 120, 130)); });
  BOOST_TEST(in_one_line(text) == "compared with " + path +
                                      " old new ratio m train, batch 8 img/s 100.0 120.0 1.20 faster faster, slower: "
                                      "if the two spreads do not overlap");
  BOOST_CHECK_THROW(change(one_model(16, 111, 120, 130)), Error);
  cli::Baseline("").require_common({});
  cli::Baseline(path).require_common({"m train, batch 16", "m train, batch 8"});
  BOOST_CHECK_THROW(cli::Baseline(path).require_common({"m train, batch 16"}), Error);
}

// Each value is under its heading. The four longest operations are listed, by the sum of their forward and backward
// times.
BOOST_AUTO_TEST_CASE(a_suite_in_text_and_in_json) {
  const std::string text = in_one_line(printed([&] { cli::print_suite(suite); }));
  for (const std::string piece :
       {"limit rate median measured as gemm 90.5 GF/s 80.5 a product ",
        "kernel, one thread size us rate 10 % to 90 % limit share x 4 x 5 2.50 200 Gelem/s 120 to 250 exp 40 % "
        "y 6 3.50 0.25 GF/s 0.12 to 0.25 gemm 12 % medians",
        "model batch rate 10 % to 90 % limit share peak MB ms by operation vit sima train 128 50.5 img/s 40.5 to 60.5 "
        "l1 25 % 12.5 d 20.0, e 5.25, b 4.50, a 3.00 medians"})
    BOOST_TEST(text.find(piece) != std::string::npos, "'" << piece << "' is not in " << text);
  const Json json = cli::suite_json(suite);
  BOOST_TEST(json.at("limits").dump() == Json::parse(R"([{"name": "gemm", "rate": 90.5, "unit": "GF/s", "low": 80.5,
                                                          "high": 99.5, "threads": 3, "measured_as": "a product"}])")
                                             .dump());
  const Json& model = json.at("models").items().at(0);
  for (const auto& [key, value] : {std::pair("rate", 50.5),
                                   {"low", 40.5},
                                   {"high", 60.5},
                                   {"fraction", 0.25},
                                   {"peak_mb", 12.5},
                                   {"batch", 128.0}})
    BOOST_TEST(model.at(key).number() == value, key);
  BOOST_TEST(model.at("mode").text() == "train");
  BOOST_TEST(model.at("profile_ms").at("c").at("backward").number() == 0.5);
  const Json& kernel = json.at("kernels").items().at(0);
  for (const auto& [key, value] :
       {std::pair("us", 2.5), {"rate", 200.0}, {"low", 120.25}, {"high", 250.0}, {"fraction", 0.4}})
    BOOST_TEST(kernel.at(key).number() == value, key);
}

BOOST_AUTO_TEST_SUITE_END()
