// Images to predict, to draw or to save: files, or images of a data set by their number.
#pragma once

#include "src/apps/cli/shared/trained.h"

#include "heed/data/dataset.h"

#include <memory>
#include <optional>

namespace heed::cli {

/// A data set by the options --data, --path and --split.
struct DataChoice {
  std::string data{}, path{}, split = "test";
  DataConfig run_data{};  ///< of the run, if its data set is chosen
};
void add_data_choice(Command command, DataChoice& choice, const std::string& which);

/// Images of a data set by the options --index, --data, --path and --split, and --invert for those of files.
struct ImageChoice {
  DataChoice data;
  std::vector<Index> indices;
  bool invert = false;
};
void add_image_choice(Command command, ImageChoice& choice);

/// The run's own data set where the options name none.
DataChoice data_of_run(const DataChoice& choice, const TrainedModel& trained);

std::unique_ptr<Dataset> open_data(const DataChoice& choice);

/// Image `index` of a data set. Throws Error, which says how many there are, if there is none.
Image image_of(const Dataset& data, const DataChoice& choice, Index index);

/// Throws Error, which says what works instead, where the run's model takes sequences.
void require_images(const std::string& run, const TrainedModel& trained);

/// Throws Error unless the name of a picture that is to be written ends in .png.
void require_png(const std::string& output);

/// "mnist test 7"
std::string name_of(const DataChoice& choice, Index index);

/// "7", or "2 (Pullover)" where the classes have names.
std::string label_of(const Dataset& data, Index index);

/// Reads images as a trained model wants them, at its size and with its channels.
class ImageReader {
 public:
  /// `invert`: dark becomes bright.
  ImageReader(const TrainedModel& trained, bool invert);

  /// From a file; what is transparent shows the background of the training images, white where these have none in
  /// common. Says on stderr where the image's background is unlike theirs, or hides what is drawn on transparency.
  Image from_file(const std::string& file) const;

  /// From a data set.
  Image from_data(const Dataset& data, const DataChoice& choice, Index index) const;

 private:
  /// A file, inverted or not, with the background behind it in the end.
  Image loaded(const std::string& file, bool invert) const;

  /// Returns true if the image vanishes before the background and shows when inverted.
  bool is_hidden(const std::string& file, const Image& image) const;

  const TrainedModel& trained_;
  bool invert_;
  std::optional<int> background_;  ///< background of the training images, 0 to 255
};

}  // namespace heed::cli
