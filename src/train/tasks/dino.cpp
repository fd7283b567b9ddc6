// Self-supervision by a teacher that is a slow average of the student. Caron et al., arXiv:2104.14294v2, Algorithm 1.
//
//   q_i = softmax((t_i - c) / teacher_temp)           t: the teacher's logits of two large views; no gradient
//   loss = mean of -q_i . log p_j                     p: the student's softmax for all views j except i (ops/dino.h)
//   c := center_momentum c + (1 - center_momentum) mean(t)
//   clip each tensor's gradient, optimiser step
//   teacher := l teacher + (1 - l) student            l rises from [dino] ema to 1
//
// The teacher has its own running statistics for batch norm, computed from its own views.
#include "tasks.h"

#include "neighbours.h"
#include "given_batches.h"
#include "heed/base/math.h"
#include "heed/data/dataset.h"
#include "heed/data/loader.h"
#include "heed/nn/dino.h"
#include "heed/train/inference.h"
#include "heed/train/tasks/classification.h"
#include "heed/train/tasks/teaching.h"
#include "heed/train/optimizer.h"
#include "rank_of.h"

#include <optional>

namespace heed {

namespace {

template <class T>
class Dino;

/// Returns the number of pairs per image; a pair is a view of the teacher and a different view of the student.
Index pairs_of(Index views) { return 2 * (views - 1); }

/// Views of images. before_step() computes the teacher's targets for two views of each image.
template <class T>
class ViewBatch : public TaskBatch<T> {
 public:
  ViewBatch(Dino<T>& dino, const ModelInput<T>& views, double temperature)
      : dino_(dino), views_(views), temperature_(temperature) {}

  Index size() const override { return views_.count(); }
  Index terms() const override { return size() * pairs_of(views()); }
  void before_step(const StepPlace& place) const override { dino_.answer(views_.images, place.epoch); }
  Var<T> logits(const Model& model, Tape<T>& tape, ExampleRange microbatch,
                const AttentionVisitor<T>* visit) const override {
    return model.logits(tape, views_.part(microbatch.first, microbatch.count), visit);
  }
  Var<T> loss(Var<T> logits, ExampleRange microbatch, Index terms) const override {
    return dino_loss(logits, dino_.answers().part(microbatch.first, microbatch.count), temperature_, terms);
  }

  /// Returns the number of pairs for which student and teacher have the same most likely output.
  Index correct(View<const T> logits, ExampleRange microbatch) const override {
    const Index K = logits.shape()[1], crops = views() - 2;
    const auto largest = [K](const T* rows, Index row) { return largest_of(rows + row * K, K); };
    Index agreed = 0;
    for (Index i = 0; i < microbatch.count; ++i) {
      const T* const q = dino_.answers().data() + 2 * (microbatch.first + i) * K;
      const Index of_teacher[] = {largest(q, 0), largest(q, 1)};
      for (Index j = 0; j < 2; ++j) agreed += largest(logits.data(), 2 * i + j) == of_teacher[1 - j];
      for (Index j = 0; j < crops; ++j) {
        const Index of_student = largest(logits.data(), 2 * microbatch.count + crops * i + j);
        agreed += (of_student == of_teacher[0]) + (of_student == of_teacher[1]);
      }
    }
    return agreed;
  }
  Score judge(View<const T>, ExampleRange, std::span<double>) const override { return {}; }

 private:
  Index views() const { return 2 + (views_.crops.shape().rank() == 5 ? views_.crops.shape()[1] : 0); }

  Dino<T>& dino_;
  ModelInput<T> views_;
  double temperature_;
};

/// Batches of views of training images.
template <class T>
class ViewSource : public BatchSource<T> {
 public:
  ViewSource(Dino<T>& dino, const Dataset& set, std::vector<Index> images, const Experiment& x, const ImageSize& size)
      : dino_(dino),
        images_(static_cast<Index>(images.size())),
        temperature_(x.dino.student_temp),
        crops_(x.dino.local_crops > 0),
        loader_(set, std::move(images), x.data, {size, x.train.batch, x.train.seed, true, 0, x.dino}) {}

  Index examples() const override { return images_; }
  Index batches() const override { return loader_.batches(); }
  void start(Index epoch, Index first_batch) override { loader_.start(epoch, first_batch); }
  const TaskBatch<T>* next() override {
    const Batch<T>* const batch = loader_.next();
    if (!batch) return nullptr;
    ModelInput<T> views{.images = batch->images.view()};
    if (crops_) views.crops = batch->crops.view();
    return &batch_.emplace(dino_, views, temperature_);
  }

 private:
  Dino<T>& dino_;
  Index images_;
  double temperature_;
  bool crops_;
  Loader<T> loader_;
  std::optional<ViewBatch<T>> batch_;
};

/// A batch that owns its memory.
template <class T>
class OwnViews : public ViewBatch<T> {
 public:
  // The views stay valid when the tensors are moved into the members: a moved tensor keeps its memory.
  OwnViews(Dino<T>& dino, Tensor<T> images, Tensor<T> crops, double temperature)
      : ViewBatch<T>(dino, {.images = images.view(), .crops = crops.size() > 0 ? crops.view() : View<const T>{}},
                     temperature),
        images_(std::move(images)),
        crops_(std::move(crops)) {}

 private:
  Tensor<T> images_, crops_;
};

/// Returns the teacher's temperature, which rises linearly from teacher_temp_start to teacher_temp over the first
/// teacher_temp_warmup epochs.
double teacher_temperature(const DinoConfig& dino, Index epoch) {
  if (epoch >= dino.teacher_temp_warmup) return dino.teacher_temp;
  const double steps = static_cast<double>(std::max<Index>(dino.teacher_temp_warmup - 1, 1));
  return dino.teacher_temp_start + (dino.teacher_temp - dino.teacher_temp_start) * static_cast<double>(epoch) / steps;
}

template <class T>
class Dino : public Task<T> {
 public:
  Dino(const Experiment& experiment, const Model& model)
      : x_(experiment),
        model_(model),
        sets_(x_.data, x_.train.seed),
        teacher_(model.parameters()),
        teacher_pass_(model, teacher_, model.examples_depend(x_.train.batch) ? x_.train.batch : microbatch_of(x_.train),
                      model.examples_depend(x_.train.batch) ? Statistics::of_pass : Statistics::running),
        center_(Shape{x_.dino.out_dim}),
        entropy_(Shape{2}) {
    const Shape image = model.image_shape();
    image_ = {image[0], image[1], image[2]};
  }

  std::unique_ptr<BatchSource<T>> open(Part part, bool training) override {
    require(model_.outputs() == Shape{x_.dino.out_dim},
            "[train] method = \"dino\": without its head the model has no outputs to evaluate");
    const Dataset& set = sets_.set(part);
    std::vector<Index> images = sets_.images(part);
    ImageSelection teachers{&sets_.set(Part::train), sets_.images(Part::train), x_.data, image_};
    names_ = set.class_names();
    require(static_cast<Index>(teachers.images.size()) >= NeighbourRule{}.k,
            "[train] method = \"dino\" is evaluated by the {} nearest training images; there are only {}",
            NeighbourRule{}.k, teachers.images.size());
    if (part == Part::validation && images.empty()) return nullptr;
    if (training) return std::make_unique<ViewSource<T>>(*this, set, std::move(images), x_, image_);
    return neighbour_source(model_, teacher_, std::move(teachers),
                            ImageSelection{&set, std::move(images), x_.data, image_}, x_.train);
  }

  Index counts() const override {
    return names_.empty() ? 0 : classification_counts(static_cast<Index>(names_.size()));
  }

  DataFacts data_facts() override { return sets_.facts(); }

  std::string report(const Evaluation& evaluation) const override {
    return classification_report(evaluation, "images", static_cast<Index>(names_.size()), names_);
  }

  std::unique_ptr<TaskBatch<T>> random_batch(Index size) override {
    const auto views = [&](Index count, Index side) {
      return random_values<T>({size, count, image_.channels, side, side});
    };
    const Index crops = x_.dino.local_crops;
    return std::make_unique<OwnViews<T>>(*this, views(2, image_.height),
                                         crops > 0 ? views(crops, x_.dino.local_size) : Tensor<T>(),
                                         x_.dino.student_temp);
  }

  std::unique_ptr<TaskBatch<T>> given_batch(GivenTensors& tensors) const override {
    fail(
        "{}: [train] method = \"dino\" learns from random views, not from given tensors; for given logits use heed "
        "probe dino",
        tensors.path());
  }

  void begin(const Parameters<T>& student) override {
    std::copy(student.data(), student.data() + student.size(), teacher_.data());
  }

  /// Computes the teacher's targets for two large views of images, [B, 2, C, H, W]. after_step() uses them to update
  /// the centre.
  void answer(View<const T> views, Index epoch) {
    if (const Shape shape{views.shape()[0], 2, outputs()}; logits_.shape() != shape) logits_ = Tensor<T>(shape);
    teacher_pass_.renew();
    teacher_pass_.run({.images = views}, logits_.data());
    teaching_ = teach<T>(logits_.view(), center_.view(), teacher_temperature(x_.dino, epoch), std::move(teaching_));
  }

  UpdateRules update_rules(const StepPlace& place) const override {
    UpdateRules rules{.clip_each = true};
    if (place.epoch >= x_.dino.freeze_last_layer) return rules;
    const ParameterList& list = model_.parameters();
    for (ParameterId id = 0; id < list.size(); ++id)
      if (list[id].trainable && list[id].name.starts_with(std::string(dino_prefix) + "last_layer."))
        rules.frozen.push_back(id);
    return rules;
  }

  void after_step(const Parameters<T>& student, const StepPlace& place) override {
    move_center<T>(center_.view(), teaching_.mean.view(), x_.dino.center_momentum);
    entropy_[0] += static_cast<T>(teaching_.entropy);
    entropy_[1] += 1;
    average_weights(teacher_, student, cosine(x_.dino.ema, 1, place.step, place.steps));
  }

  std::string end_epoch() override {
    if (entropy_[1] == 0) return "";
    const double entropy = static_cast<double>(entropy_[0]) / static_cast<double>(entropy_[1]);
    const double most = math::log(static_cast<double>(outputs()));
    std::fill(entropy_.begin(), entropy_.end(), T(0));
    constexpr double near = 0.01;
    if (entropy >= near && entropy <= most - near) return "";
    return fmt::format(
        "the teacher has collapsed: the entropy of its outputs is {:.4f}; log {} = {:.4f} means uniform outputs, 0 "
        "means one constant output",
        entropy, outputs(), most);
  }

  std::vector<TaskTensor<T>> state() override { return {{"center", center_.view()}, {"entropy", entropy_.view()}}; }

  Parameters<T>* teacher() override { return &teacher_; }

  /// Returns the last targets q, [B, 2, K].
  View<const T> answers() const { return teaching_.q.view(); }

 private:
  Index outputs() const { return center_.size(); }

  Experiment x_;
  const Model& model_;
  ImageSize image_;
  ImageSets sets_;
  std::vector<std::string> names_;  ///< class names, once a set is open
  Parameters<T> teacher_;
  Inference<T> teacher_pass_;
  Tensor<T> center_, entropy_;  ///< entropy_ [2]: sum of the entropies of the epoch's steps, number of steps
  Tensor<T> logits_;
  Teaching<T> teaching_;
};

}  // namespace

template <class T>
std::unique_ptr<Task<T>> make_dino(const Experiment& experiment, const Model& model) {
  return std::make_unique<Dino<T>>(experiment, model);
}

template std::unique_ptr<Task<float>> make_dino(const Experiment&, const Model&);
template std::unique_ptr<Task<double>> make_dino(const Experiment&, const Model&);

}  // namespace heed
