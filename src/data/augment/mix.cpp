// Mixup and cutmix: each combines pairs of a batch's images, and their targets.
#include "heed/base/math.h"

#include "augment.h"

#include <algorithm>
#include <cmath>

namespace heed {

namespace {

/// Returns the logarithm of a Gamma(shape) variate: Marsaglia and Tsang, "A simple method for generating gamma
/// variables", 2000. Below shape 1, Gamma(a) = Gamma(a + 1) U^(1/a); the logarithm of this product does not underflow
/// for small a.
double log_gamma_variate(double shape, const RandomStream& stream) {
  if (shape < 1) return log_gamma_variate(shape + 1, stream) + math::log(1 - stream.derive("power").uniform(0)) / shape;
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  const RandomStream uniform = stream.derive("accept");
  for (Index k = 0;; ++k) {
    const double z = stream.normal(k), root = 1 + c * z, v = root * root * root;
    if (root > 0 && math::log(1 - uniform.uniform(k)) < 0.5 * z * z + d - d * v + d * math::log(v))
      return math::log(d * v);
  }
}

/// Draws from Beta(alpha, alpha): x / (x + y) of two Gamma(alpha) variates.
double beta_variate(double alpha, const RandomStream& stream) {
  const double x = log_gamma_variate(alpha, stream.derive(0)), y = log_gamma_variate(alpha, stream.derive(1));
  return 1 / (1 + math::exp(y - x));
}

/// Draws a rectangle of about the fraction `part` of the area, centred anywhere in the image and clipped to it.
Box draw_box(ImageSize size, double part, const RandomStream& stream) {
  const double side = std::sqrt(part);
  const Index height = static_cast<Index>(side * static_cast<double>(size.height));
  const Index width = static_cast<Index>(side * static_cast<double>(size.width));
  const Index top = stream.below(0, size.height) - height / 2, left = stream.below(1, size.width) - width / 2;
  return {std::max<Index>(top, 0), std::max<Index>(left, 0), std::min(top + height, size.height),
          std::min(left + width, size.width)};
}

/// (a, b) := (keep a + (1 - keep) b, keep b + (1 - keep) a), element by element.
template <class T>
void blend(T* a, T* b, Index count, T keep) {
  for (Index i = 0; i < count; ++i) {
    const T x = a[i], y = b[i];
    a[i] = keep * x + (1 - keep) * y;
    b[i] = keep * y + (1 - keep) * x;
  }
}

}  // namespace

Mix draw_mix(const Augmentations& which, const DataConfig& config, ImageSize size, const RandomStream& stream) {
  Mix mix;
  if (!which.mixup && !which.cutmix) return mix;
  mix.cut = which.cutmix && (!which.mixup || stream.derive("choice").below(0, 2) == 1);
  mix.keep = beta_variate(mix.cut ? config.cutmix_alpha : config.mixup_alpha, stream.derive("keep"));
  if (mix.cut) {
    mix.box = draw_box(size, 1 - mix.keep, stream.derive("box"));
    mix.keep = 1 - static_cast<double>(mix.box.area()) / static_cast<double>(size.pixels());
  }
  return mix;
}

template <class T>
void apply_mix(const Mix& mix, View<T> images, View<T> targets) {
  const Index batch = images.shape()[0], channels = images.shape()[1], height = images.shape()[2],
              width = images.shape()[3], classes = targets.shape()[1], elements = channels * height * width;
  for (Index i = 0, j = batch - 1; i < j; ++i, --j) {
    T *a = images.data() + i * elements, *b = images.data() + j * elements;
    if (mix.cut) {
      for (Index c = 0; c < channels; ++c)
        for (Index y = mix.box.top; y < mix.box.bottom; ++y) {
          const Index row = (c * height + y) * width;
          std::swap_ranges(a + row + mix.box.left, a + row + mix.box.right, b + row + mix.box.left);
        }
    } else {
      blend(a, b, elements, static_cast<T>(mix.keep));
    }
    blend(targets.data() + i * classes, targets.data() + j * classes, classes, static_cast<T>(mix.keep));
  }
}

template void apply_mix(const Mix&, View<float>, View<float>);
template void apply_mix(const Mix&, View<double>, View<double>);

}  // namespace heed
