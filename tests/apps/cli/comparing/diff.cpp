// heed diff on tensor files with planted differences, and on trained runs.
#include "heed/io/safetensors.h"
#include "heed/train/runs/data_record.h"
#include "support/cli.h"
#include "support/lines.h"

#include <bit>
#include <cmath>
#include <deque>
#include <filesystem>

using namespace heed;
using namespace heed::test;

namespace {

using Values = std::vector<double>;

struct NamedValues {
  std::string name;
  Shape shape;
  Values values;
};

struct Diffing : Workshop {
  template <class T = double>
  std::string write(const std::string& name, const std::vector<NamedValues>& tensors) const {
    std::deque<std::vector<T>> numbers;
    SafetensorsWriter file;
    for (const NamedValues& tensor : tensors) {
      const std::vector<T>& copy = numbers.emplace_back(tensor.values.begin(), tensor.values.end());
      file.add(tensor.name, View<const T>(copy.data(), tensor.shape));
    }
    file.write(*this / name);
    return *this / name;
  }

  /// Runs heed diff; checks that it ends with status 1 and prints `pieces`; returns its output.
  static std::string different(std::vector<std::string> arguments, const std::vector<std::string>& pieces) {
    arguments.insert(arguments.begin(), "diff");
    const Finished run = heed_with(arguments);
    BOOST_TEST(run.status == 1, run.err);
    BOOST_TEST(run.err == "");
    check_contains(run.out, pieces);
    return run.out;
  }
};

/// Returns `factor` times 24 elements that have no simple relation to each other.
Values drawn(double factor = 1) {
  Values values;
  for (int i = 0; i < 24; ++i) values.push_back(factor * std::sin(1 + 3.7 * i));
  return values;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cli_diff, Diffing)

BOOST_AUTO_TEST_CASE(equal_files) {
  const std::string a = write("a", {{"x", {2, 2}, {1, 2, 3, 4}}, {"y", {1}, {0}}});
  check_contains(output_of({"diff", a, a}), {"2 equal bit for bit", "equal: all 2 common tensors agree in all values"});
  const std::string zero = write("zero", {{"x", {2, 2}, {1, 2, 3, 4}}, {"y", {1}, {-0.0}}});
  check_contains(output_of({"diff", a, zero}), {"1 equal bit for bit, 1 within tolerance 0", "equal: "});
  // Equal numbers stored in different types count as equal.
  check_contains(output_of({"diff", a, write<float>("f32", {{"x", {2, 2}, {1, 2, 3, 4}}, {"y", {1}, {0}}})}),
                 {"equal: "});
  const std::string nan = write("nan", {{"x", {1}, {NAN}}});
  check_contains(output_of({"diff", nan, nan}), {"1 equal bit for bit"});
}

BOOST_AUTO_TEST_CASE(the_first_tensor_in_order_and_the_worst_are_named) {
  const std::string a = write("a", {{"z", {2, 2}, {1, 1, 1, 1}}, {"b", {2}, {1, 2}}, {"a", {1}, {8}}});
  const std::string b = write<float>("b", {{"a", {1}, {8}}, {"b", {2}, {1, 3}}, {"z", {2, 2}, {1, 1, 1 + 0x1p-22, 1}}});
  const std::string text =
      in_one_line(different({a, b}, {"different: 2 of 3 common tensors differ, first z at [1, 0]"}));
  check_contains(text,
                 {"first z [1, 0] 1 1.00000024 2.4e-07 2.4e-07 2 ", "first beyond rounding b [1] 2 3 1 0.33 4.19e+06",
                  "worst b [1] 2 3", "b: 1 of 2 elements differ", "tensors in both: 1 equal bit for bit",
                  "--tolerance 3.4e-01 allows them"});
  different({a, b, "--tolerance", "1e-6"}, {"1 within tolerance 1e-06, 1 beyond", "first b at [1]"});
  check_contains(output_of({"diff", a, b, "--tolerance", "3.4e-01"}), {"equal: all 3 common tensors agree to 0.34"});
}

BOOST_AUTO_TEST_CASE(rounding_is_told_from_mistakes) {
  Values near = drawn(), transposed(24);
  near[7] += 1e-15;
  different({write("a", {{"x", {4, 6}, drawn()}}), write("b", {{"x", {4, 6}, near}})},
            {"first x at [1, 1]", "looks  like rounding errors, in all tensors"});
  for (std::size_t i = 0; i < 24; ++i) transposed[i] = drawn()[i % 4 * 6 + i / 4];
  const auto mistake = [&](const Values& wrong) {
    return different({*this / "a", write("b", {{"x", {4, 6}, wrong}})}, {"x: "});
  };
  check_contains(mistake(transposed), {"looks  transposed"});
  check_contains(mistake(drawn(-1)), {"looks  like the negative of what it should be"});
  check_contains(mistake(drawn(std::sqrt(6))),
                 {"looks  like 2.44949 times what it should be; perhaps sqrt(6 columns)"});
  check_contains(mistake(Values(24, 0.0)), {"looks  missing: all elements are 0"});
  Values part = drawn();
  part[20] = 5, part[23] = INFINITY;
  check_contains(mistake(part), {"looks  NaN or infinite in places", "right  for rows 0 to 2; wrong for row 3", "inf"});
  const std::string whole = write("whole", {{"x", {4, 6}, drawn()}});
  check_contains(different({*this / "b", whole}, {"x: "}), {"looks  finite where NaN or infinity is expected"});
  // Elements that are -inf in both files count as equal.
  Values masked = drawn(), twice = drawn(2);
  for (const std::size_t i : {1, 2, 3}) masked[i] = twice[i] = -INFINITY;
  check_contains(different({write("a", {{"x", {4, 6}, masked}}), write("b", {{"x", {4, 6}, twice}})}, {"x: 21 of 24"}),
                 {"looks  like 2 times what it should be"});
}

// Tensors with a long axis are compared, but the kind of their difference is not described.
BOOST_AUTO_TEST_CASE(long_axes_are_not_examined) {
  Values some, twice;
  for (int i = 0; i < 4097; ++i) some.push_back(std::sin(1 + 3.7 * i)), twice.push_back(2 * some.back());
  const auto with = [&](Index size) {
    const auto first = [&](const Values& all) { return Values(all.begin(), all.begin() + size); };
    return different({write("a", {{"x", {size}, first(some)}}), write("b", {{"x", {size}, first(twice)}})},
                     {fmt::format("x: {0} of {0} elements differ\n", size), "tolerance 5.0e-01 allows them"});
  };
  check_contains(with(4097), {"looks  not examined: more than 262144 elements, or a long axis; dump fewer examples\n"});
  check_contains(with(100), {"looks  like 2 times what it should be"});
}

BOOST_AUTO_TEST_CASE(names_and_shapes_that_differ_are_listed) {
  std::vector<NamedValues> many{{"x", {2}, {1, 2}}, {"y", {1, 2}, {1, 2}}};
  for (int i = 0; i < 9; ++i) many.push_back({fmt::format("more.{}", i), {1}, {0}});
  const std::string a = write("a", {{"x", {2}, {1, 2}}, {"y", {2}, {1, 2}}, {"z", {1}, {1}}}), b = write("b", many);
  different({a, b}, {"shapes differ (1): 'y [2] and [1, 2]'", "only in A (1): 'z'",
                     "only in B (9): 'more.0', 'more.1', 'more.2', 'more.3' and 5 more", "11 not compared"});
  const std::string fewer = write("fewer", {{"x", {2}, {1, 2}}});
  different({a, fewer}, {"different: all 1 common tensors agree in all values; 2 not compared"});
  check_contains(output_of({"diff", a, fewer, "--common"}), {"only in A (2): 'y', 'z'", "equal: "});
}

BOOST_AUTO_TEST_CASE(integers) {
  const auto labels = [&](const std::string& name, std::vector<std::int64_t> values) {
    SafetensorsWriter file;
    file.add("labels", View<const std::int64_t>(values.data(), Shape{2}));
    file.write(*this / name);
    return *this / name;
  };
  different({labels("a", {3, 4}), labels("b", {3, 5})}, {"first labels at [1]"});
  // A double cannot represent odd integers above 2^53.
  const std::string large = labels("large", {1, (1l << 53) + 1});
  check_refusal({"diff", large, labels("even", {1, 1l << 53})},
                {"/large: tensor 'labels': cannot compare the integer 9007199254740993; expected at most 2^53"});
}

// heed flushes subnormals to zero when it computes, but files of other programs may contain them.
BOOST_AUTO_TEST_CASE(subnormals) {
  const auto least = [&](const std::string& name, std::uint32_t bits) {
    const float value = std::bit_cast<float>(bits);
    SafetensorsWriter file;
    file.add("x", View<const float>(&value, Shape{1}));
    file.write(*this / name);
    return *this / name;
  };
  const std::string text = in_one_line(different({least("a", 100), least("b", 102)}, {"first x at [0]"}));
  check_contains(text, {"first x [0] 1.4013e-43 1.42932e-43 2.8e-45 0.02 2 "});
}

BOOST_AUTO_TEST_CASE(bad_input_is_refused) {
  const std::string a = write("a", {{"x", {1}, {1}}}), b = write("b", {{"y", {1}, {1}}}), text = *this / "text";
  write_file(text, "no tensors");
  check_refusal(
      {"diff", a, b},
      {"have no tensor in common: only the first file has 'x', only the second file has 'y'; expected equal"});
  check_refusal({"diff", a, *this / "none"}, {"/none", "cannot open"});
  check_refusal({"diff", text, a}, {"/text", "not a safetensors file"});
  check_refusal({"diff", a, data()}, {"/data: last.safetensors is missing; expected a run of heed train, or"});
  const std::string shape = write("shape", {{"x", {1, 1}, {1}}}), empty = write("empty", {}), loop = *this / "loop";
  check_refusal({"diff", a, shape}, {"have no tensor in common: shapes differ: 'x [1] and [1, 1]'; expected equal"});
  check_refusal({"diff", empty, empty}, {"have no tensor in common: both files are empty; expected equal"});
  std::filesystem::create_symlink(loop, loop);
  check_refusal({"diff", a, loop}, {"/loop: Too many levels of symbolic links"});
  check_refusal({"diff", a}, {"B is required"});
  check_refusal({"diff", a, a, "--tolerance", "-1"}, {"--tolerance"});
}

BOOST_AUTO_TEST_CASE(runs) {
  Experiment x = experiment();
  x.train.log_steps = true;
  run_until(3, x, *this / "a");
  run_until(3, x, *this / "again");
  const std::string same = output_of({"diff", *this / "a", *this / "again"});
  check_contains(same, {"the runs have the same settings and environment", "metrics: all 9 common values",
                        "up to step 3", "last.safetensors, step 3", "equal: all "});
  // Settings that only one of the runs has are listed, whichever run comes first.
  const std::string environment = *this / "again/environment.json", own = read_file(environment);
  write_file(environment, "{\"distribution\": \"fourteen\"," + own.substr(own.find('{') + 1));
  for (const auto& [one, other] : {std::pair("a", "again"), {"again", "a"}})
    check_contains(heed_with({"diff", *this / one, *this / other}).out, {"environment.distribution", "fourteen"});
  write_file(environment, own);
  // A tolerance is relative: the last loss, above 2, differs by one part in ten thousand.
  const std::string metrics = *this / "again/metrics.csv", kept = read_file(metrics);
  const std::size_t at = kept.find("step,1,3,") + 9, end = kept.find(',', at);
  const double loss = std::stod(kept.substr(at, end - at));
  BOOST_TEST(loss > 2);
  write_file(metrics, kept.substr(0, at) + fmt::format("{}", loss * 1.0001) + kept.substr(end));
  check_contains(output_of({"diff", *this / "a", *this / "again", "--tolerance", "1.5e-4"}),
                 {"metrics: all 9 common values"});
  check_contains(heed_with({"diff", *this / "a", *this / "again", "--tolerance", "0.5e-4"}).out,
                 {"metrics: step 3: loss is "});
  write_file(metrics, kept);
  // B continues to step 4: only the steps that both runs have are compared.
  run_until(4, x, *this / "longer");
  different({*this / "a", *this / "longer"},
            {"up to step 3", "the metrics of A end at step 3, those of B at step 4",
             "different: one run's metrics end at step 3; the tensors are from different steps; "});
  x.optim.lr *= 1.25;
  run_until(3, x, *this / "b");
  different({*this / "a", *this / "b"}, {"optim.lr", "metrics: step 1: lr is ", "; equal values before it: 1",
                                         "different: the metrics differ from step 1 on; ", "first "});
  different({*this / "a", *this / "b" + "/last.safetensors"}, {"first "});
}

/// Hand-written runs of two steps; the second step ends the only epoch.
struct DiffingRuns : Diffing {
  const std::string metrics =
      "kind,epoch,step,loss,accuracy,lr,images_per_s\nstep,1,1,2.5,,0.001,\ntrain,1,2,1.5,0.5,0.002,56\n"
      "valid,1,2,1.25,0.75,,\ntest,1,2,0.5,0.625,,\n";
  const std::string gradients = "kind,epoch,step,gradient_norm\nstep,1,1,3\ntrain,1,2,4\n";
  std::string a = *this / "a", b = *this / "b";

  DiffingRuns() {
    for (const std::string& run : {a, b}) {
      std::filesystem::create_directories(run);
      write_file(RunPaths(run).config(), config_toml(experiment()));
      write_file(RunPaths(run).metrics(), metrics);
      write_file(RunPaths(run).gradients(), gradients);
    }
    write("a/last.safetensors", {{"x", {1}, {1}}}), write("b/last.safetensors", {{"x", {1}, {1}}});
  }

  /// Returns `text` with the only occurrence of `from` replaced.
  static std::string with(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    BOOST_REQUIRE_MESSAGE(at != std::string::npos && text.find(from, at + 1) == std::string::npos, from);
    return text.replace(at, from.size(), to);
  }
};

// The first value that differs is named, with its step and the number of equal values before it, in the order of
// computation.
BOOST_FIXTURE_TEST_CASE(each_value_of_a_run_has_its_name, DiffingRuns) {
  output_of({"diff", a, b});
  const struct {
    const char *row, *other, *name, *in_a, *in_b;
    int step, before;
  } values[] = {{"1,1,2.5,", "1,1,2,", "loss", "2.5", "2", 1, 0},
                {",0.001,", ",0.003,", "lr", "0.001", "0.003", 1, 1},
                {"step,1,1,3", "step,1,1,5", "gradient norm", "3", "5", 1, 2},
                {",1.5,", ",1.75,", "the epoch's loss", "1.5", "1.75", 2, 3},
                {",0.5,0.002", ",0.25,0.002", "the epoch's accuracy", "0.5", "0.25", 2, 4},
                {",0.002,", ",0.004,", "the epoch's lr", "0.002", "0.004", 2, 5},
                {"train,1,2,4", "train,1,2,6", "the epoch's gradient norm", "4", "6", 2, 6},
                {",1.25,", ",1.375,", "validation loss", "1.25", "1.375", 2, 7},
                {",0.75,", ",0.875,", "validation accuracy", "0.75", "0.875", 2, 8},
                {",0.5,0.625", ",0.75,0.625", "test loss", "0.5", "0.75", 2, 9},
                {",0.625,", ",0.125,", "test accuracy", "0.625", "0.125", 2, 10}};
  for (const auto& value : values) {
    const bool norm = std::string(value.name).find("norm") != std::string::npos;
    write_file(RunPaths(b).metrics(), norm ? metrics : with(metrics, value.row, value.other));
    write_file(RunPaths(b).gradients(), norm ? with(gradients, value.row, value.other) : gradients);
    different({a, b}, {fmt::format("metrics: step {}: {} is {} in A, {} in B, difference {:.2g}; equal values before "
                                   "it: {}\n",
                                   value.step, value.name, value.in_a, value.in_b,
                                   std::abs(std::stod(value.in_a) - std::stod(value.in_b)), value.before),
                       fmt::format("different: the metrics differ from step {} on; all 1 common", value.step)});
  }
}

// Epochs of different lengths may have no step in common.
BOOST_FIXTURE_TEST_CASE(runs_without_common_steps, DiffingRuns) {
  write_file(RunPaths(b).metrics(), metrics.substr(0, metrics.find('\n') + 1) + "train,1,4,1.5,0.5,0.002,56\n");
  write_file(RunPaths(b).gradients(), gradients.substr(0, gradients.find('\n') + 1));
  different({a, b}, {"metrics: no step is in both\nthe metrics of A end at step 2, those of B at step 4\n"});
}

// Different settings are listed, and so are differences of the environment except for date and threads.
BOOST_FIXTURE_TEST_CASE(settings_of_runs_that_differ, DiffingRuns) {
  Experiment x = experiment();
  x.optim.lr = 0.5, x.train.seed = 7;
  write_file(RunPaths(b).config(), config_toml(x));
  write_file(RunPaths(a).environment(), R"({"cpu": "one", "date": "2020", "threads": "1", "version": "v"})");
  write_file(RunPaths(b).environment(), R"({"cpu": "two", "date": "2021", "threads": "2", "version": "v"})");
  check_contains(
      in_one_line(output_of({"diff", a, b})),
      {"setting A B environment.cpu one two optim.lr 0.001 0.5 train.seed 1 7 metrics: all 11 common values"});
}

// Data with the same content at a different path do not count as different, and neither do unrecorded data.
BOOST_FIXTURE_TEST_CASE(data_of_runs_that_differ, DiffingRuns) {
  const auto origins = [&](const std::string& run, const std::string& path, const std::string& checksum) {
    write_file(RunPaths(run).data(), data_json({"mnist", "mnist", path, {.files = {{"x", checksum}}}, {}, {}}));
    const std::string text = in_one_line(output_of({"diff", a, b}));
    return text.substr(0, text.find(" metrics:"));
  };
  const std::string same = "the runs have the same settings and environment";
  BOOST_TEST(origins(a, "/one", "1") == same);
  BOOST_TEST(origins(b, "/two", "1") == same);
  BOOST_TEST(origins(b, "/two", "2") == "setting A B data /one /two: 1 edited (x)");
}

// Tensors are compared in the order of A, or of B if only B is a trace of heed probe.
BOOST_FIXTURE_TEST_CASE(a_trace_gives_the_order, Diffing) {
  const auto file = [&](const std::string& name, const std::vector<std::string>& order, double value, bool trace) {
    SafetensorsWriter writer;
    for (const std::string& tensor : order) writer.add(tensor, View<const double>(&value, Shape{1}));
    if (trace) writer.metadata("heed.trace", "1");
    writer.write(*this / name);
    return *this / name;
  };
  const std::vector<std::string> order{"x", "y"}, reverse{"y", "x"};
  const std::string plain = file("plain", order, 1, false), traced = file("traced", order, 1, true),
                    other = file("other", reverse, 2, false), other_trace = file("other_trace", reverse, 2, true);
  different({plain, other}, {"differ, first x at"});
  different({plain, other_trace}, {"differ, first y at"});
  different({traced, other_trace}, {"differ, first x at"});
  different({traced, other}, {"differ, first x at"});
}

// A difference of exactly the tolerance counts as equal. It is relative to the larger of the two numbers, which may be
// in either run.
BOOST_FIXTURE_TEST_CASE(the_tolerance_itself_is_within_it, DiffingRuns) {
  for (const auto& [x, y] : {std::pair(4.0, 2.0), {2.0, 4.0}}) {
    write("a/last.safetensors", {{"same", {1}, {1}}, {"x", {2}, {8, x}}});
    write("b/last.safetensors", {{"same", {1}, {1}}, {"x", {2}, {8, y}}});
    for (const std::string& run : {a, b})
      write_file(RunPaths(run).metrics(), with(metrics, "1,1,2.5,", fmt::format("1,1,{},", run == a ? x : y)));
    check_contains(output_of({"diff", a, b, "--tolerance", "0.5"}),
                   {"metrics: all 11 common values", "1 equal bit for bit, 1 within tolerance 0.5, 0 beyond"});
    different({a, b, "--tolerance", "0.499"},
              {"metrics: step 1: loss is ", "equal values before it: 0",
               "different: the metrics differ from step 1 on; 1 of 2 common tensors differ, first x at [1]"});
  }
}

// A file that records no step matches files of any step.
BOOST_FIXTURE_TEST_CASE(steps_of_files_that_differ, Diffing) {
  const auto file = [&](const std::string& name, const char* step) {
    const double value = 1;
    SafetensorsWriter writer;
    writer.add("x", View<const double>(&value, Shape{1}));
    if (step) writer.metadata("heed.step", step);
    writer.write(*this / name);
    return *this / name;
  };
  const std::string none = file("none", nullptr), first = file("first", "1"), same = file("same", "1"),
                    second = file("second", "2");
  for (const auto& [a, b] : {std::pair(none, first), {first, none}, {none, none}, {first, same}})
    check_contains(output_of({"diff", a, b}), {"\nequal: all 1 common tensors agree in all values\n"});
  for (const auto& [a, b] : {std::pair(first, second), {second, first}})
    different({a, b},
              {"\ndifferent: the tensors are from different steps; all 1 common tensors agree in all values\n"});
  different({first, second}, {"first, step 1\n", "second, step 2\n"});
}

// In B, rows 0 to 2 are larger than in A by one part in a hundred, and row 3 is twice as large.
BOOST_FIXTURE_TEST_CASE(a_mistake_is_beyond_the_tolerance, Diffing) {
  Values wrong = drawn(1.01);
  for (std::size_t i = 18; i < 24; ++i) wrong[i] = 2 * drawn()[i];
  const std::string a = write("a", {{"x", {4, 6}, drawn()}}), b = write("b", {{"x", {4, 6}, wrong}});
  const std::string text = different({a, b}, {"x: 24 of 24 elements differ\n"});
  BOOST_TEST(text.find("right  ") == std::string::npos, text);
  different({a, b, "--tolerance", "0.02"},
            {"x: 6 of 24 elements differ\n", "  right  for rows 0 to 2; wrong for row 3\n"});
}

// Neither axis is long, but the tensor has too many elements for a description of the difference.
BOOST_FIXTURE_TEST_CASE(many_elements_are_not_examined, Diffing) {
  const auto with = [&](Index rows) {
    const Values ones(static_cast<std::size_t>(rows * 512), 1.0), twos(ones.size(), 2.0);
    return different({write("a", {{"x", {rows, 512}, ones}}), write("b", {{"x", {rows, 512}, twos}})}, {"x: "});
  };
  check_contains(with(513), {"looks  not examined: more than 262144 elements, or a long axis; "});
  BOOST_TEST(with(12).find("not examined") == std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
