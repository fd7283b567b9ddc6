// Features of a data set from a run's model, for the commands that use them.
#pragma once

#include "src/apps/cli/shared/trained.h"

#include "heed/data/loader.h"
#include "heed/train/features.h"

namespace heed::cli {

/// Model and data of frozen features.
struct FrozenArguments : ModelChoice {
  std::string data, path, split = "test";
  Index blocks = 0;  ///< 0: the command's default
  bool pixels = false, untrained = false;
};

/// Adds the options of FrozenArguments; `split` is the meaning of --split. part_of() converts its value to a part.
void add_frozen_options(Command command, FrozenArguments& arguments, const std::string& split);
Part part_of(const std::string& split);

/// Returns the overrides of the run's configuration: those of --data and --path, then those of --set.
std::vector<std::string> all_sets(const FrozenArguments& arguments);

class FrozenFeatures {
 public:
  explicit FrozenFeatures(const FrozenArguments& arguments);

  const DataConfig& data() const { return trained_.experiment.data; }

  /// set() returns the split that contains a part, images() the indices of the part's images. Both throw Error if the
  /// data are missing or are not images with one label each; images() also if the part is empty.
  const Dataset& set(Part part);
  std::vector<Index> images(Part part);

  /// Returns the features of these images of a part, or their pixels with `arguments.pixels`. Features are from the
  /// last `blocks` blocks or, if the arguments give a number of blocks, from that many; at most from all blocks of the
  /// model.
  Features<float> of(Part part, std::vector<Index> images, Index blocks);
  Features<float> of(Part part, Index blocks) { return of(part, images(part), blocks); }

 private:
  DataConfig judged_data() const;

  FrozenArguments arguments_;
  TrainedModel trained_;
  ImageSets sets_;
};

}  // namespace heed::cli
