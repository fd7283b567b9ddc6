#include "report_parts.h"

#include "src/apps/cli/looking/image_choice.h"
#include "src/apps/cli/looking/layer_map.h"

#include "heed/attention/capabilities/map.h"
#include "heed/data/images/image_write.h"
#include "heed/train/tasks/classification.h"
#include "heed/train/evaluate.h"

#include <cmath>
#include <filesystem>

namespace heed::cli {

namespace {

constexpr std::size_t most_mistakes = 24;
/// Maximum numbers of mistakes and of first test images that have maps.
constexpr std::size_t mistakes_with_maps = 4, first_with_maps = 4;
/// Limits on the size of a model's maps, and on the number of selectable queries of an image.
constexpr std::size_t most_map_bytes = 4 << 20;
constexpr Index most_queries = 400;

/// Encodes bytes as base64 (RFC 4648).
std::string base64(std::string_view bytes) {
  constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t j = 0; j < 3; ++j)
      three = three << 8 | (i + j < bytes.size() ? static_cast<std::uint8_t>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j) text += i + j > bytes.size() ? '=' : digits[three >> (18 - 6 * j) & 63];
  }
  return text;
}

/// A classifier and its test images.
struct Study {
  TrainedModel& trained;
  const Dataset& images;
  std::vector<std::string> classes;
};

/// The model's prediction for an image.
struct Answer {
  Index image = 0, answer = 0;
  double share = 0, of_label = 0;  ///< probabilities of the answer and of the label
};

/// Returns image `index` at the model's input size.
Image seen(const Study& study, Index index) {
  Image image;
  study.images.read(index, image);
  return fitted(std::move(image), model_input(study.trained), study.trained.experiment.data);
}

/// Returns {"image": PNG, "index", "label", "answer", "share", "of_label"}; label and answer are class indices.
Json answer_json(const Study& study, const Answer& answer) {
  return Json::object({{"image", "data:image/png;base64," + base64(encode_png(seen(study, answer.image)))},
                       {"index", answer.image},
                       {"label", study.images.label(answer.image)},
                       {"answer", answer.answer},
                       {"share", answer.share},
                       {"of_label", answer.of_label}});
}

/// Weights as bytes by query and head, scaled so that each map's largest magnitude is 127.
struct PackedMaps {
  std::string bytes;
  Json largest_of_maps = Json::list();

  void add(const Tensor<float>& weights) {
    const Index heads = weights.shape()[0], keys = weights.size() / heads;
    for (Index h = 0; h < heads; ++h) {
      const float* const map = weights.data() + h * keys;
      float largest = 0;
      for (Index k = 0; k < keys; ++k) largest = std::max(largest, std::abs(map[k]));
      for (Index k = 0; k < keys; ++k)
        bytes += static_cast<char>(largest > 0 ? std::lround(127 * map[k] / largest) : 0);
      largest_of_maps.push_back(static_cast<double>(largest));
    }
  }
};

/// Returns the grid for selecting a query: the layer's grid or, if it has too many patches, a coarser grid.
PatchGrid choice_of(PatchGrid grid) {
  while (grid.patches() > most_queries) grid = {(grid.rows + 1) / 2, (grid.columns + 1) / 2};
  return grid;
}

/// Returns {"grid": [rows, columns], "class_token", "blocks": [{"mechanism", "heads", "rows", "columns", "channels",
/// "weights", "largest"}]}. The first query is the class token, or the mean over all patches; the other queries are the
/// patches of the grid, row by row. Maps between channels have no queries. A block without a map has only "mechanism".
/// Adds the weights' size to `bytes`.
Json maps_json(const Study& study, const Image& image, std::size_t& bytes) {
  const Tensor<float> input = normalised(study.trained, {image});
  Json json, blocks = Json::list();
  PatchGrid choice;
  const AttentionVisitor<float> visit = [&](const AttentionSite<float>& site) {
    const AttentionShape& layer = site.inputs.front().shape;
    const PatchGrid grid{layer.grid_height, layer.grid_width};
    const bool class_token = study.trained.experiment.model.has_class_token() && layer.class_token > 0;
    if (blocks.items().empty()) {
      choice = choice_of(grid);
      json["grid"] = Json::list({choice.rows, choice.columns});
      json["class_token"] = class_token;
    }
    Json& block = blocks.push_back(Json::object({{"mechanism", site.mechanism.name()}}));
    const MapCapability* const maps = site.mechanism.maps();
    if (!maps) return;
    const bool of_channels = maps->map_traits().axes == MapAxes::channels;
    const Tensor<float> map = map_of(site);
    const auto weights = [&](std::optional<Patch> query) {
      return of_channels ? matrix_weights(map.view()) : patch_weights(map.view(), grid, query, class_token ? 0 : -1);
    };
    const Tensor<float> first = weights(std::nullopt);
    const Shape& shape = first.shape();
    PackedMaps packed;
    packed.add(first);
    for (Index i = 0; i < (of_channels ? 0 : choice.patches()); ++i)
      packed.add(weights(patch_in(grid, choice, {i / choice.columns, i % choice.columns})));
    bytes += packed.bytes.size();
    block["heads"] = shape[0];
    block["rows"] = shape[1];
    block["columns"] = shape[2];
    block["channels"] = of_channels;
    block["weights"] = base64(packed.bytes);
    block["largest"] = packed.largest_of_maps;
  };
  Tape<float> tape({.parameters = &study.trained.parameters, .execution = {.recompute = true}});
  study.trained.model->logits(tape, {.images = input.view()}, &visit);
  json["blocks"] = std::move(blocks);
  return json;
}

/// Returns a list of {answer_json..., "maps"} for the first of `answers`, as many as the size limit allows, but at
/// least one.
Json mapped_images(const Study& study, const std::vector<Answer>& answers) {
  Json list = Json::list();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (i > 0 && bytes / i * (i + 1) > most_map_bytes) break;
    Json entry = answer_json(study, answers[i]);
    entry["maps"] = maps_json(study, seen(study, answers[i].image), bytes);
    list.push_back(std::move(entry));
  }
  return list;
}

Json confusion_json(const Evaluation& result, Index classes) {
  Json rows = Json::list();
  for (Index of = 0; of < classes; ++of) {
    Json& row = rows.push_back(Json::list());
    for (Index predicted = 0; predicted < classes; ++predicted)
      row.push_back(static_cast<Index>(result.counts[confusion_count(classes, of, predicted)]));
  }
  return rows;
}

Json study_json(const Study& study) {
  const Index classes = static_cast<Index>(study.classes.size());
  std::vector<Answer> answers(static_cast<std::size_t>(study.images.size()));
  const AnswerVisitor<float> visit = [&](Index first, View<const float> logits) {
    for (Index i = 0; i < logits.shape()[0]; ++i) {
      const std::vector<double> shares = probabilities(logits.data() + i * classes, classes);
      const auto best = std::ranges::max_element(shares);
      answers[static_cast<std::size_t>(first + i)] = {first + i, best - shares.begin(), *best,
                                                      shares[static_cast<std::size_t>(study.images.label(first + i))]};
    }
  };
  TrainedModel& trained = study.trained;
  const Evaluation result =
      evaluate(*trained.model, trained.parameters, *trained.task->open(Part::test, false), trained.task->counts(),
               microbatch_of(trained.experiment.train), {.visit = &visit});
  std::vector<Answer> mistakes;
  for (const Answer& answer : answers)
    if (answer.answer != study.images.label(answer.image)) mistakes.push_back(answer);
  std::ranges::stable_sort(mistakes, std::greater<>(), &Answer::share);
  mistakes.resize(std::min(mistakes.size(), most_mistakes));

  Json json = Json::object({{"images", answers.size()},
                            {"accuracy", result.score.accuracy()},
                            {"loss", result.score.mean_loss()},
                            {"classes", study.classes},
                            {"confusion", confusion_json(result, classes)}});
  Json& shown = json["mistakes"] = Json::list();
  for (const Answer& mistake : mistakes) shown.push_back(answer_json(study, mistake));
  std::vector<Answer> mapped(
      mistakes.begin(), mistakes.begin() + static_cast<std::ptrdiff_t>(std::min(mistakes.size(), mistakes_with_maps)));
  for (std::size_t i = 0; i < std::min(answers.size(), first_with_maps); ++i)
    if (std::ranges::none_of(mapped, [&](const Answer& a) { return a.image == answers[i].image; }))
      mapped.push_back(answers[i]);
  json["maps"] = mapped_images(study, mapped);
  return json;
}

Json obstacle(const std::string& what) { return Json::object({{"obstacle", what}}); }

}  // namespace

Json model_json(const std::string& run) {
  if (!std::filesystem::exists(RunPaths(run).weights()))
    return obstacle(fmt::format("{}: the weights are missing", run));
  TrainedModel trained(ModelChoice{.run = run}, {});
  std::unique_ptr<Dataset> images;
  try {
    images = open_data(data_of_run({}, trained), "");
  } catch (const Error& error) {
    return obstacle(error.what());
  }
  const Study study{trained, *images, trained.task->class_names()};
  if (study.classes.empty()) return obstacle(fmt::format("{}: the model has no classifier", run));
  try {
    return study_json(study);
  } catch (const Diverged& error) {
    return obstacle(error.what());
  }
}

}  // namespace heed::cli
