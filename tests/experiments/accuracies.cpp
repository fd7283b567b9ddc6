// experiments/accuracies from end to end on tiny sweeps, and the table of the page against what a sweep would run
// today.
#include "heed/io/json.h"
#include "support/cli.h"
#include "support/command.h"
#include "support/lines.h"

#include <fmt/format.h>

#include <algorithm>
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
