#include "heed/train/evaluate.h"

#include <cmath>

namespace heed {

namespace {

/// log sum exp(logits) - logits[label]
template <class T>
double cross_entropy_of(const T* logits, Index classes, Index label) {
  const double maximum = static_cast<double>(logits[largest_of(logits, classes)]);
  double sum = 0;
  for (Index c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(logits[c]) - maximum);
  return maximum + std::log(sum) - static_cast<double>(logits[label]);
}

/// Number of classes ranked before `label`; ties go to the lower class.
template <class T>
Index rank_of(const T* logits, Index classes, Index label) {
  Index before = 0;
  for (Index c = 0; c < classes; ++c) before += logits[c] > logits[label] || (logits[c] == logits[label] && c < label);
  return before;
}

}  // namespace

template <class T>
Evaluation evaluate(const VisionTransformer& model, Parameters<T>& parameters, Loader<T>& loader, Index piece,
                    const std::atomic<bool>* interrupt) {
  const Index classes = model.config().classes;
  Inference<T> inference(model, parameters, piece);
  Evaluation result;
  result.confusion = Tensor<std::int64_t>(Shape{classes, classes});
  Tensor<T> logits;
  double loss = 0;
  loader.start(0);
  while (const Batch<T>* batch = loader.next()) {
    if (interrupt && *interrupt) break;
    if (logits.size() < batch->size * classes) logits = Tensor<T>(Shape{batch->size, classes});
    const Shape& s = batch->images.shape();
    inference.run({batch->images.data(), Shape{batch->size, s[1], s[2], s[3]}}, logits.data());
    for (Index i = 0; i < batch->size; ++i) {
      const T* const row = logits.data() + i * classes;
      const Index label = batch->labels[static_cast<std::size_t>(i)], rank = rank_of(row, classes, label);
      loss += cross_entropy_of(row, classes, label);
      result.top1 += rank == 0;
      result.top5 += rank < 5;
      ++result.confusion[label * classes + largest_of(row, classes)];
    }
    result.images += batch->size;
  }
  result.loss = result.images == 0 ? 0 : loss / static_cast<double>(result.images);
  return result;
}

template Evaluation evaluate(const VisionTransformer&, Parameters<float>&, Loader<float>&, Index,
                             const std::atomic<bool>*);
template Evaluation evaluate(const VisionTransformer&, Parameters<double>&, Loader<double>&, Index,
                             const std::atomic<bool>*);

}  // namespace heed
