// heed report: the page contains all results of the runs, and nothing external. tests/report_browser.py tests its
// display and interaction in a browser.
#include "heed/data/images/image.h"
#include "heed/io/json.h"
#include "heed/train/runs/run.h"
#include "support/cli.h"

#include <cmath>

using namespace heed;
using namespace heed::test;
namespace fs = std::filesystem;

namespace {

std::size_t count(const std::string& text, const std::string& piece) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(piece, at)) != std::string::npos; at += piece.size()) ++found;
  return found;
}

/// Returns the data in a page.
Json data_in(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">", end = "</script>";
  const std::size_t first = page.find(begin) + begin.size();
  return Json::parse(page.substr(first, page.find(end, first) - first));
}

std::string bytes_of(const std::string& base64) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::size_t word = 0;
  for (std::size_t i = 0; i < base64.size() && base64[i] != '='; ++i) {
    word = word << 6 | digits.find(base64[i]);
    if (i % 4 > 0) bytes += static_cast<char>(word >> (6 - 2 * (i % 4)) & 255);
  }
  return bytes;
}

struct Reporting : Workshop {
  Experiment x = experiment();
  std::string page_of(std::vector<std::string> arguments) const {
    const std::string file = *this / "report.html";
    arguments.insert(arguments.begin(), "report");
    arguments.insert(arguments.end(), {"-o", file});
    BOOST_TEST(output_of(arguments) == file + "\n");
    return read_file(file);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cli_report, Reporting)

BOOST_AUTO_TEST_CASE(a_run_in_one_page) {
  x.train.log_steps = true;
  run(x, *this / "a");
  const std::string page = page_of({*this / "a"});
  BOOST_TEST(page.starts_with("<!doctype html>\n"));
  BOOST_TEST(page.ends_with("</html>\n"));
  for (const char* tag : {"html", "head", "title", "style", "body", "header", "nav", "main", "noscript"}) {
    BOOST_TEST(count(page, std::string("<") + tag + ">") + count(page, std::string("<") + tag + " ") == 1, tag);
    BOOST_TEST(count(page, std::string("</") + tag + ">") == 1, tag);
  }
  BOOST_TEST(count(page, "</script>") == 2);
  BOOST_TEST(page.find("@include") == std::string::npos);
  // The only address is SVG's namespace.
  BOOST_TEST(count(page, "http") == count(page, "http://www.w3.org/2000/svg") + count(page, "http-equiv"));
  for (const char* foreign : {"src=\"", "url(", "import ", "fetch("})
    BOOST_TEST(page.find(foreign) == std::string::npos, foreign);

  const Json data = data_in(page);
  const RunPaths paths(*this / "a");
  const Json& recorded = data.at("runs").items()[0];
  BOOST_TEST(recorded.at("config").text() == read_file(paths.config()));
  BOOST_TEST(recorded.at("environment").dump() == Json::parse(read_file(paths.environment())).dump());
  BOOST_TEST(recorded.at("environment").at("date").text().size() == 20u);
  BOOST_TEST(recorded.at("steps").at("mean_of").integer() == 1);
  BOOST_TEST(recorded.at("steps").at("loss").items().size() == 21u);
  BOOST_TEST(recorded.at("steps").at("epoch").items()[6].number() == 1);

  // Every value of epoch rows in metrics.csv and gradients.csv is in a curve.
  const char* columns[] = {"loss", "accuracy", "lr", "images_per_s"};
  std::map<std::string, std::vector<double>> curves;
  for (const Json& curve : data.at("curves").items())
    for (const Json& value : curve.at("arms").items()[0].at("mean").items())
      curves[curve.at("key").text()].push_back(value.number());
  std::istringstream rows(read_file(paths.metrics()));
  std::size_t train = 0, validation = 0;
  for (std::string row; std::getline(rows, row);) {
    std::istringstream fields(row);
    std::string kind, epoch, step, field;
    std::getline(fields, kind, ','), std::getline(fields, epoch, ','), std::getline(fields, step, ',');
    if (kind != "train" && kind != "valid") continue;
    for (const char* column : columns)
      if (std::getline(fields, field, ',') && !field.empty()) {
        const bool trained = kind == "train";
        BOOST_TEST_CONTEXT(column << " of epoch " << epoch)
        BOOST_TEST(curves.at((trained ? "" : "validation_") + std::string(column)).at(trained ? train : validation) ==
                   std::stod(field));
      }
    ++(kind == "train" ? train : validation);
  }
  std::istringstream norms(read_file(paths.gradients()));
  std::vector<double> trained;
  for (std::string row; std::getline(norms, row);)
    if (row.starts_with("train,")) trained.push_back(std::stod(row.substr(row.rfind(',') + 1)));
  BOOST_TEST(curves.at("gradient_norm") == trained);
  BOOST_TEST(train == 3u);
  BOOST_TEST(validation == 3u);
}

BOOST_AUTO_TEST_CASE(what_the_model_does_with_images) {
  run(x, *this / "a");
  const Json model = data_in(page_of({*this / "a"})).at("models").items()[0];
  const std::string evaluated = output_of({"eval", *this / "a"});
  check_contains(evaluated, {fmt::format("accuracy {:.2f} %", 100 * model.at("accuracy").number()),
                             fmt::format("{:.4f}", model.at("loss").number())});
  Index images = 0, right = 0;
  for (std::size_t of = 0; of < 10; ++of)
    for (std::size_t predicted = 0; predicted < 10; ++predicted) {
      const Index number = model.at("confusion").items()[of].items()[predicted].integer();
      images += number;
      if (of == predicted) right += number;
    }
  BOOST_TEST(images == 30);
  BOOST_TEST(right == std::lround(30 * model.at("accuracy").number()));

  const Json::List& mistakes = model.at("mistakes").items();
  BOOST_TEST(mistakes.size() == static_cast<std::size_t>(std::min<Index>(24, 30 - right)));
  double before = 1;
  for (const Json& mistake : mistakes) {
    const double share = mistake.at("share").number();
    BOOST_TEST(share <= before);
    BOOST_TEST(mistake.at("label").integer() == mistake.at("index").integer() % 10);
    BOOST_TEST(mistake.at("label").integer() != mistake.at("answer").integer());
    BOOST_TEST(mistake.at("of_label").number() <= share);
    before = share;
    const std::string line = output_of({"predict", *this / "a", "--index", mistake.at("index").dump()});
    check_contains(line, {fmt::format(": {} {:.1f} %", mistake.at("answer").dump(), 100 * share)});
    const std::string address = mistake.at("image").text(), start = "data:image/png;base64,";
    BOOST_TEST(address.starts_with(start));
    write_file(*this / "mistake.png", bytes_of(address.substr(start.size())));
    BOOST_TEST((load_image(*this / "mistake.png").size == ImageSize{1, 8, 8}));
  }

  // Two blocks of two heads over 2 x 2 patches and a class token; the first query is the class token.
  for (const Json& image : model.at("maps").items()) {
    const Json& maps = image.at("maps");
    BOOST_TEST(maps.at("grid").dump() == "[2,2]");
    BOOST_TEST(maps.at("class_token").dump() == "true");
    BOOST_TEST(maps.at("blocks").items().size() == 2u);
    for (const Json& block : maps.at("blocks").items()) {
      const std::string bytes = bytes_of(block.at("weights").text());
      BOOST_TEST(bytes.size() == 5u * 2 * 4);
      for (std::size_t map = 0; map < 10; ++map) {
        const std::string own = bytes.substr(4 * map, 4);
        BOOST_TEST(*std::max_element(own.begin(), own.end()) == 127);
        const double largest = block.at("largest").items()[map].number();
        double sum = 0;
        for (const char byte : own) sum += byte / 127.0 * largest;
        BOOST_TEST((sum > 0.2 && sum < 1));  // excludes the class token's weight
      }
    }
  }
  BOOST_TEST(model.at("cost").at("all").at("layers").items().size() > 10u);
}

// Registers are tokens before the patches, but no class token: shown is the mean over the patches.
BOOST_AUTO_TEST_CASE(registers_are_no_class_token) {
  x.train.epochs = 1;
  x.model.pool = "mean", x.model.registers = 2;
  run(x, *this / "a");
  const Json model = data_in(page_of({*this / "a"})).at("models").items()[0];
  const Json& maps = model.at("maps").items()[0].at("maps");
  BOOST_TEST(maps.at("class_token").dump() == "false");
  for (const Json& block : maps.at("blocks").items()) {
    const std::string bytes = bytes_of(block.at("weights").text());
    const auto weight = [&](std::size_t query, std::size_t key) {
      return bytes[(2 * query) * 4 + key] / 127.0 * block.at("largest").items()[2 * query].number();
    };
    for (std::size_t key = 0; key < 4; ++key) {
      double mean = 0;
      for (std::size_t query = 1; query <= 4; ++query) mean += weight(query, key) / 4;
      BOOST_TEST(std::abs(weight(0, key) - mean) < 0.01);
    }
  }
}

// The bytes of a map are the weights that heed maps draws; a single patch allows no selection.
BOOST_AUTO_TEST_CASE(models_of_other_maps) {
  x.train.epochs = 1;
  for (const char* mechanism : {"xca", "synthesizer", "aft"}) {
    x.attention.mechanism = {mechanism};
    x.attention.options.clear();
    run(x, *this / mechanism);
  }
  const Json data = data_in(page_of({*this / "xca", *this / "synthesizer", *this / "aft"}));
  BOOST_TEST(data.at("arms").items().size() == 3u);
  const auto block = [&](std::size_t arm) {
    return data.at("models").items()[arm].at("maps").items()[0].at("maps").at("blocks").items()[0];
  };
  BOOST_TEST(block(0).at("channels").dump() == "true");
  BOOST_TEST(bytes_of(block(0).at("weights").text()).size() == 2u * 8 * 8);
  BOOST_TEST(bytes_of(block(1).at("weights").text()).size() == 5u * 2 * 4);
  BOOST_TEST(data.at("settings").at("attention.mechanism").items().size() == 3u);
}

BOOST_AUTO_TEST_CASE(seeds_are_arms_and_what_is_not_there_is_null) {
  x.train.epochs = 2;
  for (const Index seed : {1, 2}) x.train.seed = seed, run(x, *this / fmt::format("all/a&<b-{}", seed));
  std::string metrics = read_file(*this / "all/a&<b-2/metrics.csv");
  const std::size_t row = metrics.find("\ntrain,2,");
  const std::size_t loss = metrics.find(',', row + 9) + 1;
  metrics.erase(loss, metrics.find(',', loss) - loss);
  write_file(*this / "all/a&<b-2/metrics.csv", metrics);
  const std::string page = page_of({*this / "all", "--no-images"});
  check_contains(page, {"<title>a&amp;&lt;b-1 - heed report</title>"});
  BOOST_TEST(count(page, "</script>") == 2);
  const Json data = data_in(page);
  BOOST_TEST(data.at("arms").items().size() == 1u);
  const Json& curve = data.at("curves").items()[2];
  BOOST_TEST(curve.at("key").text() == "loss");
  const Json& arm = curve.at("arms").items()[0];
  const double first = arm.at("runs").items()[0].items()[0].number(),
               second = arm.at("runs").items()[1].items()[0].number();
  BOOST_TEST(std::abs(arm.at("mean").items()[0].number() - (first + second) / 2) < 1e-15);
  BOOST_TEST(arm.at("runs").items()[1].items()[1].dump() == "null");
  BOOST_TEST(arm.at("sd").items()[1].dump() == "null");
  check_contains(data.at("models").items()[0].at("obstacle").text(), {"--no-images"});
}

BOOST_AUTO_TEST_CASE(starting_weights_are_named) {
  x.train.epochs = 1;
  run(x, *this / "a");
  x.train.seed = 2;
  run(x, *this / "b", false, *this / "a");
  const Json init = data_in(page_of({*this / "b", "--no-images"})).at("runs").items()[0].at("init");
  BOOST_TEST(init.at("file").text().ends_with("/a/best.safetensors"));
  BOOST_TEST(init.at("crc32").dump() == Json::parse(read_file(*this / "b/init.json")).at("crc32").dump());
}

// Without images the page still has curves, and a run that has just begun has its configuration.
BOOST_AUTO_TEST_CASE(what_is_not_at_hand_is_said) {
  run(x, *this / "a");
  fs::rename(data(), *this / "elsewhere");
  const Finished finished = heed_with({"report", *this / "a"});
  BOOST_TEST(finished.status == 0);
  check_contains(finished.err, {"no images in the report: ", "the directory does not exist"});
  BOOST_TEST(count(finished.err, "\n") == 1);
  const Json report = data_in(read_file(*this / "a/report.html"));
  check_contains(report.at("models").items()[0].at("obstacle").text(), {"the directory does not exist"});
  BOOST_TEST(report.at("curves").items().size() == 7u);
  fs::rename(*this / "elsewhere", data());
  run_until(2, x, *this / "begun");
  output_of_unfinished({"report", *this / "begun", "-o", *this / "begun.html"});
  BOOST_TEST(data_in(read_file(*this / "begun.html")).at("curves").items().empty());
}

BOOST_AUTO_TEST_CASE(what_is_refused) {
  x.train.epochs = 1;
  run(x, *this / "a");
  const std::string a = *this / "a";
  const auto files = [&] { return std::distance(fs::recursive_directory_iterator(*this / ""), {}); };
  const auto before = files();
  check_refusal({"report", *this / "none"}, {"none", "contains no run"});
  check_refusal({"report"}, {"RUN"});
  check_refusal({"report", a, "-o", *this / "x.pdf"}, {"x.pdf", ".html"});
  check_refusal({"report", a, "-o", *this / "nowhere/x.html"}, {"nowhere/x.html"});
  write_file(a + "/best.safetensors", "no weights");
  check_refusal({"report", a, "-o", *this / "x.html"}, {"best.safetensors"});
  write_file(a + "/cost.json", "{\"contractions\": 3}");
  check_refusal({"report", a, "-o", *this / "x.html", "--no-images"}, {"cost.json"});
  write_file(a + "/environment.json", "{");
  check_refusal({"report", a, "-o", *this / "x.html", "--no-images"}, {"environment.json", "not valid JSON"});
  BOOST_TEST(files() == before);
}

BOOST_AUTO_TEST_SUITE_END()
