// Image layers on grids stored as token rows: convolutions and batch norm.
#pragma once

#include "heed/ops/batch_norm.h"
#include "heed/ops/conv2d.h"
#include "heed/base/parameters.h"
#include "heed/kernels/grids/windows.h"

#include <cmath>

namespace heed {

/// Returns U(+-1 / sqrt(fan_in)), the initial distribution of the weights and biases of convolutions.
inline Initial convolution_initial(Index fan_in) {
  return Initial::uniform(1 / std::sqrt(static_cast<double>(fan_in)));
}

/// Square window of a convolution.
struct Window {
  Index kernel = 3, stride = 1, padding = 1;

  bool centred() const { return kernels::Windows{.kernel = kernel, .stride = stride, .padding = padding}.centred(); }
  ConvGrid on(Index height, Index width) const { return {height, width, stride, padding}; }
};

/// A convolution, dense or depth-wise. Tensors NAME.weight [out, in, k, k], or [channels, 1, k, k], and optionally
/// NAME.bias [out].
class ConvLayer {
 public:
  enum class Kind { dense, depthwise };

  ConvLayer(ParameterList& list, std::string name, Kind kind, Index in, Index out, const Window& window, bool bias)
      : name_(std::move(name)), kind_(kind), window_(window) {
    const Index k = window.kernel, inputs = kind == Kind::dense ? in : 1, fan_in = inputs * k * k;
    const auto multiplied = kind == Kind::depthwise ? Multiplied::no
                            : window.centred()      ? Multiplied::centred_convolution
                                                    : Multiplied::convolution;
    weight_ = list.add({.name = name_ + ".weight",
                        .shape = {out, inputs, k, k},
                        .initial = convolution_initial(fan_in),
                        .multiplied = multiplied});
    if (bias) bias_ = list.add({name_ + ".bias", {out}, convolution_initial(fan_in), false});
  }

  /// Returns the output side for an input side.
  Index out(Index side) const { return window_.on(side, side).out_height(window_.kernel); }

  /// Maps x [B, side^2, in] to [B, out(side)^2, out].
  template <class T>
  Var<T> operator()(Var<T> x, Index side) const {
    Tape<T>& tape = x.tape();
    const typename Tape<T>::Scope scope(tape, name_);
    const Var<T> weight = tape.parameter(weight_), bias = bias_ < 0 ? Var<T>{} : tape.parameter(bias_);
    const ConvGrid grid = window_.on(side, side);
    return kind_ == Kind::dense ? conv2d(x, weight, bias, grid) : depthwise_conv2d(x, weight, bias, grid);
  }

 private:
  std::string name_;
  Kind kind_;
  Window window_;
  ParameterId weight_, bias_ = -1;
};

/// Batch norm over the images of a group and all positions. Tensors NAME.weight (initially 1) and NAME.bias (0);
/// buffers NAME.running_mean (0) and NAME.running_var (1).
class BatchNormLayer {
 public:
  /// `group`: number of images normalised together; 0: all (BatchNormOptions).
  BatchNormLayer(ParameterList& list, std::string name, Index width, Index group)
      : name_(std::move(name)), options_{.group = group} {
    weight_ = list.add({name_ + ".weight", {width}, Initial::constant(1), false});
    bias_ = list.add({name_ + ".bias", {width}, Initial::constant(0), false});
    const auto add_running = [&](const char* statistic, double start, bool nonnegative) {
      return list.add({.name = name_ + statistic,
                       .shape = {width},
                       .initial = Initial::constant(start),
                       .decay = false,
                       .trainable = false,
                       .running = true,
                       .nonnegative = nonnegative});
    };
    mean_ = add_running(".running_mean", 0, false);
    variance_ = add_running(".running_var", 1, true);
  }

  /// Maps x [B, N, width] to the same shape. Throws Error in training if each channel has a single value.
  template <class T>
  Var<T> operator()(Var<T> x) const {
    Tape<T>& tape = x.tape();
    const typename Tape<T>::Scope scope(tape, name_);
    require(!tape.training() || tape.pass().execution.dry_run || values_together(tape, x.shape(), options_) > 1,
            "[model] {}: training needs at least two values per channel, but one image on a 1 x 1 grid has one; "
            "increase train.batch, bn_group or image",
            name_);
    return batch_norm(x, tape.parameter(weight_), tape.parameter(bias_), tape.buffer(mean_), tape.buffer(variance_),
                      options_);
  }

 private:
  std::string name_;
  BatchNormOptions options_;
  ParameterId weight_, bias_, mean_, variance_;
};

}  // namespace heed
