#include "heed/nn/prepared_attention.h"

namespace heed {

namespace {

class PreparedAttention : public Preparation {
 public:
  PreparedAttention(std::string layer, std::shared_ptr<const Mechanism> mechanism, const AttentionShape& shape,
                    std::vector<ParameterId> own, ParameterId prepared)
      : layer_(std::move(layer)),
        mechanism_(std::move(mechanism)),
        shape_(shape),
        own_(std::move(own)),
        prepared_(prepared) {}

  void forward(const OfNumber<PreparationPass>& any) const override {
    std::visit([this](const auto& pass) { with_preparation(pass, [&](const auto& of) { mechanism_->prepare(of); }); },
               any);
  }

  void backward(const OfNumber<PreparationPass>& any) const override {
    std::visit([this](const auto& pass) { undo(pass); }, any);
  }

 private:
  /// Calls f with what the mechanism is to prepare in this step, or has prepared.
  template <class T, class F>
  void with_preparation(const PreparationPass<T>& pass, const F& f) const {
    std::vector<View<const T>> own;
    for (const ParameterId id : own_) own.push_back(std::as_const(*pass.parameters)[id]);
    const Shape shape = pass.training ? mechanism_->noise(shape_) : Shape{0};
    std::vector<T> noise(static_cast<std::size_t>(shape.elements()));
    draw_gumbel(pass.random, layer_, shape.elements(), noise.data());
    f(AttentionPreparation<T>{
        shape_, own, pass.training, {noise.data(), shape}, {(*pass.parameters)[prepared_].data()}});
  }

  template <class T>
  void undo(const PreparationPass<T>& pass) const {
    std::vector<View<T>> gradients;
    for (const ParameterId id : own_) gradients.push_back((*pass.gradients)[id]);
    with_preparation(pass, [&](const AttentionPreparation<T>& of) {
      mechanism_->prepare_backward(
          AttentionPreparationBackward<T>{of, {(*pass.gradients)[prepared_].data()}, gradients});
    });
  }

  std::string layer_;
  std::shared_ptr<const Mechanism> mechanism_;
  AttentionShape shape_;
  std::vector<ParameterId> own_;
  ParameterId prepared_;
};

}  // namespace

ParameterId add_prepared_attention(ParameterList& list, const std::string& name,
                                   std::shared_ptr<const Mechanism> mechanism, const AttentionShape& shape,
                                   std::vector<ParameterId> own) {
  const ParameterId prepared = list.add({.name = name + ".prepared",
                                         .shape = {mechanism->memory(shape).prepared},
                                         .initial = Initial::constant(0),
                                         .decay = false,
                                         .trainable = false,
                                         .prepared = true});
  list.prepare_by(std::make_shared<PreparedAttention>(name, std::move(mechanism), shape, std::move(own), prepared));
  return prepared;
}

}  // namespace heed
