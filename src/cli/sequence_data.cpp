// heed listops and heed pairs: data sets of sequences that are made, not downloaded.
#include "commands.h"

#include "heed/data/listops.h"
#include "heed/data/pairs.h"

namespace heed::cli {

namespace {

constexpr Range counts{1, 1e9}, lengths{1, 1e6}, seeds{0, 1e15};

void add_listops(Command program) {
  static ListOpsSetting s;
  static std::string out;
  static int threads = 0;
  Command command = program.command("listops", "Make the ListOps data set: nested lists under operators");
  command.option("--out", &out, "directory for the three files", {.value = "DIR", .required = true});
  command.option("--train", &s.train, "expressions to train on", {.range = counts});
  command.option("--valid", &s.valid, "and to choose weights by", {.range = counts});
  command.option("--test", &s.test, "and to test", {.range = counts});
  command.option("--depth", &s.depth, "operators stand on levels below it", {.range = {{1, 1000}}});
  command.option("--args", &s.args, "most arguments of an operator", {.range = {{2, 1000}}});
  command.option("--min", &s.min, "expressions are longer", {.range = lengths});
  command.option("--max", &s.max, "and shorter", {.range = lengths});
  command.option("--seed", &s.seed, "of what is drawn", {.range = seeds});
  add_threads(command, threads);
  command.action([] {
    use_threads(threads);
    write_listops(s, out);
    return ok;
  });
}

void add_pairs(Command program) {
  static PairsSetting s;
  static std::string out;
  Command command = program.command("pairs", "Make pairs of texts on the same topic or on different ones");
  command.option("--out", &out, "directory for the three files", {.value = "DIR", .required = true});
  command.option("--train", &s.train, "pairs to train on", {.range = counts});
  command.option("--valid", &s.valid, "and to choose weights by", {.range = counts});
  command.option("--test", &s.test, "and to test", {.range = counts});
  command.option("--seed", &s.seed, "of what is drawn", {.range = seeds});
  command.action([] {
    write_pairs(s, out);
    return ok;
  });
}

}  // namespace

void add_sequence_data(Command program) {
  add_listops(program);
  add_pairs(program);
}

}  // namespace heed::cli
