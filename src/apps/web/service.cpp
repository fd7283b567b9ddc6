#include "service.h"

#include "checks.h"

#include "heed/analysis/cost_json.h"
#include "heed/base/parallel.h"
#include "heed/base/suggest.h"
#include "heed/cost/energy.h"
#include "heed/draw/attention_sheet.h"
#include "heed/kernels/products/gemm.h"

namespace heed::web {

namespace {

std::vector<std::string> texts_of(const Json& list) {
  std::vector<std::string> texts;
  for (const Json& item : list.items()) texts.push_back(item.text());
  return texts;
}

std::string text_or(const Json& request, const char* key, const char* otherwise) {
  return request.contains(key) ? request.at(key).text() : otherwise;
}

/// The bytes of a request as pixels, [channels, height, width].
Image image_of(const Json& request, Service::Bytes bytes) {
  Image image{{request.at("channels").integer(), request.at("height").integer(), request.at("width").integer()}, {}};
  const ImageSize& size = image.size;
  const bool fits = (size.channels == 1 || size.channels == 3) && size.height > 0 && size.width > 0 &&
                    size.height <= max_image_side && size.width <= max_image_side &&
                    size.elements() == static_cast<Index>(bytes.size());
  require(fits, "an image of {} was announced, {} bytes were given", to_string(size), bytes.size());
  image.pixels.assign(bytes.begin(), bytes.end());
  return image;
}

Json mechanism_json(const MechanismEntry& entry) {
  Json options = Json::list(), settings = Json::list();
  for (const OptionInfo& option : entry.options())
    options.push_back(Json::object({{"name", option.name},
                                    {"fallback", option.fallback},
                                    {"meaning", option.meaning},
                                    {"choices", option.choices}}));
  for (const MechanismSetting& setting : entry.settings()) {
    Json values = Json::object();
    for (const auto& [name, value] : setting.options) values[name] = value;
    settings.push_back(Json::object({{"label", setting.label}, {"options", std::move(values)}}));
  }
  return Json::object({{"name", entry.name},
                       {"summary", entry.summary},
                       {"complexity", entry.complexity},
                       {"options", std::move(options)},
                       {"settings", std::move(settings)}});
}

}  // namespace

const std::map<std::string, Service::Answer>& Service::answers() {
  static const std::map<std::string, Answer> list{{"mechanisms", &Service::mechanisms},
                                                  {"open", &Service::open},
                                                  {"begin", &Service::begin},
                                                  {"close", &Service::close},
                                                  {"predict", &Service::predict},
                                                  {"look", &Service::look},
                                                  {"step", &Service::step},
                                                  {"evaluate", &Service::evaluate},
                                                  {"save", &Service::save},
                                                  {"cost", &Service::cost},
                                                  {"cases", &Service::cases},
                                                  {"check", &Service::check},
                                                  {"element", &Service::element},
                                                  {"surrogates", &Service::surrogates}};
  return list;
}

Reply Service::operator()(const Json& request, Bytes bytes) {
  const auto found = answers().find(request.at("ask").text());
  require(found != answers().end(), "there is no request {}", in_quotes(request.at("ask").text()));
  Reply reply;
  (this->*found->second)(request, bytes, reply);
  return reply;
}

Member& Service::member(const Json& request) {
  const Index number = request.at("model").integer();
  if (const auto found = members_.find(number); found != members_.end()) return *found->second;
  return training(request).member();
}

Training& Service::training(const Json& request) {
  const auto found = trainings_.find(request.at("model").integer());
  require(found != trainings_.end(), "there is no such model {}", request.at("model").integer());
  return *found->second;
}

void Service::mechanisms(const Json&, Bytes, Reply& reply) {
  Json list = Json::list();
  for (const MechanismEntry& entry : heed::mechanisms()) list.push_back(mechanism_json(entry));
  reply.json["mechanisms"] = std::move(list);
  for (const bool with_negative : {false, true})
    reply.json[with_negative ? "diverging_colours" : "colours"] = weight_colours(64, with_negative);
  reply.json["threads"] = threads();
  reply.json["products"] = kernels::gemm_library();
  reply.json["version"] = HEED_VERSION;
}

void Service::open(const Json& request, Bytes, Reply& reply) {
  auto member = std::make_unique<Member>(request.at("config").text(), texts_of(request.at("sets")),
                                         text_or(request, "weights", ""));
  reply.json = member->description();
  reply.json["model"] = ++last_;
  members_[last_] = std::move(member);
}

void Service::begin(const Json& request, Bytes bytes, Reply& reply) {
  auto member = std::make_unique<Member>(request.at("config").text(), texts_of(request.at("sets")),
                                         text_or(request, "weights", ""));
  reply.json = member->description();
  const ModelConfig& model = member->experiment().model;
  ImageSets sets = image_sets(member->experiment().data.name, model.classes, {1, model.image, model.image},
                              request.at("train").integer(), request.at("test").integer(), bytes);
  auto training = std::make_unique<Training>(std::move(member), std::move(sets));
  reply.json["model"] = ++last_;
  trainings_[last_] = std::move(training);
}

void Service::close(const Json& request, Bytes, Reply&) {
  const Index number = request.at("model").integer();
  members_.erase(number);
  trainings_.erase(number);
}

void Service::predict(const Json& request, Bytes bytes, Reply& reply) {
  Json shares = Json::list();
  for (const double share : member(request).predict(image_of(request, bytes))) shares.push_back(share);
  reply.json["probabilities"] = std::move(shares);
}

void Service::look(const Json& request, Bytes bytes, Reply& reply) {
  member(request).look(image_of(request, bytes), reply);
}

void Service::step(const Json& request, Bytes, Reply& reply) {
  Training& training = this->training(request);
  Json list = Json::list();
  try {
    for (Index i = 0; i < request.at("steps").integer(); ++i) list.push_back(training.step());
  } catch (const std::exception& error) {
    reply.json["failed"] = error.what();
  }
  reply.json["steps"] = std::move(list);
}

void Service::evaluate(const Json& request, Bytes, Reply& reply) { reply.json = training(request).evaluate(); }

void Service::save(const Json& request, Bytes, Reply&) { member(request).save(request.at("path").text()); }

void Service::cost(const Json& request, Bytes, Reply& reply) {
  const Member member(request.at("config").text(), texts_of(request.at("sets")), "");
  const std::string convention = text_or(request, "convention", "all"), pass = text_or(request, "pass", "forward");
  const CostQuery query{convention == "all" ? Convention::all : Convention::contractions,
                        pass == "forward" ? CostPass::forward : CostPass::step, CostGroup::layer, 1};
  reply.json = Json::parse(cost_json(cost_of(member.model()), query, default_energy_table()));
}

void Service::cases(const Json& request, Bytes, Reply& reply) {
  reply.json["cases"] = check_cases(request.at("mechanism").text());
}

void Service::check(const Json& request, Bytes, Reply& reply) {
  reply.json["rows"] = check_rows(request.at("mechanism").text(), request.at("case").integer());
}

void Service::element(const Json& request, Bytes, Reply& reply) {
  check_element_of(request.at("mechanism").text(), request.at("case").integer(), request.at("input").integer(),
                   request.at("element").integer(), request.at("change").number(), reply);
}

void Service::surrogates(const Json&, Bytes, Reply& reply) { surrogate_gradients(reply); }

}  // namespace heed::web
