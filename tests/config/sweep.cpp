// Sweeps: expansion of arms, grids and seeds, and errors.
#include "heed/config/sweep.h"

#include "heed/base/suggest.h"
#include "heed/config/installed.h"
#include "heed/io/file.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

/// A directory with base experiments.
struct Sweeps {
  Sweeps() {
    write_file(directory / "e-plain.toml",
               "[model]\nimage = 8\nchannels = 1\npatch = 4\ndim = 8\ndepth = 2\nheads = 2\nhidden = 16\nclasses = 3\n"
               "[train]\nepochs = 2\n");
    write_file(directory / "e-sima.toml",
               fmt::format("base = \"{}\"\n[attention]\nmechanism = \"sima\"\n[train]\nepochs = 5\n", plain()));
  }

  std::string plain() const { return directory / "e-plain.toml"; }
  std::string base() const { return fmt::format("base = \"{}\"\n", plain()); }
  std::string files() const { return fmt::format("arm_files = \"{}\"\n", (directory / "e-*.toml").string()); }
  std::string path() const { return directory / "sweep.toml"; }

  std::vector<SweepCell> load(const std::string& text, const std::vector<std::string>& sets = {},
                              Index seeds = 0) const {
    write_file(path(), text);
    return load_sweep(path(), sets, seeds);
  }

  /// Returns the arms with their seeds: "a 1, a 2".
  std::string names(const std::string& text, Index seeds = 0) const {
    std::string names;
    for (const SweepCell& cell : load(text, {}, seeds))
      names += fmt::format("{}{} {}", names.empty() ? "" : ", ", cell.arm, cell.seed());
    return names;
  }

  std::string error(const std::string& text) const {
    return error_of([&] { load(text); }, path());
  }

  TemporaryDirectory directory;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(config_sweep, Sweeps)

BOOST_AUTO_TEST_CASE(cells_are_arms_times_grid_times_seeds) {
  BOOST_TEST(names(base()) == "sweep 1");
  BOOST_TEST(names(base() + "seeds = 3\n") == "sweep 1, sweep 2, sweep 3");
  BOOST_TEST(names(base() + "seeds = [7, 5]\n[arms.b]\n[arms.a]\nmodel.heads = 1\n") == "b 7, b 5, a 7, a 5");
  BOOST_TEST(names(base() + "seeds = [7, 5]\n[arms.b]\n", 3) == "b 1, b 2, b 3");
  BOOST_TEST(names(base() + "[arms.b]\n", 2) == "b 1, b 2");
  BOOST_TEST(names(files()) == "plain 1, sima 1");
  BOOST_TEST(names(base() + "[grid]\noptim.lr = [1e-3, 3e-3]\nmodel.heads = [1, 4]\n") ==
             "lr=0.001:heads=1 1, lr=0.001:heads=4 1, lr=0.003:heads=1 1, lr=0.003:heads=4 1");
  BOOST_TEST(names(files() + "[grid]\ndata.augment = [[], [\"crop\", \"flip\"]]\n") ==
             "plain:augment= 1, plain:augment=crop+flip 1, sima:augment= 1, sima:augment=crop+flip 1");
  BOOST_TEST(names(base() + "[grid]\ndata.shuffle = [true, false]\n") == "shuffle=true 1, shuffle=false 1");
  BOOST_TEST(names(base() + "[grid]\ntrain = { epochs = [1, 2], batch = [4, 5] }\n") ==
             "epochs=1:batch=4 1, epochs=1:batch=5 1, epochs=2:batch=4 1, epochs=2:batch=5 1");
  const std::string both = base() + "[attention]\nmechanism = [\"sima\", \"soft\"]\n";
  BOOST_TEST(names(both + "[grid.attention]\nsima.scale = [1, 2]\nsoft.scale = [\"x\"]\n") ==
             "attention.sima.scale=1:attention.soft.scale=x 1, attention.sima.scale=2:attention.soft.scale=x 1");
}

BOOST_AUTO_TEST_CASE(later_lines_win) {
  const auto epochs = [&](const std::string& text, const std::vector<std::string>& sets = {}) {
    return load(text, sets).back().experiment.train.epochs;
  };
  BOOST_TEST(epochs(files()) == 5);  // the arm's file overrides its base
  BOOST_TEST(epochs(files() + "[train]\nepochs = 6\n") == 6);
  BOOST_TEST(epochs(files() + "[train]\nepochs = 6\n[arms.sima]\ntrain.epochs = 7\n") == 7);
  BOOST_TEST(names(files() + "[arms.sima]\n[arms.other]\nbase = \"" + plain() + "\"\nmodel.heads = 1\n") ==
             "other 1, plain 1, sima 1");
  BOOST_TEST(epochs(files() + "[train]\nepochs = 6\n[grid]\ntrain.epochs = [8]\n") == 8);
  BOOST_TEST(epochs(files() + "[grid]\ntrain.epochs = [8]\n", {"train.epochs=9"}) == 9);
  BOOST_TEST(load(base() + "[arms.a]\nattention.mechanism = \"soft\"\nattention.landmarks = 4\n")[0]
                 .experiment.attention.options.at("landmarks")
                 .text == "4");
}

BOOST_AUTO_TEST_CASE(an_arm_may_have_a_base_of_its_own) {
  const auto cells =
      load(base() + fmt::format("[arms.a]\n[arms.b]\nbase = \"{}\"\n", (directory / "e-sima.toml").string()));
  BOOST_TEST(cells.at(0).experiment.attention.mechanism.at(0) == "softmax");
  BOOST_TEST(cells.at(1).experiment.attention.mechanism.at(0) == "sima");
}

BOOST_AUTO_TEST_CASE(files_are_looked_up_beside_the_sweep_and_among_the_installed) {
  const auto dims = [&](const std::string& text) {
    std::string dims;
    for (const SweepCell& cell : load(text)) dims += fmt::format("{} ", cell.experiment.model.dim);
    return dims;
  };
  BOOST_TEST(dims("base = \"e-plain.toml\"\n") == "8 ");
  BOOST_TEST(dims("base = \"e-plain.toml\"\n[arms.a]\n[arms.b]\nbase = \"e-sima.toml\"\n") == "8 8 ");
  BOOST_TEST(dims("arm_files = \"e-*.toml\"\n") == "8 8 ");
  std::filesystem::create_directories((directory / "installed/lab/sweeps").string());
  std::filesystem::rename(plain(), directory / "installed/lab/f-plain.toml");
  set_installed_places({directory / "installed"});
  BOOST_TEST(dims("base = \"lab/f-plain.toml\"\n") == "8 ");
  BOOST_TEST(dims("arm_files = \"lab/f-*.toml\"\n") == "8 ");
  write_file(directory / "installed/lab/sweeps/all.toml", "arm_files = \"lab/f-*.toml\"\n");
  BOOST_TEST(load_sweep("lab/sweeps/all.toml").size() == 1u);
  set_installed_places({});
}

// The arms are the files of the first directory that has any, not a mixture from several directories.
BOOST_AUTO_TEST_CASE(arm_files_are_those_of_the_first_place_that_has_any) {
  const auto write = [&](const std::string& name, Index dim) {
    std::filesystem::create_directories((directory / name).parent_path());
    write_file(directory / name, base() + fmt::format("[model]\ndim = {}\n", dim));
  };
  const auto arms = [&] {
    std::string arms;
    for (const SweepCell& cell : load("arm_files = \"lab/f-*.toml\"\n"))
      arms += fmt::format("{} {} ", cell.arm, cell.experiment.model.dim);
    return arms;
  };
  write("lab/f-a.toml", 16), write("lab/f-b.toml", 24);
  write("one/lab/f-a.toml", 32), write("one/lab/f-c.toml", 40);
  write("two/lab/f-b.toml", 48), write("two/lab/f-d.toml", 56);
  set_installed_places({directory / "one", directory / "two"});
  BOOST_TEST(arms() == "a 16 b 24 ");
  std::filesystem::remove_all(directory / "lab");
  BOOST_TEST(arms() == "a 32 c 40 ");
  std::filesystem::remove_all(directory / "one");
  BOOST_TEST(arms() == "b 48 d 56 ");
  set_installed_places({});
}

// A table for all experiments may apply to some of them only.
BOOST_AUTO_TEST_CASE(options_of_a_mechanism_that_some_experiment_has) {
  BOOST_TEST(names(files() + "[attention.sima]\nscale = 2\n") == "plain 1, sima 1");
  BOOST_TEST(load(files() + "[attention.sima]\nscale = 2\n")[0].experiment.attention.per_mechanism.empty());
  BOOST_TEST(error(files() + "[attention.soft]\nratio = 2\n") ==
             ":2: 'attention.soft': no experiment of this sweep uses this mechanism");
  BOOST_TEST(error(base() + "[grid]\nattention.sima.scale = [1, 2]\n") ==
             ":3: 'attention.sima': no experiment of this sweep uses this mechanism");
  BOOST_TEST(error_of([&] { load(files(), {"attention.soft.ratio=2"}); }) ==
             "--set: 'attention.soft': no experiment of this sweep uses this mechanism");
  BOOST_TEST(load(files(), {"attention.sima.scale=2"}).size() == 2u);
  BOOST_TEST(names(base() + "[grid]\nattention.mechanism = [\"sima\", \"softmax\"]\nattention.sima.scale = [2]\n") ==
             "mechanism=sima:scale=2 1, mechanism=softmax:scale=2 1");
  BOOST_TEST(error(base() + "[arms.a]\nattention.sima.scale = 2\n") ==
             ":3: 'attention.sima': no block uses this mechanism; expected one of softmax");
}

BOOST_AUTO_TEST_CASE(what_is_refused) {
  BOOST_TEST(error("seeds = 2\n") == ": 'base' is missing; expected an experiment's file");
  BOOST_TEST(error("base = \"none.toml\"\n") ==
             ":1: base 'none.toml' does not exist beside the file, in the working directory or among the files "
             "installed with heed");
  BOOST_TEST(error("[arms.a]\nmodel.heads = 1\n") == ": 'base' is missing; expected an experiment's file");
  BOOST_TEST(error(base() + "[arms.a]\n[arms.b]\nbase = \"none.toml\"\n")
                 .starts_with(":3: base 'none.toml' does not exist beside the file"));
  BOOST_TEST(error(base() + "seeds = []\n") ==
             ":2: 'seeds': expected a list of seeds or their number, found an empty list");
  for (const char* seeds : {"0", "4097"})
    BOOST_TEST(error(fmt::format("{}seeds = {}\n", base(), seeds)) ==
               fmt::format(":2: 'seeds' = {}; expected 1 to 4096", seeds));
  BOOST_TEST(error(base() + "seeds = [1, -1]\n").starts_with(":2: 'seeds': expected a list of seeds or their number"));
  BOOST_TEST(error(base() + "seed = [1]\n") == ":2: unknown key 'seed'; did you mean 'seeds'?");
  BOOST_TEST(error(base() + "[optim]\nlearning_rate = 1\n") ==
             ":3: unknown key 'optim.learning_rate'; did you mean 'optim.lr'?");
  BOOST_TEST(error(base() + "[grid]\nbase = [\"a.toml\"]\n").find("'grid.base': a grid has keys of the experiment") !=
             std::string::npos);
  BOOST_TEST(error(base() + "[grid]\noptim.lr = []\n") ==
             ":3: 'grid.optim.lr': expected a list of values for optim.lr, found an empty list");
  BOOST_TEST(error(base() + "[grid]\noptim.lr = 1\n") ==
             ":3: 'grid.optim.lr': expected a list of values for optim.lr, found an integer");
  BOOST_TEST(error(base() + "[grid]\noptim.lr = [\"x\"]\n") == ":3: 'optim.lr': expected a number, found a string");
  BOOST_TEST(error(base() + "[grid]\noptim.rate = [1]\n").starts_with(":3: unknown key 'optim.rate'"));
  BOOST_TEST(error(base() + "[arms.a]\nmodel.widths = 2\n").starts_with(":3: unknown key 'model.widths'"));
  BOOST_TEST(error(base() + "[arms]\n") == ":2: [arms] is empty");
  BOOST_TEST(error(base() + "[arms]\na = 1\n") == ": 'arms.a': expected a table, found an integer");
  BOOST_TEST(error(base() + "[arms.a]\n[arms.b]\n") == ": a, seed 1, and b, seed 1, are the same experiment");
  BOOST_TEST(error(base() + "seeds = [2, 2]\n") == ": sweep, seed 2, and sweep, seed 2, are the same experiment");
  BOOST_TEST(error(base() + "[grid]\nmodel.heads = [2, 3]\n") ==
             ": heads=3: [model] heads = 3 does not divide dim = 8");
  for (const char* pattern : {"x.toml", "e-*-*.toml", "*/e-*.toml", "*/x.toml"})
    BOOST_TEST(error(fmt::format("arm_files = \"{}\"\n", pattern)) ==
               fmt::format(":1: 'arm_files': '{}'; expected exactly one *, in the file's name", pattern));
  BOOST_TEST(error("arm_files = \"none-*.toml\"\n") == ":1: 'arm_files': no file matches 'none-*.toml'");
  BOOST_TEST(error("arm_files = \"none/e-*.toml\"\n") == ":1: 'arm_files': no file matches 'none/e-*.toml'");
  std::filesystem::create_symlink("loop", directory / "loop");
  const std::string loop = directory / "loop";
  BOOST_TEST(error("arm_files = \"loop/e-*.toml\"\n") ==
             fmt::format(":1: 'arm_files': {}: cannot read: Too many levels of symbolic links", loop));
  std::string many = base() + "[grid]\n";
  for (const char* key : {"train.batch", "train.microbatch", "train.epochs", "model.hidden"})
    many += fmt::format("{} = [1, 2, 3, 4, 5, 6, 7, 8, 9]\n", key);
  BOOST_TEST(error(many) == ": defines 6561 experiments or more; expected at most 4096");
  BOOST_TEST(error(base() + "seeds = 2049\n[arms.a]\n[arms.b]\nmodel.heads = 1\n") ==
             ": defines 4098 experiments; expected at most 4096");
  write_file(path(), base());
  BOOST_TEST(error_of([&] { load_sweep(path(), {"base=x.toml"}); }) ==
             "--set 'base=x.toml': the base of a sweep can be set in its file only");
}

BOOST_AUTO_TEST_SUITE_END()
