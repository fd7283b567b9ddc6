// experiments/tools/plot_run.py, run with Debian's Python.
#include "support/command.h"
#include "heed/data/images/image.h"

#include <boost/test/unit_test.hpp>

using namespace heed;
using namespace heed::test;

namespace {

const std::string header = "kind,epoch,step,loss,accuracy,lr,images_per_s\n";

/// A directory with runs of three, one and no complete epochs.
struct Runs {
  TemporaryDirectory directory;

  Runs() {
    write("three",
          "step,1,1,2.3,0.1,1e-3,900\n"
          "train,1,10,2.1,0.2,1e-3,900.5\nvalid,1,10,1.9,0.31,,\ntrain,2,20,1.5,0.4,1e-3,900\nvalid,2,20,1.2,0.5,,\n"
          "train,3,30,1.1,0.6,0,900\nvalid,3,30,nan,0.7,,\ntest,3,30,1.05,0.69,,\n");
    write("one", "train,1,7,2.1,0.2,1e-3,900\nvalid,1,7,1.9,0.31,,\n");
    write("steps", "step,1,1,2.3,0.1,1e-3,900\nstep,1,2,2.2,0.1,1e-3,900\n");
  }
  void write(const std::string& run, const std::string& rows, const std::string& first = header) const {
    std::filesystem::create_directory(directory / run);
    write_file(directory / (run + "/metrics.csv"), first + rows);
  }
  CommandResult plot(const std::string& arguments) const {
    const std::string script = std::filesystem::absolute("experiments/tools/plot_run.py").string();
    return run_command("'" + script + "' " + arguments, directory / "");
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(directory / name); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(plot_run, *boost::unit_test::precondition(with_matplotlib))

BOOST_FIXTURE_TEST_CASE(one_run_is_drawn_into_its_directory, Runs) {
  const CommandResult result = plot("three");
  BOOST_TEST(result.status == 0, result.errors);
  BOOST_TEST(result.errors == "");
  BOOST_TEST(result.output == "three/curves.png\n");
  const ImageSize size = image_file_size(directory / "three/curves.png");
  BOOST_TEST(size.width >= 1000);
  BOOST_TEST(size.height >= 400);
}

BOOST_FIXTURE_TEST_CASE(runs_of_all_lengths_are_drawn_together, Runs) {
  for (const char* const runs : {"one", "steps", "three/ one", "three one steps", "three three"}) {
    const CommandResult result = plot(std::string(runs) + " -o curves.png");
    BOOST_TEST(result.status == 0, runs << ": " << result.errors);
    BOOST_TEST(result.errors == "");
  }
}

BOOST_FIXTURE_TEST_CASE(svg_holds_the_runs_names_and_is_the_same_each_time, Runs) {
  BOOST_TEST(plot("three one -o 1.svg").status == 0);
  BOOST_TEST(plot("three one -o 2.svg").status == 0);
  const std::string svg = read_file(directory / "1.svg");
  BOOST_TEST((svg == read_file(directory / "2.svg")));
  for (const char* const label : {"three", "test 69.00 %", "one", "validation"})
    BOOST_TEST(svg.find(std::string("<!-- ") + label) != std::string::npos, label);
}

// Epochs of ten, two and four steps are drawn like three epochs of ten steps.
BOOST_FIXTURE_TEST_CASE(epochs_may_have_different_numbers_of_steps, Runs) {
  const std::string rows =
      "train,1,{},2,0.2,,\nvalid,1,{},1,0.3,,\ntrain,2,{},1,0.3,,\nvalid,2,{},1,0.4,,\ntrain,3,{},1,0.4,,\n"
      "valid,3,{},1,0.5,,\n";
  std::vector<std::string> drawn;
  for (const auto& [a, b, c] : {std::tuple(10, 12, 16), {10, 20, 30}}) {
    write("x", fmt::format(fmt::runtime(rows), a, a, b, b, c, c));
    BOOST_TEST(plot("x -o x.svg").status == 0);
    drawn.push_back(read_file(directory / "x.svg"));
  }
  BOOST_TEST((drawn[0] == drawn[1]));
}

BOOST_FIXTURE_TEST_CASE(plotting_bad_input_is_one_line_and_status_2, Runs) {
  write("empty", "", "");
  write("begun", "");
  write("words", "train,1,10,high,0.2,,\n");
  write("kinds", "train,1,10,2,0.2,,\nguess,1,10,2,0.2,,\n");
  write("short", "train,1,10\n");
  write("zero", "train,0,0,2,0.2,,\n");
  write("back", "train,1,10,2,0.2,,\ntrain,2,10,2,0.2,,\n");
  write("other", "1,2\n", "a,b\n");
  write("binary", std::string("\xff\xfe\0\n\x80", 5));
  const auto refused = [&](const std::string& arguments, const std::string& piece) {
    const CommandResult result = plot(arguments);
    BOOST_TEST(result.status == 2, arguments << ": status " << result.status);
    BOOST_TEST(is_line_with(result.errors, piece), arguments << ": " << result.errors);
    BOOST_TEST(result.output == "");
  };
  refused("nowhere -o x.png", "nowhere/metrics.csv: No such file");
  refused("empty -o x.png", "empty/metrics.csv: has no column 'kind'");
  refused("begun -o x.png", "begun/metrics.csv: has no metrics yet");
  refused("three words -o x.png", "words/metrics.csv:2: loss is 'high'; expected a number");
  refused("kinds -o x.png", "kinds/metrics.csv:3: kind is 'guess'");
  refused("short -o x.png", "short/metrics.csv:2: loss is ''; expected a number");
  refused("zero -o x.png", "zero/metrics.csv:2: epoch 0, step 0");
  refused("back -o x.png", "back/metrics.csv:3: epoch 2, step 10; expected both to increase from 0");
  refused("other -o x.png", "other/metrics.csv: has no column 'kind'");
  refused("binary -o x.png", "binary/metrics.csv: not a CSV file");
  refused("three -o x.jpg", "x.jpg: expected a name that ends in .png or .svg");
  refused("three -o nowhere/x.png", "nowhere/x.png: cannot write: No such file");
  refused("", "required: RUN");
  BOOST_TEST(!exists("x.png"));
}

BOOST_AUTO_TEST_SUITE_END()
