// heed cost --time: predicted speed of training and inference, from exact counts and the measurements of heed bench.
#include "cost_forms.h"

#include "heed/base/printable.h"
#include "heed/base/suggest.h"
#include "heed/bench/time_model.h"
#include "heed/io/file.h"
#include "heed/nn/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

namespace heed::cli {

namespace {

constexpr const char* default_measurements = "bench.json";

bench::TimeModel time_model_of(const CostArguments& a) {
  const std::string path = a.measured.empty() ? default_measurements : a.measured;
  require(std::filesystem::exists(path),
          "cost: --time: {} does not exist; measure this machine with heed bench --only times --json >{}",
          printable(path), shell_word(path));
  const std::string text = read_file(path);
  try {
    return bench::TimeModel(Json::parse(text));
  } catch (const Error& error) {
    fail("{}: not a measurement for --time ({}); expected the output of heed bench --only times --json", path,
         error.what());
  }
}

/// A model's batch and predicted times.
struct Prediction {
  Index batch = 0, tokens = 0;  ///< `tokens`: of each example; 0 for images
  std::string example;
  bench::PassTime step, pass;

  Prediction(const bench::TimeModel& model, const Experiment& x, Index given)
      : batch(given > 0 ? given : x.train.batch) {
    const bench::Workload work(x, batch);
    example = work.example;
    tokens = x.model.family == "sequence" ? (x.model.task == "pair" ? 2 : 1) * x.model.context : 0;
    step = model.predict(work, true);
    pass = model.predict(work, false);
  }

  double rate(const bench::PassTime& of) const { return static_cast<double>(batch) / of.seconds; }
};

/// Sums the layers over all blocks: "blocks.*.attn.qkv".
std::vector<bench::LayerTime> over_blocks(const std::vector<bench::LayerTime>& layers) {
  std::vector<bench::LayerTime> sums;
  for (const bench::LayerTime& layer : layers) {
    const BlockName name(layer.layer);
    const std::string common = name.number < 0 ? layer.layer : name.stem + "*" + name.rest;
    const auto known = std::ranges::find(sums, common, &bench::LayerTime::layer);
    bench::LayerTime& sum = known == sums.end() ? sums.emplace_back(bench::LayerTime{common}) : *known;
    sum.forward += layer.forward, sum.backward += layer.backward;
  }
  return sums;
}

Json pass_json(const bench::TimeModel& model, const Prediction& p, const bench::PassTime& pass) {
  Json json = Json::object({{"img_s", p.rate(pass)}, {"ms", 1e3 * pass.seconds}, {"rest_ms", 1e3 * pass.rest}});
  if (p.tokens > 0) json["tokens_s"] = p.rate(pass) * static_cast<double>(p.tokens);
  json["joules"] = model.no_watts.empty() ? Json(model.watts * pass.seconds / static_cast<double>(p.batch))
                                          : Json("unavailable: " + model.no_watts);
  json["layers"] = Json::list();
  for (const bench::LayerTime& layer : pass.layers)
    json["layers"].push_back(Json::object({{"name", layer.layer},
                                           {"forward_ms", 1e3 * layer.forward},
                                           {"backward_ms", 1e3 * layer.backward},
                                           {"share", (layer.forward + layer.backward) / pass.seconds}}));
  return json;
}

Json prediction_json(const bench::TimeModel& model, const NamedModel& named, const Prediction& p) {
  return Json::object({{"model", named.name},
                       {"batch", p.batch},
                       {"threads", model.machine.threads},
                       {"unit", p.example + "s/s"},
                       {"train", pass_json(model, p, p.step)},
                       {"infer", pass_json(model, p, p.pass)}});
}

std::string rate_text(const Prediction& p, const bench::PassTime& pass) {
  const double rate = p.rate(pass);
  const std::string tokens = p.tokens > 0 ? fmt::format(", {} tokens/s", si(rate * static_cast<double>(p.tokens))) : "";
  return fmt::format("{} {}s/s{}, {:.2f} ms", si(rate), p.example, tokens, 1e3 * pass.seconds);
}

std::string joules_text(const bench::TimeModel& model, const Prediction& p, const bench::PassTime& pass) {
  return joules(1e12 * model.watts * pass.seconds / static_cast<double>(p.batch));
}

void print_prediction(const bench::TimeModel& model, const std::string& name, const Prediction& p) {
  std::cout << fmt::format("{}, batch {}, predicted for {} of {}\n\ntraining   {}\ninference  {}\nenergy     {}\n\n",
                           printable(name), p.batch, counted(model.machine.threads, "thread"),
                           printable(model.machine.cpu), rate_text(p, p.step), rate_text(p, p.pass),
                           model.no_watts.empty()
                               ? fmt::format("{} per {} in training, {} in inference", joules_text(model, p, p.step),
                                             p.example, joules_text(model, p, p.pass))
                               : "unavailable: " + printable(model.no_watts));
  Table table;
  table.text("layer").text("forward, ms", fixed(3)).text("backward, ms", fixed(3));
  table.text("share of a step", fixed(1, " %")).text("of inference", fixed(1, " %"));
  const std::vector<bench::LayerTime> steps = over_blocks(p.step.layers), passes = over_blocks(p.pass.layers);
  const auto add = [&](const std::string& layer, double forward, double backward, double inference) {
    table.add({layer, 1e3 * forward, 1e3 * backward, 100 * (forward + backward) / p.step.seconds,
               100 * inference / p.pass.seconds});
  };
  for (const bench::LayerTime& layer : steps) {
    const auto same = std::ranges::find(passes, layer.layer, &bench::LayerTime::layer);
    add(layer.layer, layer.forward, layer.backward, same == passes.end() ? 0 : same->forward);
  }
  add("rest", 0, p.step.rest, p.pass.rest);
  table.print(std::cout);
  std::cout << "\nrest: the loss, sums of gradients, the update, distributing work to threads\n";
}

/// Predicted rates of a model with this number of patches.
struct AtTokens {
  Index tokens;
  double step, pass;  ///< examples per second
};

/// Returns true if the model's mechanisms support this size.
bool supports(Experiment x, const Scale& scale, Index size) {
  try {
    x.model = scaled(x.model, scale, size);
    make_model(x);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Returns the sizes of --scale or, without it, those from 16 to 4096 tokens that all models support.
Scale token_scale(const CostArguments& a, const std::vector<NamedModel>& models) {
  for (const NamedModel& named : models) require_one_resolution(named.experiment.model);
  Scale scale = scale_of(a.scale.empty() ? "tokens=16..4096" : a.scale, models.front().experiment.model);
  require(scale.tokens, "cost: --time --scale expects tokens=FROM..TO, not {}", in_quotes(a.scale));
  if (a.scale.empty())
    std::erase_if(scale.sizes, [&](Index size) {
      return !std::ranges::all_of(models, [&](const NamedModel& m) { return supports(m.experiment, scale, size); });
    });
  return scale;
}

/// Predicts a model's rates at these sizes.
std::vector<AtTokens> over_tokens(const bench::TimeModel& model, Index batch, const Scale& scale, Experiment x) {
  const ModelConfig base = x.model;
  std::vector<AtTokens> points;
  for (const Index size : scale.sizes) {
    x.model = scaled(base, scale, size);
    const Prediction p(model, x, batch);
    points.push_back({size, p.rate(p.step), p.rate(p.pass)});
  }
  return points;
}

/// Describes from which size on `second` is faster than `first`: "from 196 tokens", "at all sizes from 16 to 4096
/// tokens", "not up to 4096 tokens".
std::string overtaking(const std::vector<AtTokens>& first, const std::vector<AtTokens>& second,
                       double AtTokens::*rate) {
  std::size_t from = first.size();
  while (from > 0 && second[from - 1].*rate > first[from - 1].*rate) --from;
  if (from == first.size()) return fmt::format("not up to {} tokens", first.back().tokens);
  return from == 0 ? fmt::format("at all sizes from {} to {} tokens", first[0].tokens, first.back().tokens)
                   : fmt::format("from {} tokens", first[from].tokens);
}

int compare_times(const CostArguments& a, const bench::TimeModel& model) {
  const std::vector<NamedModel> models = models_of(a);
  std::vector<std::vector<AtTokens>> growing;
  if (!a.attention.empty() || !a.scale.empty()) {
    const Scale scale = token_scale(a, models);
    for (const NamedModel& named : models) growing.push_back(over_tokens(model, a.batch, scale, named.experiment));
  }
  if (!a.scale.empty()) {
    require(!a.json, "cost: --scale writes CSV; expected no --json");
    Table table;
    table.data({"model", "tokens"}).data({"train_img_s", "infer_img_s"}, fixed(2));
    for (std::size_t i = 0; i < models.size(); ++i)
      for (const AtTokens& point : growing[i]) table.add({models[i].name, point.tokens, point.step, point.pass});
    std::cout << table.csv();
    return ok;
  }
  Table table;
  table.text(a.attention.empty() ? "model" : "attention").text("batch");
  for (const char* const pass : {"training", "inference"}) table.text(pass).text("to the first", fixed(2));
  Json json = Json::object({{"models", Json::list()}, {"overtakes", Json::list()}});
  double first_step = 0, first_pass = 0;
  for (const NamedModel& named : models) {
    const Prediction p(model, named.experiment, a.batch);
    const double step = p.rate(p.step), pass = p.rate(p.pass);
    if (first_step == 0) first_step = step, first_pass = pass;
    table.add({named.name, p.batch, fmt::format("{} {}s/s", si(step), p.example), step / first_step,
               fmt::format("{} {}s/s", si(pass), p.example), pass / first_pass});
    json["models"].push_back(prediction_json(model, named, p));
  }
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < growing.size(); ++i)
    for (std::size_t j = 0; j < growing.size(); ++j) {
      // Considers each pair once: the model that trains faster at the largest size overtakes the other.
      const bool overtakes = i != j && !growing[j].empty() && growing[j].back().step > growing[i].back().step;
      if (!overtakes) continue;
      const std::string training = overtaking(growing[i], growing[j], &AtTokens::step);
      const std::string inference = overtaking(growing[i], growing[j], &AtTokens::pass);
      lines.push_back(fmt::format("{} is faster than {} {} in training, {} in inference", models[j].name,
                                  models[i].name, training, inference));
      json["overtakes"].push_back(Json::object(
          {{"faster", models[j].name}, {"slower", models[i].name}, {"training", training}, {"inference", inference}}));
    }
  if (a.json) {
    std::cout << json.dump() << "\n";
    return ok;
  }
  table.print(std::cout);
  std::cout << fmt::format("\npredicted for {} of {}\n", counted(model.machine.threads, "thread"),
                           printable(model.machine.cpu));
  for (const std::string& line : lines) std::cout << line << "\n";
  return ok;
}

}  // namespace

int time_command(const CostArguments& a) {
  require(
      a.convention.empty() && a.pass.empty() && a.by.empty() && a.energy.empty() && a.operations.empty(),
      "cost: --time combines with MODEL, --set, --batch, --measured, --compare, --attention, --scale and --json only");
  const bench::TimeModel model = time_model_of(a);
  if (!a.compare.empty() || !a.attention.empty() || !a.scale.empty()) return compare_times(a, model);
  const NamedModel named{a.model, load_experiment(a.model, a.sets)};
  const Prediction prediction(model, named.experiment, a.batch);
  if (a.json)
    std::cout << prediction_json(model, named, prediction).dump() << "\n";
  else
    print_prediction(model, named.name, prediction);
  return ok;
}

}  // namespace heed::cli
