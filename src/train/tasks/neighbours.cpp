#include "neighbours.h"

#include "heed/data/loader.h"
#include "heed/train/tasks/classification.h"

#include <optional>

namespace heed {

namespace {

/// A batch whose logits are class scores.
template <class T>
class JudgedImages : public TaskBatch<T> {
 public:
  JudgedImages(View<const T> images, const int* labels, const Neighbours<T>& neighbours)
      : images_(images), labels_(labels), neighbours_(neighbours) {}

  Index size() const override { return images_.shape()[0]; }
  Index terms() const override { return size(); }
  Var<T> logits(const Model& model, Tape<T>& tape, ExampleRange microbatch, const AttentionVisitor<T>*) const override {
    Var<T> x;
    model.features(tape, ModelInput<T>{.images = images_.part(microbatch.first, microbatch.count)}, std::span(&x, 1));
    Tensor<T> features(x.shape());
    std::copy_n(x.data(), x.size(), features.data());
    const Tensor<double> scores = neighbours_.scores(std::move(features));
    T* const kept = tape.memory(scores.size());
    std::transform(scores.begin(), scores.end(), kept, [](double score) { return static_cast<T>(score); });
    return tape.constant({kept, scores.shape()});
  }
  Var<T> loss(Var<T> scores, ExampleRange, Index) const override { return scores; }
  Index correct(View<const T>, ExampleRange) const override { return 0; }
  Score judge(View<const T> scores, ExampleRange microbatch, std::span<double> counts) const override {
    Score score = judge_logits(scores, labels_ + microbatch.first, counts);
    score.loss = -score.terms;
    return score;
  }

 private:
  View<const T> images_;
  const int* labels_;
  const Neighbours<T>& neighbours_;
};

template <class T>
class NeighbourSource : public BatchSource<T> {
 public:
  NeighbourSource(const Model& model, Parameters<T>& parameters, ImageSelection teachers, const ImageSelection& judged,
                  const TrainConfig& train)
      : model_(model),
        parameters_(parameters),
        teachers_(std::move(teachers)),
        count_(static_cast<Index>(judged.images.size())),
        classes_(static_cast<Index>(judged.set->class_names().size())),
        microbatch_(microbatch_of(train)),
        loader_(plain_images<T>(judged, train.batch)) {}

  Index examples() const override { return count_; }
  Index batches() const override { return loader_->batches(); }

  void start(Index, Index) override {
    neighbours_.emplace(features_of(model_, parameters_, teachers_, 1, microbatch_), classes_, NeighbourRule{});
    loader_->start(0);
  }

  const TaskBatch<T>* next() override {
    const Batch<T>* const batch = loader_->next();
    if (!batch) return nullptr;
    return &batch_.emplace(batch->images.view().part(0, batch->size), batch->labels.data(), *neighbours_);
  }

 private:
  const Model& model_;
  Parameters<T>& parameters_;
  ImageSelection teachers_;
  Index count_, classes_, microbatch_;
  std::unique_ptr<Loader<T>> loader_;
  std::optional<Neighbours<T>> neighbours_;
  std::optional<JudgedImages<T>> batch_;
};

}  // namespace

template <class T>
std::unique_ptr<BatchSource<T>> neighbour_source(const Model& model, Parameters<T>& parameters, ImageSelection teachers,
                                                 const ImageSelection& judged, const TrainConfig& train) {
  return std::make_unique<NeighbourSource<T>>(model, parameters, std::move(teachers), judged, train);
}

template std::unique_ptr<BatchSource<float>> neighbour_source(const Model&, Parameters<float>&, ImageSelection,
                                                              const ImageSelection&, const TrainConfig&);
template std::unique_ptr<BatchSource<double>> neighbour_source(const Model&, Parameters<double>&, ImageSelection,
                                                               const ImageSelection&, const TrainConfig&);

}  // namespace heed
