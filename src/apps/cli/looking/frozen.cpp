#include "frozen.h"

#include "heed/config/toml_text.h"
#include "heed/train/tasks/classification.h"

namespace heed::cli {

void add_frozen_options(Command command, FrozenArguments& a, const std::string& split) {
  command.option("RUN", &a.run, "run directory; not with --model");
  command.option("--data", &a.data, "data set, if not the one the model was trained on",
                 {.offered = config_values("data.name")});
  command.option("--path", &a.path, "directory of the data", {.value = "DIR"});
  command.option("--blocks", &a.blocks, "concatenate the features of the last N blocks",
                 {.value = "N", .range = {{1, 1e4}}});
  command.option("--pixels", &a.pixels, "use normalised pixels instead of features", {.excludes = "--blocks"});
  command.option("--untrained", &a.untrained, "use the untrained model, initialised from its seed",
                 {.excludes = "--pixels"});
  add_model_choice(command, a);
  command.option("--split", &a.split, split + "; default: test",
                 {.one_of = {"test", "validation", "valid", "val", "train"}});
}

Part part_of(const std::string& split) {
  return split == "test" ? Part::test : split == "train" ? Part::train : Part::validation;
}

std::vector<std::string> all_sets(const FrozenArguments& a) {
  std::vector<std::string> sets;
  // The run's path, validation split and limit of training images apply only to its own data set.
  if (!a.data.empty()) {
    sets = {"data.name=" + toml_text(a.data), "data.path=''", "data.limit=0"};
    DataConfig data;
    data.name = a.data;
    if (use_of(data, "validation", {}).known) sets.push_back("data.validation=0");
  }
  if (!a.path.empty()) sets.push_back("data.path=" + toml_text(a.path));
  sets.insert(sets.end(), a.sets.begin(), a.sets.end());
  return sets;
}

FrozenFeatures::FrozenFeatures(const FrozenArguments& arguments)
    : arguments_(arguments),
      trained_(arguments, all_sets(arguments)),
      sets_(judged_data(), trained_.experiment.train.seed, "--path") {
  if (!arguments_.pixels) trained_.model->require_features(std::max<Index>(arguments_.blocks, 1));
  if (arguments_.untrained) trained_.parameters.initialise(static_cast<std::uint64_t>(trained_.experiment.train.seed));
  if (arguments_.data.empty() && arguments_.path.empty()) warn_of_changes(arguments_, data(), data().recorded.names());
}

DataConfig FrozenFeatures::judged_data() const {
  DataConfig judged = data();
  if (!arguments_.data.empty()) judged.recorded = {};  // other data have their own classes
  return judged;
}

const Dataset& FrozenFeatures::set(Part part) {
  const std::string unlike = without_labelled_images(data());
  require(unlike.empty(), "{}: features require images with one label each; {}; choose another data set with --data",
          arguments_.source(), unlike);
  return sets_.set(part);
}

std::vector<Index> FrozenFeatures::images(Part part) {
  set(part);  // throws an error if data are missing
  std::vector<Index> images = sets_.images(part);
  require(!images.empty(), "{}: no images of {} are set aside for validation; use --split test or data.validation=N",
          arguments_.source(), data().name);
  return images;
}

Features<float> FrozenFeatures::of(Part part, std::vector<Index> images, Index blocks) {
  const ImageSize size = model_input(trained_);
  DataConfig config = data();
  if (config.resize == "none" && trained_.resized && set(part).image_size().channels == size.channels)
    config.resize = "squash";
  const ImageSelection selection{&set(part), std::move(images), config, size};
  if (arguments_.pixels) return pixels_of<float>(selection);
  if (arguments_.blocks > 0) blocks = arguments_.blocks;
  const Index most = trained_.model->feature_sizes().blocks;
  return features_of(*trained_.model, trained_.parameters, selection, std::min(blocks, most),
                     microbatch_of(trained_.experiment.train));
}

}  // namespace heed::cli
