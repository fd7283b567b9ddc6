// What heed maps draws of a model's attention layers.
#pragma once

#include "heed/analysis/rollout.h"
#include "heed/draw/attention_sheet.h"
#include "heed/nn/attention_site.h"

#include <optional>
#include <set>
#include <string>

namespace heed::cli {

/// Of each layer a row of a sheet.
class DrawnLayers {
 public:
  struct Choice {
    std::string show;   ///< "map", or the name of a picture; empty: the map, or the first picture where there is none
    std::string query;  ///< "ROW,COLUMN" of a patch, counted from 1; empty: the class token, or the mean
    bool rollout = false;  ///< instead the product of the maps of all layers so far
  };

  DrawnLayers(Choice choice, AttentionSheet& sheet) : choice_(std::move(choice)), sheet_(sheet) {}

  /// Draws the next layer, at work on one image. Throws Error where the choice does not fit it.
  void add(const AttentionSite<float>& site);

  /// Writes what the sheet shows on top. Throws Error if that is nothing.
  void finish();

 private:
  /// Numbers to be drawn, and what they are.
  struct Picture {
    PictureInfo info;
    Tensor<float> numbers;
    std::string label{};
  };

  std::optional<Picture> picture_of(const AttentionSite<float>& site);
  Picture rollout_of(const AttentionSite<float>& site);
  Tensor<float> weights_of(const Picture& picture, const AttentionShape& shape) const;
  std::string title_of(const PictureInfo& info) const;

  Choice choice_;
  AttentionSheet& sheet_;
  AttentionRollout rollout_;
  std::set<bool> class_tokens_;             ///< has a layer one? A pyramid has it in its last stage alone
  std::set<std::string> offered_;           ///< what there is to choose from
  std::optional<PictureInfo> named_after_;  ///< what the title says
};

}  // namespace heed::cli
