#include "image_choice.h"

#include "heed/base/error.h"
#include "heed/base/printable.h"
#include "heed/data/images/background.h"
#include "heed/train/runs/data_record.h"

#include <algorithm>
#include <iostream>

namespace heed::cli {

namespace {

/// Returns the common background of the run's test images, as recorded or, without a record, computed from them; none
/// if there is no common one, or if the images are not available.
std::optional<int> background_of(const TrainedModel& trained) {
  if (trained.run.empty()) return std::nullopt;
  if (const std::optional<DataRecord> record = read_data_record(RunPaths(trained.run))) return record->background;
  try {
    return common_background(*open_dataset(trained.experiment.data, Split::test));
  } catch (const Error&) {
    return std::nullopt;
  }
}

constexpr int white = 255, unlike = 96;

/// Returns true if all pixels, converted to grey, differ from this level by at most `unlike`.
bool is_level(const Image& image, int level) {
  const Image grey = convert(image, {1, image.size.height, image.size.width});
  return std::ranges::all_of(grey.pixels, [=](int x) { return std::abs(x - level) <= unlike; });
}

Image inverted(Image image) {
  for (std::uint8_t& pixel : image.pixels) pixel = static_cast<std::uint8_t>(white - pixel);
  return image;
}

const char* brightness(int level) { return level < 85 ? "dark" : level < 170 ? "grey" : "bright"; }

}  // namespace

void add_data_choice(Command command, DataChoice& choice, const std::string& which, const char* needs) {
  command.option("--data", &choice.data, which, {.needs = needs, .offered = dataset_names()});
  command.option("--path", &choice.path, "directory of the data", {.value = "DIR", .needs = needs});
  command.option("--split,--part", &choice.split, "default: test", {.one_of = {"test", "train"}, .needs = needs});
}

void add_image_choice(Command command, ImageChoice& choice) {
  command.option("--index", &choice.indices, "indices of images in the data set, from 0",
                 {.value = "N,...", .commas = true});
  add_data_choice(command, choice.data, "the data set of --index; default: the run's", "--index");
  command.option("--invert", &choice.invert, "invert brightness, for example for dark digits on white paper");
}

DataChoice data_of_run(const DataChoice& choice, const TrainedModel& trained) {
  if (!choice.data.empty()) return choice;
  DataChoice run{trained.experiment.data.name, choice.path, choice.split, trained.experiment.data};
  if (choice.path.empty()) run.path = run.run_data.path;
  return run;
}

Split split_of(const DataChoice& choice) { return choice.split == "test" ? Split::test : Split::train; }

std::unique_ptr<Dataset> open_data(const DataChoice& choice, const std::string& path_key) {
  DataConfig data = choice.run_data;
  const std::string unlike = data.name == choice.data ? without_labelled_images(data) : "";
  const char* const remedy = path_key.empty() ? "" : "; choose another data set with --data";
  require(unlike.empty(), "{}; expected images with one label each{}", unlike, remedy);
  data.name = choice.data;
  data.path = choice.path;
  return open_dataset(data, split_of(choice), path_key);
}

Image image_of(const Dataset& data, const DataChoice& choice, Index index) {
  require(index >= 0 && index < data.size(), "--index {}: {} has {} {} images, numbered from 0", index, choice.data,
          data.size(), choice.split);
  Image image;
  data.read(index, image);
  return image;
}

void require_images(const std::string& run, const TrainedModel& trained) {
  const ModelConfig& model = trained.experiment.model;
  require(model.family != "sequence",
          "{}: the model expects sequences of tokens, not images; evaluate it with heed eval{}", run,
          model.task == "lm" ? ", generate text with heed generate" : "");
}

std::string name_of(const DataChoice& choice, Index index) {
  return fmt::format("{} {} {}", choice.data, choice.split, index);
}

std::string label_of(const Dataset& data, Index index) {
  const int label = data.label(index);
  const std::string name = printable(data.class_names()[static_cast<std::size_t>(label)]);
  return name == std::to_string(label) ? name : fmt::format("{} ({})", label, name);
}

ImageReader::ImageReader(const TrainedModel& trained, bool invert)
    : trained_(trained), invert_(invert), background_(background_of(trained)) {}

Image ImageReader::loaded(const std::string& file, bool invert) const {
  const int behind = background_.value_or(white);
  Image image = load_image(file, static_cast<std::uint8_t>(invert ? white - behind : behind),
                           trained_.experiment.data.orientation);
  return invert ? inverted(std::move(image)) : image;
}

bool ImageReader::is_hidden(const std::string& file, const Image& image) const {
  const int behind = background_.value_or(white);
  if (!is_level(image, behind)) return false;
  // If the file has no transparent pixels, `other` is the inverse of `image`.
  const Image other = loaded(file, !invert_);
  return inverted(other).pixels != image.pixels && !is_level(other, behind);
}

Image ImageReader::from_file(const std::string& file) const {
  const Image image = loaded(file, invert_);
  const std::optional<int> own = background(image);
  const int behind = background_.value_or(white);
  std::string found;
  if (background_ && own && std::abs(*own - *background_) > unlike)
    found = fmt::format("the background is {}, but that of the run's images is {}", brightness(*own),
                        brightness(*background_));
  else if (is_hidden(file, image))
    found =
        fmt::format("the visible pixels are as {} as the background behind the transparent ones", brightness(behind));
  if (!found.empty()) {
    std::cout.flush();
    std::cerr << fmt::format("heed: {}: {}; {}\n", printable(file), found,
                             invert_ ? "try without --invert" : "try --invert");
  }
  return fitted(image, model_input(trained_), trained_.experiment.data);
}

Image ImageReader::from_data(const Dataset& data, const DataChoice& choice, Index index) const {
  const Image image = image_of(data, choice, index);
  return fitted(invert_ ? inverted(image) : image, model_input(trained_), trained_.experiment.data);
}

}  // namespace heed::cli
