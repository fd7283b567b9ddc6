// Tasks of make_task() other than image classification (train/tasks/classification.h).
#pragma once

#include "heed/train/tasks/task.h"

namespace heed {

/// Returns the task of patch classification on scenes (data/readers/scenes.h). The loss is the mean cross entropy over
/// patches. The accuracy of an evaluation is the mean intersection over union of the classes that occur. The
/// intersection of a class is the number of patches with the class as label and prediction; the union is the number of
/// patches with the class as label or prediction.
template <class T>
std::unique_ptr<Task<T>> make_patch_classification(const Experiment& experiment, const Model& model);

/// Returns the intersection over union of each class, -1 for an empty union, from counts [classes, classes] of patches
/// by label and prediction.
std::vector<double> overlaps_of(const std::vector<double>& counts, Index classes);

/// Returns the task of predicting the next byte of a text or the next channel value of an image.
template <class T>
std::unique_ptr<Task<T>> make_language(const Experiment& experiment, const Model& model);

/// Returns the task of classifying sequences or pairs of sequences.
template <class T>
std::unique_ptr<Task<T>> make_sequence_classification(const Experiment& experiment, const Model& model);

/// Returns the task of self-distillation, for a model of nn/dino.h; for a plain backbone, the task's open() throws
/// Error.
template <class T>
std::unique_ptr<Task<T>> make_dino(const Experiment& experiment, const Model& model);

}  // namespace heed
