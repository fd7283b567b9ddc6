// Layers: tensors declared once, applied on a tape of any number type.
#pragma once

#include "heed/ops/layer_norm.h"
#include "heed/ops/linear.h"

#include <string>

namespace heed {

/// y = x W^T + b. Tensors NAME.weight [out, in], truncated normal with standard deviation 0.02, and NAME.bias
/// [out], zero.
class LinearLayer {
 public:
  LinearLayer(ParameterList& list, std::string name, Index in, Index out) : name_(std::move(name)) {
    weight_ = list.add({.name = name_ + ".weight",
                        .shape = {out, in},
                        .initial = Initial::truncated_normal(0.02),
                        .multiplied = true});
    bias_ = list.add({name_ + ".bias", {out}, Initial::constant(0), false});
  }

  /// x [..., in] to [..., out]; `residual` [..., out] is added if given.
  template <class T>
  Var<T> operator()(Var<T> x, Var<T> residual = {}) const {
    Tape<T>& tape = x.tape();
    const typename Tape<T>::Scope scope(tape, name_);
    return linear(x, tape.parameter(weight_), tape.parameter(bias_), residual);
  }

 private:
  std::string name_;
  ParameterId weight_, bias_;
};

/// Layer norm over the last axis. Tensors NAME.weight, one, and NAME.bias, zero.
class LayerNormLayer {
 public:
  LayerNormLayer(ParameterList& list, std::string name, Index width) : name_(std::move(name)) {
    weight_ = list.add({name_ + ".weight", {width}, Initial::constant(1), false});
    bias_ = list.add({name_ + ".bias", {width}, Initial::constant(0), false});
  }

  template <class T>
  Var<T> operator()(Var<T> x) const {
    Tape<T>& tape = x.tape();
    const typename Tape<T>::Scope scope(tape, name_);
    return layer_norm(x, tape.parameter(weight_), tape.parameter(bias_), eps);
  }

  static constexpr double eps = 1e-6;
  ParameterId weight() const { return weight_; }
  ParameterId bias() const { return bias_; }

 private:
  std::string name_;
  ParameterId weight_, bias_;
};

}  // namespace heed
