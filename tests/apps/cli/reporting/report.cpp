// heed report: the page contains all results of the runs, and nothing external. tests/report_browser.py tests its
// display and interaction in a browser.
#include "heed/base/split.h"
#include "heed/data/images/image.h"
#include "heed/io/json.h"
#include "heed/train/runs/history.h"
#include "heed/train/runs/run.h"
#include "apps/cli/looking/run_model.h"
#include "support/cli.h"
#include "support/tasks.h"

#include <fmt/ranges.h>

#include <cmath>
#include <map>
#include <numeric>

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
  // The page's only address is SVG's namespace.
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

  // Each value in the epoch rows of metrics.csv and gradients.csv is in a curve.
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
  const Json::List& layers = model.at("cost").at("all").at("layers").items();
  BOOST_TEST(layers.size() > 10u);
  for (const Json& layer : layers) {
    const std::string& name = layer.at("name").text();
    BOOST_TEST(layer.at("block").integer() == (name.starts_with("blocks.") ? name[7] - '0' : -1), name);
  }
}

// Answers, probabilities, confusion and maps are recomputed from the weights and image files. A map is scaled by its
// largest magnitude, of either sign. Tolerances: the rounding of floats, and one of a map's 127 levels.
BOOST_AUTO_TEST_CASE(every_number_of_a_model_is_that_of_its_weights) {
  int negative = 0;
  for (const auto& [mechanism, pool] : {std::pair("softmax", "cls"), {"sima", "cls"}, {"sima", "mean"}}) {
    const std::string directory = *this / (std::string(mechanism) + pool);
    x.train.epochs = 1;
    x.attention.mechanism = {mechanism}, x.model.pool = pool;
    run(x, directory);
    const Json model = data_in(page_of({directory})).at("models").items()[0];
    const WorkshopImages images(*this, "t10k");
    RunModel trained(directory);
    const Tensor<float> logits = trained.logits(images.pixels.view());
    std::vector<std::vector<Index>> confusion(10, std::vector<Index>(10));
    std::vector<std::pair<double, Index>> mistakes;
    double loss = 0, right = 0;
    for (Index i = 0; i < 30; ++i) {
      const std::vector<double> shares = softmax_of(logits.data() + 10 * i, 10);
      const auto label = static_cast<std::size_t>(images.labels[static_cast<std::size_t>(i)]);
      const auto answer = static_cast<std::size_t>(std::ranges::max_element(shares) - shares.begin());
      ++confusion[label][answer];
      loss -= std::log(shares[label]) / 30;
      if (answer == label)
        ++right;
      else
        mistakes.emplace_back(-shares[answer], i);
    }
    std::ranges::sort(mistakes);
    BOOST_TEST(model.at("images").integer() == 30);
    BOOST_TEST(model.at("accuracy").number() == right / 30);
    BOOST_TEST(std::abs(model.at("loss").number() - loss) < 1e-5 * loss);
    for (std::size_t of = 0; of < 10; ++of)
      for (std::size_t as = 0; as < 10; ++as)
        BOOST_TEST(model.at("confusion").items()[of].items()[as].integer() == confusion[of][as]);

    // Images with maps: the four most confident mistakes, then images 0 to 3, unless they are among these.
    std::vector<Index> expected;
    for (std::size_t i = 0; i < std::min<std::size_t>(4, mistakes.size()); ++i) expected.push_back(mistakes[i].second);
    for (Index i = 0; i < 4; ++i)
      if (std::ranges::find(expected, i) == expected.end()) expected.push_back(i);
    BOOST_REQUIRE(model.at("maps").items().size() == expected.size());
    const bool cls = std::string(pool) == "cls";
    const Index n = cls ? 5 : 4;
    for (std::size_t entry = 0; entry < expected.size(); ++entry) {
      const Json& shown = model.at("maps").items()[entry];
      const Index image = expected[entry];
      const std::vector<double> shares = softmax_of(logits.data() + 10 * image, 10);
      const auto label = static_cast<std::size_t>(images.labels[static_cast<std::size_t>(image)]);
      BOOST_TEST(shown.at("index").integer() == image);
      BOOST_TEST(shown.at("label").integer() == static_cast<Index>(label));
      BOOST_TEST(shown.at("answer").integer() == std::ranges::max_element(shares) - shares.begin());
      BOOST_TEST(std::abs(shown.at("share").number() - *std::ranges::max_element(shares)) < 1e-5);
      BOOST_TEST(std::abs(shown.at("of_label").number() - shares[label]) < 1e-5);
      const std::vector<Tensor<float>> maps = trained.maps(images.pixels.view().part(image, 1));
      for (std::size_t b = 0; b < 2; ++b) {
        const Json& block = shown.at("maps").at("blocks").items()[b];
        BOOST_TEST(block.at("mechanism").text() == mechanism);
        BOOST_TEST(block.at("heads").integer() == 2);
        BOOST_TEST(block.at("rows").integer() == 2);
        BOOST_TEST(block.at("columns").integer() == 2);
        const std::string bytes = bytes_of(block.at("weights").text());
        BOOST_REQUIRE(bytes.size() == 5U * 2 * 4);
        for (Index query = 0; query < 5; ++query)
          for (Index head = 0; head < 2; ++head) {
            std::vector<double> weights(4);
            for (Index key = 0; key < 4; ++key)
              for (Index row = 0; row < n; ++row) {
                const bool mean = query == 0 && !cls;
                if (!mean && row != query - (cls ? 0 : 1)) continue;
                weights[static_cast<std::size_t>(key)] +=
                    static_cast<double>(maps[b][(head * n + row) * n + n - 4 + key]) / (mean ? 4 : 1);
              }
            double largest = 0;
            for (const double weight : weights) largest = std::max(largest, std::abs(weight));
            negative += largest > *std::ranges::max_element(weights);
            const auto at = static_cast<std::size_t>(query * 2 + head);
            BOOST_TEST(std::abs(block.at("largest").items()[at].number() - largest) < 1e-5 * largest);
            for (std::size_t key = 0; key < 4; ++key)
              BOOST_TEST(std::abs(static_cast<signed char>(bytes[4 * at + key]) - 127 * weights[key] / largest) < 1);
          }
      }
    }
  }
  BOOST_TEST(negative > 10);  // maps in which the weight of largest magnitude is negative
}

// 3 x 140 patches are more than 400, the largest number of queries, so queries are selected on a grid of 2 x 70 cells:
// a query is the patch that contains the centre of a cell, in row 1 or 3 and in the second of two columns. An image's
// maps have 5 blocks, 4 heads and 141 queries of 420 bytes each: those of three images have less than 4 MiB, those of
// four have more.
BOOST_AUTO_TEST_CASE(many_patches_have_fewer_queries_and_images) {
  const Workshop few(12, 5);
  Experiment wide = few.experiment();
  wide.model.image = {3, 140}, wide.model.patch = 1, wide.model.dim = 8, wide.model.hidden = 8;
  wide.model.depth = 5, wide.model.heads = 4, wide.data.resize = "squash", wide.data.validation = 4;
  wide.train.batch = 8, wide.train.epochs = 1;
  run(wide, *this / "a");
  const Json data = data_in(page_of({*this / "a"}));
  const Json& model = data.at("models").items().at(0);
  BOOST_TEST(model.at("maps").items().size() == 3U);
  const Json& image = model.at("maps").items().at(0);
  const std::string address = image.at("image").text();
  write_file(*this / "image.png", bytes_of(address.substr(address.find(',') + 1)));
  const Image seen = load_image(*this / "image.png");
  BOOST_REQUIRE((seen.size == ImageSize{1, 3, 140}));
  Tensor<float> input(Shape{1, 1, 3, 140});
  for (Index i = 0; i < input.size(); ++i)
    input[i] = (static_cast<float>(seen.pixels[static_cast<std::size_t>(i)]) / 255.0F -
                static_cast<float>(wide.data.mean[0])) /
               static_cast<float>(wide.data.std[0]);
  const std::vector<Tensor<float>> maps = RunModel(*this / "a").maps(std::as_const(input).view());
  BOOST_TEST(image.at("maps").at("grid").dump() == "[2,70]");
  for (std::size_t b = 0; b < 5; ++b) {
    const Json& block = image.at("maps").at("blocks").items().at(b);
    BOOST_TEST(block.at("rows").integer() == 3);
    BOOST_TEST(block.at("columns").integer() == 140);
    BOOST_TEST(block.at("weights").text().size() == 141U * 4 * 420 / 3 * 4);
    const Json::List& largest = block.at("largest").items();
    BOOST_REQUIRE(largest.size() == 141U * 4);
    double off = 0;
    for (Index row = 0; row < 2; ++row)
      for (Index column = 0; column < 70; ++column)
        for (Index head = 0; head < 4; ++head) {
          const float* const weights = maps[b].data() + (head * 421 + 1 + 2 * row * 140 + 2 * column + 1) * 421 + 1;
          const auto expected = static_cast<double>(*std::max_element(weights, weights + 420));
          const auto at = static_cast<std::size_t>((1 + row * 70 + column) * 4 + head);
          off = std::max(off, std::abs(largest[at].number() - expected) / expected);
        }
    BOOST_TEST(off < 1e-5);
  }
}

// An epoch has seven steps, even in a run that stopped in the second epoch.
BOOST_AUTO_TEST_CASE(steps_of_a_stopped_run_have_its_epochs) {
  x.train.log_steps = true, x.train.max_steps = 10;
  run(x, *this / "a");
  const Json steps = data_in(page_of({*this / "a", "--no-images"})).at("runs").items()[0].at("steps");
  BOOST_REQUIRE(steps.at("epoch").items().size() == 10U);
  for (std::size_t i = 0; i < 10; ++i)
    BOOST_TEST(std::abs(steps.at("epoch").items()[i].number() - static_cast<double>(i + 1) / 7) < 1e-12);
}

// After --changed-data, epochs may have different numbers of steps: here seven and three.
BOOST_AUTO_TEST_CASE(steps_have_the_positions_in_their_own_epochs) {
  x.train.log_steps = true, x.train.epochs = 2;
  run(x, *this / "a");
  const std::string metrics = *this / "a/metrics.csv";
  std::string edited;
  for (const std::string& line : split_lines(read_file(metrics))) {
    std::vector<std::string> fields = split(line, ',');
    if (fields[0] == "step" && std::stoi(fields[2]) > 10) continue;
    if (fields[2] == "14") fields[2] = "10";
    edited += fmt::format("{}\n", fmt::join(fields, ","));
  }
  write_file(metrics, edited);
  const Json steps = data_in(page_of({*this / "a", "--no-images"})).at("runs").items()[0].at("steps");
  BOOST_REQUIRE(steps.at("epoch").items().size() == 10U);
  for (std::size_t i = 0; i < 10; ++i) {
    const double expected = i < 7 ? static_cast<double>(i + 1) / 7 : 1 + static_cast<double>(i - 6) / 3;
    BOOST_TEST(std::abs(steps.at("epoch").items()[i].number() - expected) < 1e-12);
  }
}

// 555 steps are drawn as means of two; the last point is a single step.
BOOST_AUTO_TEST_CASE(many_steps_are_means) {
  x.train.batch = x.train.microbatch = 1, x.train.epochs = 5, x.data.validation = 21, x.train.log_steps = true;
  run(x, *this / "a");
  const RunHistory history = read_history(RunPaths(*this / "a"));
  BOOST_REQUIRE(history.steps.size() == 555U);
  const Json steps = data_in(page_of({*this / "a", "--no-images"})).at("runs").items()[0].at("steps");
  BOOST_TEST(steps.at("mean_of").integer() == 2);
  for (const char* const key : {"epoch", "loss", "lr", "gradient_norm"})
    BOOST_REQUIRE(steps.at(key).items().size() == 278U);
  for (std::size_t i = 0; i < 278; ++i) {
    const StepRecord &a = history.steps[2 * i], &b = history.steps[std::min<std::size_t>(2 * i + 1, 554)];
    const auto mean_of = [&](const char* key, double first, double second) {
      BOOST_TEST(std::abs(steps.at(key).items()[i].number() - (first + second) / 2) < 1e-12 * (1 + first + second));
    };
    const double end = static_cast<double>(std::min<std::size_t>(2 * i + 2, 555)) / 111;
    mean_of("epoch", end, end);
    mean_of("loss", *a.loss, *b.loss);
    mean_of("lr", *a.lr, *b.lr);
    mean_of("gradient_norm", *a.gradient_norm, *b.gradient_norm);
  }
}

// Each arm is represented by its first finished run, and the title names the first four of five arms.
BOOST_AUTO_TEST_CASE(arms_have_a_run_for_their_images_and_a_name) {
  std::vector<std::string> directories;
  for (int i = 1; i <= 5; ++i) {
    x.train.epochs = i == 5 ? 2 : 1;
    x.optim.lr = 1e-3 * i, x.train.seed = 1;
    directories.push_back(*this / fmt::format("arm{}", i));
    if (i == 5)
      run_until(8, x, directories.back() + "/first");
    else
      run(x, directories.back() + "/first");
    x.train.seed = 2;
    run(x, directories.back() + "/second");
  }
  const std::string file = *this / "report.html";
  std::vector<std::string> arguments{"report", "-o", file, "--no-images"};
  arguments.insert(arguments.end(), directories.begin(), directories.end());
  BOOST_TEST(heed_with(arguments).status == 0);
  const std::string page = read_file(file);
  const Json data = data_in(page);
  const Json::List& models = data.at("models").items();
  BOOST_REQUIRE(models.size() == 5U);
  std::string title;
  for (std::size_t i = 0; i < 5; ++i) {
    BOOST_TEST(models[i].at("run").text() == directories[i] + (i == 4 ? "/second" : "/first"));
    if (i < 4) title += (i == 0 ? "" : ", ") + data.at("arms").items()[i].at("arm").text();
  }
  check_contains(page, {"<title>" + title + " and 1 more - heed report</title>"});
  BOOST_REQUIRE(data.at("runs").items().size() == 10U);
  for (std::size_t i = 0; i < 10; ++i) {
    const Json& one = data.at("runs").items()[i];
    BOOST_TEST(one.at("arm").integer() == static_cast<Index>(i / 2));
    BOOST_TEST(one.at("seed").integer() == static_cast<Index>(i % 2 + 1));
    BOOST_TEST(one.at("directory").text() == directories[i / 2] + (i % 2 == 0 ? "/first" : "/second"));
  }
}

// By default the page is in the first directory. Each arm has its own model, images, cost, steps and curves.
BOOST_AUTO_TEST_CASE(each_of_several_arms_is_as_alone) {
  std::vector<std::string> runs;
  for (const Index depth : {3, 1, 2}) {
    x.train.epochs = depth, x.model.depth = depth, x.train.log_steps = depth != 2;
    runs.push_back(*this / fmt::format("depth{}", depth));
    run(x, runs.back());
  }
  BOOST_TEST(output_of({"report", runs[0], runs[1], runs[2]}) == runs[0] + "/report.html\n");
  const Json all = data_in(read_file(runs[0] + "/report.html"));
  for (std::size_t i = 0; i < 3; ++i) {
    BOOST_TEST(fs::exists(runs[i] + "/report.html") == (i == 0));
    const Json one = data_in(page_of({runs[i]}));
    BOOST_TEST((all.at("models").items().at(i).dump() == one.at("models").items().at(0).dump()), runs[i]);
    for (const char* const key : {"directory", "seed", "config", "environment", "init", "steps"})
      BOOST_TEST((all.at("runs").items().at(i).at(key).dump() == one.at("runs").items().at(0).at(key).dump()), key);
    BOOST_TEST((all.at("runs").items().at(i).at("steps").dump() == "null") == (i == 2));
    for (const Json& curve : one.at("curves").items())
      for (const Json& same : all.at("curves").items())
        if (same.at("key").text() == curve.at("key").text())
          BOOST_TEST((same.at("arms").items().at(i).dump() == curve.at("arms").items().at(0).dump()),
                     curve.at("key").text());
  }
}

// Registers are tokens before the patches, but not class tokens: the page shows the mean over the patches.
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

// A grid of 2 x 4 patches: queries and keys are counted row by row.
BOOST_AUTO_TEST_CASE(grids_may_be_wide) {
  x.train.epochs = 1, x.model.patch = Sides(4, 2);
  run(x, *this / "a");
  const Json shown = data_in(page_of({*this / "a"})).at("models").items()[0].at("maps").items()[0];
  BOOST_TEST(shown.at("maps").at("grid").dump() == "[2,4]");
  const WorkshopImages images(*this, "t10k");
  RunModel trained(*this / "a");
  const std::vector<Tensor<float>> maps = trained.maps(images.pixels.view().part(shown.at("index").integer(), 1));
  for (std::size_t b = 0; b < 2; ++b) {
    const Json& block = shown.at("maps").at("blocks").items()[b];
    BOOST_TEST(block.at("rows").integer() == 2);
    BOOST_TEST(block.at("columns").integer() == 4);
    const std::string bytes = bytes_of(block.at("weights").text());
    BOOST_REQUIRE(bytes.size() == 9U * 2 * 8);
    for (Index query = 0; query < 9; ++query)
      for (Index head = 0; head < 2; ++head) {
        const float* const weights = maps[b].data() + (head * 9 + query) * 9 + 1;  // after the class token's
        const double largest = static_cast<double>(*std::max_element(weights, weights + 8));
        const auto at = static_cast<std::size_t>(query * 2 + head);
        BOOST_TEST(std::abs(block.at("largest").items()[at].number() - largest) < 1e-5 * largest);
        for (std::size_t key = 0; key < 8; ++key)
          BOOST_TEST(std::abs(bytes[8 * at + key] - 127 * static_cast<double>(weights[key]) / largest) < 1);
      }
  }
}

// XCA has a map of 8 x 8 channels for each head; synthesizer has, for each head, the rows of 5 queries over 4 patches.
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
  const Json written = Json::parse(read_file(*this / "b/init.json"));
  BOOST_TEST(init.at("crc32").dump() == written.at("crc32").dump());
  std::map<std::string, Index> counts;
  for (const auto& [name, tensor] : written.at("tensors").entries()) ++counts[tensor.at("status").text()];
  BOOST_TEST(init.at("tensors").entries().size() == counts.size());
  for (const auto& [status, number] : counts) BOOST_TEST(init.at("tensors").at(status).integer() == number);
}

BOOST_AUTO_TEST_CASE(a_run_of_a_text_has_no_images) {
  const TaskData data;
  run(data.experiment("text"), *this / "text");
  const Finished finished = heed_with({"report", *this / "text"});
  BOOST_TEST(finished.status == 0);
  const std::string why = "data.name = 'text' has sequences of tokens; expected images with one label each";
  BOOST_TEST(finished.err == "heed: no images in the report: " + why + "\n");
  const std::string page = read_file(*this / "text/report.html");
  const Json report = data_in(page);
  BOOST_TEST(report.at("models").items()[0].at("obstacle").text() == why);
  for (const char* const unit : {"Images per second", "per image"}) BOOST_TEST(page.find(unit) == page.npos, unit);
  BOOST_TEST(report.at("curves").items().size() > 1u);
}

// Without images the page still has curves; the page of a run stopped in its first epoch has none.
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
