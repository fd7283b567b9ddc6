// experiments/accuracies from end to end on tiny sweeps, and the table of the page against what a sweep would run
// today.
#include "heed/base/split.h"
#include "heed/config/sweep.h"
#include "heed/data/image.h"
#include "heed/io/json.h"
#include "support/cli.h"
#include "support/command.h"
#include "support/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

using namespace heed;
using namespace heed::test;
namespace fs = std::filesystem;

namespace {

/// The script beside sweeps of its own, with the program that these tests belong to.
struct Accuracies : Workshop {
  Accuracies() {
    fs::create_directories(*this / "experiments/sweeps");
    fs::create_directory(*this / "build");
    fs::copy("experiments/accuracies", *this / "experiments/accuracies");
    const std::string program = heed_program();
    fs::create_symlink(program.substr(1, program.size() - 2), *this / "build/heed");
    Experiment tiny = experiment();
    tiny.train.epochs = 1;
    const std::string base = write_experiment(*this, tiny);
    const std::string shared =
        fmt::format("base = \"{}\"\nseeds = 2\n[arms.softmax]\n[arms.sima]\nattention.mechanism = \"sima\"\n", base);
    write_file(*this / "experiments/sweeps/mnist-table.toml", shared);
    // One arm more, which diverges, and one that is wider: it costs more.
    write_file(*this / "experiments/sweeps/cifar10-table.toml",
               shared + "[arms.lost]\noptim.lr = 1e30\noptim.clip = 0\n[arms.wide]\nmodel.hidden = 48\n");
  }

  CommandResult accuracies(const std::string& arguments) const {
    return run_command("experiments/accuracies " + arguments, *this / "");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(accuracies_script, Accuracies)

BOOST_AUTO_TEST_CASE(runs_become_lines_and_lines_a_table) {
  const CommandResult made = accuracies("--jobs 2 there");
  BOOST_TEST(made.status == 3, made.errors);  // some diverged
  const std::vector<std::string> lines = lines_of(read_file(*this / "there/accuracies.csv"));
  BOOST_REQUIRE(lines.size() == 1u + 2 * 2 + 4 * 2);
  BOOST_TEST(lines[0] == "data,arm,seed,state,test_accuracy,parameters,multiplications,energy_uj,hash,version");
  const Json cell = Json::parse(read_file(*this / "there/cifar10-table/wide/seed-2/cell.json"));
  const Json cost = Json::parse(output_of({"cost", *this / "there/cifar10-table/wide/seed-2/config.toml", "--json"}));
  const Json& total = cost.at("total");
  const std::string row = *std::find_if(lines.begin(), lines.end(),
                                        [](const std::string& line) { return line.starts_with("cifar10,wide,2,"); });
  BOOST_TEST(row.ends_with(fmt::format(",{},{},{:.3f},{},{}", cost.at("params").integer(), total.at("mul").integer(),
                                       total.at("energy_pj").number() / 1e6, cell.at("hash").text(), HEED_VERSION)),
             row);
  // test,EPOCH,STEP,LOSS,ACCURACY,,
  std::istringstream tested(metrics_of(*this / "there/cifar10-table/wide/seed-2").back());
  std::string field;
  for (int i = 0; i < 5; ++i) std::getline(tested, field, ',');
  BOOST_TEST(row.starts_with("cifar10,wide,2,finished," + field + ","), row << " lacks " << field);

  // The table's mean and deviation are those of heed sweep.
  const std::string markdown = output_of({"sweep", *this / "experiments/sweeps/cifar10-table.toml", "--out",
                                          *this / "there/cifar10-table", "--table", "--markdown"});
  const CommandResult table = accuracies("--table there/accuracies.csv");
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

  // What is there is not trained again.
  const CommandResult again = accuracies("there");
  check_contains(again.errors, {"4 cells, 4 done", "8 cells, 8 done"});
  BOOST_TEST(again.output == made.output);
}

// The page's table is that of the runs kept beside the script, and these are the runs that its sweeps would make today:
// the same arms and seeds, the same configurations, the same costs.
BOOST_AUTO_TEST_CASE(the_table_of_the_page) {
  const CommandResult table = run_command("experiments/accuracies --table");
  BOOST_TEST_REQUIRE(table.status == 0, table.errors);
  BOOST_TEST(read_file("experiments/README.md").find(table.output) != std::string::npos);
  std::set<std::string> kept, expected;
  const std::vector<std::string> lines = lines_of(read_file("experiments/accuracies.csv"));
  for (auto line = lines.begin() + 1; line < lines.end(); ++line) {
    // data,arm,seed,state,test_accuracy,parameters,multiplications,energy_uj,hash,version
    const std::vector<std::string> fields = split(*line, ',');
    BOOST_REQUIRE(fields.size() == 10u);
    BOOST_TEST(fields[3] == "finished", *line);
    kept.insert(fmt::format("{},{},{},{},{},{},{}", fields[0], fields[1], fields[2], fields[5], fields[6], fields[7],
                            fields[8]));
  }
  for (const std::string data : {"cifar10"}) {
    std::string counted, costs;
    for (const SweepCell& cell : load_sweep(fmt::format("experiments/sweeps/{}-table.toml", data))) {
      if (cell.arm != counted) {
        counted = cell.arm;
        const Json cost = Json::parse(output_of({"cost", write_experiment(*this, cell.experiment), "--json"}));
        costs = fmt::format("{},{},{:.3f}", cost.at("params").integer(), cost.at("total").at("mul").integer(),
                            cost.at("total").at("energy_pj").number() / 1e6);
      }
      expected.insert(
          fmt::format("{},{},{},{},{}", data, cell.arm, cell.seed(), costs, configuration_hash(cell.experiment)));
    }
  }
  BOOST_TEST(kept == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_picture, *boost::unit_test::precondition(with_matplotlib)) {
  const std::string script = "'" + fs::absolute("experiments/plot_accuracies.py").string() + "' ";
  const auto drawn = [&](const std::string& rows) {
    write_file(*this / "some.csv", "data,arm,seed,state,test_accuracy\n" + rows);
    return run_command(script + "some.csv", *this / "");
  };
  const CommandResult both = drawn("mnist,a,1,finished,0.9\ncifar10,a,1,finished,0.5\ncifar10,a,2,finished,0.6\n");
  BOOST_TEST(both.status == 0, both.errors);
  BOOST_TEST(both.output == "accuracies.png\n");
  BOOST_TEST(load_image(*this / "accuracies.png").size.width > 600);
  for (const auto& [rows, said] :
       {std::pair("mnist,a,1,finished,0.9\n", "holds no finished run on cifar10"),
        {"imagenet,a,1,finished,0.9\n", "some.csv:2: data is 'imagenet'; expected cifar10 or mnist"},
        {"mnist,a,1,finished,many\n", "some.csv:2: test_accuracy is 'many'; expected a number"}}) {
    const CommandResult refused = drawn(rows);
    BOOST_TEST(refused.status == 2);
    BOOST_TEST(is_line_with(refused.errors, said), refused.errors);
  }
}

BOOST_AUTO_TEST_CASE(wrong_usage_is_said) {
  for (const std::string line : {"--jobs", "--nonsense", "a b", "--table a b", "--table nowhere.csv"}) {
    const CommandResult refused = accuracies(line);
    BOOST_TEST(refused.status == 2, line);
    BOOST_TEST(refused.output == "", line);
    BOOST_TEST(refused.errors != "", line);
  }
  const CommandResult help = accuracies("--help");
  BOOST_TEST(help.status == 0);
  check_contains(help.output, {"usage: experiments/accuracies", "--jobs N", "--table"});
}

BOOST_AUTO_TEST_SUITE_END()
