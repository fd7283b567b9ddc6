// Sweeps of the claims: shared runs are equal, and budgets match the settings.
#include "heed/base/split.h"
#include "heed/config/sweep.h"
#include "heed/io/json.h"
#include "support/cli.h"
#include "support/lines.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <map>
#include <sstream>

using namespace heed;
using namespace heed::test;
namespace fs = std::filesystem;

namespace {

/// Returns the hashes of a sweep's cells, by "arm/seed".
std::map<std::string, std::string> hashes_of(const std::string& sweep, const std::string& nowhere) {
  std::map<std::string, std::string> hashes;
  const Json table = Json::parse(output_of({"sweep", sweep, "--table", "--json", "--out", nowhere}));
  for (const Json& arm : table.at("arms").items())
    for (const Json& run : arm.at("runs").items())
      hashes[fmt::format("{}/{}", arm.at("arm").text(), run.at("seed").integer())] = run.at("hash").text();
  return hashes;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(claims_sweeps)

BOOST_AUTO_TEST_CASE(arms_that_claims_share_are_the_same) {
  const TemporaryDirectory directory;
  std::map<std::string, std::pair<std::string, std::string>> seen;  // by setting, arm and seed: hash and sweep
  int shared = 0;
  const auto see = [&](const std::string& cell, const std::string& hash, const std::string& sweep) {
    const auto [first, added] = seen.try_emplace(cell, hash, sweep);
    shared += !added;
    BOOST_TEST(first->second.first == hash, cell << " is not the same in " << first->second.second << " and " << sweep);
  };
  for (const fs::directory_entry& script : fs::directory_iterator("experiments/claims")) {
    if (!script.is_regular_file() || script.path().has_extension()) continue;
    for (const std::string& line : lines_of(read_file(script.path()))) {
      std::istringstream words(line);
      std::string command, file, setting, what;
      words >> command;
      if (command == "sweep") {
        words >> file >> setting;
        file = "experiments/claims/" + file + ".toml";
        for (const auto& [cell, hash] : hashes_of(file, directory / "none")) see(setting + "/" + cell, hash, file);
      } else if (command == "transfer") {
        words >> what >> file;
        file = "experiments/sweeps/" + file + ".toml";
        const std::map<std::string, std::string> hashes = hashes_of(file, directory / "none");
        for (std::string arm; words >> arm;)
          for (const auto& [cell, hash] : hashes)
            if (cell.starts_with(arm.substr(arm.find('/') + 1) + "/"))
              see(arm.substr(0, arm.find('/')) + "/" + cell, hash, file);
      }
    }
  }
  BOOST_TEST(shared > 40);
}

/// The rows of claims.csv belong to runs of the claims' current sweeps. Claims with experiments/tools/transfer, which
/// trains arms with the same names but other configurations, are skipped.
BOOST_AUTO_TEST_CASE(rows_are_of_the_sweeps_of_today) {
  const TemporaryDirectory directory;
  const std::vector<std::string> rows = lines_of(read_file("experiments/claims/claims.csv"));
  int held = 0;
  for (const fs::directory_entry& script : fs::directory_iterator("experiments/claims")) {
    if (!script.is_regular_file() || script.path().has_extension()) continue;
    const std::string text = read_file(script.path()), claim = script.path().filename();
    if (text.find("\ntransfer ") != std::string::npos) continue;
    std::map<std::string, std::string> hashes;
    for (const std::string& line : lines_of(text)) {
      std::istringstream words(line);
      std::string command, file;
      words >> command >> file;
      if (command == "sweep") hashes.merge(hashes_of("experiments/claims/" + file + ".toml", directory / "none"));
    }
    for (const std::string& row : rows) {
      if (!row.starts_with(claim + ",")) continue;
      // claim,arm,seed,value,state,images,hash,version; `arm` may end in a colon and the name of another measurement.
      const std::vector<std::string> fields = split(row, ',');
      auto run = hashes.find(fields[1] + "/" + fields[2]);
      if (run == hashes.end()) run = hashes.find(fields[1].substr(0, fields[1].rfind(':')) + "/" + fields[2]);
      if (run == hashes.end()) continue;
      ++held;
      BOOST_TEST(fields[6] == run->second, row);
    }
  }
  BOOST_TEST(held > 200);
}

/// The number of bytes in training is as close to four million as whole steps allow, and the same for all contexts.
BOOST_AUTO_TEST_CASE(models_of_text_see_four_million_bytes) {
  for (const char* sweep : {"aft-window", "aft-context"})
    for (const SweepCell& cell : load_sweep(fmt::format("experiments/claims/{}.toml", sweep))) {
      const Experiment& x = cell.experiment;
      const Index step = x.train.batch * x.model.context, steps = x.train.epochs * (x.data.windows / x.train.batch);
      BOOST_TEST(std::abs(steps * step - 4'000'000) <= 32 * 256 / 2, sweep << ", " << cell.arm);
      BOOST_TEST(steps * step == 3'997'696, sweep << ", " << cell.arm);
    }
}

BOOST_AUTO_TEST_SUITE_END()
