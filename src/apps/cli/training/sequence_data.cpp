// heed listops and heed pairs: generation of sequence data sets.
#include "src/apps/cli/shared/commands.h"
#include "src/apps/cli/shared/number_text.h"

#include "heed/base/printable.h"
#include "heed/data/sequences/listops.h"
#include "heed/data/sequences/pairs.h"

#include <fmt/format.h>

namespace heed::cli {

namespace {

constexpr Range counts{1, 1e9}, lengths{1, 1e6}, seeds{0, 1e15};

template <class Setting>
void print_written(const std::string& directory, const char* examples, const Setting& s) {
  fmt::print("{}: {} {} to train on, {} to validate, {} to test\n", printable(directory), grouped(s.train), examples,
             grouped(s.valid), grouped(s.test));
}

void add_listops(Command program) {
  static ListOpsSetting s;
  static std::string out;
  static int threads = 0;
  Command command = program.command("listops", "Generate the ListOps data set: nested lists under operators");
  command.option("--out", &out, "directory for the three files", {.value = "DIR", .required = true});
  command.option("--train", &s.train, "training expressions", {.range = counts, .states_default = true});
  command.option("--valid", &s.valid, "validation examples", {.range = counts, .states_default = true});
  command.option("--test", &s.test, "test examples", {.range = counts, .states_default = true});
  command.option("--depth", &s.depth, "operators occur at depths below this",
                 {.range = {{1, 1000}}, .states_default = true});
  command.option("--args", &s.args, "maximum arguments of an operator", {.range = {{2, 1000}}, .states_default = true});
  command.option("--min", &s.min, "expressions are longer than this", {.range = lengths, .states_default = true});
  command.option("--max", &s.max, "expressions are shorter than this", {.range = lengths, .states_default = true});
  command.option("--seed", &s.seed, "random seed", {.range = seeds, .states_default = true});
  add_threads(command, threads);
  command.action([] {
    use_threads(threads);
    write_listops(s, out);
    print_written(out, "expressions", s);
    return ok;
  });
}

void add_pairs(Command program) {
  static PairsSetting s;
  static std::string out;
  Command command = program.command("pairs", "Generate pairs of texts on the same or on different topics");
  command.option("--out", &out, "directory for the three files", {.value = "DIR", .required = true});
  command.option("--train", &s.train, "training pairs", {.range = counts, .states_default = true});
  command.option("--valid", &s.valid, "validation examples", {.range = counts, .states_default = true});
  command.option("--test", &s.test, "test examples", {.range = counts, .states_default = true});
  command.option("--seed", &s.seed, "random seed", {.range = seeds, .states_default = true});
  command.action([] {
    write_pairs(s, out);
    print_written(out, "pairs", s);
    return ok;
  });
}

}  // namespace

void add_sequence_data(Command program) {
  add_listops(program);
  add_pairs(program);
}

}  // namespace heed::cli
