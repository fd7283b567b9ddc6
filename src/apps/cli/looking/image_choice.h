// Images to predict, draw or save: files, or images of a data set by index.
#pragma once

#include "src/apps/cli/shared/trained.h"

#include "heed/data/dataset.h"

#include <memory>
#include <optional>

namespace heed::cli {

/// A data set selected by the options --data, --path and --split.
struct DataChoice {
  std::string data{}, path{}, split = "test";
  DataConfig run_data{};  ///< configuration of the run's data set, if it is selected
};
void add_data_choice(Command command, DataChoice& choice, const std::string& which, const char* needs = nullptr);

/// Images of a data set, selected by the options --index, --data, --path and --split; --invert also applies to files.
struct ImageChoice {
  DataChoice data;
  std::vector<Index> indices;
  bool invert = false;
};
void add_image_choice(Command command, ImageChoice& choice);

/// Returns the choice or, if it names no data set, a choice of the run's own data.
DataChoice data_of_run(const DataChoice& choice, const TrainedModel& trained);

Split split_of(const DataChoice& choice);

/// Opens the data set. Throws Error if the run's own data are not images with one label each. `path_key` is passed to
/// open_dataset(); if it is empty, errors name no options.
std::unique_ptr<Dataset> open_data(const DataChoice& choice, const std::string& path_key = "--path");

/// Returns image `index` of a data set. Throws Error, naming the number of images, if there is none.
Image image_of(const Dataset& data, const DataChoice& choice, Index index);

/// Throws Error, naming an alternative, if the run's model takes sequences.
void require_images(const std::string& run, const TrainedModel& trained);

/// Returns, for example, "mnist test 7".
std::string name_of(const DataChoice& choice, Index index);

/// Returns, for example, "7", or "2 (Pullover)" if the classes have names.
std::string label_of(const Dataset& data, Index index);

/// Reader of images, which are converted to the size and channels of a trained model's input.
class ImageReader {
 public:
  /// `invert`: true to invert the brightness of images.
  ImageReader(const TrainedModel& trained, bool invert);

  /// Reads a file; transparent pixels show the common background of the run's test images, or white if there is none.
  /// Warns on stderr if the image's background clearly differs from that common background, or if the visible pixels
  /// are hardly distinguishable from the background shown through transparent ones.
  Image from_file(const std::string& file) const;

  /// Reads an image of a data set.
  Image from_data(const Dataset& data, const DataChoice& choice, Index index) const;

 private:
  /// Loads a file and, if `invert`, inverts it; transparent pixels of the result show the background.
  Image loaded(const std::string& file, bool invert) const;

  /// Returns true if the file has transparent pixels and the image is invisible on the background, but visible when
  /// inverted.
  bool is_hidden(const std::string& file, const Image& image) const;

  const TrainedModel& trained_;
  bool invert_;
  std::optional<int> background_;  ///< common background of the run's test images, 0 to 255
};

}  // namespace heed::cli
