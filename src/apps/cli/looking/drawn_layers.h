// Rows of heed maps for a model's attention layers.
#pragma once

#include "heed/attention/capabilities/pictures.h"
#include "heed/analysis/rollout.h"
#include "heed/draw/attention_sheet.h"
#include "heed/nn/attention_site.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace heed::cli {

/// Builder of a sheet with a row for each chosen layer of each image.
class DrawnLayers {
 public:
  struct Choice {
    std::string show;   ///< "map", or the name of a picture; empty: the map, or the first picture if there is no map
    std::string query;  ///< "ROW,COLUMN" of a patch, counted from 1; if empty, `token` is the query
    Index token = 0;    ///< index of a token before the patches; -1: the mean over the patches
    std::string token_name = "the class token";
    std::string token_option{};   ///< --token, as given
    bool rollout = false;         ///< shows, for each layer, the product of the maps up to it
    std::vector<Index> blocks{};  ///< layers, counted from 1; empty: all
    std::vector<Index> heads{};   ///< counted from 1; empty: all
    bool mean_heads = false;      ///< shows the mean over heads
  };

  DrawnLayers(Choice choice, AttentionSheet& sheet) : choice_(std::move(choice)), sheet_(sheet) {}

  /// Starts the rows of the next image of a sheet with several images; `name` labels them.
  void begin(Image image, std::vector<std::string> name);

  /// Draws the next layer's row for the current image. Throws Error if the choice does not fit the layer.
  void add(const AttentionSite<float>& site);

  /// Sets the sheet's columns, kind and title. Throws Error if nothing is shown, if a chosen layer does not exist, or
  /// if a query is chosen and no shown picture depends on it.
  void finish();

 private:
  /// Weights to draw, and their meaning.
  struct Picture {
    PictureInfo info;
    Tensor<float> weights;  ///< patch weights, or matrices
    std::string label{};    ///< empty for a map of tokens
  };

  std::optional<Picture> picture_of(const AttentionSite<float>& site);
  Picture rollout_of(const AttentionSite<float>& site);
  Tensor<float> map_weights(const AttentionSite<float>& site) const;
  Tensor<float> weights_of(PictureAxes axes, View<const float> numbers, const AttentionShape& shape) const;
  std::string title_of(const PictureInfo& info) const;
  void choose_heads(SheetRow& row, const PictureInfo& info);
  std::vector<std::string> columns() const;
  bool is_chosen(Index block) const;

  Choice choice_;
  AttentionSheet& sheet_;
  SheetRow begun_;   ///< common part of the current image's rows
  Index block_ = 0;  ///< index of the layer added last, from 1
  AttentionRollout rollout_;
  std::set<bool> have_token_;               ///< contains true if a layer has the token, and false if a layer lacks it
  std::set<std::string> offered_;           ///< names that --show accepts
  std::optional<PictureInfo> named_after_;  ///< picture named in the title
  bool draws_queries_ = false;              ///< true if a drawn picture depends on the query
  std::vector<std::string> parts_;          ///< meanings of the columns of drawn pictures: "head", "group"
  Index most_parts_ = 0;                    ///< maximum number of heads or groups of a layer
};

}  // namespace heed::cli
