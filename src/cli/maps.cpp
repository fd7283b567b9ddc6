// heed maps: where a trained model looks.
#include "image_choice.h"
#include "layer_map.h"

#include "heed/data/image_write.h"
#include "heed/draw/attention_sheet.h"

#include <charconv>
#include <filesystem>
#include <iostream>

namespace heed::cli {

namespace {

struct Arguments {
  std::string run, file, output, query, weights;
  std::vector<std::string> sets;
  DataChoice data;
  Index index = -1;  ///< of an image of the data set, in place of a file
  bool invert = false;
  int threads = 0;
};

/// "ROW,COLUMN", counted from 1.
Patch parse_patch(const std::string& text, PatchGrid grid) {
  Patch patch;
  const char* const end = text.data() + text.size();
  const auto row = std::from_chars(text.data(), end, patch.row);
  bool valid = row.ec == std::errc() && row.ptr != end && *row.ptr == ',';
  if (valid) {
    const auto column = std::from_chars(row.ptr + 1, end, patch.column);
    valid = column.ec == std::errc() && column.ptr == end;
  }
  require(valid && patch.row >= 1 && patch.row <= grid.rows && patch.column >= 1 && patch.column <= grid.columns,
          "--query {}: expected ROW,COLUMN, from 1,1 to {},{}", text, grid.rows, grid.columns);
  return {patch.row - 1, patch.column - 1};
}

/// The image to look at, at the model's size, and what to call it.
struct NamedImage {
  std::string name;
  Image image;
};

NamedImage read_image(const Arguments& a, const TrainedModel& trained) {
  const ImageReader reader(trained, a.invert);
  if (!a.file.empty()) return {std::filesystem::path(a.file).filename().string(), reader.from_file(a.file)};
  const DataChoice choice = data_of_run(a.data, trained);
  const std::unique_ptr<Dataset> data = open_data(choice);
  Image image = reader.from_data(*data, choice, a.index);
  return {fmt::format("{}, label {}", name_of(choice, a.index), label_of(*data, a.index)), std::move(image)};
}

/// RUN/IMAGE-maps.png, if no file was named.
std::string output_of(const Arguments& a) {
  std::string image = std::filesystem::path(a.file).stem().string();
  if (a.file.empty())
    image = fmt::format("{}{}-{}", a.data.data.empty() ? "" : a.data.data + "-", a.data.split, a.index);
  const std::string output = a.output.empty() ? fmt::format("{}/{}-maps.png", a.run, image) : a.output;
  require(std::filesystem::path(output).extension() == ".png", "-o {}: the sheet is a PNG; expected a name in .png",
          output);
  std::error_code missing;
  require(!std::filesystem::equivalent(output, a.file, missing), "-o {}: this is the image itself", output);
  return output;
}

std::string title_of(const AttentionSheet& sheet, bool class_token, const std::string& query) {
  if (std::all_of(sheet.blocks.begin(), sheet.blocks.end(),
                  [](const BlockWeights& block) { return block.of_channels || block.weights.size() == 0; }))
    return "Attention of each channel of the queries (row) to each channel of the keys (column)";
  if (!query.empty()) return fmt::format("Attention of patch {} to each patch", query);
  return class_token ? "Attention of the class token to each patch" : "Attention to each patch, mean over all queries";
}

int maps_command(const Arguments& a) {
  use_threads(a.threads);
  require(a.file.empty() == (a.index >= 0), "maps: IMAGE is required, or --index in place of it; see heed maps --help");
  const std::string output = output_of(a);
  TrainedModel trained(a.run, a.sets, a.weights);
  NamedImage read = read_image(a, trained);
  AttentionSheet sheet;
  sheet.subtitle = std::move(read.name);
  sheet.image = std::move(read.image);
  const Tensor<float> input = normalised(trained, {sheet.image});
  bool any = false, class_token = false;
  const AttentionVisitor<float> visit = [&](const AttentionSite<float>& site) {
    const LayerMap map(site);
    if (sheet.blocks.empty()) {
      sheet.grid = map.grid();
      if (!a.query.empty()) sheet.query = parse_patch(a.query, sheet.grid);
      class_token = map.class_token();
    }
    sheet.blocks.push_back(map.weights(sheet.query, sheet.grid));
    any |= map.exists();
  };
  Tape<float> tape({.parameters = &trained.parameters});
  trained.model->logits(tape, {.images = input.view()}, &visit);
  require(any, "{}: no block of this model has an attention map; its mechanism is {}", a.run,
          trained.experiment.attention.mechanism[0]);
  sheet.title = title_of(sheet, class_token, a.query);
  save_png(output, draw_attention(sheet));
  std::cout << output << "\n";
  return ok;
}

constexpr const char* description =
    "Draw where a trained model looks: the attention maps of each block (rows) and head (columns) over an image.\n\n"
    "Shown is how much of each patch goes into the class token; in a model that classifies the mean of all tokens,\n"
    "the mean over all queries; with --query, what goes into that patch. The class token's own weight is left out,\n"
    "so a map need not sum to 1. Each map has a scale of its own, from 0 to its largest weight, which stands below\n"
    "it. If any weight is negative, all scales run from minus to plus the map's largest magnitude. The image is as\n"
    "the model sees it, at the model's size; its brightness shows through the colours. A mechanism without a map\n"
    "leaves its row empty; a map among channels is drawn as the matrix that it is.";

}  // namespace

void add_maps(Command program) {
  static Arguments a;
  Command command = program.command("maps", "Draw a trained model's attention maps over an image");
  command.option("RUN", &a.run, "run directory", {.required = true});
  command.option("IMAGE", &a.file, "PNG or JPEG file");
  command.option("--index", &a.index, "an image of a data set by its number, from 0", {.value = "N"});
  add_data_choice(command, a.data, "the data set of --index; default: the run's");
  command.option("--invert", &a.invert, "turn dark and bright around: for dark digits on white paper, say");
  command.option("-o,--output", &a.output, "default: IMAGE-maps.png in the run directory", {.value = "FILE.png"});
  command.option("--query", &a.query, "show the attention of this patch; rows and columns count from 1",
                 {.value = "ROW,COLUMN"});
  add_model_choice(command, a.weights, a.sets, a.threads);
  command.footer(description);
  command.action([] { return maps_command(a); });
}

}  // namespace heed::cli
