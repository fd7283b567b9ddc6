// The rows that heed maps draws of a model's attention layers.
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

/// A sheet with a row for each chosen layer, image by image.
class DrawnLayers {
 public:
  struct Choice {
    std::string show;   ///< "map", or the name of a picture; empty: the map, or the first picture where there is none
    std::string query;  ///< "ROW,COLUMN" of a patch, counted from 1; empty: `token`
    Index token = 0;    ///< among those before the patches; -1: the mean over the patches
    std::string token_name = "class token";
    bool rollout = false;         ///< instead the product of the maps of all layers so far
    std::vector<Index> blocks{};  ///< layers, counted from 1; empty: all
    std::vector<Index> heads{};   ///< counted from 1; empty: all
    bool mean_heads = false;      ///< the mean over heads in their place
  };

  DrawnLayers(Choice choice, AttentionSheet& sheet) : choice_(std::move(choice)), sheet_(sheet) {}

  /// The next layers are at work on another image, one of several in the sheet. `name` is what its rows are labelled.
  void begin(Image image, std::vector<std::string> name);

  /// Draws the next layer, at work on one image. Throws Error where the choice does not fit it.
  void add(const AttentionSite<float>& site);

  /// Writes what the sheet shows on top. Throws Error if that is nothing, or a layer was chosen that there is not.
  void finish();

 private:
  /// Weights to be drawn, and their meaning.
  struct Picture {
    PictureInfo info;
    Tensor<float> weights;  ///< of the patches, or matrices
    std::string label{};
  };

  std::optional<Picture> picture_of(const AttentionSite<float>& site);
  Picture rollout_of(const AttentionSite<float>& site);
  Tensor<float> map_weights(const AttentionSite<float>& site) const;
  Tensor<float> weights_of(PictureAxes axes, View<const float> numbers, const AttentionShape& shape) const;
  std::string title_of(const PictureInfo& info) const;
  void choose_heads(SheetRow& row, const PictureInfo& info);
  bool is_chosen(Index block) const;

  Choice choice_;
  AttentionSheet& sheet_;
  SheetRow begun_;   ///< the common part of the present image's rows
  Index block_ = 0;  ///< number of the last layer, from 1
  AttentionRollout rollout_;
  std::set<bool> have_token_;               ///< whether layers have the token; a pyramid's last stage alone may
  std::set<std::string> offered_;           ///< names that --show accepts
  std::optional<PictureInfo> named_after_;  ///< the picture that the title names
  bool draws_queries_ = false;              ///< a drawn picture differs from query to query
};

}  // namespace heed::cli
