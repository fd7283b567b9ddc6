// heed maps, from a run directory with random weights.
#include "support/cli.h"
#include "support/command.h"
#include "heed/data/images/image_write.h"
#include "heed/data/images/normalise.h"
#include "heed/draw/attention_sheet.h"
#include "heed/io/weights.h"
#include "heed/nn/families.h"
#include "heed/nn/vit.h"
#include "heed/train/runs/run.h"
#include "run_model.h"

#include <boost/test/unit_test.hpp>

#include <optional>

using namespace heed;
using namespace heed::test;

namespace {

Experiment small_experiment(const std::string& pool, const std::string& mechanism = "softmax") {
  Experiment x;
  x.attention.mechanism = {mechanism};
  x.model.image = 12;
  x.model.channels = 3;
  x.model.patch = 4;
  x.model.dim = 8;
  x.model.depth = 2;
  x.model.heads = 2;
  x.model.hidden = 8;
  x.model.classes = 3;
  x.model.pool = pool;
  return x;
}

/// Writes a run with random weights, multiplied by `scale`.
void write_run(const std::string& directory, const Experiment& x, float scale) {
  const std::unique_ptr<Model> model = make_model(x);
  Parameters<float> parameters(model->parameters());
  parameters.initialise(5);
  for (ParameterId id = 0; id < parameters.list().size(); ++id)
    for (float& weight : parameters[id]) weight *= scale;
  const RunPaths run(directory);
  std::filesystem::create_directory(run.directory);
  write_file(run.config(), to_toml(x));
  SafetensorsWriter weights;
  add_weights(weights, parameters);
  weights.write(run.best());
}

/// A run directory and two images.
struct RunAndImages {
  TemporaryDirectory directory;

  /// `scale`: factor of the initial weights. With a large factor, the maps of heads and queries differ.
  explicit RunAndImages(const std::string& pool = "cls", const std::string& mechanism = "softmax", float scale = 1) {
    write_run(directory / "run", small_experiment(pool, mechanism), scale);
    for (const int first : {0, 90}) {
      Image image{{1, 20, 16}, {}};
      for (Index i = 0; i < image.size.elements(); ++i)
        image.pixels.push_back(static_cast<std::uint8_t>(first + i * i % 199));
      save_png(directory / (first == 0 ? "a.png" : "b.png"), image);
    }
  }

  CommandResult maps(const std::string& arguments) const {
    return run_command(heed_program() + " maps " + arguments, directory / "");
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(directory / name); }
  std::string content(const std::string& name) const { return read_file(directory / name); }
};

/// Checks that two pictures are equal, except that colour levels may differ by up to 3, from rounding.
void check_picture(const Image& drawn, const Image& expected) {
  BOOST_REQUIRE((drawn.size == expected.size));
  int largest = 0;
  for (std::size_t i = 0; i < drawn.pixels.size(); ++i)
    largest = std::max(largest, std::abs(drawn.pixels[i] - expected.pixels[i]));
  BOOST_TEST(largest <= 3);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(maps)

BOOST_AUTO_TEST_CASE(rows_of_softmax_maps_sum_to_one) {
  for (const char* const pool : {"cls", "mean"}) {
    const Experiment x = small_experiment(pool);
    const VisionTransformer model(x.model, x.attention);
    Parameters<float> parameters(model.parameters());
    parameters.initialise(6);
    Tensor<float> images(Shape{2, 3, 12, 12});
    for (Index i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i % 17) - 8;
    Tape<float> tape({.parameters = &parameters});
    std::vector<Tensor<float>> maps;
    const AttentionVisitor<float> visit = [&](const AttentionSite<float>& site) {
      maps.push_back(attention_maps(site));
    };
    model.logits(tape, {images.view()}, &visit);
    const Index tokens = x.model.pool == "cls" ? 10 : 9;
    BOOST_TEST(maps.size() == 2u);
    for (const Tensor<float>& map : maps) {
      BOOST_TEST((map.shape() == Shape{2, 2, tokens, tokens}));
      for (Index row = 0; row < map.shape().rows(); ++row) {
        double sum = 0;
        for (Index key = 0; key < tokens; ++key) {
          BOOST_TEST(map[row * tokens + key] > 0);
          sum += static_cast<double>(map[row * tokens + key]);
        }
        BOOST_TEST(std::abs(sum - 1) < 1e-6);
      }
    }
  }
}

BOOST_FIXTURE_TEST_CASE(a_sheet_is_written_into_the_run, RunAndImages) {
  const CommandResult result = maps("run a.png");
  BOOST_TEST(result.status == 0, result.errors);
  BOOST_TEST(result.output == "run/a-maps.png\n");
  const Image sheet = load_image(directory / "run/a-maps.png");
  BOOST_TEST(sheet.size.channels == 3);
  BOOST_TEST(sheet.size.height > 3 * 156);  // the image and two maps, each 13 x 12 = 156 pixels high
  const std::ptrdiff_t files = std::distance(std::filesystem::directory_iterator(directory / ""), {});
  BOOST_TEST(files == 3);  // two images and the run
}

// The sheet is draw_attention() of weights computed by definition: row `query`, by default the class token's, of each
// head's map without the tokens before the 3 x 3 patches; without a query and a class token, the mean over the patches'
// rows. Colour levels may differ by rounding.
BOOST_AUTO_TEST_CASE(a_sheet_shows_the_weights_that_are_asked_for) {
  struct Case {
    std::string options, title;
    std::optional<Patch> query{};
    std::vector<std::size_t> blocks{1, 2};
    std::vector<Index> heads{1, 2};
    bool mean = false, rollout = false;
  };
  const std::string to_class = "Attention of the class token to each patch",
                    to_mean = "Attention to each patch, mean over all patches";
  const std::vector<Case> cases[]{
      {{"", to_class},
       {"--block 2", to_class, {}, {2}},
       {"--head 2", to_class, {}, {1, 2}, {2}},
       {"--block 1 --head 2,1", to_class, {}, {1}, {2, 1}},
       {"--mean-heads", to_class, {}, {1, 2}, {1, 2}, true},
       {"--token cls", to_class},
       {"--query 1,3", "Attention of patch 1,3 to each patch", Patch{0, 2}},
       {"--query 3,1 --head 1", "Attention of patch 3,1 to each patch", Patch{2, 0}, {1, 2}, {1}},
       {"--rollout",
        "Attention through all blocks so far, of the class token to each patch",
        {},
        {1, 2},
        {},
        false,
        true},
       {"--rollout --block 2",
        "Attention through all blocks so far, of the class token to each patch",
        {},
        {2},
        {},
        false,
        true}},
      {{"", to_mean}, {"--query 2,3", "Attention of patch 2,3 to each patch", Patch{1, 2}}}};
  for (const bool cls : {true, false}) {
    const RunAndImages run(cls ? "cls" : "mean", "softmax", 8);
    RunModel model(run.directory / "run");
    const Index n = cls ? 10 : 9, prefix = n - 9;
    for (const char* const name : {cls ? "a" : "b"}) {
      AttentionSheet base;
      base.image = fitted(load_image(run.directory / (std::string(name) + ".png")), {3, 12, 12}, model.x.data);
      Tensor<float> input(Shape{1, 3, 12, 12});
      Normaliser<float>(model.x.data, 3)(base.image, input.data());
      const std::vector<Tensor<float>> maps = model.maps(std::as_const(input).view());
      base.subtitle = std::string(name) + ".png";
      base.grid = {3, 3};
      // Rollout: products of the mean over the heads plus the identity, each row divided by its sum, here 2.
      std::vector<std::vector<double>> products;
      for (const Tensor<float>& map : maps) {
        std::vector<double> product(static_cast<std::size_t>(n * n)), mean(product);
        for (Index i = 0; i < n * n; ++i)
          mean[static_cast<std::size_t>(i)] =
              (static_cast<double>(map[i] + map[n * n + i]) / 2 + (i % (n + 1) == 0)) / 2;
        for (Index i = 0; i < n * n; ++i)
          for (Index k = 0; k < n; ++k)
            product[static_cast<std::size_t>(i)] +=
                mean[static_cast<std::size_t>(i / n * n + k)] *
                (products.empty() ? static_cast<double>(k == i % n)
                                  : products.back()[static_cast<std::size_t>(k * n + i % n)]);
        products.push_back(product);
      }
      for (const Case& c : cases[cls ? 0 : 1]) BOOST_TEST_CONTEXT(name << ".png " << c.options) {
          AttentionSheet sheet = base;
          sheet.title = c.title;
          sheet.query = c.query;
          const auto weight = [&](std::size_t block, Index head, Index row, Index key) {
            return c.rollout ? products[block - 1][static_cast<std::size_t>(row * n + key)]
                             : static_cast<double>(maps[block - 1][((head - 1) * n + row) * n + key]);
          };
          const std::vector<Index> heads = c.rollout ? std::vector<Index>{1} : c.heads;
          for (const std::size_t block : c.blocks) {
            const Index drawn = c.mean ? 1 : std::ssize(heads);
            SheetRow row{{fmt::format("block {}", block), "softmax"}, Tensor<float>(Shape{drawn, 3, 3})};
            for (Index h = 0; h < std::ssize(heads); ++h)
              for (Index key = 0; key < 9; ++key) {
                double sum = 0;
                const Index only = c.query ? prefix + 3 * c.query->row + c.query->column : 0;
                for (Index q = 0; q < n; ++q)
                  if (cls || c.query ? q == only : true)
                    sum += weight(block, heads[static_cast<std::size_t>(h)], q, prefix + key) /
                           (cls || c.query ? 1.0 : static_cast<double>(n));
                row.weights[(c.mean ? 0 : 9 * h) + key] += static_cast<float>(c.mean ? sum / 2 : sum);
              }
            sheet.rows.push_back(std::move(row));
          }
          if (c.mean)
            sheet.columns = {"mean of heads"};
          else if (c.rollout)
            sheet.columns = {"all heads"};
          else
            for (const Index head : heads) sheet.columns.push_back(fmt::format("head {}", head));
          const CommandResult result = run.maps(fmt::format("run {}.png -o x.png {}", name, c.options));
          BOOST_TEST(result.status == 0, result.errors);
          check_picture(load_image(run.directory / "x.png"), draw_attention(sheet));
        }
    }
  }
}

BOOST_FIXTURE_TEST_CASE(sheets_of_two_images_and_of_two_queries_differ, RunAndImages) {
  for (const char* const line : {"run a.png -o 1.png", "run a.png -o again.png", "run b.png -o 2.png",
                                 "run a.png --query 1,1 -o 3.png", "run a.png --query 3,3 -o 4.png"})
    BOOST_TEST(maps(line).status == 0);
  BOOST_TEST((content("1.png") == content("again.png")));
  BOOST_TEST((content("1.png") != content("2.png")));
  BOOST_TEST((content("1.png") != content("3.png")));
  BOOST_TEST((content("3.png") != content("4.png")));
}

// A file name with the indices of a hundred images would be too long.
BOOST_FIXTURE_TEST_CASE(a_sheet_of_many_images_has_a_short_name, Trained) {
  BOOST_TEST(output_of({"maps", run, "--index", "0,1,2,3,4,5,6,7,8,9", "--block", "1"}) ==
             run + "/test-0-1-2-3-4-5-6-7-8-9-maps.png\n");
  std::string indices = "10";
  for (int i = 11; i < 30; ++i) indices += "," + std::to_string(i);
  BOOST_TEST(output_of({"maps", run, "--index", indices, "--block", "1"}) ==
             run + "/test-10-11-12-13-14-15-16-17-18-19-and-10-more-maps.png\n");
}

// Each image has its own product of maps: the second image's rows, in the last third of the sheet, do not depend on the
// first image.
BOOST_FIXTURE_TEST_CASE(rollouts_of_several_images_are_independent, Trained) {
  std::vector<Image> sheets;
  for (const char* const images : {"0,2", "1,2"}) {
    output_of({"maps", run, "--index", images, "--rollout", "-o", *this / "x.png"});
    sheets.push_back(load_image(*this / "x.png"));
  }
  BOOST_REQUIRE((sheets[0].size == sheets[1].size));
  const Index width = sheets[0].size.width, height = sheets[0].size.height;
  Index upper = 0, lower = 0;
  for (Index i = 0; i < sheets[0].size.elements(); ++i) {
    const std::size_t at = static_cast<std::size_t>(i);
    (i / width % height < 2 * height / 3 ? upper : lower) += sheets[0].pixels[at] != sheets[1].pixels[at];
  }
  BOOST_TEST(upper > 0);
  BOOST_TEST(lower == 0);
}

// The second model's columns show the maps of its run's best weights, whichever weights the first model uses. The text
// names the second mechanism if it differs from the first, and each run by its name, or by its path if both have the
// same name. Maps of different queries have separate titles.
BOOST_AUTO_TEST_CASE(a_second_model_stands_beside_the_first) {
  const RunAndImages first("cls", "softmax", 8), second("cls", "softmax", 4), third("cls", "softmax", 6),
      sima("cls", "sima", 4), mean("mean", "softmax", 4);
  const std::string weights = third.directory / "run/best.safetensors";
  std::filesystem::copy(first.directory / "run", first.directory / "lr-0.01");
  std::filesystem::copy(sima.directory / "run", first.directory / "lr-0.02");
  const Image image = fitted(load_image(first.directory / "a.png"), {3, 12, 12}, DataConfig{});
  Tensor<float> input(Shape{1, 3, 12, 12});
  Normaliser<float>(DataConfig{}, 3)(image, input.data());
  struct Case {
    std::string one, other, weights, title;
    std::vector<std::string> label{};
  };
  const std::string other = second.directory / "run", pooled = mean.directory / "run",
                    title = "Attention of the class token to each patch";
  for (const auto& [one, other, weights, title, label] :
       {Case{"run", other, "", title + "\n1: run\n2: " + other},
        {"run", other, weights, title + "\n1: run\n2: " + other},
        {"lr-0.01/", "lr-0.02", "", title + "\n1: lr-0.01\n2: lr-0.02", {"and sima"}},
        {"lr-0.01", pooled, "", "1: lr-0.01: " + title + "\n2: run: Attention to each patch, mean over all patches"}}) {
    const auto left = RunModel(first.directory / one, weights).maps(std::as_const(input).view()),
               right = RunModel(first.directory / other).maps(std::as_const(input).view());
    AttentionSheet sheet;
    sheet.title = title, sheet.subtitle = "a.png";
    sheet.image = image, sheet.grid = {3, 3};
    sheet.columns = {"1: head 1", "1: head 2", "2: head 1", "2: head 2"};
    for (std::size_t block = 0; block < 2; ++block) {
      SheetRow row{{fmt::format("block {}", block + 1), "softmax"}, Tensor<float>(Shape{4, 3, 3})};
      row.label.insert(row.label.end(), label.begin(), label.end());
      for (Index column = 0; column < 4; ++column) {
        const Tensor<float>& map = (column < 2 ? left : right)[block];
        const Index n = map.shape()[3], prefix = n - 9, queries = prefix > 0 ? 1 : n;
        for (Index q = 0; q < queries; ++q)  // row 0 is the class token's
          for (Index key = 0; key < 9; ++key)
            row.weights[9 * column + key] += map[(column % 2 * n + q) * n + prefix + key] / static_cast<float>(queries);
      }
      sheet.rows.push_back(std::move(row));
    }
    const CommandResult result =
        first.maps(one + " a.png -o x.png --beside " + other + (weights.empty() ? "" : " --weights " + weights));
    BOOST_TEST(result.status == 0, result.errors);
    check_picture(load_image(first.directory / "x.png"), draw_attention(sheet));
  }
}

// In the first stage, which has one head, the columns of the second heads are empty.
BOOST_AUTO_TEST_CASE(stages_with_different_heads_beside_each_other) {
  const RunAndImages images;
  Experiment x = small_experiment("cls");
  x.model.family = "cvt";
  x.model.stages = {.patch = {3, 3},
                    .stride = {2, 2},
                    .padding = {1, 1},
                    .dim = {8, 8},
                    .depth = {1, 1},
                    .heads = {1, 2},
                    .hidden = {8, 8}};
  write_run(images.directory / "cvt", x, 1);
  const CommandResult result = images.maps("cvt a.png -o x.png --beside cvt");
  BOOST_TEST(result.status == 0, result.errors);
  const Image picture = load_image(images.directory / "x.png");
  const Index map = 156, left = picture.size.width - 28 - 4 * map - 3 * 14, row = map + 24 + 14,
              last = picture.size.height - 28 - 24 - map;
  for (const Index block : {1, 2})
    for (Index column = 0; column < 4; ++column) {
      const Index y = last - (2 - block) * row + map / 2, x = left + column * (map + 14) + map / 2;
      const bool white = picture.pixels[static_cast<std::size_t>(y * picture.size.width + x)] == 255;
      BOOST_TEST(white == (block == 1 && column % 2 == 1), "block " << block << ", column " << column);
    }
}

// The data of the second run are not needed, and other images in them do not matter.
BOOST_FIXTURE_TEST_CASE(both_models_show_the_first_runs_images, Trained) {
  const std::string data = *this / "others", other = *this / "other", drawn = *this / "x.png";
  std::filesystem::copy(this->data(), data);
  for (const std::string file : {"-images-idx3-ubyte", "-labels-idx1-ubyte"}) {
    std::string content = read_file(data + "/train" + file);
    if (file.starts_with("-images")) content.back() ^= 1;  // heed train would warn of a copy
    write_file(data + "/t10k" + file, content);
  }
  Experiment x = experiment();
  x.train.epochs = 1;
  x.data.path = data;
  output_of({"train", write_experiment(*this, x), "--run", other});
  std::vector<std::string> pictures;
  for (const bool missing : {false, true}) {
    if (missing) std::filesystem::remove_all(data);
    output_of({"maps", run, "--index", "3", "--beside", other, "-o", drawn});
    pictures.push_back(read_file(drawn));
  }
  BOOST_TEST((pictures[0] == pictures[1]));
}

BOOST_AUTO_TEST_CASE(a_model_without_a_class_token_has_maps) {
  const RunAndImages mean("mean");
  BOOST_TEST(mean.maps("run a.png").status == 0);
  BOOST_TEST(mean.maps("run a.png --query 2,3").status == 0);
}

// Maps among channels are drawn without the image, but the model computes them from it.
BOOST_AUTO_TEST_CASE(maps_among_channels) {
  const RunAndImages run("cls", "xca");
  for (const char* const line : {"run a.png -o 1.png", "run b.png -o 2.png"}) BOOST_TEST(run.maps(line).status == 0);
  BOOST_TEST((run.content("1.png") != run.content("2.png")));
  const CommandResult query = run.maps("run a.png --query 1,1 -o 3.png");
  BOOST_TEST(query.status == 2);
  BOOST_TEST(is_line_with(query.errors, "--query 1,1: 'map' of this model is the same for all queries"), query.errors);
  BOOST_TEST(load_image(run.directory / "1.png").size.height > 3 * 156);
}

// --show selects a mechanism's picture by name; the default is its map, or its first picture if it has no map.
BOOST_AUTO_TEST_CASE(pictures_of_a_mechanism) {
  const RunAndImages aft("cls", "aft"), sima("cls", "sima");
  for (const char* const line :
       {"run a.png -o 0.png", "run a.png -o 1.png --show weights", "run a.png -o 2.png --show keys",
        "run a.png -o 3.png --show biases", "run a.png -o 4.png --show biases --query 2,2",
        "run b.png -o 5.png --show biases", "run b.png -o 6.png --show keys"})
    BOOST_TEST(aft.maps(line).status == 0, line);
  BOOST_TEST((aft.content("0.png") == aft.content("1.png")));
  for (const char* const other : {"0.png", "2.png", "4.png", "5.png"})
    BOOST_TEST((aft.content("3.png") != aft.content(other)));
  BOOST_TEST((aft.content("2.png") != aft.content("6.png")));
  for (const char* const line : {"run a.png -o 0.png", "run a.png -o 1.png --show map",
                                 "run a.png -o 2.png --show queries", "run a.png -o 3.png --show keys"})
    BOOST_TEST(sima.maps(line).status == 0, line);
  BOOST_TEST((sima.content("0.png") == sima.content("1.png")));
  BOOST_TEST((sima.content("1.png") != sima.content("2.png")));
  BOOST_TEST((sima.content("2.png") != sima.content("3.png")));
}

BOOST_FIXTURE_TEST_CASE(maps_of_all_blocks_multiplied, RunAndImages) {
  for (const char* const line :
       {"run a.png -o 1.png", "run a.png -o 2.png --rollout", "run a.png -o 3.png --rollout --query 1,2"})
    BOOST_TEST(maps(line).status == 0, line);
  BOOST_TEST((content("1.png") != content("2.png")));
  BOOST_TEST((content("2.png") != content("3.png")));
}

// Refused: pictures that the model does not have, and --rollout without maps between tokens or with --show.
BOOST_AUTO_TEST_CASE(pictures_that_there_are_not) {
  const auto refused = [](const std::string& mechanism, const std::string& arguments, const std::string& piece) {
    const RunAndImages run("cls", mechanism);
    const CommandResult result = run.maps("run a.png -o x.png " + arguments);
    BOOST_TEST(result.status == 2, arguments);
    BOOST_TEST(is_line_with(result.errors, piece), arguments << ": " << result.errors);
    BOOST_TEST(!run.exists("x.png"));
  };
  refused("softmax", "--show keys", "--show keys: no block of this model has this picture; expected map");
  refused("sima", "--show weights",
          "--show weights: no block of this model has this picture; expected keys, map, queries");
  refused("aft", "--show map", "--show map: no block of this model has this picture; expected biases, keys, weights");
  refused("aft", "--rollout", "--rollout: block 1, aft, has no attention map; expected maps between tokens, N x N");
  refused("xca", "--rollout",
          "--rollout: block 1, xca, has a map between channels; expected maps between tokens, N x N");
  refused("softmax", "--rollout --show map", "--rollout");
}

BOOST_FIXTURE_TEST_CASE(bad_input_is_one_line_and_leaves_nothing, RunAndImages) {
  write_file(directory / "text.png", "no image");
  const auto refused = [&](const std::string& arguments, const std::string& piece) {
    const CommandResult result = maps(arguments);
    BOOST_TEST(result.status == 2, arguments);
    BOOST_TEST(is_line_with(result.errors, piece), arguments << ": " << result.errors);
    BOOST_TEST(result.output == "");
  };
  refused("nowhere a.png -o x.png", "nowhere: contains no run");
  refused("run missing.png -o x.png", "missing.png");
  refused("run text.png -o x.png", "text.png: not a readable PNG, JPEG, BMP or GIF image");
  refused("run a.png -o nowhere/x.png", "nowhere/x.png");
  refused("run a.png -o " + std::string(250, 'x') + ".png", ".png: cannot write: File name too long");
  refused("run a.png -o x.jpg", "-o x.jpg: expected a name that ends in .png");
  refused("run a.png -o a.png", "-o a.png: is also IMAGE; expected another file");
  for (const char* const query :
       {"0,1", "1,4", "4,1", "1", "1,", "1,2,3", "a,b", "-1,1", "1;2", "99999999999999999999,1"})
    refused(std::string("run a.png -o x.png '--query=") + query + "'",
            std::string("--query ") + query + ": expected ROW,COLUMN");
  refused("run a.png -o x.png --weights a.png", "a.png");
  refused("run", "IMAGE");
  for (const char* const option : {"--data mnist", "--path data", "--split train"})
    refused(std::string("run a.png -o x.png ") + option, "requires --index");
  std::string indices = "0";
  for (int i = 1; i <= 100; ++i) indices += "," + std::to_string(i);
  refused("run -o x.png --index " + indices, "--index has 101 images; expected at most 100");
  BOOST_TEST(!exists("x.png"));
  BOOST_TEST(!exists("x.jpg"));
}

BOOST_AUTO_TEST_SUITE_END()
