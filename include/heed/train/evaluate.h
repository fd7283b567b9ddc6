// How well a model does on a set of images.
#pragma once

#include "heed/data/loader.h"
#include "heed/train/step.h"

#include <atomic>

namespace heed {

struct Evaluation {
  Index images = 0;
  double loss = 0;                 ///< mean cross entropy with the labels, without smoothing
  Index top1 = 0, top5 = 0;        ///< images whose label has the largest logit, or is among the five largest
  Tensor<std::int64_t> confusion;  ///< [classes, classes]: images of class (row) taken for class (column)

  double accuracy() const { return images == 0 ? 0 : static_cast<double>(top1) / static_cast<double>(images); }
};

/// Goes once through `loader`, which must not be a training one. If `interrupt` becomes true, stops early; the
/// result then covers fewer images than the loader has.
template <class T>
Evaluation evaluate(const VisionTransformer& model, Parameters<T>& parameters, Loader<T>& loader, Index piece,
                    const std::atomic<bool>* interrupt = nullptr);

}  // namespace heed
