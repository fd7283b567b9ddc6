// The engine's answers to the page, compared with the program's results.
#include "src/apps/web/service.h"

#include "heed/checks/gradcheck.h"
#include "heed/draw/attention_sheet.h"
#include "heed/io/file.h"
#include "heed/io/weights.h"
#include "heed/train/runs/history.h"
#include "heed/train/runs/run.h"
#include "heed/train/trainer.h"
#include "heed/data/images/normalise.h"
#include "heed/nn/vit.h"
#include "support/cli.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <numeric>

using namespace heed;

namespace {

constexpr Index side = 28, trained = 24, tested = 8;

Json list_of(const std::vector<std::string>& texts) { return Json(texts); }

/// A file with a model that is small enough to train in a test.
struct Page {
  TemporaryDirectory directory;
  std::string config = directory / "config.toml";
  web::Service service;

  Page() {
    write_file(config,
               "[model]\nimage = 28\nchannels = 1\npatch = 7\ndim = 8\ndepth = 2\nheads = 2\nhidden = 16\n"
               "classes = 10\n[data]\nname = \"mnist\"\nvalidation = 0\naugment = [\"crop\"]\n"
               "[train]\nbatch = 8\nepochs = 100\n");
  }

  /// Returns the pixels of noise images, alternately dark and bright, then their labels.
  static std::vector<std::uint8_t> images() {
    std::vector<std::uint8_t> bytes;
    for (Index i = 0; i < (trained + tested) * side * side; ++i)
      bytes.push_back(static_cast<std::uint8_t>(RandomStream(3).below(i, 128) + i / (side * side) % 2 * 128));
    for (Index i = 0; i < trained + tested; ++i) bytes.push_back(static_cast<std::uint8_t>(i % 2));
    return bytes;
  }

  static std::vector<std::uint8_t> image() {
    std::vector<std::uint8_t> bytes = images();
    bytes.resize(side * side);
    return bytes;
  }

  web::Reply ask(const std::string& name, std::vector<std::pair<std::string, Json>> entries,
                 std::span<const std::uint8_t> bytes = {}) {
    entries.emplace_back("ask", name);
    return service(Json::object(std::move(entries)), bytes);
  }
  Index open(const std::vector<std::string>& sets) {
    return ask("open", {{"config", config}, {"sets", list_of(sets)}}).json.at("model").integer();
  }
  Index begin(const std::vector<std::string>& sets) {
    return ask("begin", {{"config", config}, {"sets", list_of(sets)}, {"train", trained}, {"test", tested}}, images())
        .json.at("model")
        .integer();
  }
  web::Reply see(const std::string& name, Index model) {
    return ask(name, {{"model", model}, {"channels", 1}, {"height", side}, {"width", side}}, image());
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(web_service, Page)

BOOST_AUTO_TEST_CASE(the_list_of_mechanisms_is_the_engines) {
  const Json all = ask("mechanisms", {}).json;
  const std::span<const MechanismEntry> entries = heed::mechanisms();
  BOOST_REQUIRE(all.at("mechanisms").items().size() == entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) BOOST_TEST_CONTEXT(entries[i].name) {
      const Json& one = all.at("mechanisms").items()[i];
      BOOST_TEST(one.at("name").text() == entries[i].name);
      BOOST_TEST(one.at("summary").text() == entries[i].summary);
      BOOST_TEST(one.at("complexity").text() == entries[i].complexity);
      const std::vector<OptionInfo> options = entries[i].options();
      BOOST_REQUIRE(one.at("options").items().size() == options.size());
      for (std::size_t o = 0; o < options.size(); ++o) {
        const Json& option = one.at("options").items()[o];
        BOOST_TEST(option.at("name").text() == options[o].name);
        BOOST_TEST(option.at("fallback").text() == options[o].fallback);
        BOOST_TEST(option.at("meaning").text() == options[o].meaning);
        BOOST_TEST(option.at("choices").dump() == list_of(options[o].choices).dump());
      }
      const std::vector<MechanismSetting> settings = entries[i].settings();
      BOOST_REQUIRE(one.at("settings").items().size() == settings.size());
      for (std::size_t s = 0; s < settings.size(); ++s) {
        const Json& setting = one.at("settings").items()[s];
        BOOST_TEST(setting.at("label").text() == settings[s].label);
        BOOST_TEST(setting.at("options").entries().size() == settings[s].options.size());
        for (const auto& [key, value] : settings[s].options) BOOST_TEST(setting.at("options").at(key).text() == value);
      }
    }
  BOOST_TEST(all.at("colours").dump() == list_of(weight_colours(64, false)).dump());
  BOOST_TEST(all.at("diverging_colours").dump() == list_of(weight_colours(64, true)).dump());
}

BOOST_AUTO_TEST_CASE(an_image_has_probabilities_and_maps) {
  const Index model = open({});
  const web::Reply look = see("look", model), answer = see("predict", model);
  double sum = 0;
  for (std::size_t c = 0; c < 10; ++c) {
    const double share = look.json.at("probabilities").items()[c].number();
    BOOST_TEST(share == answer.json.at("probabilities").items()[c].number());
    sum += share;
  }
  BOOST_TEST(std::abs(sum - 1) < 1e-12);
  const Json& blocks = look.json.at("blocks");
  BOOST_REQUIRE(blocks.items().size() == 2u);
  const Json& map = blocks.items()[1].at("pictures").items()[0];
  BOOST_TEST(map.at("axes").text() == "pairs");
  const Tensor<float>& numbers = look.arrays.at(static_cast<std::size_t>(map.at("numbers").at("array").integer()));
  BOOST_REQUIRE((numbers.shape() == Shape{2, 17, 17}));
  for (Index row = 0; row < 34; ++row)
    BOOST_TEST(std::abs(std::accumulate(numbers.data() + 17 * row, numbers.data() + 17 * (row + 1), 0.0F) - 1) < 1e-5F);
  const Tensor<float>& seen = look.arrays.at(static_cast<std::size_t>(look.json.at("seen").at("array").integer()));
  const std::vector<std::uint8_t> bytes = images();
  BOOST_TEST(std::equal(seen.begin(), seen.end(), bytes.begin()));
}

// Each block's map equals the map of the block's mechanism in a model with the seed's initial weights. 2e-6 is above
// the rounding error of floats.
BOOST_AUTO_TEST_CASE(maps_are_those_of_the_blocks) {
  for (const auto& [mechanism, axes, identity] :
       {std::tuple("softmax", "pairs", false), {"adder", "pairs", true}, {"xca", "matrix", false}}) {
    const std::vector<std::string> sets{fmt::format("attention.mechanism=['{}', 'softmax']", mechanism), "train.seed=7",
                                        "data.mean=[0.4]", "data.std=[0.05]"};
    const Experiment x = load_experiment(config, sets);
    const VisionTransformer model(x.model, x.attention);
    Parameters<float> parameters(model.parameters());
    parameters.initialise(7);
    Tensor<float> input(Shape{1, 1, side, side});
    const std::vector<std::uint8_t> bytes = image();
    for (Index i = 0; i < input.size(); ++i)
      input[i] = (static_cast<float>(bytes[static_cast<std::size_t>(i)]) / 255.0F - 0.4F) / 0.05F;
    std::vector<Tensor<float>> maps;
    const AttentionVisitor<float> visit = [&](const AttentionSite<float>& site) {
      maps.push_back(attention_maps(site));
    };
    Tape<float> tape({.parameters = &parameters});
    model.logits(tape, {.images = std::as_const(input).view()}, &visit);
    const web::Reply look = see("look", open(sets));
    for (std::size_t b = 0; b < 2; ++b) {
      const Json& block = look.json.at("blocks").items()[b];
      const Json& map = block.at("pictures").items()[0];
      BOOST_TEST(block.at("layer").text() == fmt::format("blocks.{}.attn", b));
      BOOST_TEST(block.at("mechanism").text() == (b == 0 ? mechanism : "softmax"));
      BOOST_TEST(map.at("name").text() == "map");
      BOOST_TEST(map.at("axes").text() == (b == 0 ? axes : "pairs"));
      BOOST_TEST(map.at("identity").dump() == (b == 0 && identity ? "true" : "false"));
      const Tensor<float>& numbers = look.arrays.at(static_cast<std::size_t>(map.at("numbers").at("array").integer()));
      BOOST_REQUIRE(numbers.size() == maps[b].size());
      for (Index i = 0; i < numbers.size(); ++i) BOOST_TEST(std::abs(numbers[i] - maps[b][i]) < 2e-6F);
    }
  }
}

// An image of three equal channels gives the same answer as the grey image.
BOOST_AUTO_TEST_CASE(images_of_other_forms_are_converted) {
  const Index model = open({});
  const std::vector<std::uint8_t> grey = image();
  std::vector<std::uint8_t> coloured;
  for (int c = 0; c < 3; ++c) coloured.insert(coloured.end(), grey.begin(), grey.end());
  const Json found =
      ask("predict", {{"model", model}, {"channels", 3}, {"height", side}, {"width", side}}, coloured).json;
  BOOST_TEST(found.dump() == see("predict", model).json.dump());
  // The pixels of a wide image are read row by row: 28 rows of 56, with one level per column, are squashed to `narrow`.
  std::vector<std::uint8_t> wide, narrow;
  for (Index y = 0; y < side; ++y)
    for (Index i = 0; i < 2 * side; ++i) wide.push_back(static_cast<std::uint8_t>(i / 2 / 14 * 200));
  for (Index y = 0; y < side; ++y)
    for (Index i = 0; i < side; ++i) narrow.push_back(static_cast<std::uint8_t>(i / 14 * 200));
  const auto probabilities = [&](const std::vector<std::uint8_t>& pixels, Index width) {
    return ask("predict", {{"model", model}, {"channels", 1}, {"height", side}, {"width", width}}, pixels).json;
  };
  const Json a = probabilities(wide, 2 * side), b = probabilities(narrow, side);
  for (std::size_t c = 0; c < 10; ++c)
    BOOST_TEST(std::abs(a.at("probabilities").items()[c].number() - b.at("probabilities").items()[c].number()) < 0.02);
}

// 16 patches and a class token of width 8: embedding 400, class token 8, positions 136, two blocks of 600 (norms 16
// each, qkv 216, projection 72, MLP 144 and 136), final norm 16, head 90.
BOOST_AUTO_TEST_CASE(a_model_is_described) {
  const auto described = [&](const std::vector<std::string>& sets) {
    return ask("open", {{"config", config}, {"sets", list_of(sets)}}).json;
  };
  const Json plain = described({}),
             other = described({"model.pool=mean", "model.registers=2", "model.depth=1", "model.patch=14",
                                "data.name=fashion-mnist", "attention.mechanism=sima"});
  BOOST_TEST(plain.at("parameters").integer() == 400 + 8 + 136 + 2 * 600 + 16 + 90);
  BOOST_TEST(plain.at("mechanism").dump() == "[\"softmax\"]");
  BOOST_TEST(other.at("mechanism").dump() == "[\"sima\"]");
  for (const auto& [key, one, two] :
       {std::tuple("image", 28, 28), {"channels", 1, 1}, {"grid", 4, 2}, {"prefix", 1, 2}, {"depth", 2, 1}}) {
    BOOST_TEST(plain.at(key).integer() == one, key);
    BOOST_TEST(other.at(key).integer() == two, key);
  }
  // A class token with a distillation token or three registers.
  BOOST_TEST(described({"model.distilled=true"}).at("prefix").integer() == 2);
  BOOST_TEST(described({"model.registers=3"}).at("prefix").integer() == 4);
  BOOST_TEST(plain.at("class_token").dump() == "true");
  BOOST_TEST(other.at("class_token").dump() == "false");
  BOOST_TEST(plain.at("classes").items()[2].text() == "2");
  BOOST_TEST(other.at("classes").items()[2].text() == "Pullover");
  BOOST_TEST(plain.at("model").integer() != other.at("model").integer());
}

BOOST_AUTO_TEST_CASE(every_mechanism_can_be_opened_and_looked_at) {
  // Values for 16 tokens, in place of those of the mechanisms' settings.
  const std::map<std::string, std::string> smaller{
      {"chunk", "4"}, {"buckets", "4"}, {"length", "4"}, {"landmarks", "4"}};
  for (const MechanismEntry& entry : heed::mechanisms()) {
    std::vector<std::string> sets{"model.pool=mean", fmt::format("attention.mechanism={}", entry.name)};
    const MechanismSetting setting = entry.settings().front();
    for (const auto& [name, value] : setting.options) {
      const auto other = smaller.find(name);
      sets.push_back(fmt::format("attention.{}={}", name, other == smaller.end() ? value : other->second));
    }
    BOOST_TEST_CONTEXT(entry.name) { BOOST_TEST(see("look", open(sets)).json.at("blocks").items().size() == 2u); }
  }
}

BOOST_AUTO_TEST_CASE(steps_lower_the_loss_and_are_the_same_for_a_seed) {
  const auto losses = [&](Index model) {
    std::vector<double> all;
    for (const web::Reply reply = ask("step", {{"model", model}, {"steps", 30}});
         const Json& step : reply.json.at("steps").items())
      all.push_back(step.at("loss").number());
    return all;
  };
  const Index model = begin({"optim.lr=1e-2"});
  const double before = ask("evaluate", {{"model", model}}).json.at("loss").number();
  const std::vector<double> first = losses(model);
  BOOST_TEST(first.back() < first.front() / 2);
  BOOST_TEST(ask("evaluate", {{"model", model}}).json.at("loss").number() != before);
  BOOST_TEST(losses(begin({"optim.lr=1e-2"})) == first);
  BOOST_TEST(losses(begin({"optim.lr=1e-2", "train.seed=2"})) != first);
}

// Two epochs of three steps equal the program's on the same images, with all random operations, another optimiser, and
// a mechanism with a penalty and parameters.
BOOST_AUTO_TEST_CASE(steps_are_those_of_the_program) {
  const std::vector<std::uint8_t> bytes = images();
  const auto write_part = [&](const std::string& name, Index first, Index count) {
    std::string pixels("\0\0\x08\x03\0\0\0", 7), labels("\0\0\x08\x01\0\0\0", 7);
    pixels += static_cast<char>(count), labels += static_cast<char>(count);
    pixels += std::string("\0\0\0\x1c\0\0\0\x1c", 8);
    for (Index i = first * side * side; i < (first + count) * side * side; ++i)
      pixels += static_cast<char>(bytes[static_cast<std::size_t>(i)]);
    for (Index i = first; i < first + count; ++i)
      labels += static_cast<char>(bytes[static_cast<std::size_t>((trained + tested) * side * side + i)]);
    write_file(directory / ("data/" + name + "-images-idx3-ubyte"), pixels);
    write_file(directory / ("data/" + name + "-labels-idx1-ubyte"), labels);
  };
  std::filesystem::create_directories(directory / "data");
  write_part("train", 0, trained);
  write_part("t10k", trained, tested);
  int number = 0;
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"train.dropout=0.2"},
        {"train.drop_path=0.3", "train.label_smoothing=0.2", "train.seed=5", "optim.clip=0.01"},
        {"data.augment=['flip', 'randaugment', 'erase']", "data.mean=[0.4]", "data.std=[0.2]", "train.microbatch=3"},
        {"data.augment=['mixup', 'cutmix']", "optim.warmup_epochs=1", "optim.weight_decay=0.3"},
        {"optim.name=sgd", "optim.schedule=constant"},
        {"model.pool=mean", "attention.mechanism=aft", "attention.rank=3", "optim.weight_decay_end=0.4"}}) {
    std::vector<std::string> sets{"optim.lr=1e-2", "train.epochs=2"};
    sets.insert(sets.end(), more.begin(), more.end());
    Experiment x = load_experiment(config, sets);
    x.data.path = directory / "data";
    x.train.log_steps = true;
    const RunPaths paths(directory / fmt::format("run{}", number++));
    TrainObserver silent;
    train(x, {.run = paths.directory}, silent);
    const RunHistory history = read_history(paths);
    const Index model = begin(sets);
    // Steps are the same in one request or in several.
    std::vector<Json> steps;
    for (const Index count : {1, 3, 2})
      for (const web::Reply reply = ask("step", {{"model", model}, {"steps", count}});
           const Json& step : reply.json.at("steps").items())
        steps.push_back(step);
    BOOST_REQUIRE(steps.size() == 6U);
    BOOST_REQUIRE(history.steps.size() == 6U);
    double right = 0;
    for (std::size_t i = 0; i < 6; ++i) BOOST_TEST_CONTEXT(more[0] << ", step " << i + 1) {
        BOOST_TEST(steps[i].at("step").integer() == static_cast<Index>(i + 1));
        BOOST_TEST(steps[i].at("epoch").integer() == static_cast<Index>(i / 3 + 1));
        BOOST_TEST(steps[i].at("loss").number() == *history.steps[i].loss);
        BOOST_TEST(steps[i].at("lr").number() == *history.steps[i].lr);
        BOOST_TEST(steps[i].at("gradient").number() == *history.steps[i].gradient_norm);
        right += 8 * steps[i].at("accuracy").number();
        if (i % 3 == 2) BOOST_TEST(std::abs(right / 24 - *history.epochs[i / 3].accuracy) < 1e-12);
        if (i % 3 == 2) right = 0;
      }
    const Json found = ask("evaluate", {{"model", model}}).json;
    BOOST_TEST(found.at("images").integer() == tested);
    // The test row is from the best epoch or, without validation, from the last. 1e-6 allows for rounding in
    // microbatches of different sizes.
    BOOST_TEST(std::abs(found.at("loss").number() - *history.test_loss) < 1e-6 * (1 + *history.test_loss));
    BOOST_TEST(found.at("accuracy").number() == *history.test_accuracy);
  }
}

// After every few steps, loss and accuracy on the test images equal those of the probabilities under the current
// weights, read from a file. 1e-5 is above the rounding error of floats.
BOOST_AUTO_TEST_CASE(an_evaluation_is_of_the_weights_of_its_step) {
  const std::string file = directory / "now.safetensors";
  const std::vector<std::uint8_t> bytes = images();
  for (const std::vector<std::string>& sets :
       {std::vector<std::string>{"optim.lr=1e-2"},
        {"optim.lr=1e-2", "model.pool=mean", "attention.mechanism=aft", "attention.rank=3"}}) {
    const Index model = begin(sets);
    for (int part = 0; part < 3; ++part) {
      ask("step", {{"model", model}, {"steps", 4}});
      const Json found = ask("evaluate", {{"model", model}}).json;
      ask("save", {{"model", model}, {"path", file}});
      const Index now =
          ask("open", {{"config", config}, {"sets", list_of(sets)}, {"weights", file}}).json.at("model").integer();
      double loss = 0, right = 0;
      for (Index i = 0; i < tested; ++i) {
        const auto begin = bytes.begin() + (trained + i) * side * side;
        const std::vector<std::uint8_t> one(begin, begin + side * side);
        const Json answer = ask("predict", {{"model", now}, {"channels", 1}, {"height", side}, {"width", side}}, one)
                                .json.at("probabilities");
        const auto label =
            static_cast<std::size_t>(bytes[static_cast<std::size_t>((trained + tested) * side * side + trained + i)]);
        const double share = answer.items()[label].number();
        loss -= std::log(share) / tested;
        right += std::all_of(answer.items().begin(), answer.items().end(),
                             [&](const Json& p) { return p.number() <= share; });
      }
      BOOST_TEST(std::abs(found.at("loss").number() - loss) < 1e-5 * (1 + loss));
      BOOST_TEST(found.at("accuracy").number() == right / tested);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_saved_is_read_again) {
  const Index model = begin({});
  ask("step", {{"model", model}, {"steps", 3}});
  const std::string file = directory / "saved.safetensors";
  ask("save", {{"model", model}, {"path", file}});
  const Index again =
      ask("open", {{"config", config}, {"sets", Json::list()}, {"weights", file}}).json.at("model").integer();
  BOOST_TEST(see("predict", again).json.dump() == see("predict", model).json.dump());
}

BOOST_AUTO_TEST_CASE(a_loss_that_is_not_finite_is_said_with_the_steps_before_it) {
  const Index model = begin({"optim.lr=1e30", "optim.clip=0"});
  const Json answer = ask("step", {{"model", model}, {"steps", 50}}).json;
  const std::size_t steps = answer.at("steps").items().size();
  BOOST_TEST(steps >= 1u);
  BOOST_TEST(answer.at("failed").text().starts_with(
      fmt::format("training diverged at step {}; try a learning rate smaller", steps + 1)));
  BOOST_TEST(!ask("step", {{"model", begin({})}, {"steps", 2}}).json.contains("failed"));
}

BOOST_AUTO_TEST_CASE(cost_is_that_of_heed_cost) {
  const Json cost = ask("cost", {{"config", config}, {"sets", list_of({"attention.mechanism=sima"})}}).json;
  BOOST_TEST(cost.at("attention_exp").integer() == 0);
  BOOST_TEST(cost.at("total").at("mul").integer() > 0);
  for (const char* const convention : {"all", "contractions"})
    for (const char* const pass : {"forward", "step"}) {
      const Json found =
          ask("cost", {{"config", config}, {"sets", list_of({})}, {"convention", convention}, {"pass", pass}}).json;
      const Json expected =
          Json::parse(test::output_of({"cost", config, "--json", "--convention", convention, "--pass", pass}));
      BOOST_TEST(found.dump() == expected.dump());
    }
}

BOOST_AUTO_TEST_CASE(gradients_of_every_mechanism_agree_in_its_first_case) {
  for (const MechanismEntry& entry : heed::mechanisms()) BOOST_TEST_CONTEXT(entry.name) {
      const Json cases = ask("cases", {{"mechanism", entry.name}}).json.at("cases");
      BOOST_REQUIRE(!cases.items().empty());
      for (const web::Reply reply = ask("check", {{"mechanism", entry.name}, {"case", 0}});
           const Json& row : reply.json.at("rows").items())
        BOOST_TEST(row.at("relative").number() < gradcheck_tolerance);
    }
}

// The rows of a case begin with the case's own inputs, in order. A mechanism's settings have different parameters, so
// the rows of another case would differ.
BOOST_AUTO_TEST_CASE(each_case_is_checked_by_its_number) {
  for (const char* const name : {"softmax", "aft"}) {
    const Json cases = ask("cases", {{"mechanism", name}}).json.at("cases");
    const Index count = std::ssize(cases.items());
    for (Index number = 0; number < count; ++number) BOOST_TEST_CONTEXT(name << ", case " << number) {
        const Json rows = ask("check", {{"mechanism", name}, {"case", number}}).json.at("rows");
        const Json::List& inputs = cases.items()[static_cast<std::size_t>(number)].at("inputs").items();
        BOOST_REQUIRE(rows.items().size() >= inputs.size());
        for (std::size_t k = 0; k < inputs.size(); ++k) {
          Index elements = 1;
          for (const Json& size : inputs[k].at("shape").items()) elements *= size.integer();
          BOOST_TEST(rows.items()[k].at("tensor").text() == inputs[k].at("name").text());
          BOOST_TEST(rows.items()[k].at("elements").integer() == elements);
          BOOST_TEST(inputs[k].at("axes").items().size() == inputs[k].at("shape").items().size());
        }
      }
    for (const Index number : {Index{-1}, count})
      BOOST_TEST(error_of([&] {
                   ask("check", {{"mechanism", name}, {"case", number}});
                 }) == fmt::format("[check] unknown case {}; there are {} cases", number, count));
  }
}

BOOST_AUTO_TEST_CASE(an_element_has_the_slope_that_its_values_have) {
  std::vector<Tensor<float>> curves;
  std::vector<double> positions;
  for (const double change : {0.0, 0.4}) {
    const web::Reply reply =
        ask("element", {{"mechanism", "softmax"}, {"case", 0}, {"input", 1}, {"element", 5}, {"change", change}});
    const double analytic = reply.json.at("analytic").number(), numeric = reply.json.at("numeric").number();
    BOOST_TEST(std::abs(analytic - numeric) < 1e-8);
    const Tensor<float>& values =
        reply.arrays.at(static_cast<std::size_t>(reply.json.at("values").at("array").integer()));
    const Index middle = values.size() / 2;
    BOOST_TEST(std::abs((values[middle + 1] - values[middle - 1]) * 20.0F - static_cast<float>(analytic)) < 1e-2F);
    const Tensor<float>& offsets =
        reply.arrays.at(static_cast<std::size_t>(reply.json.at("offsets").at("array").integer()));
    BOOST_REQUIRE(offsets.size() == values.size());
    for (Index i = 0; i < offsets.size(); ++i)
      BOOST_TEST(std::abs(offsets[i] - (static_cast<float>(i) / 40 - 1)) < 1e-6F);
    curves.push_back(values);
    positions.push_back(reply.json.at("x").number());
  }
  // The second curve is the first one shifted by 0.4, which is 16 steps of 1/40.
  BOOST_TEST(std::abs(positions[1] - positions[0] - 0.4) < 1e-12);
  for (Index i = 0; i + 16 < curves[0].size(); ++i) BOOST_TEST(std::abs(curves[0][i + 16] - curves[1][i]) < 1e-5F);
}

BOOST_AUTO_TEST_CASE(surrogates_are_sign_clamp_and_difference) {
  const web::Reply reply = ask("surrogates", {});
  const auto numbers = [&](const char* name) -> const Tensor<float>& {
    return reply.arrays.at(static_cast<std::size_t>(reply.json.at(name).at("array").integer()));
  };
  const Tensor<float>& u = numbers("u");
  for (Index i = 0; i < u.size(); ++i) {
    const float sign = u[i] > 0 ? 1.0F : u[i] < 0 ? -1.0F : 0.0F;
    BOOST_TEST(numbers("input_sign")[i] == sign);
    BOOST_TEST(numbers("input_hardtanh")[i] == std::clamp(u[i], -1.0F, 1.0F));
    BOOST_TEST(numbers("weight_sign")[i] == -sign);
    BOOST_TEST(numbers("weight_hardtanh")[i] == -std::clamp(u[i], -1.0F, 1.0F));
    BOOST_TEST(numbers("weight_full")[i] == -u[i]);
  }
}

BOOST_AUTO_TEST_CASE(what_it_cannot_answer_is_an_error) {
  BOOST_CHECK_THROW(ask("nothing", {}), Error);
  BOOST_CHECK_THROW(see("look", 7), Error);
  BOOST_CHECK_THROW(open({"model.family=xcit"}), Error);
  const Index model = open({});
  BOOST_CHECK_THROW(ask("step", {{"model", model}, {"steps", 1}}), Error);
  BOOST_CHECK_THROW(ask("predict", {{"model", model}, {"channels", 1}, {"height", side}, {"width", side + 1}}, image()),
                    Error);
  const Index first = begin({}), second = begin({});
  for (const Index closed : {model, first}) ask("close", {{"model", closed}});
  for (const Index closed : {model, first}) BOOST_CHECK_THROW(see("look", closed), Error);
  BOOST_TEST(ask("step", {{"model", second}, {"steps", 1}}).json.at("steps").items().size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
