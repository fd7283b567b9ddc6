// The features that a run's model has of a data set, for the commands that look at them.
#pragma once

#include "src/apps/cli/shared/trained.h"

#include "heed/data/loader.h"
#include "heed/train/features.h"

namespace heed::cli {

/// The model and the data of frozen features.
struct FrozenArguments : ModelChoice {
  std::string data, path;
  Index blocks = 0;  ///< 0: as many as the use of the features wants
  bool pixels = false, untrained = false;
};

/// Adds the options that say so.
void add_frozen_options(Command command, FrozenArguments& arguments);

/// Adds --split, and the part that it names.
void add_split_option(Command command, std::string& split, const std::string& meaning);
Part part_of(const std::string& split);

/// Overrides of the run's configuration: those that --data and --path stand for, then those of --set.
std::vector<std::string> all_sets(const FrozenArguments& arguments);

class FrozenFeatures {
 public:
  explicit FrozenFeatures(const FrozenArguments& arguments);

  const DataConfig& data() const { return trained_.experiment.data; }

  /// The split of the data set that a part is in, and the part's images. Throws Error where there are none.
  const Dataset& set(Part part);
  std::vector<Index> images(Part part);

  /// Features of some images of the split that a part is in: of the last `blocks` blocks unless the arguments say
  /// otherwise, and no more than the model has.
  Features<float> of(Part part, std::vector<Index> images, Index blocks);
  Features<float> of(Part part, Index blocks) { return of(part, images(part), blocks); }

 private:
  DataConfig judged_data() const;

  FrozenArguments arguments_;
  TrainedModel trained_;
  ImageSets sets_;
};

}  // namespace heed::cli
