#include "drawn_layers.h"

#include "layer_map.h"

#include "heed/attention/capabilities/map.h"
#include "heed/base/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace heed::cli {

namespace {

constexpr const char* map_name = "map";

/// Parses "ROW,COLUMN", counted from 1.
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

}  // namespace

void DrawnLayers::begin(Image image, std::vector<std::string> name) {
  begun_ = {.label = std::move(name), .image = std::move(image)};
  block_ = 0;
  rollout_ = {};
}

bool DrawnLayers::is_chosen(Index block) const {
  return choice_.blocks.empty() || std::ranges::find(choice_.blocks, block) != choice_.blocks.end();
}

void DrawnLayers::add(const AttentionSite<float>& site) {
  const AttentionShape& shape = site.inputs.front().shape;
  if (++block_ == 1) {
    sheet_.grid = {shape.grid_height, shape.grid_width};
    if (!choice_.query.empty()) sheet_.query = parse_patch(choice_.query, sheet_.grid);
  }
  std::optional<Picture> picture;
  if (choice_.rollout) picture = rollout_of(site);
  if (!is_chosen(block_)) return;
  if (!choice_.rollout) picture = picture_of(site);
  have_token_.insert(shape.class_token > 0 && choice_.token >= 0);
  SheetRow row = begun_;
  row.label.push_back(fmt::format("block {}", block_));
  row.label.push_back(site.mechanism.name());
  if (picture) {
    const PictureInfo& info = picture->info;
    row.weights = std::move(picture->weights);
    row.over_image = info.axes != PictureAxes::matrix;
    draws_queries_ |= info.axes == PictureAxes::pairs;
    if (!picture->label.empty()) row.label.push_back(picture->label);
    if (!named_after_ || (named_after_->axes == PictureAxes::matrix && row.over_image)) named_after_ = info;
    choose_heads(row, info);
  }
  sheet_.rows.push_back(std::move(row));
}

/// Reduces a row to the chosen heads, or to the mean over all heads.
void DrawnLayers::choose_heads(SheetRow& row, const PictureInfo& info) {
  const Shape& shape = row.weights.shape();
  const Index parts = shape[0], size = shape[1] * shape[2];
  if (std::ranges::find(parts_, info.part) == parts_.end()) parts_.push_back(info.part);
  most_parts_ = std::max(most_parts_, parts);
  if (choice_.mean_heads) row.weights = mean_of_heads(row.weights.view());
  if (choice_.heads.empty()) return;
  Tensor<float> chosen(Shape{static_cast<Index>(choice_.heads.size()), shape[1], shape[2]});
  float* to = chosen.data();
  for (const Index head : choice_.heads) {
    require(head >= 1 && head <= parts, "--head {}: block {} has {} 1 to {}", head, block_, info.part, parts);
    to = std::copy_n(row.weights.data() + (head - 1) * size, size, to);
  }
  row.weights = std::move(chosen);
}

/// Returns the names of the columns: "head 2", or "head / group 2" if layers have different kinds of columns.
std::vector<std::string> DrawnLayers::columns() const {
  if (choice_.rollout) return {"all heads"};
  if (choice_.mean_heads) return {fmt::format("mean of {}s", fmt::join(parts_, "s / "))};
  std::vector<Index> numbers = choice_.heads;
  for (Index part = 1; choice_.heads.empty() && part <= most_parts_; ++part) numbers.push_back(part);
  std::vector<std::string> names;
  for (const Index number : numbers) names.push_back(fmt::format("{} {}", fmt::join(parts_, " / "), number));
  return names;
}

std::optional<DrawnLayers::Picture> DrawnLayers::picture_of(const AttentionSite<float>& site) {
  const MapCapability* const maps = site.mechanism.maps();
  const std::vector<PictureInfo> pictures = picture_infos(site.mechanism);
  if (maps) offered_.insert(map_name);
  for (const PictureInfo& info : pictures) offered_.insert(info.name);
  if (maps && (choice_.show.empty() || choice_.show == map_name)) {
    if (maps->map_traits().axes == MapAxes::tokens)
      return Picture{{map_name, "Attention", PictureAxes::pairs}, map_weights(site)};
    return Picture{{map_name, "Attention of each channel of the queries (row) to each channel of the keys (column)",
                    PictureAxes::matrix},
                   matrix_weights(map_of(site).view()),
                   "channels"};
  }
  for (const PictureInfo& info : pictures)
    if (choice_.show.empty() || choice_.show == info.name)
      return Picture{info,
                     weights_of(info.axes, site.mechanism.pictures()->picture(info.name, site.inputs.front()).view(),
                                site.inputs.front().shape),
                     info.name};
  return {};
}

DrawnLayers::Picture DrawnLayers::rollout_of(const AttentionSite<float>& site) {
  const MapCapability* const maps = site.mechanism.maps();
  require(maps && maps->map_traits().axes == MapAxes::tokens,
          "--rollout: block {}, {}, has {}; expected maps between tokens, N x N, in all blocks", block_,
          site.mechanism.name(), maps ? "a map between channels" : "no attention map");
  const AttentionShape& shape = site.inputs.front().shape;
  Tensor<float> mean(Shape{1, shape.queries, shape.keys});
  for_each_map(site, [&](View<const float> maps) {
    for (Index i = 0; i < maps.size(); ++i) mean[i % mean.size()] += maps[i] / static_cast<float>(shape.heads);
  });
  rollout_.add(mean.view());
  return {{map_name, "Attention through all blocks so far,", PictureAxes::pairs},
          is_chosen(block_) ? weights_of(PictureAxes::pairs, rollout_.product().view(), shape) : Tensor<float>()};
}

/// Returns the attention weight of each patch, [heads, rows, columns], from the layer's maps.
Tensor<float> DrawnLayers::map_weights(const AttentionSite<float>& site) const {
  const AttentionShape& shape = site.inputs.front().shape;
  std::vector<Tensor<float>> heads;
  for_each_map(site, [&](View<const float> maps) { heads.push_back(weights_of(PictureAxes::pairs, maps, shape)); });
  const Shape& first = heads.front().shape();
  Tensor<float> weights(Shape{shape.heads, first[1], first[2]});
  float* to = weights.data();
  for (const Tensor<float>& head : heads) to = std::copy(head.begin(), head.end(), to);
  return weights;
}

Tensor<float> DrawnLayers::weights_of(PictureAxes axes, View<const float> numbers, const AttentionShape& shape) const {
  const PatchGrid grid{shape.grid_height, shape.grid_width};
  if (axes == PictureAxes::matrix) return matrix_weights(numbers);
  if (axes == PictureAxes::tokens) return token_weights(numbers, grid, shape.class_token);
  std::optional<Patch> query;
  if (sheet_.query) query = patch_in(grid, sheet_.grid, *sheet_.query);
  return patch_weights(numbers, grid, query, shape.class_token > 0 ? choice_.token : -1);
}

std::string DrawnLayers::title_of(const PictureInfo& info) const {
  if (info.axes != PictureAxes::pairs) return info.meaning;
  if (!choice_.query.empty()) return fmt::format("{} of patch {} to each patch", info.meaning, choice_.query);
  if (!have_token_.contains(true)) return info.meaning + " to each patch, mean over all patches";
  const std::string title = fmt::format("{} of {} to each patch", info.meaning, choice_.token_name);
  return have_token_.contains(false) ? title + "; for stages without one, mean over all patches" : title;
}

void DrawnLayers::finish() {
  for (const Index block : choice_.blocks)
    require(block >= 1 && block <= block_, "--block {}: this model has blocks 1 to {}", block, block_);
  require(!offered_.empty() || choice_.rollout, "no block of this model has a map or another picture to draw");
  const std::string show = choice_.show.empty() ? map_name : choice_.show;
  const auto [option, query] =
      choice_.query.empty() ? std::pair("--token", choice_.token_option) : std::pair("--query", choice_.query);
  require(query.empty() || !named_after_ || draws_queries_,
          "{} {}: '{}' of this model is the same for all queries; omit {}, or choose another picture with --show",
          option, query, named_after_ ? named_after_->name : "", option);
  require(named_after_.has_value(), "--show {}: no block of this model has this picture; expected {}", show,
          fmt::join(offered_, ", "));
  sheet_.columns = columns();
  sheet_.kind = show;
  sheet_.title = title_of(*named_after_);
}

}  // namespace heed::cli
