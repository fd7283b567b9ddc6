#include "heed/train/features.h"

#include "heed/data/loader.h"
#include "heed/nn/model.h"
#include "heed/ops/linear.h"
#include "heed/train/tasks/classification.h"
#include "heed/train/evaluate.h"
#include "heed/train/optimizer.h"
#include "heed/train/inference.h"
#include "heed/train/step.h"

namespace heed {

namespace {

/// Returns how many images of this size have at most `elements` elements together, but at least 1 and at most `most`.
Index images_of(Index elements, const ImageSize& size, Index most) {
  return std::clamp<Index>(elements / size.elements(), 1, most);
}

/// Calls f(first, batch) for batches of images in their order. The loader holds three batches, so the batch size is
/// limited.
template <class T, class F>
std::vector<int> for_batches(const ImageSelection& selection, const F& f) {
  constexpr Index elements = Index{1} << 25;
  const std::unique_ptr<Loader<T>> loader = plain_images<T>(selection, images_of(elements, selection.size, 256));
  loader->start(0);
  std::vector<int> labels;
  while (const Batch<T>* batch = loader->next()) {
    f(batch->first, batch->images.view().part(0, batch->size));
    labels.insert(labels.end(), batch->labels.begin(), batch->labels.begin() + batch->size);
  }
  return labels;
}

/// Linear classifier x W^T + b; features are given as images [B, width, 1, 1].
class LinearClassifier : public ModelBase<LinearClassifier> {
 public:
  LinearClassifier(Index width, Index classes) : width_(width), classes_(classes) {
    weight_ = list_.add({"weight", {classes, width}, Initial::normal(0.01), false});
    bias_ = list_.add({"bias", {classes}, Initial::constant(0), false});
  }
  ModelInput<float> example() const override { return {.images = {nullptr, Shape{1, width_, 1, 1}}}; }
  Shape outputs() const override { return Shape{classes_}; }
  double most_operations() const override { return 10.0 * static_cast<double>(width_ * classes_); }

  template <class T>
  Var<T> run_logits(const ModelPass<T>& pass) const {
    const View<const T> rows = pass.examples.images;
    const Var<T> x = pass.tape.constant({rows.data(), Shape{rows.shape()[0], width_}});
    return linear(x, pass.tape.parameter(weight_), pass.tape.parameter(bias_));
  }

 private:
  Index width_, classes_;
  ParameterId weight_ = -1, bias_ = -1;
};

/// Returns rows of features as input of the classifier.
template <class T>
View<const T> as_images(const Tensor<T>& rows) {
  return {rows.data(), Shape{rows.shape()[0], rows.shape()[1], 1, 1}};
}

}  // namespace

template <class T>
std::unique_ptr<Loader<T>> plain_images(const ImageSelection& images, Index batch) {
  DataConfig data = images.data;
  data.augment.clear();
  return std::make_unique<Loader<T>>(*images.set, images.images, data, Loading{images.size, batch, 0, false});
}

template <class T>
Features<T> features_of(const Model& model, Parameters<T>& parameters, const ImageSelection& images, Index blocks,
                        Index microbatch) {
  model.require_features(blocks);
  constexpr Index elements = Index{1} << 21;  // elements of a microbatch's images; limits the activations
  const Inference<T> inference(model, parameters, images_of(elements, images.size, microbatch));
  const Index width = model.feature_sizes().width;
  Features<T> features{Tensor<T>(Shape{static_cast<Index>(images.images.size()), blocks * width}), {}};
  features.labels = for_batches<T>(images, [&](Index first, View<const T> batch) {
    inference.for_microbatches({0, batch.shape()[0]}, [&](Tape<T>& tape, ExampleRange p) {
      std::vector<Var<T>> of_blocks(blocks);
      model.features(tape, ModelInput<T>{.images = batch.part(p.first, p.count)}, std::span(of_blocks));
      T* to = features.values.data() + (first + p.first) * blocks * width;
      for (Index i = 0; i < p.count; ++i)
        for (const Var<T>& of_block : of_blocks) to = std::copy_n(of_block.data() + i * width, width, to);
    });
  });
  require_finite_answers(std::span<const T>(features.values.data(), features.values.size()), "feature");
  return features;
}

template <class T>
Features<T> pixels_of(const ImageSelection& images) {
  const Index width = images.size.elements();
  Features<T> features{Tensor<T>(Shape{static_cast<Index>(images.images.size()), width}), {}};
  features.labels = for_batches<T>(images, [&](Index first, View<const T> batch) {
    std::copy(batch.begin(), batch.end(), features.values.data() + first * width);
  });
  return features;
}

template <class T>
Tensor<T> linear_logits(const Features<T>& teachers, const Tensor<T>& test, Index classes, const LinearRule& rule) {
  const Index width = teachers.width(), count = teachers.count(), microbatch = 16;
  require(count >= rule.batch, "a linear classifier with {} training examples; expected at least {}, one batch", count,
          rule.batch);
  const LinearClassifier model(width, classes);
  Parameters<T> parameters(model.parameters());
  parameters.initialise(rule.seed);
  Optimizer<T> optimizer({.name = "sgd", .momentum = 0.9}, parameters);
  BatchGradient<T> gradient(model, parameters, rule.batch, {.microbatch = microbatch});
  Tensor<T> rows(Shape{rule.batch, width});
  std::vector<int> labels(rule.batch);
  const RandomStream order = RandomStream(rule.seed).derive("order");
  for (Index epoch = 0; epoch < rule.epochs; ++epoch) {
    const double lr = cosine(rule.lr, 0, epoch, rule.epochs);
    std::vector<Index> examples = all_images(count);
    shuffle(examples, order.derive(epoch));
    for (Index first = 0; first + rule.batch <= count; first += rule.batch) {
      for (Index i = 0; i < rule.batch; ++i) {
        const Index example = examples[first + i];
        std::copy_n(teachers.values.data() + example * width, width, rows.data() + i * width);
        labels[i] = teachers.labels[example];
      }
      const Tensor<T> targets = one_hot<T>(labels, classes);
      const ClassificationBatch<T> batch({as_images(rows)}, targets.view(), labels.data());
      gradient.run(batch, RandomStream());
      optimizer.step(parameters, gradient.gradients(), {lr, 0}, 1);
    }
  }
  Tensor<T> logits(Shape{test.shape()[0], classes});
  Inference<T>(model, parameters, microbatch).run({as_images(test)}, logits.data());
  require_finite_answers(std::span<const T>(logits.data(), logits.size()), "logit of the linear classifier");
  return logits;
}

Evaluation judge_scores(const Tensor<double>& scores, const std::vector<int>& labels) {
  Evaluation result{{}, std::vector<double>(classification_counts(scores.shape()[1]))};
  result.score = judge_logits(scores.view(), labels.data(), result.counts);
  result.score.loss = -result.score.terms;
  return result;
}

#define INSTANTIATE(T)                                                                                 \
  template std::unique_ptr<Loader<T>> plain_images(const ImageSelection&, Index);                      \
  template Features<T> features_of(const Model&, Parameters<T>&, const ImageSelection&, Index, Index); \
  template Features<T> pixels_of(const ImageSelection&);                                               \
  template Tensor<T> linear_logits(const Features<T>&, const Tensor<T>&, Index, const LinearRule&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace heed
