#include "heed/selftest/selftest.h"

#include "heed/attention/plugin.h"
#include "heed/base/suggest.h"
#include "heed/checks/report.h"
#include "heed/data/loader.h"
#include "heed/io/file.h"
#include "heed/io/weights.h"
#include "heed/nn/decoder.h"
#include "heed/nn/families.h"
#include "heed/train/trainer.h"
#include "wide_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <sstream>

namespace heed {

namespace {

/// Hash of a sequence of 32-bit words.
class Hash {
 public:
  void add(std::uint32_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15u;
    state_ ^= state_ >> 32;
  }
  std::uint32_t value() const { return std::max(static_cast<std::uint32_t>(state_), nan_hash + 1); }

 private:
  std::uint64_t state_ = 1;
};

std::uint32_t hash_of(const std::string& text) {
  Hash hash;
  for (const char c : text) hash.add(static_cast<unsigned char>(c));
  return hash.value();
}

/// Hashes the bits of float or double values. Returns nan_hash if one is a NaN, whose bits differ between processors.
template <class T>
std::uint32_t hash_of(View<const T> values) {
  Hash hash;
  for (const T value : values) {
    if (std::isnan(value)) return nan_hash;
    if constexpr (std::is_same_v<T, double>) {
      const auto bits = std::bit_cast<std::uint64_t>(value);
      hash.add(static_cast<std::uint32_t>(bits));
      hash.add(static_cast<std::uint32_t>(bits >> 32));
    } else {
      hash.add(std::bit_cast<std::uint32_t>(value));
    }
  }
  return hash.value();
}
template <class T>
std::uint32_t hash_of(const Tensor<T>& values) {
  return hash_of(values.view());
}
std::uint32_t hash_of(double value) { return hash_of(View<const double>(&value, Shape{})); }

/// Hashes with their names.
class Hashes {
 public:
  void add(std::string name, std::uint32_t hash) { list_.push_back({std::move(name), hash}); }

  /// Returns the hashes, preceded by the hash of all names.
  std::vector<NamedHash> list() && {
    std::string names;
    for (const NamedHash& hash : list_) names += hash.name + "\n";
    list_.insert(list_.begin(), {"the list of tensors", hash_of(names)});
    return std::move(list_);
  }

 private:
  std::vector<NamedHash> list_;
};

/// Observer that collects the hashes of a run.
class HashingObserver : public TrainObserver, public TensorObserver<float> {
 public:
  HashingObserver(Hashes& hashes, std::string run) : hashes_(hashes), run_(std::move(run)) {}

  void begin(const TrainPlan&) override { add_checkpoint("start"); }

  void observe(const ObservedTensor<float>& tensor) override {
    if (steps_ > 0) return;
    const std::string& name = names_.of(tensor);
    const char* const kind = tensor.gradient ? "gradient" : tensor.recomputed ? "recomputed result" : "result";
    hashes_.add(fmt::format("step 1: {} of {}", kind, name), hash_of(tensor.values));
  }

  void step(const StepReport& report) override {
    // A step's checkpoint is written only after this function has returned.
    if (steps_ > 0) add_checkpoint(fmt::format("step {}", steps_));
    steps_ = report.step;
    hashes_.add(fmt::format("step {}: mean loss of the epoch", steps_), hash_of(report.loss));
  }

  void epoch(const EpochReport& report) override {
    if (!report.validated) return;
    hashes_.add(fmt::format("epoch {}: validation loss", report.train.epoch), hash_of(report.validation_loss));
    hashes_.add(fmt::format("epoch {}: validation accuracy", report.train.epoch), hash_of(report.validation_accuracy));
  }

  void test(const Evaluation& evaluation) override {
    hashes_.add("test: loss", hash_of(evaluation.score.mean_loss()));
    hashes_.add("test: accuracy", hash_of(evaluation.score.accuracy()));
  }

  /// Adds the hashes of the last checkpoint: of the gradient norm, of the state (which determines the next weights),
  /// and of all weights together or, after the first step, of each separately.
  void add_checkpoint(const std::string& when) {
    const SafetensorsFile file(run_ + "/last.safetensors");
    Hash state, weights;
    std::vector<NamedHash> each;
    for (const std::string& name : file.names()) {
      const bool single = file.info(name).dtype == DType::F32;
      const std::uint32_t hash = single ? hash_of(file.read<float>(name)) : hash_of(file.read<double>(name));
      const bool is_state = name.starts_with("heed.");
      (is_state ? state : weights).add(hash);
      if (!is_state) each.push_back({name, hash});
    }
    if (steps_ > 0)
      hashes_.add(when + ": gradient norms of the epoch, added up", hash_of(file.metadata().at("heed.gradient_norm")));
    hashes_.add(when + ": state of optimiser, averages and progress", state.value());
    if (steps_ == 1)
      for (const auto& [name, hash] : each) hashes_.add(fmt::format("{}: {}", when, name), hash);
    else
      hashes_.add(when + ": weights", weights.value());
  }

 private:
  Hashes& hashes_;
  std::string run_;
  ResultNames names_;
  Index steps_ = 0;
};

/// Adds the hash of the logits that a trained language model computes for a fixed sequence, token by token.
void hash_decoding(const Experiment& experiment, const std::string& run, Hashes& hashes) {
  const std::unique_ptr<Model> model = make_model(experiment);
  Parameters<float> parameters(model->parameters());
  load_weights(SafetensorsFile(run + "/best.safetensors"), parameters);
  Decoder<float> decoder(*model, parameters);
  Hash all;
  for (Index i = 0; i < experiment.model.context; ++i) {
    const std::span<const float> logits = decoder.next(static_cast<int>(7 * i % experiment.model.vocab));
    all.add(hash_of(View<const float>(logits.data(), Shape{static_cast<Index>(logits.size())})));
  }
  hashes.add("decoding: logits", all.value());
}

/// Adds the hashes of the augmented images of a run's first step.
void hash_images(const Experiment& x, Hashes& hashes) {
  ImageSets sets(x.data, x.train.seed);
  Loading loading{{x.model.channels, x.model.image.height, x.model.image.width}, x.train.batch, x.train.seed, true};
  if (x.train.method == "dino") loading.views = x.dino;
  Loader<float> loader(sets.set(Part::train), sets.images(Part::train), x.data, loading);
  loader.start(0);
  const Batch<float>& batch = *loader.next();
  hashes.add("step 1: images", hash_of(batch.images));
  if (batch.crops.size() > 0) hashes.add("step 1: small views of the images", hash_of(batch.crops));
  if (batch.targets.size() > 0) hashes.add("step 1: targets", hash_of(batch.targets));
}

void hash_run(const SelftestRun& run, const std::string& directory, Hashes& hashes) {
  const std::string place = (std::filesystem::path(directory) / "runs" / run.name).string();
  const Experiment experiment = selftest_experiment(run, directory);
  if (experiment.model.family != "sequence" && experiment.data.name != "scenes") hash_images(experiment, hashes);
  HashingObserver observer(hashes, place);
  TrainOptions options{.run = place};
  options.tensors = &observer;
  train(experiment, options, observer);
  observer.add_checkpoint("end");
  if (experiment.model.task == "lm") hash_decoding(experiment, place, hashes);
  std::filesystem::remove_all(place);  // in-memory disks of containers are small
}

/// Adds the hashes of the result of an operation and of the gradients of <R, result> for a random R.
void hash_operation(const CheckCase& c, Hashes& hashes) {
  const RandomStream random(1), cotangent = random.derive("cotangent");
  const std::vector<Tensor<float>> inputs = draw_inputs<float>(c, 1);
  Tape<float> tape({.training = c.training, .random = random.derive("random")});
  std::vector<Var<float>> variables;
  for (const Tensor<float>& input : inputs) variables.push_back(tape.input(input.view()));
  const Var<float> y = c.in_float(tape, variables);
  Tensor<float> r(y.shape());
  for (Index i = 0; i < r.size(); ++i) r[i] = static_cast<float>(cotangent.uniform(i, -1, 1));
  hashes.add("result of " + c.name, hash_of(y.value()));
  tape.backward(y, std::as_const(r).view());
  for (std::size_t i = 0; i < variables.size(); ++i)
    hashes.add(fmt::format("gradient by {} of {}", c.inputs[i].name, c.name), hash_of(tape.gradient(variables[i])));
}

/// Adds the hashes of the generated files, except PNG, whose compression depends on a library.
void hash_data(const std::string& directory, Hashes& hashes) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::filesystem::path(directory) / "data"))
    if (entry.is_regular_file() && entry.path().extension() != ".png") files.push_back(entry.path());
  std::ranges::sort(files, {}, [](const std::filesystem::path& file) { return file.filename(); });
  for (const std::filesystem::path& file : files)
    hashes.add(file.filename().string(), hash_of(read_file(file.string())));
}

constexpr const char* hashes_in_program =
#include "expected_hashes.inc"
    ;

}  // namespace

std::vector<std::string> selftest_parts() {
  std::vector<std::string> parts{"data", "operations", "wide"};
  for (const SelftestRun& run : selftest_runs()) parts.emplace_back(run.name);
  return parts;
}

std::vector<NamedHash> selftest_hashes(const std::string& part, const std::string& directory) {
  Hashes hashes;
  const auto run = std::ranges::find_if(selftest_runs(), [&](const SelftestRun& r) { return r.name == part; });
  if (part == "data") {
    hash_data(directory, hashes);
  } else if (part == "operations") {
    for (const CheckCase& c : all_check_cases())
      if (!plugin_of(subject_of(c.name))) hash_operation(c, hashes);
  } else if (part == "wide") {
    for_wide_cases([&](const CheckCase& c) { hash_operation(c, hashes); });
  } else {
    require(run != selftest_runs().end(), "selftest: unknown part '{}'{}", part, suggestion(part, selftest_parts()));
    hash_run(*run, directory, hashes);
  }
  return std::move(hashes).list();
}

SelftestHashes expected_hashes() { return parse_hashes(hashes_in_program, "the program's hashes"); }

SelftestHashes parse_hashes(std::string_view text, const std::string& file) {
  SelftestHashes hashes;
  std::vector<std::uint32_t>* list = nullptr;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (word == "R\"(" || word == ")\"") continue;
    if (word.ends_with(':')) {
      list = &hashes[word.substr(0, word.size() - 1)];
      continue;
    }
    std::uint32_t hash = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), hash, 16);
    require(list && error == std::errc() && end == word.data() + word.size() && word.size() == 8,
            "{}: '{}' is not a hash; `heed selftest --write FILE` writes such files", file, word);
    list->push_back(hash);
  }
  return hashes;
}

std::string hashes_file(const SelftestHashes& hashes) {
  std::string text = "R\"(\n";
  for (const auto& [part, list] : hashes) {
    text += part + ":";
    for (std::size_t i = 0; i < list.size(); ++i) text += fmt::format("{}{:08x}", i % 13 == 0 ? "\n" : " ", list[i]);
    text += "\n";
  }
  return text + ")\"\n";
}

HashComparison compare_hashes(const std::vector<NamedHash>& got, const std::vector<std::uint32_t>& expected) {
  HashComparison result{.all = got.size()};
  if (expected.empty() || expected[0] != got[0].hash) {
    result.different.push_back(expected.empty()
                                   ? "the list of tensors; there are no expected hashes of this part"
                                   : "the list of tensors; the expected hashes belong to another version of heed");
    return result;
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (i < expected.size() && got[i].hash == expected[i])
      ++result.equal;
    else
      result.different.push_back(got[i].name + (got[i].hash == nan_hash ? ", which has a NaN" : ""));
  }
  return result;
}

}  // namespace heed
