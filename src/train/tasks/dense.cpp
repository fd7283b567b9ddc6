#include "tasks.h"

#include "given_batches.h"
#include "heed/base/parallel.h"
#include "heed/data/loader.h"
#include "heed/data/images/normalise.h"
#include "heed/data/readers/scenes.h"
#include "heed/ops/sequences.h"
#include "rank_of.h"

#include <optional>

namespace heed {

std::vector<double> overlaps_of(const std::vector<double>& counts, Index classes) {
  std::vector<double> overlaps;
  for (Index c = 0; c < classes; ++c) {
    double of = 0, taken = 0;
    for (Index other = 0; other < classes; ++other) {
      of += counts[c * classes + other];
      taken += counts[other * classes + c];
    }
    const double both = counts[c * classes + c], either = of + taken - both;
    overlaps.push_back(either > 0 ? both / either : -1);
  }
  return overlaps;
}

namespace {

/// A batch that owns its memory: images with a class for each patch.
template <class T>
class PatchBatch : public TaskBatch<T> {
 public:
  /// Constructs a batch of images [B, C, H, W] and labels [B, patches].
  PatchBatch(Tensor<T> images, Tensor<int> labels) : images_(std::move(images)), labels_(std::move(labels)) {}

  Index size() const override { return images_.shape()[0]; }
  Index terms() const override { return labels_.size(); }
  Var<T> logits(const Model& model, Tape<T>& tape, ExampleRange microbatch,
                const AttentionVisitor<T>* visit) const override {
    return model.logits(tape, ModelInput<T>{.images = images_.view().part(microbatch.first, microbatch.count)}, visit);
  }
  Var<T> loss(Var<T> logits, ExampleRange microbatch, Index terms) const override {
    return label_cross_entropy(logits, labels_of(microbatch), terms);
  }
  Index correct(View<const T> logits, ExampleRange microbatch) const override {
    return correct_rows(logits, labels_of(microbatch));
  }
  Score judge(View<const T> logits, ExampleRange microbatch, std::span<double> counts) const override {
    return score_rows(logits, labels_of(microbatch),
                      [&](Index label, Index answer, Index) { ++counts[label * logits.shape()[2] + answer]; });
  }

 private:
  const int* labels_of(ExampleRange microbatch) const { return labels_.data() + microbatch.first * labels_.shape()[1]; }

  Tensor<T> images_;
  Tensor<int> labels_;
};

/// Batches of scenes. In training, scenes are shuffled each epoch, and all batches are full.
template <class T>
class SceneSource : public BatchSource<T> {
 public:
  SceneSource(std::shared_ptr<const Scenes> scenes, std::vector<Index> examples, const DataConfig& data,
              const TrainConfig& train, bool training)
      : scenes_(std::move(scenes)),
        examples_(std::move(examples)),
        normalise_(data, 1),
        batch_(train.batch),
        training_(training),
        shuffles_(training && data.shuffle),
        random_(train.seed) {}

  Index examples() const override { return static_cast<Index>(examples_.size()); }
  std::vector<std::string> files() const override { return scenes_->files(); }
  Index batches() const override { return (examples() + (training_ ? 0 : batch_ - 1)) / batch_; }
  void make_only(const BatchShare& share) override { share_ = share; }
  void start(Index epoch, Index first_batch) override {
    next_ = first_batch;
    order_ = examples_;
    if (shuffles_) shuffle(order_, random_.derive("order").derive(epoch));
  }
  const TaskBatch<T>* next() override {
    if (next_ == batches()) return nullptr;
    const Index first = next_++ * batch_, count = std::min(batch_, examples() - first), patches = scenes_->patches();
    Tensor<T> images(Shape{count, 1, Scenes::side, Scenes::side});
    Tensor<int> labels(Shape{count, patches});
    const ExampleRange own = share_ ? (*share_)(count) : ExampleRange{0, count};
    parallel_for(own.count, [&](Index offset) {
      const Index i = own.first + offset;
      Image image;
      scenes_->read(order_[first + i], image, labels.data() + i * patches);
      normalise_(image, images.data() + i * Scenes::side * Scenes::side);
    });
    return &now_.emplace(std::move(images), std::move(labels));
  }

 private:
  std::shared_ptr<const Scenes> scenes_;
  std::vector<Index> examples_, order_;
  Normaliser<T> normalise_;
  Index batch_, next_ = 0;
  bool training_, shuffles_;
  RandomStream random_;
  std::optional<BatchShare> share_;
  std::optional<PatchBatch<T>> now_;
};

template <class T>
class PatchClassification : public Task<T> {
 public:
  PatchClassification(const Experiment& experiment, const Model& model)
      : data_(experiment.data),
        train_(experiment.train),
        image_(model.image_shape()),
        patches_(model.outputs()[0]),
        classes_(model.outputs()[1]) {}

  std::unique_ptr<BatchSource<T>> open(Part part, bool training) override {
    require(data_.name == "scenes",
            "[model] output = \"tokens\" requires a class for each patch; data.name={} has none", data_.name);
    const Shape canvas{1, Scenes::side, Scenes::side};
    require(image_ == canvas, "scenes are {} (channels, height, width); the model expects {}", canvas, image_);
    const Index patch = Scenes::side / static_cast<Index>(std::lround(std::sqrt(static_cast<double>(patches_))));
    auto scenes = std::make_shared<const Scenes>(data_.source, data_.path, split_of(part), train_.seed, patch);
    require(scenes->classes() == classes_, "[model] classes = {}, but scenes of {} have {}, including background",
            classes_, data_.source, scenes->classes());
    names_ = scenes->class_names();
    facts_.classes = names_;
    facts_.files.insert(facts_.files.end(), scenes->files().begin(), scenes->files().end());
    if (part == Part::test) facts_.test = scenes->files();
    std::vector<Index> examples = examples_of(scenes->size(), part, data_, train_.seed);
    if (part == Part::validation && examples.empty()) return nullptr;
    const auto count = static_cast<Index>(examples.size());
    if (training) require_one_batch("scenes", count, "scenes", train_.batch);
    return std::make_unique<SceneSource<T>>(std::move(scenes), std::move(examples), data_, train_, training);
  }

  DataFacts data_facts() override { return facts_; }

  void conclude(Evaluation& evaluation) const override {
    double sum = 0, classes = 0;
    for (const double overlap : overlaps_of(evaluation.counts, classes_))
      if (overlap >= 0) sum += overlap, ++classes;
    evaluation.score.correct = classes > 0 ? evaluation.score.terms * sum / classes : 0;
  }

  std::string measure() const override { return "overlap by class"; }

  std::string report(const Evaluation& evaluation) const override {
    const Score& score = evaluation.score;
    double right = 0;
    for (Index c = 0; c < classes_; ++c) right += evaluation.counts[c * classes_ + c];
    std::string text =
        fmt::format("{:.0f} scenes\nmean IoU       {:.2f} %\npatches right  {:.2f} %\nloss           {:.4f}\n",
                    score.terms / static_cast<double>(patches_), 100 * score.accuracy(), 100 * right / score.terms,
                    score.mean_loss());
    std::size_t width = 5;
    for (const std::string& name : names_) width = std::max(width, name.size());
    text += fmt::format("\n{:<{}}     IoU\n", "class", width);
    const std::vector<double> overlaps = overlaps_of(evaluation.counts, classes_);
    for (std::size_t c = 0; c < overlaps.size(); ++c)
      text += fmt::format("{:<{}}  {}\n", c < names_.size() ? names_[c] : std::to_string(c), width,
                          overlaps[c] < 0 ? "     -" : fmt::format("{:>6.2f}", 100 * overlaps[c]));
    return text;
  }

  std::unique_ptr<TaskBatch<T>> random_batch(Index size) override {
    return std::make_unique<PatchBatch<T>>(random_values<T>({size, image_[0], image_[1], image_[2]}),
                                           random_integers({size, patches_}, classes_, RandomStream(1).derive(1)));
  }

  std::unique_ptr<TaskBatch<T>> given_batch(GivenTensors& tensors) const override {
    Tensor<T> images = take_images<T>(tensors, image_);
    Tensor<int> labels = take_integers(tensors, "labels", Shape{images.shape()[0], patches_}, 0, classes_ - 1);
    return std::make_unique<PatchBatch<T>>(std::move(images), std::move(labels));
  }

  Index counts() const override { return classes_ * classes_; }

 private:
  DataConfig data_;
  TrainConfig train_;
  Shape image_;
  Index patches_, classes_;
  std::vector<std::string> names_;
  DataFacts facts_;
};

}  // namespace

template <class T>
std::unique_ptr<Task<T>> make_patch_classification(const Experiment& experiment, const Model& model) {
  return std::make_unique<PatchClassification<T>>(experiment, model);
}

template std::unique_ptr<Task<float>> make_patch_classification(const Experiment&, const Model&);
template std::unique_ptr<Task<double>> make_patch_classification(const Experiment&, const Model&);

}  // namespace heed
