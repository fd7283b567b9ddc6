// [data] of an experiment: images or sequences and their preprocessing.
#pragma once

#include "heed/config/field.h"
#include "heed/base/tensor.h"

#include <map>
#include <string>
#include <vector>

namespace heed {

/// Properties of the data that a run directory records (train/runs/data_record.h).
struct RecordedData {
  std::vector<std::string> classes{};          ///< class names, in label order; empty: the names in the data
  std::vector<std::string> validation{};       ///< names of the validation images; empty: determined by the seed
  std::vector<std::string> test{};             ///< names of the test files
  std::map<std::string, std::string> files{};  ///< checksums of all files, by path relative to the data's path
  Index validation_removed = 0;                ///< number of validation images removed since the run was started
  /// True if a tree without train and test directories has only test files. It has no effect if a file named in
  /// `test` still has the recorded content: then the files named in `test` are the test files.
  bool whole = false;
  bool elsewhere = false;  ///< the path is not the recorded one: the files may be other data

  /// Returns the names of all files.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, checksum] : files) all.push_back(name);
    return all;
  }
  bool operator==(const RecordedData&) const = default;
};

/// [data]; fields() below documents the keys.
struct DataConfig {
  std::string name = "mnist";
  std::string path;
  Index validation = 5000;
  Index limit = 0;
  std::vector<double> mean = {0.1307};
  std::vector<double> std = {0.3081};
  std::string resize = "none";
  double crop_fraction = 0.875;
  std::string interpolation = "bicubic";
  bool orientation = true;
  bool skip_bad = false;
  std::string header = "auto";
  bool shuffle = true;
  std::vector<std::string> augment = {"crop", "flip"};
  Index crop_padding = 4;
  double mixup_alpha = 0.8;
  double cutmix_alpha = 1.0;
  double erase_probability = 0.25;
  Index randaugment_ops = 2;
  double randaugment_magnitude = 9;
  Index stride = 0;
  Index windows = 0;
  std::string source = "mnist";
  Index side = 0;
  bool grey = false;
  Index levels = 256;
  RecordedData recorded{};  ///< not a key
  bool verify = false;      ///< not a key; true: all images are decoded when a folder is opened

  bool operator==(const DataConfig&) const = default;
};

/// Visits the keys of [data].
template <MaybeConst<DataConfig> Config, class Visit>
void fields(Config& c, Visit&& visit) {
  visit("name", c.name,
        one_of({"mnist", "fashion-mnist", "cifar10", "cifar100", "folder", "scenes", "text", "listops", "documents",
                "pairs", "pixels"}),
        "the data set");
  visit("path", c.path, anything(), "directory of the data; empty: the default directories");
  visit("validation", c.validation, at_least(0), "examples set aside from the training set");
  visit("limit", c.limit, at_least(0),
        "train on the first n examples that are not for validation; text: use the file's first n bytes; 0: all");
  visit("mean", c.mean, anything(),
        "mean of each channel, subtracted from pixels in 0..1; one value: for all channels");
  visit("std", c.std, more_than(0),
        "standard deviation of each channel, which divides pixel - mean; one value: for all channels");
  visit("resize", c.resize, Rule{.choices = {"none", "squash", "crop"}, .if_true = "squash"},
        "resize images to the model's size and channels; crop: cut out the centre; true: squash");
  visit("crop_fraction", c.crop_fraction, Rule{.low = 0, .high = 1, .above_low = true},
        "resize = \"crop\": fraction of the shorter side to keep");
  visit("interpolation", c.interpolation, one_of({"bicubic", "bilinear"}), "resize = \"crop\": with antialiasing");
  visit("orientation", c.orientation, anything(), "folder: rotate images by their EXIF orientation");
  visit("skip_bad", c.skip_bad, anything(), "folder, documents: leave out files that cannot be read");
  visit("header", c.header, one_of({"auto", "yes", "no"}),
        "documents in lines: skip a first line whose label occurs nowhere else; auto: refuse it");
  visit("shuffle", c.shuffle, anything(), "a new random order in each epoch");
  visit("augment", c.augment,
        one_of(
            {"crop", "flip", "shift", "mixup", "cutmix", "erase", "randaugment", "jitter", "grey", "blur", "solarise"}),
        "random changes to training images");
  visit("crop_padding", c.crop_padding, between(0, 1000), "crop: pixels added on each side before cropping");
  visit("mixup_alpha", c.mixup_alpha, more_than(0), "mixup: mixing weights are sampled from Beta(alpha, alpha)");
  visit("cutmix_alpha", c.cutmix_alpha, more_than(0), "cutmix: area fractions are sampled from Beta(alpha, alpha)");
  visit("erase_probability", c.erase_probability, between(0, 1),
        "erase: probability of erasing a rectangle of an image");
  visit("randaugment_ops", c.randaugment_ops, between(0, 1000), "randaugment: changes per image");
  visit("randaugment_magnitude", c.randaugment_magnitude, between(0, 10), "randaugment: strength of each change");
  visit("stride", c.stride, at_least(0), "text: stride of the evaluation windows; 0: context");
  visit("windows", c.windows, at_least(0), "text: windows sampled per epoch; 0: the number that fit side by side");
  visit("source", c.source, one_of({"mnist", "fashion-mnist", "cifar10", "cifar100"}),
        "pixels, scenes: the data set of the images");
  visit("side", c.side, at_least(0), "pixels: side length to resize images to; 0: unchanged");
  visit("grey", c.grey, anything(), "pixels: convert images to one channel");
  visit("levels", c.levels, between(2, 256), "pixels: number of values per channel");
}

/// Returns true if the data set consists of token sequences.
bool holds_sequences(const DataConfig& data);

}  // namespace heed
