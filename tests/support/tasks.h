// An experiment for every task, with small data of each kind.
#pragma once

#include "heed/data/sequences/listops.h"
#include "heed/data/sequences/pairs.h"
#include "support/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace heed::test {

/// A task, and how its training examples change between epochs.
struct TaskCase {
  enum class Epoch {
    shuffled,   ///< the same in a different order
    augmented,  ///< each changed separately
    drawn       ///< different ones
  };
  std::string name;
  Experiment x;
  Epoch epoch = Epoch::shuffled;
};

/// Data of all tasks: 24 training examples in three batches of eight, 12 for validation, and 13 for testing.
/// Exceptions: thousands of scenes are for testing, and the text has 30 bytes each for validation and testing.
class TaskData {
 public:
  TaskData() {
    write_patterns(path("images"), 36, 13, 8);
    write_patterns(path("digits"), 36, 13, 28);
    write_listops({.train = 24, .valid = 12, .test = 13, .depth = 4, .args = 4, .min = 3, .max = 20}, path("listops"));
    write_pairs({.train = 24, .valid = 12, .test = 13, .seed = 2}, path("pairs"));
    std::filesystem::create_directories(path("documents"));
    heed::write_file(path("documents/train.tsv"), lines(0, 24));
    heed::write_file(path("documents/val.tsv"), lines(24, 12));
    heed::write_file(path("documents/test.tsv"), lines(36, 13));
    heed::write_file(path("text"), letters(7, 600));
  }

  std::string path(const std::string& name) const { return directory_ / name; }

  std::vector<TaskCase> cases() const {
    Experiment images = of_images(), augmented = images, scenes = images, dino = images;
    augmented.data.augment = {"crop", "flip", "randaugment", "erase", "mixup", "cutmix"};
    augmented.data.crop_padding = 2;
    scenes.data.name = "scenes", scenes.data.path = path("digits"), scenes.data.limit = 24;
    scenes.model.image = 56, scenes.model.patch = 14, scenes.model.output = "tokens", scenes.model.classes = 11;
    dino.train.method = "dino", dino.model.patch = 2, dino.optim.clip = 3, dino.optim.weight_decay_end = 0.4;
    dino.dino.out_dim = 7, dino.dino.hidden = 5, dino.dino.bottleneck = 4, dino.dino.local_crops = 3;
    dino.dino.local_size = 4, dino.dino.local_scale = {0.1, 0.4}, dino.dino.ema = 0.9;
    Experiment pixels = of_sequences("classify", "pixels", "images");
    pixels.model.context = 64, pixels.model.classes = 10;
    Experiment changed = pixels;
    changed.data.augment = {"flip", "shift"};
    Experiment written = of_sequences("lm", "pixels", "images");
    written.model.context = 64, written.model.start = true, written.model.vocab = written.data.levels = 64;
    Experiment redrawn = written;
    redrawn.data.augment = {"flip", "shift"};
    Experiment listops = of_sequences("classify", "listops", "listops");
    listops.model.classes = 10;
    Experiment pairs = of_sequences("pair", "pairs", "pairs");
    pairs.model.classes = 2, pairs.model.context = 128;
    return {{"images", images},
            {"augmented images", augmented, TaskCase::Epoch::augmented},
            {"scenes", scenes},
            {"dino", dino, TaskCase::Epoch::augmented},
            {"documents", of_sequences("classify", "documents", "documents")},
            {"listops", listops},
            {"pixels", pixels},
            {"augmented pixels", changed, TaskCase::Epoch::augmented},
            {"pairs", pairs},
            {"text", of_sequences("lm", "text", "text"), TaskCase::Epoch::drawn},
            {"pixels written", written},
            {"augmented pixels written", redrawn, TaskCase::Epoch::augmented}};
  }

  /// Returns the experiment of one case.
  Experiment experiment(const std::string& name) const {
    const std::vector<TaskCase> all = cases();
    const auto found = std::find_if(all.begin(), all.end(), [&](const TaskCase& c) { return c.name == name; });
    require(found != all.end(), "no task {}", name);
    return found->x;
  }

 private:
  static ModelConfig small_model() {
    ModelConfig model;
    model.dim = 6, model.depth = 2, model.heads = 2, model.hidden = 5;
    return model;
  }
  Experiment of_images() const {
    Experiment x;
    x.model = small_model();
    x.model.image = 8, x.model.channels = 1, x.model.patch = 4, x.model.classes = 10;
    x.data.path = path("images"), x.data.validation = 12, x.data.augment = {};
    x.train.epochs = 2, x.train.batch = 8, x.train.microbatch = 3, x.train.seed = 5;
    return x;
  }
  Experiment of_sequences(const char* task, const char* data, const char* where) const {
    Experiment x = of_images();
    x.model = small_model();
    x.model.family = "sequence", x.model.task = task, x.model.vocab = 256, x.model.context = 20;
    if (x.model.task != "lm") x.model.classes = 3, x.model.pool = "mean";
    x.data.name = data, x.data.path = path(where);
    if (x.data.name != "pixels") x.data.validation = DataConfig().validation;  // other data have a part for validation
    return x;
  }
  static std::string letters(std::uint64_t which, Index count) {
    std::string text;
    for (Index i = 0; i < count; ++i) text += static_cast<char>('a' + RandomStream(6).derive(which).below(i, 26));
    return text;
  }
  /// Returns texts of 5 to 22 letters, some longer than the context, in three classes of different sizes.
  static std::string lines(Index first, Index count) {
    std::string all;
    for (Index i = first; i < first + count; ++i)
      all += fmt::format("{}\t{}\n", "aabcaba"[i % 7], letters(static_cast<std::uint64_t>(i), 5 + i * i % 19));
    return all;
  }

  TemporaryDirectory directory_;
};

}  // namespace heed::test
