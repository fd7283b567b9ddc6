// Output and exit status of the program's commands, when they succeed and when they are stopped.
#include "support/cli.h"
#include "support/command.h"
#include "support/lines.h"

#include "heed/io/safetensors.h"

#include "support/images.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <csignal>
#include <regex>
#include <set>
#include <sstream>

using namespace heed;
using namespace heed::test;

namespace {

using Strings = std::vector<std::string>;

/// Returns the fifth field of the last row of metrics.csv, the test accuracy.
double test_accuracy(const std::string& run) {
  const std::string metrics = read_file(run + "/metrics.csv");
  std::istringstream row(metrics.substr(metrics.rfind("\ntest,") + 1));
  std::string field;
  for (int i = 0; i < 5; ++i) std::getline(row, field, ',');
  return std::stod(field);
}

/// Waits at most a minute until metrics.csv has a row of this step.
void wait_for_step(const std::string& run, int step) {
  const std::string row = fmt::format("step,1,{},", step);
  for (int i = 0; i < 6000; ++i) {
    if (std::filesystem::exists(run + "/metrics.csv") && read_file(run + "/metrics.csv").find(row) != std::string::npos)
      return;
    usleep(10'000);
  }
  BOOST_ERROR("no step " << step << " within a minute");
}

/// A run long enough to be stopped in the middle of its only epoch: 240 steps of 16 images.
struct LongRun : Workshop {
  LongRun() : Workshop(3850, 10) {
    Experiment x = experiment();
    ask_for_everything(x);
    x.data.validation = 10;
    x.train.epochs = 1;
    x.train.log_steps = true;
    x.train.checkpoint_steps = 7;
    file = write_experiment(*this, x);
  }
  std::string file, whole = *this / "whole", stopped = *this / "stopped";

  /// Starts the run and calls stop(program) when metrics.csv has a row of `step`; returns the program's end. Repeats
  /// this if the run ends before it is stopped, since this process may have to wait for a CPU.
  template <class Stop>
  Finished stop_after(int step, const std::vector<std::string>& arguments, const Stop& stop) const {
    namespace fs = std::filesystem;
    const std::string before = *this / "before";
    if (fs::exists(stopped)) fs::copy(stopped, before, fs::copy_options::recursive);
    for (int tries = 1;; ++tries) {
      Program program(arguments);
      wait_for_step(stopped, step);
      stop(program);
      const Finished finished = program.wait();
      const std::string metrics = stopped + "/metrics.csv";
      if (tries == 5 || !fs::exists(metrics) || read_file(metrics).find("step,1,240,") == std::string::npos)
        return finished;
      fs::remove_all(stopped);
      if (fs::exists(before)) fs::copy(before, stopped, fs::copy_options::recursive);
    }
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_commands)

BOOST_AUTO_TEST_CASE(every_verb_has_help) {
  for (const char* command :
       {"train", "eval", "predict", "gradcheck", "list", "probe", "bench", "scaling", "image", "help", "completion"}) {
    check_contains(output_of({command, "--help"}), {command, "--help"});
    check_contains(output_of({"--help"}), {command});
  }
  for (const char* what : {"attention", "linear", "model"}) output_of({"probe", what, "--help"});
  check_contains(output_of({"--version"}), {"heed " HEED_VERSION " (" HEED_ARCH ")"});
}

BOOST_AUTO_TEST_CASE(list_and_gradcheck) {
  check_contains(output_of({"list"}), {"softmax", "causal"});
  BOOST_TEST(output_of({"list", "--style", "mine", "--style", "sima:norm=l2"}) ==
             "#0072b2\tcircle\tnone\n#d55e00\tsquare\tnone\n");
  check_contains(output_of({"gradcheck", "layer_norm", "add"}), {"layer_norm", "gamma", "add"});
}

// The name of an operation selects all its cases; a case's full name, with its options, selects that case. A prefix of
// a name selects nothing.
BOOST_AUTO_TEST_CASE(gradcheck_checks_the_named_cases) {
  using Names = std::set<std::string>;
  const auto checked = [](const Strings& names) {
    Strings words{"gradcheck"};
    words.insert(words.end(), names.begin(), names.end());
    words.emplace_back("--json");
    const auto json = nlohmann::json::parse(output_of(words));
    Names found, counted;
    for (const auto& row : json.at("gradients")) found.insert(row.at("operation").get<std::string>());
    for (const auto& row : json.at("costs")) counted.insert(row.at("operation").get<std::string>());
    BOOST_TEST((found == counted));
    return found;
  };
  const std::string all = "label_cross_entropy", some = "label_cross_entropy, rows left out";
  BOOST_TEST((checked({all}) == Names{all, some}));
  BOOST_TEST((checked({some}) == Names{some}));
  BOOST_TEST((checked({"layer_norm", some}) == Names{"layer_norm", some}));
  for (const std::string part : {"layer", "layer_norm_", "label_cross_entropy, rows"})
    check_refusal({"gradcheck", "layer_norm", part}, {fmt::format("unknown operation or mechanism '{}'", part)});
}

BOOST_AUTO_TEST_CASE(profile_names_operations) {
  const Workshop workshop;
  const std::string file = write_experiment(workshop, workshop.experiment());
  check_contains(output_of({"train", file, "--run", workshop / "run", "--profile", "--set", "train.max_steps=2"}),
                 {"backward, ms", "cross_entropy", "all operations", "mean of 2 steps", "stopped after 2 steps"});
  check_contains(output_of({"train", "--run", workshop / "run", "--resume", "--profile", "--set", "train.max_steps=3"}),
                 {"mean of 1 step\n"});
}

// The longest operations come first and their sum last; each row has its share of the sum. Times have three decimals,
// shares one.
BOOST_AUTO_TEST_CASE(profile_is_sorted_and_summed) {
  const Workshop workshop;
  const std::string file = write_experiment(workshop, workshop.experiment());
  const std::string text =
      output_of({"train", file, "--run", workshop / "run", "--profile", "--set", "train.max_steps=2"});
  struct Row {
    std::string operation;
    double forward, backward, share;
  };
  std::vector<Row> rows;
  static const std::regex line("\n([^\n ][^\n]*?) {2,}([0-9.]+) +([0-9.]+) +([0-9.]+) %");
  for (std::sregex_iterator row(text.begin(), text.end(), line), end; row != end; ++row)
    rows.push_back({(*row)[1], std::stod((*row)[2]), std::stod((*row)[3]), std::stod((*row)[4])});
  BOOST_REQUIRE(rows.size() > 5u);
  const Row sum = rows.back();
  rows.pop_back();
  BOOST_TEST(sum.operation == "all operations");
  BOOST_TEST(sum.share == 100);
  const double total = sum.forward + sum.backward, rounding = 5.1e-4;
  double forward = 0, backward = 0, before = total;
  for (const Row& row : rows) {
    const double own = row.forward + row.backward;
    BOOST_TEST(own <= before + 4 * rounding, row.operation);
    BOOST_TEST(std::abs(row.share - 100 * own / total) <= 0.051 + 100 * 4 * rounding / total, row.operation);
    forward += row.forward, backward += row.backward, before = own;
  }
  const double roundings = rounding * static_cast<double>(rows.size() + 1);
  BOOST_TEST(std::abs(forward - sum.forward) <= roundings);
  BOOST_TEST(std::abs(backward - sum.backward) <= roundings);
}

// The files of a run, its output without a terminal, and the commands that use the run.
BOOST_AUTO_TEST_CASE(train_eval_predict) {
  const Workshop workshop;
  const std::string file = write_experiment(workshop, workshop.experiment()), directory = workshop / "a/run";
  const std::string printed =
      output_of({"train", file, "--run", directory, "--set", "optim.lr=0.01", "--threads", "1"});
  check_contains(printed, {"epoch 1/3", "epoch 3/3", "validation loss", "test accuracy", directory});
  check_contains(in_one_line(printed), {"FLOP per training image", "of this machine's float32 matrix products",
                                        "J per training image by the table", "processor packages, in total: "});
  BOOST_TEST(printed.find_first_of("\r\033") == std::string::npos);
  for (const char* name : {"config.toml", "environment.json", "metrics.csv", "last.safetensors", "best.safetensors"})
    BOOST_TEST(std::filesystem::exists(directory + "/" + name), name);
  BOOST_TEST(load_experiment(directory + "/config.toml").optim.lr == 0.01);
  const auto environment = nlohmann::json::parse(read_file(directory + "/environment.json"));
  for (const char* key : {"version", "compiler", "cpu", "blas", "threads_reason"})
    BOOST_TEST(!environment.at(key).get<std::string>().empty());
  BOOST_TEST(environment.at("threads").get<int>() == 1);
#ifdef __x86_64__
  BOOST_TEST(environment.at("subnormals").get<std::string>() == "zero");
#endif

  const auto cost = nlohmann::json::parse(read_file(directory + "/cost.json"));
  for (const char* convention : {"contractions", "all"})
    BOOST_TEST(
        (cost.at(convention) == nlohmann::json::parse(output_of({"cost", file, "--json", "--pass", "step",
                                                                 "--convention", convention, "--batch", "16"}))));

  std::istringstream metrics(read_file(directory + "/metrics.csv"));
  Strings kinds;
  for (std::string row; std::getline(metrics, row);) {
    kinds.push_back(row.substr(0, row.find(',')));
    BOOST_TEST(std::count(row.begin(), row.end(), ',') == 6);
  }
  BOOST_TEST(kinds == (Strings{"kind", "train", "valid", "train", "valid", "train", "valid", "test"}),
             boost::test_tools::per_element());

  // eval reports the accuracy that training reported for the same weights.
  check_contains(output_of({"eval", directory}),
                 {fmt::format("top-1 accuracy {:.2f} %", 100 * test_accuracy(directory)), "top-5 accuracy", "confusion",
                  "30 images"});
  check_contains(output_of({"eval", directory, "--split", "validation"}), {"20 images"});
  check_contains(output_of({"eval", directory, "--split", "train", "--weights", directory + "/last.safetensors"}),
                 {"112 images"});

  const std::string png = workshop / "a.png", jpg = workshop / "b.jpg";
  write_image(png, pattern({1, 8, 8}, 3));
  write_image(jpg, pattern({3, 30, 20}, 9));
  const std::string classes = output_of({"predict", directory, png, jpg, "--top", "2"});
  check_contains(classes, {png + ": ", jpg + ": ", " %"});
  BOOST_TEST(std::count(classes.begin(), classes.end(), '\n') == 2);
  BOOST_TEST(std::count(classes.begin(), classes.end(), '%') == 4);
}

BOOST_AUTO_TEST_CASE(probe_writes_results) {
  const TemporaryDirectory directory;
  const std::string in = directory / "in", out = directory / "out";
  const Tensor<double> x(Shape{1, 1, 3, 2}, {1, 2, 3, 4, 5, 6});
  SafetensorsWriter writer;
  for (const char* name : {"q", "k", "v", "grad_out"}) writer.add(name, x.view());
  writer.write(in);
  output_of({"probe", "attention", "--mechanism", "softmax", "--set", "causal=true", in, out});
  const SafetensorsFile results(out);
  for (const char* name : {"out", "grad.q", "grad.k", "grad.v", "map"}) BOOST_TEST(results.contains(name), name);
  BOOST_TEST(results.names().size() == 5u);
  const Tensor<double> first = results.read<double>("out"), map = results.read<double>("map");
  BOOST_TEST(first[0] == 1);  // the first query attends to the first key only
  BOOST_TEST(map[0] == 1);
  BOOST_TEST(map[1] == 0);
  const Finished simple =
      heed_with({"probe", "attention", "--mechanism", "aft", "--set", "variant=simple", "--set", "rank=8", in, out});
  BOOST_TEST(simple.err ==
             "heed: warning: --set: attention.rank = 8 has no effect; it needs variant = full or local\n");
}

// Gradients are computed only if the file has a gradient of the result.
BOOST_AUTO_TEST_CASE(probe_without_gradients) {
  const TemporaryDirectory directory;
  const std::string in = directory / "in", out = directory / "out";
  const Tensor<double> x(Shape{1, 1, 3, 2}, {1, 2, 3, 4, 5, 6}), weight(Shape{1, 2}, {1, 1}), bias(Shape{1}, {7});
  SafetensorsWriter attention;
  for (const char* name : {"q", "k", "v"}) attention.add(name, x.view());
  attention.write(in);
  output_of({"probe", "attention", "--mechanism", "softmax", in, out});
  BOOST_TEST(SafetensorsFile(out).names() == (std::vector<std::string>{"out", "map"}),
             boost::test_tools::per_element());
  SafetensorsWriter linear;
  linear.add("x", View<const double>(x.data(), {3, 2}));
  linear.add("weight", weight.view());
  linear.add("bias", bias.view());
  linear.write(in);
  output_of({"probe", "linear", in, out});
  BOOST_TEST(SafetensorsFile(out).names() == std::vector<std::string>{"out"}, boost::test_tools::per_element());
  BOOST_TEST(SafetensorsFile(out).read<double>("out")[2] == 18);  // 5 + 6 + 7
}

// Lambda's keys and values have a single head; XCA's map is among channels.
BOOST_AUTO_TEST_CASE(probe_takes_what_a_mechanism_takes) {
  const TemporaryDirectory directory;
  const std::string in = directory / "in", out = directory / "out";
  const auto probed = [&](const std::string& mechanism, const std::map<std::string, Shape>& shapes) {
    std::map<std::string, Tensor<double>> tensors;
    SafetensorsWriter writer;
    for (const auto& [name, shape] : shapes) {
      Tensor<double>& tensor = tensors[name] = Tensor<double>(shape);
      for (Index i = 0; i < tensor.size(); ++i) tensor[i] = RandomStream(name[0]).uniform(i, -1, 1);
      writer.add(name, std::as_const(tensor).view());
    }
    writer.write(in);
    output_of({"probe", "attention", "--mechanism", mechanism, in, out});
    const SafetensorsFile results(out);
    std::map<std::string, Shape> found;
    for (const std::string& name : results.names()) found[name] = results.info(name).shape;
    return found;
  };
  const Shape queries{2, 3, 5, 4}, values{2, 3, 5, 7};
  auto found = probed(
      "lambda", {{"q", queries}, {"k", {2, 1, 5, 4}}, {"v", {2, 1, 5, 7}}, {"e", {5, 5, 4}}, {"grad_out", values}});
  BOOST_TEST((found == std::map<std::string, Shape>{{"out", values},
                                                    {"grad.q", queries},
                                                    {"grad.k", {2, 1, 5, 4}},
                                                    {"grad.v", {2, 1, 5, 7}},
                                                    {"grad.e", {5, 5, 4}},
                                                    {"map", {2, 3, 5, 5}}}));
  found = probed("xca", {{"q", queries}, {"k", queries}, {"v", queries}, {"temperature", {3}}, {"grad_out", queries}});
  BOOST_TEST((found.at("map") == Shape{2, 3, 4, 4}));
}

BOOST_AUTO_TEST_CASE(diverged_training) {
  const Workshop workshop;
  const std::string file = write_experiment(workshop, workshop.experiment());
  const Finished run = heed_with({"train", file, "--run", workshop / "run", "--set", "optim.lr=1e30", "--set",
                                  "optim.warmup_epochs=0", "--set", "optim.name=sgd"});
  BOOST_TEST(run.status == 3);
  BOOST_TEST(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  check_contains(run.err, {"training diverged at step", "optim.lr"});
}

BOOST_FIXTURE_TEST_CASE(interrupted_and_killed_runs_go_on, LongRun) {
  output_of({"train", file, "--run", whole});
  {
    const Finished run = stop_after(3, {"train", file, "--run", stopped, "--threads", "1"}, [](const Program& program) {
      for (int i = 0; i < 3; ++i) program.signal(SIGINT);  // terminal, shell and launcher may each send it
    });
    BOOST_TEST(run.status == 130);
    BOOST_TEST(run.err == "");
    check_contains(run.out,
                   {"interrupted and saved; to continue:\n  ", " train --run " + stopped + " --resume --threads 1\n"});
    check_contains(output_of_unfinished({"eval", stopped}), {"top-1 accuracy"});
  }
  BOOST_TEST(read_file(stopped + "/metrics.csv").find("step,1,240,") == std::string::npos);
  const Finished killed =
      stop_after(100, {"train", "--run", stopped, "--resume"}, [](const Program& program) { program.signal(SIGKILL); });
  BOOST_TEST(killed.status == 1000 + SIGKILL);
  BOOST_TEST(read_file(stopped + "/metrics.csv").find("step,1,240,") == std::string::npos);
  check_contains(output_of({"train", "--run", stopped, "--resume"}), {"resumed after"});
  check_same_run(whole, stopped);
}

// The program that reads the output may exit before the run ends.
BOOST_AUTO_TEST_CASE(a_run_does_not_end_with_the_reader_of_its_output) {
  const Workshop workshop;
  const std::string file = write_experiment(workshop, workshop.experiment()), directory = workshop / "run";
  const std::string train = heed_program() + " train " + file + " --run " + directory;
  const CommandResult result = run_command(train + " | true");
  check_contains(result.errors, {"heed: standard output cannot be written"});
  BOOST_TEST(metrics_of(directory).back().starts_with("test,3,"));
  std::filesystem::remove(directory + "/best.safetensors");
  const Finished judged = heed_with({"eval", directory});
  BOOST_TEST(judged.err == "heed: warning: " + directory +
                               "/best.safetensors: the file is missing; using the last epoch's weights\n");
}

// A run writes its whole configuration to config.toml.
BOOST_AUTO_TEST_CASE(a_run_does_not_overwrite_its_experiment_file) {
  const Workshop workshop;
  const std::string directory = workshop / "run", file = directory + "/config.toml",
                    experiment = "# mine\n" + to_toml(workshop.experiment());
  std::filesystem::create_directory(directory);
  write_file(file, experiment);
  check_refusal({"train", directory + "/./config.toml", "--run", directory},
                {"config.toml: is also the configuration that --run writes; expected another file"});
  BOOST_TEST(read_file(file) == experiment);
  output_of({"train", file, "--check", "--run", directory});
  output_of({"train", file, "--run", workshop / "other"});
  check_refusal({"train", workshop / "other/config.toml", "--run", workshop / "other"}, {"continue it with --resume"});
}

BOOST_AUTO_TEST_CASE(stopped_at_max_steps) {
  const Workshop workshop;
  const std::string file = write_experiment(workshop, workshop.experiment()), directory = workshop / "run";
  check_contains(output_of({"train", file, "--run", directory, "--set", "train.max_steps=3"}),
                 {"stopped after 3 steps", " train --run " + directory + " --resume --set train.max_steps=0"});
  check_contains(output_of({"train", "--run", directory, "--resume"}), {"stopped after 3 steps"});
  check_contains(output_of({"train", "--run", directory, "--resume", "--set", "train.max_steps=0"}), {"test accuracy"});
  check_refusal({"train", file, "--run", directory}, {"already contains a run"});
  check_refusal({"train", "--run", directory, "--resume", "--set", "optim.lr=1"}, {"optim.lr = 0.001, not 1"});
}

// Uses Debian's package of Fashion-MNIST. 200 steps on 1,000 images in patches of 7 reached 52 %; guessing gives 10 %.
BOOST_AUTO_TEST_CASE(fashion_mnist_end_to_end) {
  if (!std::filesystem::is_directory("/usr/share/datasets/fashion-mnist")) {
    BOOST_TEST_MESSAGE("skipped: Debian's dataset-fashion-mnist is not installed");
    return;
  }
  const TemporaryDirectory directory;
  const std::string run = directory / "run";
  check_contains(output_of({"train", "experiments/fashion-mnist.toml", "--run", run, "--set", "data.limit=1000",
                            "--set", "data.validation=100", "--set", "train.epochs=4", "--set", "train.batch=20",
                            "--set", "model.depth=2", "--set", "model.patch=7", "--set", "model.pool=mean"}),
                 {"1,000 images to train on, 100 to validate, 10,000 to test", "test accuracy"});
  BOOST_TEST(test_accuracy(run) > 0.4);
}

BOOST_AUTO_TEST_SUITE_END()
