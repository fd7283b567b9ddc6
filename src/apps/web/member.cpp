#include "member.h"

#include "heed/attention/capabilities/map.h"
#include "heed/attention/capabilities/pictures.h"
#include "heed/data/dataset.h"
#include "heed/data/images/normalise.h"
#include "heed/io/weights.h"
#include "heed/ops/attention_capabilities.h"
#include "heed/train/tasks/classification.h"
#include "heed/train/runs/run.h"

namespace heed::web {

namespace {

Experiment load(const std::string& config, const std::vector<std::string>& sets) {
  Experiment x = load_recorded(config, sets);
  require(x.model.family == "vit" && x.model.output == "class" && !x.self_supervised(),
          "{}: the page supports only Vision Transformers that classify images", config);
  require(x.data.name.ends_with("mnist") && x.model.classes == 10,
          "{}: the page supports only models of mnist and fashion-mnist; data.name is {}", config, x.data.name);
  return x;
}

const char* name_of(PictureAxes axes) {
  return axes == PictureAxes::pairs ? "pairs" : axes == PictureAxes::tokens ? "tokens" : "matrix";
}

Json picture_json(const PictureInfo& info, bool identity, Json numbers) {
  return Json::object({{"name", info.name},
                       {"meaning", info.meaning},
                       {"axes", name_of(info.axes)},
                       {"part", info.part},
                       {"identity", identity},
                       {"numbers", std::move(numbers)}});
}

Json block_json(const AttentionSite<float>& site, Reply& reply) {
  Json pictures = Json::list();
  if (const MapCapability* const maps = site.mechanism.maps()) {
    const MapTraits traits = maps->map_traits();
    const bool tokens = traits.axes == MapAxes::tokens;
    const PictureInfo info{
        "map", tokens ? "attention of each token to each token" : "attention of each channel to each channel",
        tokens ? PictureAxes::pairs : PictureAxes::matrix};
    Tensor<float> map(map_shape(site.mechanism, site.inputs.front().shape));
    make_map(site.mechanism, site.inputs.front(), map.data());
    pictures.push_back(picture_json(info, traits.identity, reply.keep(std::move(map))));
  }
  for (const PictureInfo& info : picture_infos(site.mechanism))
    pictures.push_back(
        picture_json(info, false, reply.keep(site.mechanism.pictures()->picture(info.name, site.inputs.front()))));
  return Json::object({{"layer", site.layer}, {"mechanism", site.mechanism.name()}, {"pictures", std::move(pictures)}});
}

}  // namespace

Member::Member(const std::string& config, const std::vector<std::string>& sets, const std::string& weights)
    : experiment_(load(config, sets)),
      model_(experiment_.model, experiment_.attention, experiment_.train.dropout, experiment_.train.drop_path),
      parameters_(model_.parameters()) {
  parameters_.initialise(static_cast<std::uint64_t>(experiment_.train.seed));
  if (!weights.empty()) load_weights(SafetensorsFile(weights), parameters_);
}

Json Member::description() const {
  const ModelConfig& model = experiment_.model;
  return Json::object({{"mechanism", experiment_.attention.mechanism},
                       {"parameters", parameters_.list().trainable_elements()},
                       {"classes", mnist_class_names(experiment_.data.name)},
                       {"image", Index{model.image}},
                       {"channels", model.channels},
                       {"grid", model.image / model.patch},
                       {"class_token", model.has_class_token()},
                       {"prefix", model.prefix_tokens()},
                       {"depth", model.depth},
                       {"config", config_toml(experiment_)}});
}

Image Member::seen(const Image& image) const {
  const ModelConfig& model = experiment_.model;
  return convert(image, {model.channels, model.image, model.image});
}

Tensor<float> Member::input(const Image& seen) const {
  const ImageSize& size = seen.size;
  Tensor<float> numbers(Shape{1, size.channels, size.height, size.width});
  Normaliser<float>(experiment_.data, size.channels)(seen, numbers.data());
  return numbers;
}

std::vector<double> Member::predict(const Image& image) {
  const Tensor<float> numbers = input(seen(image));
  Tape<float> tape({.parameters = &parameters_});
  return probabilities(model_.logits(tape, {.images = numbers.view()}).data(), experiment_.model.classes);
}

void Member::look(const Image& image, Reply& reply) {
  const Image seen = this->seen(image);
  const Tensor<float> numbers = input(seen);
  Json blocks = Json::list();
  const AttentionVisitor<float> visit = [&](const AttentionSite<float>& site) {
    blocks.push_back(block_json(site, reply));
  };
  Tape<float> tape({.parameters = &parameters_});
  const Var<float> logits = model_.logits(tape, {.images = numbers.view()}, &visit);
  const std::vector<double> shares = probabilities(logits.data(), experiment_.model.classes);
  reply.json["probabilities"] = Json::list({shares.begin(), shares.end()});
  reply.json["blocks"] = std::move(blocks);
  Tensor<float> bytes(Shape{seen.size.channels, seen.size.height, seen.size.width});
  std::copy(seen.pixels.begin(), seen.pixels.end(), bytes.begin());
  reply.json["seen"] = reply.keep(std::move(bytes));
}

void Member::save(const std::string& path) const {
  SafetensorsWriter file;
  add_version(file);
  add_weights(file, parameters_);
  file.write(path);
}

}  // namespace heed::web
