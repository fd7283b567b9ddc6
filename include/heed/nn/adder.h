// Layers of an adder transformer: l1 distances instead of products, each followed by layer norm. Shu et al., "Adder
// attention for vision transformer", NeurIPS 2021, Section 3. Distances are large and of one sign; without the norms,
// later layers could not distinguish them.
//
// Differs from the paper: adder layers have biases (its Eq. 4 has none). The paper's code is not public; norms after
// the output projection and after the feed-forward layers follow from its phrase "the output values of each layer".
#pragma once

#include "heed/config/experiment.h"
#include "heed/nn/layers.h"
#include "heed/ops/adder_linear.h"
#include "heed/ops/elementary/arithmetic.h"
#include "heed/ops/layer_norm_parts.h"

#include <optional>
#include <variant>

namespace heed {

/// Returns the options for the gradients of adder layers from the validated keys of [model].
inline AdderLinearOptions adder_options(const ModelConfig& config) {
  using Scale = AdderLinearOptions::WeightScale;
  const auto gradient = [](const std::string& name) {
    return name == "sign"       ? DistanceGradient::sign
           : name == "hardtanh" ? DistanceGradient::hardtanh
                                : DistanceGradient::full;
  };
  return {gradient(config.input_grad), gradient(config.weight_grad),
          config.weight_scale == "adaptive" ? Scale::adaptive : Scale::none};
}

/// Consecutive outputs of a projection with a common norm, and that norm's name.
struct ProjectionPart {
  std::string norm;
  Index width = 0;
};

/// y = adder_linear(x), followed by a separate norm of each part. Tensors, with initial values: NAME.weight [out, in],
/// N(0, 1); optionally NAME.bias [out], 0; and the weight, 1, and bias, 0, of the norm of each part.
class AdderLayer {
 public:
  AdderLayer(ParameterList& list, std::string name, Index in, std::vector<ProjectionPart> parts,
             const AdderLinearOptions& options, bool bias)
      : name_(std::move(name)), parts_(std::move(parts)), options_(options) {
    Index out = 0;
    ParameterSpec weight;
    for (const ProjectionPart& part : parts_) {
      out += part.width;
      if (options.weight_scale == AdderLinearOptions::WeightScale::adaptive) weight.scaled_rows.push_back(part.width);
    }
    weight.name = name_ + ".weight";
    weight.shape = {out, in};
    weight.initial = Initial::normal(1);
    weight_ = list.add(std::move(weight));
    if (bias) bias_ = list.add({name_ + ".bias", {out}, Initial::constant(0), false});
    for (const ProjectionPart& part : parts_) {
      gammas_.push_back(list.add({part.norm + ".weight", {part.width}, Initial::constant(1), false}));
      betas_.push_back(list.add({part.norm + ".bias", {part.width}, Initial::constant(0), false}));
    }
  }

  /// Maps x [..., in] to [..., out]; adds `residual` [..., out] if given.
  template <class T>
  Var<T> operator()(Var<T> x, Var<T> residual = {}) const {
    Tape<T>& tape = x.tape();
    const typename Tape<T>::Scope scope(tape, name_);
    const Var<T> distances = adder_linear(x, tape.parameter(weight_), parameter_or_none(tape, bias_), options_);
    std::vector<NormPart<T>> norms;
    for (std::size_t i = 0; i < parts_.size(); ++i)
      norms.push_back({tape.parameter(gammas_[i]), tape.parameter(betas_[i])});
    const std::span<const NormPart<T>> list(norms);
    if (!residual || takes_shortcuts(tape)) return layer_norm_parts(distances, list, residual);
    return add(layer_norm_parts(distances, list), residual);
  }

  /// Applies the layer to before(x), a norm or an activation.
  template <class Before, class T>
  Var<T> after(const Before& before, Var<T> x, Var<T> residual = {}) const {
    return (*this)(before(x), residual);
  }

 private:
  std::string name_;
  std::vector<ProjectionPart> parts_;
  AdderLinearOptions options_;
  ParameterId weight_, bias_ = -1;
  std::vector<ParameterId> gammas_, betas_;
};

/// A linear layer of a block, computed by products or, if `adder` is given, by distances.
class Projection {
 public:
  Projection(ParameterList& list, const std::string& name, Index in, std::vector<ProjectionPart> parts,
             const std::optional<AdderLinearOptions>& adder, bool bias = true)
      : layer_(make(list, name, in, std::move(parts), adder, bias)) {}

  /// Constructs a projection with one norm, NAME_ln.
  Projection(ParameterList& list, const std::string& name, Index in, Index out,
             const std::optional<AdderLinearOptions>& adder)
      : Projection(list, name, in, {{name + "_ln", out}}, adder) {}

  /// Maps x [..., in] to [..., out]; adds `residual` [..., out] if given.
  template <class T>
  Var<T> operator()(Var<T> x, Var<T> residual = {}) const {
    return std::visit([&](const auto& layer) { return layer(x, residual); }, layer_);
  }

  /// Applies the layer to before(x), a norm or an activation.
  template <class Before, class T>
  Var<T> after(const Before& before, Var<T> x, Var<T> residual = {}) const {
    return std::visit([&](const auto& layer) { return layer.after(before, x, residual); }, layer_);
  }

 private:
  using Layer = std::variant<LinearLayer, AdderLayer>;

  static Layer make(ParameterList& list, const std::string& name, Index in, std::vector<ProjectionPart> parts,
                    const std::optional<AdderLinearOptions>& adder, bool bias) {
    if (adder) return AdderLayer(list, name, in, std::move(parts), *adder, bias);
    Index out = 0;
    for (const ProjectionPart& part : parts) out += part.width;
    return LinearLayer(list, name, in, out, bias);
  }

  Layer layer_;
};

/// Applies adaptive_scale() to each row group of the weights that declare scaled_rows. Called once per step, with the
/// gradients of the whole batch.
template <class T>
void scale_adaptively(const ParameterList& list, Gradients<T>& gradients) {
  for (ParameterId id = 0; id < list.size(); ++id) {
    T* part = list[id].scaled_rows.empty() ? nullptr : gradients[id].data();
    for (const Index rows : list[id].scaled_rows) {
      const Index size = rows * list[id].shape.row_size();
      adaptive_scale(size, part);
      part += size;
    }
  }
}

}  // namespace heed
