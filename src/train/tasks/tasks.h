// Tasks of make_task() other than image classification (train/tasks/classification.h).
#pragma once

#include "heed/train/tasks/task.h"

namespace heed {

/// Patch classification on scenes (data/readers/scenes.h). The loss is the mean cross entropy over patches. The
/// accuracy of an evaluation is the mean intersection over union of the classes that occur: the number of patches with
/// this class as label and prediction, divided by those with it as label or prediction.
template <class T>
std::unique_ptr<Task<T>> make_patch_classification(const Experiment& experiment, const Model& model);

/// Returns the intersection over union of each class, -1 for an empty union, from counts [classes, classes] of patches
/// by label and prediction.
std::vector<double> overlaps_of(const std::vector<double>& counts, Index classes);

/// Prediction of the next byte of a text, or of the next channel value of an image.
template <class T>
std::unique_ptr<Task<T>> make_language(const Experiment& experiment, const Model& model);

/// Classification of sequences, or of pairs of sequences.
template <class T>
std::unique_ptr<Task<T>> make_sequence_classification(const Experiment& experiment, const Model& model);

/// Self-supervision by a teacher, for a model of nn/dino.h; for a plain backbone, open() throws Error.
template <class T>
std::unique_ptr<Task<T>> make_dino(const Experiment& experiment, const Model& model);

}  // namespace heed
