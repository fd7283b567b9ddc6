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

/// Returns the bytes of a request as an image, [channels, height, width].
Image image_of(const Json& request, Service::Bytes bytes) {
  Image image{{request.at("channels").integer(), request.at("height").integer(), request.at("width").integer()}, {}};
  const ImageSize& size = image.size;
  const bool fits = (size.channels == 1 || size.channels == 3) && size.height > 0 && size.width > 0 &&
                    size.height <= max_image_side && size.width <= max_image_side &&
                    size.elements() == static_cast<Index>(bytes.size());
  require(fits, "expected an image of {}, found {} bytes", to_string(size), bytes.size());
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
    Json values = Json::object({setting.options.begin(), setting.options.end()});
    settings.push_back(Json::object({{"label", setting.label}, {"options", std::move(values)}}));
  }
  return Json::object({{"name", entry.name},
                       {"summary", entry.summary},
                       {"complexity", entry.complexity},
                       {"options", std::move(options)},
                       {"settings", std::move(settings)}});
}

Json mechanisms_json() {
  Json list = Json::list();
  for (const MechanismEntry& entry : mechanisms()) list.push_back(mechanism_json(entry));
  return Json::object({{"mechanisms", std::move(list)},
                       {"colours", weight_colours(64, false)},
                       {"diverging_colours", weight_colours(64, true)},
                       {"threads", threads()},
                       {"products", kernels::gemm_library()},
                       {"version", HEED_VERSION}});
}

std::unique_ptr<Member> member_of(const Json& request) {
  return std::make_unique<Member>(request.at("config").text(), texts_of(request.at("sets")),
                                  text_or(request, "weights", ""));
}

Json cost_of_member(const Json& request) {
  const Member member(request.at("config").text(), texts_of(request.at("sets")), "");
  const std::string convention = text_or(request, "convention", "all"), pass = text_or(request, "pass", "forward");
  const CostQuery query{convention == "all" ? Convention::all : Convention::contractions,
                        pass == "forward" ? CostPass::forward : CostPass::step, CostGroup::layer, 1};
  return Json::parse(cost_json(cost_of(member.model()), query, default_energy_table()));
}

}  // namespace

Reply Service::operator()(const Json& request, Bytes bytes) {
  const std::string& ask = request.at("ask").text();
  const auto text = [&](const char* key) { return request.at(key).text(); };
  const auto number = [&](const char* key) { return request.at(key).integer(); };
  Reply reply;
  Json& json = reply.json;
  if (ask == "mechanisms") {
    json = mechanisms_json();
  } else if (ask == "open") {
    json = open(request);
  } else if (ask == "begin") {
    json = begin(request, bytes);
  } else if (ask == "close") {
    members_.erase(number("model"));
    trainings_.erase(number("model"));
  } else if (ask == "predict") {
    const std::vector<double> shares = member(request).predict(image_of(request, bytes));
    json["probabilities"] = Json::list({shares.begin(), shares.end()});
  } else if (ask == "look") {
    member(request).look(image_of(request, bytes), reply);
  } else if (ask == "step") {
    json = step(request);
  } else if (ask == "evaluate") {
    json = training(request).evaluate();
  } else if (ask == "save") {
    member(request).save(text("path"));
  } else if (ask == "cost") {
    json = cost_of_member(request);
  } else if (ask == "cases") {
    json["cases"] = check_cases(text("mechanism"));
  } else if (ask == "check") {
    json["rows"] = check_rows(text("mechanism"), number("case"));
  } else if (ask == "element") {
    check_element_of(text("mechanism"), number("case"), number("input"), number("element"),
                     request.at("change").number(), reply);
  } else if (ask == "surrogates") {
    surrogate_gradients(reply);
  } else {
    fail("unknown request {}", in_quotes(ask));
  }
  return reply;
}

Member& Service::member(const Json& request) {
  const Index number = request.at("model").integer();
  if (const auto found = members_.find(number); found != members_.end()) return *found->second;
  return training(request).member();
}

Training& Service::training(const Json& request) {
  const auto found = trainings_.find(request.at("model").integer());
  require(found != trainings_.end(), "unknown model {}", request.at("model").integer());
  return *found->second;
}

Json Service::open(const Json& request) {
  std::unique_ptr<Member> member = member_of(request);
  Json json = member->description();
  json["model"] = ++last_;
  members_[last_] = std::move(member);
  return json;
}

Json Service::begin(const Json& request, Bytes bytes) {
  std::unique_ptr<Member> member = member_of(request);
  Json json = member->description();
  const ModelConfig& model = member->experiment().model;
  ImageSets sets = image_sets(member->experiment().data.name, model.classes, {1, model.image, model.image},
                              request.at("train").integer(), request.at("test").integer(), bytes);
  auto training = std::make_unique<Training>(std::move(member), std::move(sets));
  json["model"] = ++last_;
  trainings_[last_] = std::move(training);
  return json;
}

Json Service::step(const Json& request) {
  Training& training = this->training(request);
  Json json = Json::object(), list = Json::list();
  try {
    for (Index i = 0; i < request.at("steps").integer(); ++i) list.push_back(training.step());
  } catch (const std::exception& error) {
    json["failed"] = error.what();
  }
  json["steps"] = std::move(list);
  return json;
}

}  // namespace heed::web
