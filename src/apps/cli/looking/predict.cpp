// heed predict: predicts the class of images.
#include "image_choice.h"

#include "heed/base/printable.h"
#include "heed/data/images/image_write.h"
#include "heed/data/readers/scenes.h"
#include "heed/draw/patch_sheet.h"
#include "heed/train/tasks/classification.h"
#include "heed/train/evaluate.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <numeric>

namespace heed::cli {

namespace {

struct PredictArguments : ModelChoice, ImageChoice {
  std::string out;
  std::vector<std::string> files;
  int top = 0;  ///< 0: the default
};

/// Images with their names.
struct NamedImages {
  std::vector<std::string> names;
  std::vector<Image> images;
  int status = ok;  ///< bad_input if an image could not be read
};

/// Returns the files, with each directory replaced by the images below it, sorted by name.
std::vector<std::string> files_of(const std::vector<std::string>& given) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const std::string& one : given) {
    if (!fs::is_directory(one)) {
      files.push_back(one);
      continue;
    }
    const std::vector<std::string> found = image_files(one);
    require(!found.empty(), "{}: contains no images; expected files that end in one of {}", one, image_endings);
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

NamedImages read_pictures(const PredictArguments& a, const TrainedModel& trained) {
  const ImageReader reader(trained, a.invert);
  NamedImages read;
  const auto add = [&](const std::string& name, const auto& image) {
    try {
      read.images.push_back(image());
      read.names.push_back(name);
    } catch (const Error& error) {
      read.status = report_error(error.what());
    }
  };
  for (const std::string& file : files_of(a.files)) add(printable(file), [&] { return reader.from_file(file); });
  if (a.indices.empty()) return read;
  const DataChoice choice = data_of_run(a.data, trained);
  const std::unique_ptr<Dataset> data = open_data(choice);
  for (const Index index : a.indices) {
    const bool there = index >= 0 && index < data->size();
    add(there ? fmt::format("{} (label {})", name_of(choice, index), label_of(*data, index)) : "",
        [&] { return reader.from_data(*data, choice, index); });
  }
  return read;
}

/// Formats the `top` largest of softmax(logits): ": cat 81.0 %, dog 12.5 %".
std::string ranking(const float* logits, const std::vector<std::string>& classes, int top) {
  const auto count = static_cast<Index>(classes.size());
  const std::vector<double> shares = probabilities(logits, count);
  std::vector<Index> order(classes.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::ranges::stable_sort(order, [&](Index x, Index y) { return logits[x] > logits[y]; });
  order.resize(std::min(order.size(), static_cast<std::size_t>(top)));
  std::string text;
  for (const Index c : order)
    text += fmt::format("{} {} {:.1f} %", text.empty() ? ":" : ",", printable(classes[static_cast<std::size_t>(c)]),
                        100 * shares[static_cast<std::size_t>(c)]);
  return text;
}

/// Draws the predicted classes of scenes' patches beside the true ones.
int predict_patches(const PredictArguments& a, TrainedModel& trained) {
  const char* const stray = !a.data.data.empty() ? "--data" : a.invert ? "--invert" : a.top > 0 ? "--top" : nullptr;
  require(!stray, "predict: {} is for models that classify images; {} classifies patches of scenes", stray ? stray : "",
          a.source());
  require(a.files.empty() && !a.indices.empty() && !a.out.empty(),
          "predict: {} classifies patches of scenes; expected --index N,... and -o FILE.png", a.source());
  require_writable({"-o", a.out}, ".png");
  const Experiment& x = trained.experiment;
  const DataChoice choice = data_of_run(a.data, trained);
  const Scenes scenes(x.data.source, choice.path, split_of(choice), static_cast<std::uint64_t>(x.train.seed),
                      x.model.patch);
  std::vector<PatchPicture> pictures;
  std::vector<Image> images;
  for (const Index index : a.indices) {
    require(index >= 0 && index < scenes.size(), "--index {}: expected an index below {}, the number of scenes", index,
            scenes.size());
    PatchPicture& picture = pictures.emplace_back();
    picture.predicted.resize(static_cast<std::size_t>(scenes.patches()));
    picture.truth.resize(picture.predicted.size());
    scenes.read(index, picture.image, picture.truth.data());
    images.push_back(picture.image);
  }
  const Tensor<float> batch = normalised(trained, images);
  const Index patches = trained.model->outputs()[0], classes = trained.model->outputs()[1];
  require(patches == scenes.patches() && classes == scenes.classes(), "{}: the model was not trained on scenes",
          a.source());
  Tensor<float> logits(Shape{batch.shape()[0], patches, classes});
  Inference<float>(*trained.model, trained.parameters, microbatch_of(x.train, batch.shape()[0]))
      .run({.images = batch.view()}, logits.data());
  require_finite_answers(std::span<const float>(logits.data(), logits.size()), "logit");
  const float* row = logits.data();
  for (PatchPicture& picture : pictures)
    for (int& predicted : picture.predicted) {
      predicted = static_cast<int>(std::max_element(row, row + classes) - row);
      row += classes;
    }
  save_png(a.out, patch_sheet(pictures, scenes.class_names(), x.model.patch, 6));
  std::cout << fmt::format("{}: scenes, predicted classes of their patches, true classes\n{}\n", a.out,
                           patch_legend(scenes.class_names()));
  return ok;
}

int predict_command(PredictArguments& a) {
  use_threads(a.threads);
  move_run_to(a, a.files);
  TrainedModel trained(a, a.sets);
  require_images(a.source(), trained);
  require(!a.files.empty() || !a.indices.empty(), "predict: expected IMAGE or --index; see heed predict --help");
  if (trained.experiment.model.output == "tokens") return predict_patches(a, trained);
  require(a.out.empty(), "predict: -o is for models that classify patches; {} classifies images", a.source());
  const std::vector<std::string> classes = trained.task->class_names();
  require(!classes.empty() && trained.experiment.model.classifier,
          "{}: the model has no classifier; use its features with maps, features or eval --knn", a.source());
  const NamedImages read = read_pictures(a, trained);
  if (read.images.empty()) return read.status;
  const Tensor<float> images = normalised(trained, read.images);
  const Index count = static_cast<Index>(classes.size());
  Tensor<float> logits(Shape{images.shape()[0], count});
  const Inference<float> inference(*trained.model, trained.parameters,
                                   microbatch_of(trained.experiment.train, images.shape()[0]));
  inference.run({.images = images.view()}, logits.data());
  require_finite_answers(std::span<const float>(logits.data(), logits.size()), "logit");
  for (std::size_t i = 0; i < read.names.size(); ++i)
    std::cout << read.names[i] << ranking(logits.data() + static_cast<Index>(i) * count, classes, a.top > 0 ? a.top : 3)
              << "\n";
  return read.status;
}

}  // namespace

void add_predict(Command program) {
  static PredictArguments a;
  Command command = program.command("predict", "Classify images with a trained model");
  command.option("RUN", &a.run, "run directory; not with --model");
  command.option("IMAGE", &a.files, "image files, or directories of them");
  add_image_choice(command, a);
  command.option("-o,--output", &a.out, "picture to write, for a model that classifies patches", {.value = "FILE.png"});
  command.option("--top", &a.top, "number of classes to show; default: 3", {.range = {{1, 1'000'000}}});
  add_model_choice(command, a);
  command.footer(fmt::format(
      "A directory stands for its images ({}), sorted by name, including those in subdirectories. "
      "Unreadable files are listed on stderr and the others are classified; the exit status is then 2. Transparent "
      "pixels show the common background of the run's test images, or white.",
      image_endings));
  command.action([] { return predict_command(a); });
}

}  // namespace heed::cli
