#include "training.h"

#include "heed/data/images/normalise.h"

#include <cmath>

namespace heed::web {

namespace {

Loading loading_of(const Experiment& x) {
  const ModelConfig& model = x.model;
  return {.input = {model.channels, model.image, model.image},
          .batch = x.train.batch,
          .seed = x.train.seed,
          .training = true,
          .workers = 1,
          .ahead = false};
}

}  // namespace

ImageSets image_sets(const std::string& name, Index classes, ImageSize size, Index trained, Index tested,
                     std::span<const std::uint8_t> bytes) {
  const Index all = trained + tested;
  const auto pixels = static_cast<std::size_t>(all * size.elements());
  require(trained > 0 && tested > 0 && bytes.size() == pixels + static_cast<std::size_t>(all),
          "{}: expected {} images of {} for training and {} for test, found {} bytes", name, trained, to_string(size),
          tested, bytes.size());
  std::vector<std::string> names;
  for (Index c = 0; c < classes; ++c) names.push_back(fmt::format("{}", c));
  const auto set_of = [&](Index first, Index count) {
    const auto part = [&](Index from, Index length) {
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(from);
      return std::vector<std::uint8_t>(begin, begin + static_cast<std::ptrdiff_t>(length));
    };
    return std::make_unique<MemoryDataset>(name, names, size, part(first * size.elements(), count * size.elements()),
                                           part(static_cast<Index>(pixels) + first, count));
  };
  return {set_of(0, trained), set_of(trained, tested)};
}

Training::Training(std::unique_ptr<Member> member, ImageSets sets)
    : member_(std::move(member)),
      sets_(std::move(sets)),
      loader_(
          *sets_.train,
          examples_of(sets_.train->size(), Part::train, member_->experiment().data, member_->experiment().train.seed),
          member_->experiment().data, loading_of(member_->experiment())),
      optimizer_(member_->experiment().optim, member_->parameters()),
      gradient_(member_->model(), member_->parameters(), member_->experiment().train.batch,
                member_->experiment().train),
      inference_(member_->model(), member_->parameters(), microbatch_of(member_->experiment().train)) {}

Json Training::step() {
  const Experiment& x = member_->experiment();
  const Index per_epoch = loader_.batches();
  if (step_ % per_epoch == 0) loader_.start(step_ / per_epoch);
  const Batch<float>& images = *loader_.next();
  const ClassificationBatch<float> batch({images.images.view()}, images.targets.view(), images.labels.data(),
                                         x.train.label_smoothing);
  const RandomStream random = RandomStream(x.train.seed).derive("step").derive(step_);
  const BatchResult result = gradient_.run(batch, random);
  const Clipping clipping = clip(gradient_.gradients(), x.optim.clip, false);
  require(std::isfinite(result.loss) && std::isfinite(clipping.norm),
          "training diverged at step {}; try a learning rate smaller than {}", step_ + 1, x.optim.lr);
  const Rates rates = rates_of(x.optim, step_, per_epoch, x.train.epochs * per_epoch);
  optimizer_.step(member_->parameters(), gradient_.gradients(), rates, clipping.factor);
  ++step_;
  return Json::object({{"step", step_},
                       {"epoch", (step_ - 1) / per_epoch + 1},
                       {"loss", result.loss},
                       {"accuracy", result.correct / result.terms},
                       {"lr", rates.lr},
                       {"gradient", clipping.norm}});
}

Json Training::evaluate() {
  const Experiment& x = member_->experiment();
  const ImageSize size = sets_.test->image_size();
  const Normaliser<float> normalise(x.data, size.channels);
  const Index count = sets_.test->size(), classes = x.model.classes;
  Tensor<float> numbers(Shape{count, size.channels, size.height, size.width}), logits(Shape{count, classes});
  std::vector<int> labels;
  Image image;
  for (Index i = 0; i < count; ++i) {
    sets_.test->read(i, image);
    normalise(image, numbers.data() + i * size.elements());
    labels.push_back(sets_.test->label(i));
  }
  inference_.renew();
  inference_.run({.images = std::as_const(numbers).view()}, logits.data());
  std::vector<double> counts(static_cast<std::size_t>(classification_counts(classes)));
  const Score score = judge_logits(std::as_const(logits).view(), labels.data(), counts);
  return Json::object({{"loss", score.mean_loss()}, {"accuracy", score.accuracy()}, {"images", count}});
}

}  // namespace heed::web
