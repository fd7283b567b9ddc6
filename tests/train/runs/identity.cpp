// A resumed run keeps its configuration, except for the data's location, the run's end, logging, saving, and the keys
// of initial weights. Results are identified by a hash of the configuration.
#include "heed/train/runs/run.h"

#include "support/training.h"

#include <set>

using namespace heed;
using namespace heed::test;

namespace {

void change(Index& value) { ++value; }
void change(Sides& value) { ++value.height; }
void change(std::optional<bool>& value) { value = !value.value_or(true); }
void change(double& value) { value += 0.25; }
void change(bool& value) { value = !value; }
void change(std::string& value) { value += "x"; }
void change(std::vector<double>& values) { values.push_back(0.5); }
void change(std::vector<Index>& values) { values.push_back(1); }
void change(std::vector<std::string>& values) { values.push_back("x"); }

}  // namespace

BOOST_AUTO_TEST_SUITE(train_identity)

BOOST_AUTO_TEST_CASE(every_key_belongs_to_a_run) {
  const std::set<std::string> free{
      "data.path",        "train.epochs",         "train.max_steps",     "train.checkpoint_steps",
      "train.log_steps",  "train.init",           "train.init_head",     "train.init_skip",
      "train.init_parts", "train.init_positions", "train.init_mechanism"};
  const TemporaryDirectory directory;
  const RunPaths paths(directory / "");
  const Experiment recorded = Workshop(10, 10).experiment();
  write_file(paths.config(), config_toml(recorded));
  Experiment x = recorded;
  const auto may_go_on = [&] {
    try {
      check_same_experiment(paths, x);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  BOOST_TEST(may_go_on());
  std::set<std::string> found;
  tables(x, [&](const std::string& table, auto& keys) {
    fields(keys, [&](const std::string& key, auto& value, const auto&...) {
      const auto before = value;
      change(value);
      const std::string name = table + "." + key;
      found.insert(name);
      BOOST_TEST(may_go_on() == free.contains(name), name);
      value = before;
    });
  });
  BOOST_TEST(found.size() > 40u);
  for (const std::string& name : free) BOOST_TEST(found.contains(name), name);
  x.attention.options["rank"] = {"3", "test"};
  BOOST_TEST(!may_go_on());
  x.attention.options.clear();
  x.attention.per_mechanism["aft"]["rank"] = {"3", "test"};
  BOOST_TEST(!may_go_on());
}

// Results are identified by a hash of every setting except those that do not change a finished run. All keys
// but family, data set and method are tried, for an image classifier and for self-supervision by a teacher.
BOOST_AUTO_TEST_CASE(every_key_belongs_to_a_result) {
  const std::set<std::string> free{"data.path", "train.max_steps", "train.checkpoint_steps", "train.log_steps"};
  for (const bool dino : {false, true}) {
    Experiment x = Workshop(10, 10).experiment();
    if (dino) x.train.method = "dino";
    const std::string before = configuration_hash(x);
    std::set<std::string> hashes{before};
    std::size_t tried = 0;
    tables(x, [&](const std::string& table, auto& keys) {
      if (table == "dino" && !dino) return;
      fields(keys, [&](const std::string& key, auto& value, const Rule& rule, const auto&...) {
        const std::string name = table + "." + key;
        if (!use_of(keys, key, rule).known || name == "model.family" || name == "data.name" || name == "train.method")
          return;
        const auto saved = value;
        change(value);
        const bool same = configuration_hash(x) == before;
        BOOST_TEST(same == free.contains(name), name);
        if (!same) BOOST_TEST(hashes.insert(configuration_hash(x)).second, name << " has the hash of another key");
        value = saved;
        ++tried;
      });
    });
    BOOST_TEST(tried > 70u);
    BOOST_TEST(configuration_hash(x) == before);
  }
  // Microbatches of 8, the default of earlier versions, have the hash of the default 0.
  Experiment x = Workshop(10, 10).experiment(), eight = x;
  x.train.microbatch = 0, eight.train.microbatch = 8;
  BOOST_TEST(configuration_hash(x) == configuration_hash(eight));
}

BOOST_AUTO_TEST_SUITE_END()
