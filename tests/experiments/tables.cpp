// experiments/tools/tables from end to end on tiny sweeps, and the page's tables compared with the current sweeps.
#include "heed/base/split.h"
#include "heed/config/sweep.h"
#include "heed/data/images/image.h"
#include "heed/io/json.h"
#include "support/cli.h"
#include "support/command.h"
#include "support/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

using namespace heed;
using namespace heed::test;
namespace fs = std::filesystem;

namespace {

/// The script beside its own sweeps, with the program of this build.
struct SweepTables : Workshop {
  std::string base;  ///< a tiny experiment of one epoch

  SweepTables() {
    fs::create_directories(*this / "experiments/sweeps");
    fs::create_directories(*this / "experiments/tools");
    fs::create_directory(*this / "build");
    for (const std::string script : {"tables", "common.sh"})
      fs::copy("experiments/tools/" + script, *this / ("experiments/tools/" + script));
    const std::string program = heed_program();
    fs::create_symlink(program.substr(1, program.size() - 2), *this / "build/heed");
    Experiment tiny = experiment();
    tiny.train.epochs = 1;
    base = write_experiment(*this, tiny);
  }

  void write_sweep(const std::string& name, const std::string& text) const {
    write_file(*this / ("experiments/sweeps/" + name + ".toml"), text);
  }

  CommandResult tables(const std::string& arguments) const {
    return run_command("experiments/tools/tables " + arguments, *this / "");
  }
};

std::string line_that_begins(const std::vector<std::string>& lines, const std::string& begin) {
  const auto found =
      std::find_if(lines.begin(), lines.end(), [&](const std::string& line) { return line.starts_with(begin); });
  BOOST_TEST_REQUIRE((found != lines.end()), "no line begins with " << begin);
  return *found;
}

/// Returns the paragraphs, separated by empty lines.
std::vector<std::string> paragraphs_of(const std::string& text) {
  std::vector<std::string> paragraphs;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find("\n\n", begin), text.size());
    paragraphs.push_back(text.substr(begin, end - begin));
    begin = end + 2;
  }
  return paragraphs;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(tables_script, SweepTables)

BOOST_AUTO_TEST_CASE(runs_become_lines_and_lines_a_table) {
  const std::string shared =
      fmt::format("base = \"{}\"\nseeds = 2\n[arms.softmax]\n[arms.sima]\nattention.mechanism = \"sima\"\n", base);
  write_sweep("mnist-table", shared);
  // Adds an arm that diverges, and a wider one with a higher cost.
  write_sweep("cifar10-table",
              shared + "[arms.lost]\noptim.lr = 1e30\noptim.clip = 0\n[arms.wide]\nmodel.hidden = 48\n");
  const CommandResult made = tables("images --jobs 2 there");
  BOOST_TEST(made.status == 3, made.errors);  // some diverged
  const std::vector<std::string> lines = lines_of(read_file(*this / "there/images-table.csv"));
  BOOST_REQUIRE(lines.size() == 1u + 2 * 2 + 4 * 2);
  BOOST_TEST(lines[0] ==
             "data,arm,seed,state,test_accuracy,test_loss,parameters,multiplications,energy_uj,hash,version");
  const Json cell = Json::parse(read_file(*this / "there/cifar10-table/wide/seed-2/cell.json"));
  const Json cost = Json::parse(output_of({"cost", *this / "there/cifar10-table/wide/seed-2/config.toml", "--json"}));
  const Json& total = cost.at("total");
  const std::string row = line_that_begins(lines, "cifar10,wide,2,");
  BOOST_TEST(row.ends_with(fmt::format(",{},{},{:.3f},{},{}", cost.at("params").integer(), total.at("mul").integer(),
                                       total.at("energy_pj").number() / 1e6, cell.at("hash").text(), HEED_VERSION)),
             row);
  // test,EPOCH,STEP,LOSS,ACCURACY,,
  const std::vector<std::string> tested = split(metrics_of(*this / "there/cifar10-table/wide/seed-2").back(), ',');
  BOOST_TEST(row.starts_with(fmt::format("cifar10,wide,2,finished,{},{},", tested[4], tested[3])), row);

  // The table's mean and deviation match heed sweep's.
  const std::string markdown = output_of({"sweep", *this / "experiments/sweeps/cifar10-table.toml", "--out",
                                          *this / "there/cifar10-table", "--table", "--markdown"});
  const CommandResult table = tables("images --table there/images-table.csv");
  BOOST_TEST(table.status == 0, table.errors);
  BOOST_TEST(made.output.ends_with(table.output));
  for (const std::string arm : {"softmax", "sima", "wide"}) {
    const std::size_t begin = markdown.find("| " + arm + " | 2 | ") + arm.size() + 8;
    const std::string accuracy = markdown.substr(begin, markdown.find(" |", begin) - begin);
    BOOST_TEST(accuracy.find(" % ± ") != std::string::npos);
    const std::string ours = table.output.substr(table.output.find(fmt::format("| `{}` | ", arm)));
    BOOST_TEST(ours.substr(0, ours.find('\n')).find(accuracy) != std::string::npos, ours << accuracy);
  }
  check_contains(table.output, {"| `lost` | – | diverged | ", "| `wide` | – | "});

  // Existing runs are not trained again.
  const CommandResult again = tables("images there");
  check_contains(again.errors, {"4 cells, 4 done", "8 cells, 8 done"});
  BOOST_TEST(again.output == made.output);
}

// An interrupted generation leaves an empty directory.
BOOST_AUTO_TEST_CASE(data_are_generated_once) {
  const std::string script =
      "experiments=experiments; . experiments/tools/common.sh; heed=echo; mkdir -p datasets/pairs; generated pairs; "
      "touch datasets/pairs/new_aan_pairs.train.tsv; generated pairs";
  BOOST_TEST(run_command(script, *this / "").output == "pairs --out datasets/pairs\n");
}

// In locales with decimal commas, awk would read an accuracy of 0.5 as 0.
BOOST_AUTO_TEST_CASE(numbers_have_decimal_points) {
  const EnvironmentVariable german("LC_ALL", "de_DE.UTF-8");
  const CommandResult run =
      run_command("experiments=experiments; . experiments/tools/common.sh; sh -c 'echo $LC_ALL'", *this / "");
  BOOST_TEST(run.output == "C\n");
}

BOOST_AUTO_TEST_CASE(sequences_in_bits_and_by_labels) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "the cat sat on the mat, and ";
  write_file(*this / "text.txt", text);
  const std::string model =
      "[model]\nfamily = \"sequence\"\ndepth = 1\ndim = 16\nheads = 2\nhidden = 24\n{}[data]\n{}[optim]\nlr = 1e-3\n"
      "[train]\nepochs = 1\nbatch = 8\nmicrobatch = 4\n";
  const auto write_base = [&](const std::string& name, const std::string& of_model, const std::string& of_data) {
    write_file(*this / (name + ".toml"), fmt::format(fmt::runtime(model), of_model, of_data));
    return *this / (name + ".toml");
  };
  const std::string lm = "task = \"lm\"\nvocab = 256\ncontext = 16\n";
  const std::string labels = "task = \"classify\"\npool = \"mean\"\n";
  write_sweep("text",
              fmt::format("seeds = [1]\n[arms.softmax]\nbase = \"{}\"\n",
                          write_base("text", lm, fmt::format("name = \"text\"\npath = \"{}\"\n", *this / "text.txt"))));
  const std::string pixels =
      fmt::format("name = \"pixels\"\nsource = \"mnist\"\npath = \"{}\"\nvalidation = 20\n", data());
  write_sweep("density", fmt::format("seeds = [1]\n[arms.aft-dense]\nattention.mechanism = \"aft\"\nbase = \"{}\"\n",
                                     write_base("density", lm + "start = true\n", pixels + "side = 4\n")));
  const auto write_grid = [&](const std::string& name, const std::string& seeds, const std::string& first,
                              const std::string& second) {
    write_sweep(name, fmt::format("seeds = {}\n[arms.{}]\nbase = \"{}\"\n[arms.{}]\nbase = \"{}\"\n[grid]\n"
                                  "attention.mechanism = [\"softmax\", \"sima\"]\n",
                                  seeds, split(first, ' ')[0], split(first, ' ')[1], split(second, ' ')[0],
                                  split(second, ' ')[1]));
  };
  const std::string of_expressions = labels + "vocab = 15\ncontext = 32\nclasses = 10\n";
  const auto listops = [&](const std::string& name) {
    output_of({"listops", "--out", *this / ("datasets/" + name), "--train", "64", "--valid", "8", "--test", "40",
               "--depth", "3", "--args", "3", "--min", "4", "--max", "20"});
    return name + " " + write_base(name, of_expressions, "name = \"listops\"\npath = \"datasets/" + name + "\"\n");
  };
  output_of({"pairs", "--out", *this / "datasets/pairs", "--train", "64", "--valid", "8", "--test", "8"});
  const std::string of_pairs = "task = \"pair\"\npool = \"mean\"\nvocab = 256\ncontext = 128\nclasses = 2\n";
  write_grid("sequences", "2", listops("listops-micro"),
             "pairs-micro " + write_base("pairs", of_pairs, "name = \"pairs\"\npath = \"datasets/pairs\"\n"));
  write_grid("sequences-long", "[1]", listops("listops-mini"),
             "pixels-micro " + write_base("pixels", labels + "vocab = 256\ncontext = 64\nclasses = 10\n", pixels));

  const CommandResult made = tables("sequences there");
  BOOST_TEST_REQUIRE(made.status == 0, made.errors);
  const std::vector<std::string> lines = lines_of(read_file(*this / "there/sequences-table.csv"));
  BOOST_TEST(lines.size() == 1u + 1 + 1 + 2 * 2 * 2 + 2 * 2);
  const auto value = [&](const std::string& row, std::size_t field) {
    return std::stod(split(line_that_begins(lines, row), ',').at(field));
  };
  const double of_text = value("text,softmax,1,", 5) / std::log(2.0);
  check_contains(output_of({"eval", *this / "there/text/softmax/seed-1"}),
                 {fmt::format("bits per character {:.4f}", of_text)});
  const std::string sima =
      fmt::format("{:.2f} %", 50 * (value("listops-micro,sima,1,", 4) + value("listops-micro,sima,2,", 4)));
  check_contains(
      made.output,
      {"| mechanism | text, bits per character, one seed | pixels, bits per dimension, one seed | parameters",
       fmt::format("| `softmax` | {:.3f} | – | ", of_text),
       fmt::format("| `aft-dense` | – | {:.3f} | – |", value("density,aft-dense,1,", 5) / std::log(2.0)),
       "| mechanism | ListOps, short | ListOps, long, one seed | pairs | pixels of CIFAR-10, one seed |",
       "| `sima` | " + sima + " ± "});
  BOOST_TEST(line_that_begins(lines, "pixels-micro,softmax,1,finished,").find(",,") == std::string::npos);
}

// The page's tables are computed from the runs recorded beside the script, which match its current sweeps: the same
// arms and seeds, the same configurations, the same costs.
BOOST_AUTO_TEST_CASE(the_tables_of_the_page) {
  const std::string page = read_file("experiments/README.md");
  for (const auto& [subject, sweeps] : {std::pair<std::string, std::vector<std::string>>  //
                                        {"images", {"mnist-table", "cifar10-table"}},
                                        {"sequences", {"text", "density", "sequences", "sequences-long"}}}) {
    const CommandResult table = run_command("experiments/tools/tables " + subject + " --table");
    BOOST_TEST_REQUIRE(table.status == 0, table.errors);
    for (const std::string& one : paragraphs_of(table.output)) BOOST_TEST(page.find(one) != std::string::npos, one);
    std::set<std::string> kept, expected;
    const std::vector<std::string> lines = lines_of(read_file("experiments/results/" + subject + "-table.csv"));
    for (auto line = lines.begin() + 1; line < lines.end(); ++line) {
      // data,arm,seed,state,test_accuracy,test_loss,parameters,multiplications,energy_uj,hash,version
      const std::vector<std::string> fields = split(*line, ',');
      BOOST_REQUIRE(fields.size() == 11u);
      BOOST_TEST(fields[3] == "finished", *line);
      kept.insert(fmt::format("{},{},{},{},{},{},{}", fields[0], fields[1], fields[2], fields[6], fields[7], fields[8],
                              fields[9]));
    }
    for (const std::string& sweep : sweeps) {
      std::string counted, costs;
      for (const SweepCell& cell : load_sweep("experiments/sweeps/" + sweep + ".toml")) {
        if (cell.arm != counted) {
          counted = cell.arm;
          // A sweep's base has keys that only some arms use; for a single arm heed warns that they have no effect.
          const Json cost = Json::parse(heed_with({"cost", write_experiment(*this, cell.experiment), "--json"}).out);
          costs = fmt::format("{},{},{:.3f}", cost.at("params").integer(), cost.at("total").at("mul").integer(),
                              cost.at("total").at("energy_pj").number() / 1e6);
        }
        const std::size_t grid = cell.arm.find(":mechanism=");
        const std::string name = grid != std::string::npos
                                     ? cell.arm.substr(0, grid) + "," + cell.arm.substr(cell.arm.find('=') + 1)
                                     : sweep.substr(0, sweep.find("-table")) + "," + cell.arm;
        expected.insert(fmt::format("{},{},{},{}", name, cell.seed(), costs, configuration_hash(cell.experiment)));
      }
    }
    BOOST_TEST(kept == expected, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(the_picture, *boost::unit_test::precondition(with_matplotlib)) {
  const std::string script = "'" + fs::absolute("experiments/tools/plot_accuracies.py").string() + "' ";
  const auto drawn = [&](const std::string& rows) {
    write_file(*this / "some.csv", "data,arm,seed,state,test_accuracy\n" + rows);
    return run_command(script + "some.csv", *this / "");
  };
  const CommandResult both = drawn("mnist,a,1,finished,0.9\ncifar10,a,1,finished,0.5\ncifar10,a,2,finished,0.6\n");
  BOOST_TEST(both.status == 0, both.errors);
  BOOST_TEST(both.output == "accuracies.png\n");
  BOOST_TEST(load_image(*this / "accuracies.png").size.width > 600);
  // An arm may have results on one data set only.
  BOOST_TEST(drawn("mnist,a,1,finished,0.9\nmnist,lone,1,finished,0.8\ncifar10,a,1,finished,0.5\n").status == 0);
  BOOST_TEST(run_command(script + "some.csv -o some.svg", *this / "").status == 0);
  BOOST_TEST(read_file(*this / "some.svg").find("<!-- lone -->") != std::string::npos);
  for (const auto& [rows, said] :
       {std::pair("mnist,a,1,finished,0.9\n", "has no finished run on cifar10"),
        {"imagenet,a,1,finished,0.9\n", "some.csv:2: data is 'imagenet'; expected cifar10 or mnist"},
        {"mnist,a,1,finished,many\n", "some.csv:2: test_accuracy is 'many'; expected a number"}}) {
    const CommandResult refused = drawn(rows);
    BOOST_TEST(refused.status == 2);
    BOOST_TEST(is_line_with(refused.errors, said), refused.errors);
  }
}

BOOST_AUTO_TEST_CASE(wrong_usage_is_said) {
  for (const std::string line : {"", "music", "images --jobs", "images --nonsense", "images a b",
                                 "sequences --table a b", "images --table nowhere.csv"}) {
    const CommandResult refused = tables(line);
    BOOST_TEST(refused.status == 2, line);
    BOOST_TEST(refused.output == "", line);
    BOOST_TEST(refused.errors != "", line);
  }
  const CommandResult help = tables("--help");
  BOOST_TEST(help.status == 0);
  check_contains(help.output, {"usage: experiments/tools/tables images|sequences", "--jobs N", "--table"});
}

BOOST_AUTO_TEST_SUITE_END()
