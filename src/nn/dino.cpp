#include "heed/nn/dino.h"

#include "heed/base/suggest.h"
#include "heed/kernels/rows/unit_rows.h"
#include "heed/nn/families.h"
#include "heed/ops/rows.h"
#include "heed/tape/preparation.h"

namespace heed {

namespace {

/// Computation of W = g u, where u = v / |v|, row by row, and of the gradients of v and g. Without g, W = u.
///
///   dg = dW . u,   dv = (dW' - u (u . dW')) / |v|,   dW' = g dW.
class NormalisedWeight : public Preparation {
 public:
  NormalisedWeight(ParameterId v, ParameterId g, ParameterId weight) : v_(v), g_(g), weight_(weight) {}

  void forward(const OfNumber<PreparationPass>& any) const override {
    std::visit([this](const auto& pass) { make(pass); }, any);
  }
  void backward(const OfNumber<PreparationPass>& any) const override {
    std::visit([this](const auto& pass) { undo(pass); }, any);
  }

 private:
  template <class T>
  static Matrix<T> rows_of(View<T> tensor) {
    return {tensor.data(), tensor.shape()[0], tensor.shape()[1]};
  }

  template <class T>
  void make(const PreparationPass<T>& pass) const {
    const Matrix<T> W = rows_of((*pass.parameters)[weight_]);
    kernels::unit_rows(rows_of(std::as_const(*pass.parameters)[v_]), thread_memory<T>(W.rows), W);
    if (g_ < 0) return;
    const View<T> g = (*pass.parameters)[g_];
    for (Index r = 0; r < W.rows; ++r)
      for (Index c = 0; c < W.columns; ++c) W(r, c) *= g[r];
  }

  template <class T>
  void undo(const PreparationPass<T>& pass) const {
    const Matrix<const T> v = rows_of(std::as_const(*pass.parameters)[v_]);
    const Matrix<T> dW = rows_of((*pass.gradients)[weight_]), dv = rows_of((*pass.gradients)[v_]);
    const Matrix<T> u(thread_memory<T>(v.size() + 2 * v.rows), v.rows, v.columns);
    T *const divisors = u.data + u.size(), *const dots = divisors + v.rows;
    kernels::unit_rows(v, divisors, u);
    if (g_ >= 0) {
      kernels::row_dots<T>(dW, u, dots);
      write_all(Update::accumulate, v.rows, dots, (*pass.gradients)[g_].data());
      const View<T> g = (*pass.parameters)[g_];
      for (Index r = 0; r < v.rows; ++r)
        for (Index c = 0; c < v.columns; ++c) dW(r, c) *= g[r];
    }
    kernels::unit_rows_backward<T>(u, divisors, dW, Update::accumulate, dots, dv);
  }

  ParameterId v_, g_, weight_;
};

/// Reshapes images [B, n, C, H, W] to [B n, C, H, W].
template <class T>
View<const T> all_views(View<const T> views) {
  const Shape& s = views.shape();
  return {views.data(), Shape{s[0] * s[1], s[2], s[3], s[4]}};
}

template <class T>
Var<T> features_of(const Model& backbone, Tape<T>& tape, View<const T> views) {
  Var<T> features;
  backbone.features(tape, ModelInput<T>{.images = all_views(views)}, std::span(&features, 1));
  return features;
}

}  // namespace

DinoHead::DinoHead(ParameterList& list, const std::string& prefix, Index dim, const DinoConfig& config)
    : first_(list, prefix + "mlp.0", dim, config.hidden),
      hidden_(list, prefix + "mlp.2", config.hidden, config.hidden),
      project_(list, prefix + "mlp.4", config.hidden, config.bottleneck),
      act1_(prefix + "mlp.1", "gelu"),
      act2_(prefix + "mlp.3", "gelu"),
      last_name_(prefix + "last_layer") {
  const Shape shape{config.out_dim, config.bottleneck};
  const double bound = 1 / std::sqrt(static_cast<double>(config.bottleneck));
  const ParameterId v = list.add({last_name_ + ".weight_v", shape, Initial::uniform(bound)});
  const ParameterId g =
      config.norm_last_layer ? -1 : list.add({last_name_ + ".weight_g", {config.out_dim, 1}, Initial::constant(1)});
  last_ = list.add({.name = last_name_ + ".weight",
                    .shape = shape,
                    .initial = Initial::constant(0),
                    .decay = false,
                    .trainable = false,
                    .prepared = true});
  list.prepare_by(std::make_shared<NormalisedWeight>(v, g, last_));
}

DinoModel::DinoModel(const Experiment& experiment) : config_(experiment.dino), large_(make_backbone(experiment)) {
  list_ = large_->parameters();
  const ParameterId first = list_.size();
  head_.emplace(list_, dino_prefix, large_->feature_sizes().width, config_);
  list_.for_training_only(first);
  if (config_.local_crops == 0) return;
  Experiment of_small = experiment;
  of_small.model.image = config_.local_size;
  try {
    small_ = make_backbone(of_small);
  } catch (const Error& error) {
    fail("[dino] local_size = {}: {}", config_.local_size, error.what());
  }
  const std::string tied = tensor_of_one_size(large_->parameters(), small_->parameters());
  require(tied.empty(),
          "[dino] local_size = {}: the size of tensor {} depends on the image, {}; only pos_embed can be interpolated",
          config_.local_size, in_quotes(tied), experiment.model.image.height);
}

ModelInput<float> DinoModel::example() const {
  const auto views = [](const Model& backbone, Index count) {
    const Shape one = backbone.image_shape();
    return View<const float>{nullptr, Shape{1, count, one[0], one[1], one[2]}};
  };
  ModelInput<float> example{.images = views(*large_, 2)};
  if (small_) example.crops = views(*small_, config_.local_crops);
  return example;
}

/// Returns the sum, over the views of an example, of most_operations() of the view's backbone and an upper bound for
/// the head: `margin` times the sum of products of its sizes, far above its operations.
double DinoModel::most_operations() const {
  const double h = static_cast<double>(config_.hidden), b = static_cast<double>(config_.bottleneck);
  const double head =
      (static_cast<double>(feature_sizes().width) + h + b) * h + b * static_cast<double>(config_.out_dim);
  constexpr double margin = 100;
  const double large = large_->most_operations(), small = small_ ? small_->most_operations() : 0;
  return 2 * (large + margin * head) + static_cast<double>(config_.local_crops) * (small + margin * head);
}

template <class T>
Var<T> DinoModel::run_logits(const ModelPass<T>& pass) const {
  Tape<T>& tape = pass.tape;
  if (!pass.features.empty()) {
    large_->features(tape, pass.examples, pass.features);
    return pass.features.back();
  }
  const View<const T> large = pass.examples.images, small = pass.examples.crops;
  require(large.shape().rank() == 5 && large.shape()[1] == 2,
          "[model] views of images have shape {}; expected [B, 2, C, H, W]", large.shape());
  const Index first = tape.pass().examples.first;
  const RandomStream random = tape.pass().random;
  tape.count_images_from(2 * first, random);
  Var<T> x = features_of(*large_, tape, large);
  if (small.shape().rank() == 5) {
    tape.count_images_from(small.shape()[1] * first, random.derive("small views"));
    x = join_rows(x, features_of(*small_, tape, small));
  }
  return (*head_)(x);
}

template Var<float> DinoModel::run_logits(const ModelPass<float>&) const;
template Var<double> DinoModel::run_logits(const ModelPass<double>&) const;
template Var<Counted> DinoModel::run_logits(const ModelPass<Counted>&) const;

}  // namespace heed
