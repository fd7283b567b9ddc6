// heed train: a training run from the terminal.
#include "src/apps/cli/shared/commands.h"
#include "src/apps/cli/shared/fitted_text.h"
#include "src/apps/cli/shared/memory.h"
#include "src/apps/cli/shared/output_file.h"
#include "src/apps/cli/shared/presets.h"
#include "src/apps/cli/shared/trained.h"
#include "own_images.h"
#include "src/apps/cli/shared/progress_line.h"
#include "src/apps/cli/shared/table.h"
#include "taken_weights.h"

#include "heed/analysis/resident_memory.h"
#include "heed/attention/plugin.h"
#include "heed/base/math.h"
#include "heed/base/printable.h"
#include "heed/base/suggest.h"
#include "heed/base/warnings.h"
#include "heed/bench/peak.h"
#include "heed/bench/rapl.h"
#include "heed/config/installed.h"
#include "heed/config/model_of_tensors.h"
#include "heed/cost/energy.h"
#include "heed/data/dataset.h"
#include "heed/nn/families.h"
#include "heed/train/runs/run.h"
#include "heed/train/tasks/classification.h"
#include "heed/train/trainer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <map>
#include <mutex>
#include <numbers>
#include <optional>
#include <set>

namespace heed::cli {

namespace {

std::atomic<bool> interrupt{false};
std::atomic<std::int64_t> interrupted_at{0};  ///< milliseconds of the monotonic clock; 0: not interrupted
bool has_terminal = false;

/// Handles SIGINT (Ctrl-C), SIGTERM and SIGHUP. The first signal stops the run after the current step. A later one ends
/// the program at once, unless it arrives within two seconds of the first: a terminal and a launcher may each send a
/// signal.
extern "C" void on_interrupt(int signal) {
  timespec clock{};
  clock_gettime(CLOCK_MONOTONIC, &clock);
  const std::int64_t now = std::int64_t{clock.tv_sec} * 1000 + clock.tv_nsec / 1'000'000;
  std::int64_t first = 0;
  if (interrupted_at.compare_exchange_strong(first, now)) {  // two threads may each receive a signal
    interrupt = true;
    constexpr std::string_view text = "\nsaving; to end without saving, interrupt again after two seconds\n";
    if (has_terminal && ::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
  } else if (now - first >= 2000) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

void print_init(const TrainPlan& plan) {
  if (!plan.init.empty()) std::cout << fmt::format("from {}: {}\n", printable(plan.init), taken_text(plan.taken));
}

/// Returns a line with the user's own classes, "'cat' 24+3+6, 'dog' ...": numbers of training, validation (if any) and
/// test examples. Empty for data sets with known classes.
std::string classes_text(const Experiment& x, const TrainPlan& plan) {
  if (x.data.name != "folder" && x.data.name != "documents") return "";
  constexpr std::size_t most = 20;
  std::string text;
  for (std::size_t c = 0; c < std::min(most, plan.class_names.size()); ++c)
    text += fmt::format("{}{} {}{}+{}", c == 0 ? "" : ", ", in_quotes(plan.class_names[c]), plan.train_classes[c],
                        plan.validation_classes.empty() ? "" : fmt::format("+{}", plan.validation_classes[c]),
                        plan.test_classes[c]);
  if (plan.class_names.size() > most) text += fmt::format(" and {} more classes", plan.class_names.size() - most);
  return text.empty() ? ""
                      : fmt::format("classes     {} ({}s to train on{} + to test)\n", text, plan.example,
                                    plan.validation_classes.empty() ? "" : " + to validate");
}

/// Warns about data.validation if it has no effect, because the data have their own validation examples, and about
/// classes without training examples.
void warn_of_examples(const Experiment& x, const TrainPlan& plan) {
  const Index aside = x.data.validation;
  if (plan.own_validation && aside > 0 && aside != plan.validation_examples && aside != DataConfig{}.validation)
    warn(fmt::format("data.validation={} has no effect: the data have {} of their own", aside,
                     counted(plan.validation_examples, "validation " + plan.example)));
  std::vector<std::string> untrained;
  for (std::size_t c = 0; c < plan.class_names.size(); ++c)
    if (plan.train_classes[c] == 0) untrained.push_back(plan.class_names[c]);
  if (untrained.empty()) return;
  const bool limited = x.data.limit > 0 && x.data.limit == plan.train_examples;
  warn(fmt::format("{} of {} classes have no training {}s: {}{}", untrained.size(), plan.class_names.size(),
                   plan.example, quoted_list(untrained),
                   limited ? fmt::format("; data.limit={} takes the first", x.data.limit) : ""));
}

/// Warns about keys of the schedule after the warm-up, which have no effect if the warm-up lasts until the end of
/// training.
void warn_of_warm_up(const Experiment& x, const TrainPlan& plan) {
  const Index steps = x.train.epochs * plan.steps_per_epoch;
  if (x.optim.warmup_steps < steps || !x.optim.falls_to_min()) return;
  const std::map<std::string, std::string> now = settings_of(x), usual = settings_of(Experiment());
  for (const char* const key : {"optim.schedule", "optim.min_lr"})
    if (now.at(key) != usual.at(key))
      warn(fmt::format("{} = {} has no effect; it needs optim.warmup_steps below {}, the number of training steps", key,
                       now.at(key), steps));
}

/// Warns about the training examples that each epoch leaves out with its last, incomplete batch, if these are the same
/// in every epoch or more than a tenth of all. With data.shuffle, windows of a text are drawn at random, so none is
/// left out.
void warn_of_left_out(const Experiment& x, const TrainPlan& plan) {
  const Index left = plan.train_examples - plan.steps_per_epoch * x.train.batch;
  const bool drawn = x.data.name == "text" && x.data.shuffle;
  if (left == 0 || drawn || (x.data.shuffle && 10 * left <= plan.train_examples)) return;
  const std::string part =
      fmt::format("{} of {} training {}s, an incomplete batch", left, plan.train_examples, plan.example);
  warn(fmt::format("train.batch={}: {}; a smaller batch leaves out fewer", x.train.batch,
                   x.data.shuffle ? "each epoch leaves out " + part
                                  : "training never uses the last " + part + ", since data.shuffle=false"));
}

void warn_of_plan(const Experiment& x, const TrainPlan& plan) {
  warn_of_examples(x, plan);
  warn_of_warm_up(x, plan);
  warn_of_left_out(x, plan);
}

/// Returns the number of classes or outputs of the model.
Index answers_of(const Experiment& x) {
  return x.self_supervised() ? x.dino.out_dim : x.model.task == "lm" ? x.model.vocab : x.model.classes;
}

/// A progress bar, redrawn in place on a terminal, and a line per epoch. Several processes have no bar, since the
/// launcher would print each redrawing as a line.
class TrainProgress : public TrainObserver {
 public:
  /// `processes` is a line that describes the processes, or empty.
  TrainProgress(const Experiment& x, std::string processes)
      : x_(x),
        epochs_(x.train.epochs),
        processes_(std::move(processes)),
        terminal_(isatty(STDOUT_FILENO) && started_processes().count() == 1) {}
  /// Clears the bar, so that no error is printed after it on the same line.
  ~TrainProgress() override {
    clear();
    std::cout << std::flush;
  }

  void begin(const TrainPlan& plan) override {
    plan_ = plan;
    std::cout << fitted(fmt::format("{} parameters; {} {}s to train on, {} to validate, {} to test\n{}\n",
                                    grouped(plan.parameters), grouped(plan.train_examples), plan.example,
                                    grouped(plan.validation_examples), grouped(plan.test_examples), environment_line()))
              << fitted(classes_text(x_, plan)) << processes_ << fmt::format("run directory {}\n", printable(plan.run));
    if (plan.step > 0) std::cout << fmt::format("resumed after {}\n", counted(plan.step, "step"));
    if (plan.epochs_before > 0 && plan.epochs_before != epochs_)
      std::cout << fmt::format("{} instead of {}{}\n", counted(epochs_, "epoch"), plan.epochs_before,
                               x_.optim.falls_to_min()
                                   ? ": the learning rate now follows the schedule of " + counted(epochs_, "epoch")
                                   : "");
    print_init(plan);
    warn_of_plan(x_, plan);
    std::cout << std::flush;
    print_warnings();
    energy_.emplace();
    start_ = energy_read_ = Clock::now();
    last_.step = first_step_ = plan.step;
  }

  void step(const StepReport& s) override {
    last_ = s;
    if (Clock::now() - energy_read_ > std::chrono::minutes(1)) {
      energy_->update();
      energy_read_ = Clock::now();
    }
    if (!terminal_ || Clock::now() - drawn_ < std::chrono::milliseconds(100)) return;
    drawn_ = Clock::now();
    const double elapsed = std::chrono::duration<double>(drawn_ - start_).count();
    const Index steps = steps_left(s, plan_.steps_per_epoch, epochs_, x_.train.max_steps);
    const double left = elapsed / static_cast<double>(s.step - first_step_) * static_cast<double>(steps);
    std::cout << "\r\033[K" << progress_line(s, plan_, epochs_, left, terminal_columns()) << std::flush;
  }

  void epoch(const EpochReport& e) override {
    clear();
    seconds_ += e.seconds;
    images_ += std::max(e.train.images_per_s, 0.0) * e.seconds;
    const std::string number = fmt::format("epoch {:>{}}/{}  ", e.train.epoch, std::to_string(epochs_).size(), epochs_);
    const std::string training = fmt::format("{}  accuracy {:6.2f} %", loss_text(e.train.loss), 100 * e.train.accuracy);
    std::string validation, pace;
    if (e.train.images_per_s >= 0)
      pace = fmt::format("  {} {}s/s  {}", digits(e.train.images_per_s), plan_.example, duration(e.seconds));
    if (e.validated) {
      const std::string loss = e.validation_loss < 0 ? "" : loss_text(e.validation_loss) + "  ";
      validation = fmt::format("validation {}accuracy {:6.2f} %", loss, 100 * e.validation_accuracy);
    }
    if (e.skipped > 0) pace += fmt::format("  {} skipped", counted(e.skipped, "step"));
    const std::size_t length = number.size() + training.size() + 2 + validation.size() + pace.size();
    if (!e.validated)
      std::cout << number << training << pace << std::endl;
    else if (terminal_ && length > static_cast<std::size_t>(terminal_columns()))
      std::cout << number << training << pace << "\n" << std::string(number.size(), ' ') << validation << std::endl;
    else
      std::cout << number << training << "  " << validation << pace << std::endl;
    if (!e.remark.empty()) std::cout << std::string(number.size(), ' ') << e.remark << std::endl;
  }

  void out_of_patience(Index epoch) override {
    clear();
    std::cout << fmt::format("stopped after epoch {} by train.patience: validation did not improve\n", epoch);
  }

  void test(const Evaluation& t) override {
    clear();
    const Score& s = t.score;
    const bool patches = x_.model.output == "tokens";
    std::cout << (patches ? fmt::format("test mean IoU {:.2f} %", 100 * s.accuracy())
                          : fmt::format("test accuracy {:.2f} % ({:.0f} of {:.0f})", 100 * s.accuracy(), s.correct,
                                        s.terms))
              << (s.mean_loss() < 0 ? "\n" : fmt::format(", {}\n", loss_text(s.mean_loss()))) << std::flush;
    // The number of classes; 0 unless the task is a classification.
    const Index classes = patches || x_.model.task == "lm" || x_.self_supervised() ? 0 : x_.model.classes;
    if (classes == 0 || static_cast<Index>(t.counts.size()) != classification_counts(classes)) return;
    const double share = commonest_share(t, classes), error = 2 * std::sqrt(share * (1 - share) / s.terms);
    if (s.accuracy() <= share + error)
      remark_ = fmt::format(
          "no better than guessing: {:.2f} % of the test {}s belong to the most common class, and the accuracy of "
          "{:.2f} % does not exceed this by {:.2f} points (two standard errors)",
          100 * share, plan_.example, 100 * s.accuracy(), 100 * error);
  }

  /// Returns a sentence about a classifier that is no better than always predicting the test set's most frequent class:
  /// its accuracy does not exceed that class's fraction p by more than two standard errors sqrt(p (1 - p) / n) of n
  /// examples. Otherwise empty.
  const std::string& remark() const { return remark_; }

  /// Clears the bar.
  void clear() const {
    if (terminal_) std::cout << "\r\033[K";
  }

  /// Prints the fraction of the CPU's peak that the run reached, and its energy.
  void summary() {
    if (last_.step == first_step_) return;
    const std::string package = energy_->report();  // read before the peak measurement, which uses energy, too
    const double rate = seconds_ > 0 ? images_ / seconds_ : last_.images_per_s;
    const int processes = started_processes().count();
    const std::string example =
        plan_.shorter ? fmt::format("{} of {} tokens", plan_.example, x_.model.context) : plan_.example;
    // The peak measurement takes about a twentieth of the training's time, but at least 0.02 s and at most 0.2 s.
    const auto share = [&](double operations) {
      const double peak = processes * peak_flops(std::clamp(seconds_ / 20, 0.02, 0.2));
      return fmt::format("{}FLOP/s, {:.0f} % of the {}FLOP/s of {}", si(rate * operations),
                         100 * rate * operations / peak, si(peak),
                         processes == 1 ? "this machine's float32 matrix products"
                                        : fmt::format("float32 matrix products in {} processes", processes));
    };
    const double operations = static_cast<double>(plan_.operations);
    std::cout << fitted(
        fmt::format("{}FLOP per training {}{}; {}\n{} per training {} by the table ({}); processor packages, in total: "
                    "{}\n",
                    si(operations), example, x_.self_supervised() ? ", without the teacher's forward passes" : "",
                    plan_.shorter ? "shorter ones need fewer, so no rate is computed" : share(operations),
                    joules(plan_.energy_pj), example, default_energy_table().name, package));
  }

  const StepReport& last() const { return last_; }
  const std::string& measure() const { return plan_.measure; }

  /// Returns the number of updates since begin().
  Index steps() const { return last_.step - first_step_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// Formats a loss, for language models also in bits.
  std::string loss_text(double loss) const {
    return x_.model.task == "lm" ? fmt::format("loss {:.4f} ({:.4f} bits)", loss, loss / std::numbers::ln2)
                                 : fmt::format("loss {:.4f}", loss);
  }

  const Experiment& x_;
  Index epochs_;
  std::string processes_, remark_;
  bool terminal_;
  TrainPlan plan_;
  StepReport last_;
  Clock::time_point start_, drawn_, energy_read_;
  Index first_step_ = 0;
  double seconds_ = 0, images_ = 0;  ///< sums over completed epochs
  std::optional<PackageEnergy> energy_;
};

/// Prints the results of --check in a few lines.
class CheckReport : public TrainObserver {
 public:
  explicit CheckReport(const Experiment& experiment) : x_(experiment) {}

  void begin(const TrainPlan& plan) override {
    plan_ = plan;
    warn_of_plan(x_, plan_);
  }

  void step(const StepReport& s) override {
    std::vector<std::string> mechanisms = x_.attention.mechanism;
    mechanisms.erase(std::unique(mechanisms.begin(), mechanisms.end()), mechanisms.end());
    const auto size = [&](Index whole, const std::vector<Index>& of_stages) {
      return x_.model.is_staged() ? fmt::format("{}", fmt::join(of_stages, "/")) : fmt::format("{}", whole);
    };
    const Index limit = x_.train.max_steps;
    print_init(plan_);
    std::cout << fitted(fmt::format(
        "model       {}; {} blocks, width {}, {} {}; {} parameters\n"
        "data        {}: {} {}s to train on, {} to validate, {} to test\n{}"
        "first step  loss {:.4f}, where a blind guess has {:.4f}; {} {}s in {:.2f} s\n"
        "memory      {:.2f} GB\n"
        "nothing was written; training would take {} of {} steps{}\n",
        fmt::join(mechanisms, ", "), size(x_.model.depth, x_.model.stages.depth),
        size(x_.model.dim, x_.model.stages.dim), answers_of(x_),
        x_.self_supervised()    ? "outputs"
        : x_.model.task == "lm" ? "tokens"
                                : "classes",
        grouped(plan_.parameters), x_.data.name, grouped(plan_.train_examples), plan_.example,
        grouped(plan_.validation_examples), grouped(plan_.test_examples), classes_text(x_, plan_), s.loss,
        math::log(static_cast<double>(answers_of(x_))), x_.train.batch, plan_.example,
        static_cast<double>(x_.train.batch) / s.images_per_s, static_cast<double>(peak_resident_bytes()) / 1e9,
        counted(x_.train.epochs, "epoch"), grouped(plan_.steps_per_epoch),
        limit > 0 && limit < x_.train.epochs * plan_.steps_per_epoch
            ? fmt::format(", and stop after {} (train.max_steps)", grouped(limit))
            : ""));
  }

 private:
  const Experiment& x_;
  TrainPlan plan_;
};

struct TrainArguments {
  std::string file, run, init, images, model, preset;
  std::vector<std::string> sets;
  int threads = 0;
  bool resume = false, profile = false, check = false, changed_data = false;
};

/// Throws Error if memory is too small for the weights, their gradients and the optimiser's state, so that training
/// does not fail after minutes of filling it.
void require_memory(const Experiment& experiment) {
  const Index weights = make_model(experiment)->parameters().trainable_elements();
  const double arrays = experiment.optim.name == "adamw" ? 4 : 3, number = experiment.train.dtype == "f64" ? 8 : 4;
  const double needed = arrays * number * static_cast<double>(weights);
  const double available = static_cast<double>(available_memory());
  require(needed <= available,
          "training {} weights needs {:.1f} GB of memory before the first image; {:.1f} GB are available",
          grouped(weights), needed / 1e9, available / 1e9);
}

/// Returns the overrides of the command line: of --model and --preset, then of --set.
std::vector<std::string> all_sets(const TrainArguments& a) {
  std::vector<std::string> sets = preset_sets(a.preset);
  if (!a.model.empty()) {
    require(!a.init.empty(), "train: --model auto requires --init, whose tensors it reads");
    require(!RunPaths(a.init).exists(),
            "train: --model auto reads a file of weights; {} is a run: give {} as FILE instead of --model auto", a.init,
            RunPaths(a.init).config());
    const std::vector<std::string> own = sets_of_tensors(automatic_model(a.init, a.sets).model);
    sets.insert(sets.end(), own.begin(), own.end());
    sets.push_back("train.init_positions=plain");
  }
  sets.insert(sets.end(), a.sets.begin(), a.sets.end());
  return sets;
}

/// Returns " --plugin FILE" for each plugin that defines one of the mechanisms.
std::string plugin_options(const std::vector<std::string>& mechanisms) {
  std::set<std::string> plugins;
  for (const std::string& name : mechanisms)
    if (const PluginOrigin* const plugin = plugin_of(name)) plugins.insert(" --plugin " + shell_word(plugin->file));
  return fmt::format("{}", fmt::join(plugins, ""));
}

/// Returns the experiment: from a file, from the run directory, or for the user's own images.
Experiment experiment_of(const TrainArguments& a) {
  require(!a.file.empty() || a.resume || !a.images.empty(),
          "train: no experiment is given; expected FILE, --images DIR, or --resume to continue --run");
  if (a.resume) check_plugins(RunPaths(a.run));
  if (a.images.empty() && a.file.empty()) {
    const RunPaths paths(a.run);
    require(paths.exists(), "{}: contains no run to resume", a.run);
    require(a.preset.empty() && a.model.empty(), "train: --preset and --model require FILE; {} has its own settings",
            paths.config());
    // The version is checked first: the configuration may have keys of another version.
    if (std::filesystem::exists(paths.last())) check_same_version(paths);
    return load_recorded(paths.config(), a.sets);
  }
  if (a.images.empty()) return load_experiment(a.file, all_sets(a));
  const std::string file = a.file.empty() ? "experiments/images.toml" : a.file;
  for (const std::string& set : a.sets)
    require(!set.starts_with("data.path=") && !set.starts_with("data.name="),
            "train: --set {} and --images {} both name the data; expected one of them", in_quotes(set),
            in_quotes(a.images));
  const std::vector<std::string> sets = all_sets(a);
  std::vector<std::string> given = {"model.classes=2", "data.name=folder"};
  bool divided = false;
  for (const std::string& set : sets) {
    const bool divides = set.starts_with("data.validation=");
    divided = divided || divides;
    // Without FILE, keys other than these three of [data] may be valid only with the model and means that the images
    // determine below.
    if (!a.file.empty() || divides || set.starts_with("data.limit=") || set.starts_with("data.skip_bad="))
      given.push_back(set);
  }
  OwnImages own = own_images(a.images, a.file.empty(), load_experiment(file, given).data, divided);
  own.sets.insert(own.sets.end(), sets.begin(), sets.end());
  print_warnings();
  std::cout << fitted(fmt::format("{}: {}\n", printable(a.images), own.found))
            << fmt::format("equivalent command: {} train {}", program_name(), shell_word(file));
  if (!a.run.empty()) std::cout << " --run " << shell_word(a.run);
  if (!a.init.empty()) std::cout << " --init " << shell_word(a.init);
  // Includes the settings of --model and --preset.
  for (const std::string& set : own.sets) std::cout << " --set " << shell_word(set);
  std::cout << plugin_options(mechanism_names()) << std::endl;
  return load_experiment(file, own.sets);
}

/// Warns about keys that have no effect without --init.
void warn_of_init_keys(const TrainConfig& train) {
  const auto say = [](const char* key, const auto& value, const auto& usual) {
    if (value != usual) warn(fmt::format("train.{} = {} has no effect; it needs --init", key, value));
  };
  const TrainConfig usual;
  say("init", train.init, usual.init);
  say("init_head", train.init_head, usual.init_head);
  say("init_positions", train.init_positions, usual.init_positions);
}

/// Prints settings to change after unsuccessful training. `derived`: data.mean and data.std were computed from the
/// images.
void print_remedies(const Experiment& x, const std::string& run, const TrainProgress& progress, bool derived) {
  std::string text = fmt::format(
      "\n{}\nto try:\n  optim.lr             a rate other than {:.6g}; {} lr {}/config.toml{} suggests one\n  "
      "train.epochs         more than {}; this run had {} steps\n",
      progress.remark(), x.optim.lr, program_name(), run, plugin_options(x.attention.mechanism), x.train.epochs,
      grouped(progress.last().step));
  if (!holds_sequences(x.data) && !derived)
    text += fmt::format(
        "  data.mean, data.std  measured on these images, pixels from 0 to 1; this run had {:.4g} and {:.4g}\n",
        fmt::join(x.data.mean, ","), fmt::join(x.data.std, ","));
  std::cout << fitted(text);
}

/// Prints commands that use the finished run, ready to paste. `measure` describes the numbers that its evaluation
/// prints.
void print_next(const Experiment& x, const std::string& run, const std::string& measure) {
  const std::string heed = program_name(), plot = find_installed("experiments/tools/plot_run.py");
  const bool writes = x.model.task == "lm", sequences = holds_sequences(x.data), patches = x.model.output == "tokens";
  const bool density = writes && x.data.name == "pixels";
  std::vector<std::pair<std::string, std::string>> lines;
  if (x.self_supervised()) {
    lines.emplace_back(fmt::format("{} eval {} --knn", heed, run), "accuracy by nearest neighbours");
    lines.emplace_back(fmt::format("{} eval {} --linear", heed, run), "accuracy by a linear classifier");
    lines.emplace_back(fmt::format("{} maps {} IMAGE", heed, run), "attention maps");
  } else {
    lines.emplace_back(fmt::format("{} eval {}", heed, run), measure);
  }
  if (density)
    lines.emplace_back(fmt::format("{} generate {} --complete IMAGE... -o OUT.png", heed, run), "completed images");
  else if (writes)
    lines.emplace_back(fmt::format("{} generate {}", heed, run), "generated text");
  if (patches)
    lines.emplace_back(fmt::format("{} predict {} --index 0,1,2 -o FILE.png", heed, run), "classes of patches");
  if (!sequences && !patches && !x.self_supervised()) {
    lines.emplace_back(fmt::format("{} predict {} IMAGE...", heed, run), "class of an image");
    lines.emplace_back(fmt::format("{} maps {} IMAGE", heed, run), "attention maps");
    lines.emplace_back(fmt::format("{} report {}", heed, run), "everything on one page");
  }
  const std::string plugins = plugin_options(x.attention.mechanism);
  for (auto& [command, meaning] : lines) command += plugins;
  lines.emplace_back(fmt::format("{} {}", shell_word(plot), run), "training curves");
  std::size_t width = 0;
  for (const auto& [command, meaning] : lines) width = std::max(width, meaning.size());
  std::cout << "next:\n";
  for (const auto& [command, meaning] : lines) std::cout << fmt::format("  {:<{}}  {}\n", meaning, width, command);
}

/// Returns a line "4 processes on 2 hosts, with 2 threads each"; empty for a single process.
std::string processes_text(const Place& place) {
  Ranks& ranks = started_processes();
  std::vector<std::string> threads = ranks.texts(std::to_string(heed::threads()));
  if (ranks.count() == 1) return "";
  threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
  return fmt::format("{} processes on {}, with {} thread{} each\n", ranks.count(), counted(place.hosts, "host"),
                     fmt::join(threads, ", then "), threads.size() == 1 && threads[0] == "1" ? "" : "s");
}

/// Shows the progress of reading images on a terminal.
void show_reading() {
  if (isatty(STDERR_FILENO) != 1) return;
  static std::mutex mutex;
  static std::chrono::steady_clock::time_point drawn;
  show_progress([](const char* what, long done, long all) {
    const std::lock_guard lock(mutex);
    const auto now = std::chrono::steady_clock::now();
    if (done < all && now - drawn < std::chrono::milliseconds(200)) return;
    drawn = now;
    std::cerr << (done < all ? fmt::format("\r\033[K{} {} of {}", what, done, all) : "\r\033[K") << std::flush;
  });
}

/// Throws Error if the directory of a new run would be read as a class of the user's own images or texts.
void require_outside_classes(const DataConfig& data, const std::string& run) {
  namespace fs = std::filesystem;
  if (data.name != "folder" && data.name != "documents") return;
  DataConfig directories = data;
  directories.name = "folder";
  std::error_code error;
  const auto place = [&](const std::string& path) { return fs::weakly_canonical(fs::absolute(path, error), error); };
  const fs::path below = place(run).lexically_relative(place(data.path));
  require(below.empty() || below == "." || *below.begin() == ".." || has_directory(directories, Split::train) ||
              fs::exists(place(data.path) / "train.tsv", error),
          "train: --run {}: is inside {}, whose directories are the classes; expected another directory", run,
          data.path);
}

int train_command(const TrainArguments& a) {
  show_reading();
  const Place place = use_threads(a.threads);
  require(!a.changed_data || a.resume, "train: --changed-data requires --resume");
  require(a.check || !a.run.empty(), "train: --run is missing; expected a run directory such as runs/mnist");
  const bool begins = !a.resume && !a.check && !RunPaths(a.run).exists();
  if (begins) require_own_file({"FILE", a.file}, {{"the configuration that --run writes", RunPaths(a.run).config()}});
  const Experiment experiment = experiment_of(a);
  if (begins) require_outside_classes(experiment.data, a.run);
  if (a.resume) {
    const std::string changed = changed_plugin(RunPaths(a.run), experiment);
    require(changed.empty(), "{}; a resumed run must keep its mechanism", changed);
  }
  if (a.init.empty() && !a.resume) warn_of_init_keys(experiment.train);
  require_memory(experiment);
  if (a.check) {
    CheckReport report(experiment);
    train(experiment, {.run = a.run, .init = a.init, .check = true, .ranks = &started_processes()}, report);
    return ok;
  }
  Profile profile;
  TrainOptions options{.run = a.run, .init = a.init, .resume = a.resume, .interrupt = &interrupt};
  options.ranks = &started_processes();
  options.changed_data = a.changed_data;
  if (a.profile) options.profile = &profile;
  has_terminal = isatty(STDERR_FILENO) == 1;
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe of the output does not end the run
  // Under nohup the run continues when the terminal is closed.
  if (std::signal(SIGHUP, SIG_IGN) != SIG_IGN) std::signal(SIGHUP, on_interrupt);
  TrainProgress progress(experiment, processes_text(place));
  const Outcome outcome = train(experiment, options, progress);
  progress.clear();
  if (a.profile) print_profile(profile, progress.steps());
  // Without --set, since the recorded configuration includes the overrides.
  const std::string resume = fmt::format("{} train --run {} --resume{}{}", program_name(), shell_word(a.run),
                                         a.threads > 0 ? fmt::format(" --threads {}", a.threads) : "",
                                         plugin_options(experiment.attention.mechanism));
  switch (outcome) {
    case Outcome::finished:
      progress.summary();
      if (!progress.remark().empty())
        print_remedies(experiment, shell_word(a.run), progress,
                       a.file.empty() && (!a.resume || experiment.data.mean != DataConfig().mean));
      std::cout << fmt::format("\nweights, metrics and configuration are in {}\n", printable(a.run));
      print_next(experiment, shell_word(a.run), progress.measure());
      return ok;
    case Outcome::stopped:
      progress.summary();
      std::cout << fmt::format("stopped after {} (train.max_steps); to continue:\n  {} --set train.max_steps=0\n",
                               counted(std::max(progress.last().step, experiment.train.max_steps), "step"), resume);
      return ok;
    case Outcome::checked:
      return ok;
    case Outcome::interrupted:
      std::cout << fmt::format("interrupted and saved; to continue:\n  {}\n", resume);
      return interrupted;
  }
  return ok;
}

}  // namespace

void add_train(Command program) {
  static TrainArguments a;
  Command command = program.command("train", "Train a model described by an experiment file");
  command.option("FILE", &a.file,
                 "experiment, such as experiments/mnist.toml; with --resume, default: the recorded one");
  command.option("--run", &a.run, "run directory: configuration, metrics, weights; REQUIRED unless --check is given",
                 {.value = "DIR"});
  command.option("--images", &a.images,
                 "train on your own images: DIR/train/CLASS, optionally DIR/val/CLASS and DIR/test/CLASS, or only "
                 "DIR/CLASS; FILE is optional",
                 {.value = "DIR"});
  add_sets(command, a.sets, "override a key of the experiment, such as optim.lr=2e-3; repeatable", config_keys());
  add_threads(command, a.threads);
  command.option("--model", &a.model, "auto: derive [model] from the tensors of --init", {.one_of = {"auto"}});
  add_preset(command, a.preset);
  command.option("--init", &a.init, "weights to start from: a run directory, or a safetensors file with timm's names",
                 {.value = "FILE"});
  command.option("--resume", &a.resume, "continue the run in DIR; --set train.epochs=N for more epochs",
                 {.excludes = "--images"});
  command.option("--changed-data", &a.changed_data,
                 "with --resume: continue although images or texts have changed since the run started");
  command.option("--check", &a.check, "check experiment and data, run one step, write nothing",
                 {.excludes = "--resume"});
  command.option("--profile", &a.profile, "print the time of training steps by operation at the end",
                 {.excludes = "--check"});
  command.action([] { return train_command(a); });
}

}  // namespace heed::cli
