// [dino] of an experiment: self-distillation without labels. Caron, Touvron, Misra, Jegou, Mairal, Bojanowski, Joulin,
// "Emerging properties in self-supervised vision transformers", arXiv:2104.14294v2.
#pragma once

#include "heed/config/field.h"
#include "heed/base/tensor.h"

#include <vector>

namespace heed {

/// Minimum temperature: division by a smaller one may overflow float.
inline constexpr double least_temperature = 1e-6;

/// [dino]; fields() below documents the keys.
struct DinoConfig {
  Index out_dim = 65536;
  Index hidden = 2048;
  Index bottleneck = 256;
  bool norm_last_layer = true;
  Index freeze_last_layer = 1;
  Index local_crops = 8;
  std::vector<double> global_scale = {0.4, 1.0};
  std::vector<double> local_scale = {0.05, 0.4};
  Index local_size = 96;
  double student_temp = 0.1;
  double teacher_temp = 0.04;
  double teacher_temp_start = 0.04;
  Index teacher_temp_warmup = 0;
  double center_momentum = 0.9;
  double ema = 0.996;

  bool operator==(const DinoConfig&) const = default;
};

/// Visits the keys of [dino].
template <MaybeConst<DinoConfig> Config, class Visit>
void fields(Config& c, Visit&& visit) {
  const Rule share{.low = 0, .high = 1, .above_low = true};
  const Rule temperature = at_least(least_temperature);
  visit("out_dim", c.out_dim, between(2, 1e6), "outputs of the head");
  visit("hidden", c.hidden, one_or_more(), "width of the head's two hidden layers");
  visit("bottleneck", c.bottleneck, one_or_more(), "width of the normalised layer before the head's last layer");
  visit("norm_last_layer", c.norm_last_layer, anything(), "rows of the last layer's weight have length 1");
  visit("freeze_last_layer", c.freeze_last_layer, at_least(0), "epochs in which the last layer is not trained");
  visit("local_crops", c.local_crops, between(0, 100), "small views per image, in addition to two large ones");
  visit("global_scale", c.global_scale, share, "fraction of the image's area in a large view, minimum and maximum");
  visit("local_scale", c.local_scale, share, "fraction of the image's area in a small view, minimum and maximum");
  visit("local_size", c.local_size, one_or_more(), "side length of a small view");
  visit("student_temp", c.student_temp, temperature, "temperature of the softmax over the student's outputs");
  visit("teacher_temp", c.teacher_temp, temperature, "temperature of the softmax over the teacher's outputs");
  visit("teacher_temp_start", c.teacher_temp_start, temperature, "teacher_temp in the first epoch of its warm-up");
  visit("teacher_temp_warmup", c.teacher_temp_warmup, at_least(0),
        "epochs in which teacher_temp rises from teacher_temp_start");
  visit("center_momentum", c.center_momentum, between(0, 1), "decay of the mean of the teacher's outputs");
  visit("ema", c.ema, between(0, 1), "decay of the teacher's weights, which rises to 1 along a cosine");
}

}  // namespace heed
