// heed maps: attention of a trained model.
#include "drawn_layers.h"
#include "image_choice.h"

#include "heed/base/printable.h"
#include "heed/base/warnings.h"
#include "heed/data/images/image_write.h"
#include "heed/train/runs/run.h"

#include <fmt/ranges.h>

#include <filesystem>
#include <iostream>

namespace heed::cli {

namespace {

struct MapsArguments : ModelChoice, ImageChoice {
  std::string file, output, token, beside;
  DrawnLayers::Choice drawn;
};

/// An image at the model's size, with its name.
struct NamedImage {
  std::vector<std::string> name;
  Image image;
};

std::vector<NamedImage> read_images(const MapsArguments& a, const TrainedModel& trained) {
  const ImageReader reader(trained, a.invert);
  if (!a.file.empty()) return {{{std::filesystem::path(a.file).filename().string()}, reader.from_file(a.file)}};
  const DataChoice choice = data_of_run(a.data, trained);
  const std::unique_ptr<Dataset> data = open_data(choice);
  std::vector<NamedImage> images;
  for (const Index index : a.indices) {
    Image image = reader.from_data(*data, choice, index);
    images.push_back({{name_of(choice, index), "label " + label_of(*data, index)}, std::move(image)});
  }
  return images;
}

/// Returns the images of --index as part of a file's name, "test-3-17": the first ten indices, and the number of
/// others.
std::string indices_text(const MapsArguments& a) {
  constexpr std::size_t most = 10;
  const std::size_t named = std::min(a.indices.size(), most);
  std::string text = a.data.data.empty() ? a.data.split : a.data.data + "-" + a.data.split;
  for (std::size_t i = 0; i < named; ++i) text += fmt::format("-{}", a.indices[i]);
  return a.indices.size() > named ? fmt::format("{}-and-{}-more", text, a.indices.size() - named) : text;
}

/// Returns the output file; by default IMAGE-maps.png in the run's directory or, without a run, the working directory.
std::string output_of(const MapsArguments& a) {
  if (!a.output.empty()) return a.output;
  const std::string image = a.file.empty() ? indices_text(a) : std::filesystem::path(a.file).stem().string();
  return fmt::format("{}{}-maps.png", a.run.empty() ? "" : a.run + "/", image);
}

/// Returns the tokens before the patches, each with its name for --token and its name in words.
std::vector<std::pair<std::string, std::string>> tokens_of(const ModelConfig& model) {
  std::vector<std::pair<std::string, std::string>> tokens;
  if (model.has_class_token()) tokens.emplace_back("cls", "the class token");
  if (model.distilled) tokens.emplace_back("dist", "the distillation token");
  for (Index i = 1; i <= model.registers; ++i)
    tokens.emplace_back(fmt::format("reg{}", i), fmt::format("register {}", i));
  return tokens;
}

/// Selects the query of --token; by default the class token or, without one, the mean over the patches.
void choose_token(const std::string& token, const ModelConfig& model, DrawnLayers::Choice& drawn) {
  const auto tokens = tokens_of(model);
  drawn.token = model.has_class_token() ? 0 : -1;
  if (token.empty()) return;
  std::vector<std::string> names;
  for (const auto& [name, words] : tokens) {
    if (name == token)
      drawn.token = static_cast<Index>(names.size()), drawn.token_name = words, drawn.token_option = token;
    names.push_back(name);
  }
  require(!names.empty(), "--token {}: this model has no tokens before the patches", token);
  require(std::ranges::find(names, token) != names.end(), "--token {}: expected {}", token, fmt::join(names, ", "));
}

/// Returns the maps of one model over the images.
AttentionSheet sheet_of(const MapsArguments& a, TrainedModel& trained) {
  require_images(a.source(), trained);
  const std::vector<NamedImage> read = read_images(a, trained);
  DrawnLayers::Choice drawn = a.drawn;
  choose_token(a.token, trained.experiment.model, drawn);
  AttentionSheet sheet;
  DrawnLayers layers(drawn, sheet);
  const AttentionVisitor<float> visit = [&](const AttentionSite<float>& site) { layers.add(site); };
  for (const auto& [name, image] : read) {
    const Tensor<float> input = normalised(trained, {image});
    if (read.size() > 1) layers.begin(image, name);
    Tape<float> tape({.parameters = &trained.parameters, .execution = {.recompute = true}});
    trained.model->logits(tape, {.images = input.view()}, &visit);
  }
  if (read.size() == 1) {
    sheet.subtitle = fmt::format("{}", fmt::join(read.front().name, ", "));
    sheet.image = read.front().image;
  }
  layers.finish();
  return sheet;
}

/// Adds the columns of the second model's maps of the same images.
void add_columns(AttentionSheet& sheet, const AttentionSheet& other, const std::string& name) {
  require(sheet.rows.size() == other.rows.size(), "--beside {}: has {} maps per head; expected {}", name,
          other.rows.size(), sheet.rows.size());
  const Index first = std::ssize(sheet.columns);  // first column of the second model
  for (std::size_t i = 0; i < sheet.rows.size(); ++i) {
    SheetRow& row = sheet.rows[i];
    const SheetRow& added = other.rows[i];
    const Shape a = row.weights.shape(), b = added.weights.shape();
    require(a.rank() == 3 && b.rank() == 3 && row.over_image == added.over_image,
            "--beside {}: one of the models has no map over the image in {}", name, row.label.front());
    require(a[1] == b[1] && a[2] == b[2],
            "--beside {}: the maps have {} x {} patches; expected {} x {}, as in the other model", name, b[1], b[2],
            a[1], a[2]);
    Tensor<float> both(Shape{a[0] + b[0], a[1], a[2]});
    std::copy(added.weights.begin(), added.weights.end(),
              std::copy(row.weights.begin(), row.weights.end(), both.begin()));
    row.weights = std::move(both);
    // Columns are listed for each row, since blocks may have different numbers of heads.
    for (Index head = 0; head < a[0]; ++head) row.columns.push_back(head);
    for (Index head = 0; head < b[0]; ++head) row.columns.push_back(first + head);
    const auto other_lines = std::ranges::mismatch(row.label, added.label).in2;
    const std::vector<std::string> differing(other_lines, added.label.end());
    if (!differing.empty()) row.label.push_back(fmt::format("and {}", fmt::join(differing, ", ")));
  }
  for (std::string& column : sheet.columns) column = "1: " + column;
  for (const std::string& column : other.columns) sheet.columns.push_back("2: " + column);
}

/// Returns the choice of the second model: --beside replaces the run or the weights; the images are the first model's.
MapsArguments second_choice(const MapsArguments& a, const TrainedModel& first) {
  MapsArguments second = a;
  second.data = data_of_run(a.data, first);
  if (a.model.empty())
    second.run = a.beside, second.weights.clear();
  else
    second.weights = a.beside;
  return second;
}

/// Returns the name of a run's directory, or of a file of weights without its ending.
std::string short_name(const std::string& source, bool is_run) {
  const std::filesystem::path path(is_run ? RunPaths(source).directory : source);
  return (is_run ? path.filename() : path.stem()).string();
}

/// Returns the title of both models' sheets. It names the models by short_name() or, if these names are equal, by path.
std::string common_title(const MapsArguments& a, const std::string& first, const std::string& second) {
  const bool runs = a.model.empty();
  std::string one = short_name(a.source(), runs), two = short_name(a.beside, runs);
  if (one == two) one = a.source(), two = a.beside;
  return first == second ? fmt::format("{}\n1: {}\n2: {}", first, one, two)
                         : fmt::format("1: {}: {}\n2: {}: {}", one, first, two, second);
}

int maps_command(MapsArguments& a) {
  use_threads(a.threads);
  if (!a.model.empty() && a.file.empty()) a.file = std::exchange(a.run, "");
  require(a.file.empty() != a.indices.empty(), "maps: expected IMAGE or --index; see heed maps --help");
  constexpr std::size_t most = 100;
  require(!a.drawn.rollout || (a.drawn.heads.empty() && !a.drawn.mean_heads),
          "maps: --rollout always takes the mean over the heads; omit --head and --mean-heads");
  require(a.indices.size() <= most, "maps: --index has {} images; expected at most {} on one sheet", a.indices.size(),
          most);
  const std::string output = output_of(a);
  require_own_file({"-o", output}, {{"IMAGE", a.file}});
  TrainedModel trained(a, a.sets);
  require_writable({"-o", output}, ".png");
  // Images of the same name in different directories share the default name, and so do all kinds of maps of an image.
  if (a.output.empty() && std::filesystem::exists(output))
    warn(fmt::format("{}: the existing picture is replaced; -o FILE.png chooses another name", output));
  AttentionSheet sheet = sheet_of(a, trained);
  if (!a.beside.empty()) {
    const MapsArguments second = second_choice(a, trained);
    TrainedModel other(second, second.sets);
    const AttentionSheet beside = sheet_of(second, other);
    add_columns(sheet, beside, a.beside);
    sheet.title = common_title(a, sheet.title, beside.title);
  }
  save_png(output, draw_attention(sheet));
  std::cout << printable(output) << "\n";
  return ok;
}

constexpr const char* maps_help =
    "Draws the attention maps of each block (rows) and head (columns) over an image; the rows of several images "
    "follow one another. --block and --head select blocks and heads, --mean-heads draws the mean over the heads.\n\n"
    "A map shows how much each patch contributes to the class token, or, in a model that classifies the mean of "
    "all tokens, to the mean over all patches; with --query, to that patch; with --token, to a distillation token "
    "or a register. The weights of tokens before the patches are left out, so a map need not sum to 1. Each map "
    "has a separate scale from 0 to its largest weight, which is printed below it. If any weight is negative, "
    "all scales run from minus to plus the map's largest magnitude. The image is drawn at the model's input "
    "size; its brightness shows through the colours. A map between channels is drawn as a matrix.\n\n"
    "--show draws another picture of a mechanism; `heed list NAME` lists them. By default a block without a map "
    "shows the first of these. A block without the named picture has an empty row.\n\n"
    "--beside draws a second model's columns beside the first's: another run or, with --model, other weights, such as "
    "those of a model with registers.\n\n"
    "--rollout draws attention rollout: the product of the maps up to each block, each the mean over its heads "
    "plus the identity, for the residual connection, with rows scaled so that magnitudes sum to 1. It shows how "
    "much each image patch contributes to the class token through all layers.";

}  // namespace

void add_maps(Command program) {
  static MapsArguments a;
  Command command = program.command("maps", "Draw a trained model's attention maps over images");
  command.option("RUN", &a.run, "run directory; not with --model");
  command.option("IMAGE", &a.file, "image file");
  add_image_choice(command, a);
  command.option("-o,--output", &a.output, "default: RUN/NAME-maps.png for an IMAGE called NAME.png",
                 {.value = "FILE.png"});
  command.option("--block", &a.drawn.blocks, "only these blocks, counted from 1", {.value = "N,...", .commas = true});
  command.option("--head", &a.drawn.heads, "only these heads, counted from 1", {.value = "N,...", .commas = true});
  command.option("--mean-heads", &a.drawn.mean_heads, "show the mean over the heads", {.excludes = "--head"});
  command.option("--query", &a.drawn.query, "show the attention of this patch; rows and columns count from 1",
                 {.value = "ROW,COLUMN"});
  command.option("--token", &a.token, "show the attention of this token: cls, dist, reg1, ...",
                 {.value = "NAME", .excludes = "--query"});
  command.option("--show", &a.drawn.show, "map, or another picture of a mechanism; see `heed list NAME`",
                 {.value = "NAME"});
  command.option("--rollout", &a.drawn.rollout, "show attention rollout: the product of the maps up to each block",
                 {.excludes = "--show"});
  command.option("--beside", &a.beside,
                 "a second run to draw beside the first or, with --model, a second file of weights",
                 {.value = "RUN|FILE"});
  add_model_choice(command, a);
  command.footer(maps_help);
  command.action([] { return maps_command(a); });
}

}  // namespace heed::cli
