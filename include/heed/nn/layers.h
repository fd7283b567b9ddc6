// Layers that declare their tensors once and run on a tape of any number type.
#pragma once

#include "heed/cost/counted.h"
#include "heed/ops/activation.h"
#include "heed/ops/layer_norm.h"
#include "heed/ops/linear.h"

#include <string>

namespace heed {

/// Returns true if a pass may fuse operations and skip tokens without effect on the results. Returns false for Counted
/// and, unless Observers::trace_fused is set, for dry runs and traced passes, since counts include every operation
/// separately, as in papers.
template <class T>
bool takes_shortcuts(const Tape<T>& tape) {
  const Pass<T>& pass = tape.pass();
  return !std::is_same_v<T, Counted> &&
         (pass.observers.trace_fused || (!pass.execution.dry_run && pass.observers.trace == nullptr));
}

/// Returns the parameter, or an empty handle for an id below 0.
template <class T>
Var<T> parameter_or_none(Tape<T>& tape, ParameterId id) {
  return id < 0 ? Var<T>{} : tape.parameter(id);
}

/// Layer norm over the last axis. Tensors NAME.weight, initially one, and NAME.bias, initially zero.
class LayerNormLayer {
 public:
  LayerNormLayer(ParameterList& list, std::string name, Index width, double eps = usual_eps)
      : name_(std::move(name)), eps_(eps) {
    weight_ = list.add({name_ + ".weight", {width}, Initial::constant(1), false});
    bias_ = list.add({name_ + ".bias", {width}, Initial::constant(0), false});
  }

  template <class T>
  Var<T> operator()(Var<T> x) const {
    Tape<T>& tape = x.tape();
    const typename Tape<T>::Scope scope(tape, name_);
    return layer_norm(x, tape.parameter(weight_), tape.parameter(bias_), eps_);
  }

  /// Computes norm(x) W^T + b + r in one operation.
  template <class T>
  Var<T> linear(Var<T> x, Var<T> weight, Var<T> bias, Var<T> residual) const {
    Tape<T>& tape = x.tape();
    return layer_norm_linear(x, tape.parameter(weight_), tape.parameter(bias_), weight, bias, residual, eps_);
  }

  static constexpr double usual_eps = 1e-6;
  ParameterId weight() const { return weight_; }
  ParameterId bias() const { return bias_; }

 private:
  std::string name_;
  double eps_;
  ParameterId weight_, bias_;
};

/// Activation by name: "gelu", "relu", "gelu_tanh", "quick_gelu" or "none".
class ActivationLayer {
 public:
  ActivationLayer(std::string name, std::string function) : name_(std::move(name)), function_(std::move(function)) {}

  template <class T>
  Var<T> operator()(Var<T> x) const {
    const typename Tape<T>::Scope scope(x.tape(), name_);
    if (function_ == "gelu") return gelu(x);
    if (function_ == "relu") return relu(x);
    if (function_ == "gelu_tanh") return gelu_tanh(x);
    return function_ == "quick_gelu" ? quick_gelu(x) : x;
  }

  /// Computes act(x) W^T + b + r in one operation.
  template <class T>
  Var<T> linear(Var<T> x, Var<T> weight, Var<T> bias, Var<T> residual) const {
    if (function_ == "gelu") return gelu_linear(x, weight, bias, residual);
    if (function_ == "relu") return relu_linear(x, weight, bias, residual);
    if (function_ == "gelu_tanh") return gelu_tanh_linear(x, weight, bias, residual);
    if (function_ == "quick_gelu") return quick_gelu_linear(x, weight, bias, residual);
    return heed::linear(x, weight, bias, residual);
  }

  const std::string& name() const { return name_; }

 private:
  std::string name_, function_;
};

/// y = x W^T + b. Tensors NAME.weight [out, in], truncated normal with standard deviation 0.02, and optionally
/// NAME.bias [out], initially zero.
class LinearLayer {
 public:
  LinearLayer(ParameterList& list, std::string name, Index in, Index out, bool bias = true) : name_(std::move(name)) {
    weight_ = list.add({.name = name_ + ".weight",
                        .shape = {out, in},
                        .initial = Initial::truncated_normal(0.02),
                        .multiplied = Multiplied::linear});
    if (bias) bias_ = list.add({name_ + ".bias", {out}, Initial::constant(0), false});
  }

  /// Constructs a layer that shares the weight [out, in] of another layer.
  LinearLayer(ParameterList& list, std::string name, ParameterId weight) : name_(std::move(name)), weight_(weight) {
    bias_ = list.add({name_ + ".bias", {list[weight].shape[0]}, Initial::constant(0), false});
  }

  /// Maps x [..., in] to [..., out]; adds `residual` [..., out] if given.
  template <class T>
  Var<T> operator()(Var<T> x, Var<T> residual = {}) const {
    Tape<T>& tape = x.tape();
    const typename Tape<T>::Scope scope(tape, name_);
    return linear(x, tape.parameter(weight_), parameter_or_none(tape, bias_), residual);
  }

  /// Applies the layer to before(x), a norm or an activation.
  template <class Before, class T>
  Var<T> after(const Before& before, Var<T> x, Var<T> residual = {}) const {
    Tape<T>& tape = x.tape();
    if (!takes_shortcuts(tape)) return (*this)(before(x), residual);
    const typename Tape<T>::Scope scope(tape, name_);
    return before.linear(x, tape.parameter(weight_), parameter_or_none(tape, bias_), residual);
  }

 private:
  std::string name_;
  ParameterId weight_, bias_ = -1;
};

}  // namespace heed
