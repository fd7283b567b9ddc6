// heed selftest: comparison of this computer's results with heed's expected bits.
#include "src/apps/cli/shared/commands.h"
#include "src/apps/cli/shared/fitted_text.h"

#include "heed/io/file.h"
#include "heed/selftest/selftest.h"
#include "heed/train/runs/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

namespace heed::cli {

namespace {

/// A temporary directory, removed with its files. Unless TMPDIR is set, it is in memory if possible, because runs sync
/// their files to the disk.
class Workplace {
 public:
  Workplace() {
    const bool memory = std::getenv("TMPDIR") == nullptr && access("/dev/shm", W_OK) == 0;
    const std::filesystem::path parent = memory ? "/dev/shm" : std::filesystem::temp_directory_path();
    path_ = (parent / "heed-selftest-XXXXXX").string();
    require(mkdtemp(path_.data()) != nullptr, "{}: the directory cannot be created; set TMPDIR to another directory",
            path_);
    prepare_selftest(path_);
  }
  Workplace(const Workplace&) = delete;
  ~Workplace() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct SelftestArguments {
  std::vector<std::string> parts = selftest_parts();
  std::string write, against;
  bool list = false, every = false;
  int threads = 0;
};

int list_parts() {
  const Workplace place;
  std::cout << fitted(fmt::format("{:<16}generated images, texts and pairs\n", "data"))
            << fitted(fmt::format("{:<16}single operations and variants of mechanisms\n", "operations"))
            << fitted(fmt::format("{:<16}operations and variants of mechanisms at the sizes of real models\n", "wide"));
  for (const SelftestRun& run : selftest_runs()) {
    const Experiment x = selftest_experiment(run, place.path());
    std::cout << fitted(fmt::format("{:<16}{} on {} by {}, {}; {}{}{}\n", run.name, x.model.family, x.data.name,
                                    x.optim.name, x.optim.schedule, fmt::join(x.attention.mechanism, ", "),
                                    x.data.augment.empty() ? "" : "; ", fmt::join(x.data.augment, ", ")));
  }
  return ok;
}

/// Computes the hashes of the parts and writes them to a file; prints a line per part on stderr.
int write_hashes(const SelftestArguments& a) {
  const Workplace place;
  SelftestHashes hashes;
  for (const std::string& part : a.parts) {
    if (hashes.contains(part)) continue;  // a part named twice
    for (const NamedHash& hash : selftest_hashes(part, place.path())) hashes[part].push_back(hash.hash);
    std::cerr << fmt::format("{:<16}{} hashes\n", part, hashes[part].size());
  }
  write_file(a.write, hashes_file(hashes));
  return ok;
}

/// Compares the hashes of the parts with the expected ones. Prints on stderr a line per part, followed by its first
/// difference or, with `a.every`, all its differences.
int compare(const SelftestArguments& a) {
  const Workplace place;
  SelftestHashes expected = a.against.empty() ? expected_hashes() : parse_hashes(read_file(a.against), a.against);
  std::size_t equal = 0, all = 0;
  std::string first;
  for (const std::string& part : a.parts) {
    const HashComparison found = compare_hashes(selftest_hashes(part, place.path()), expected[part]);
    std::cerr << fmt::format("{:<16}{} of {} hashes agree\n", part, found.equal, found.all);
    equal += found.equal;
    all += found.all;
    if (found.different.empty()) continue;
    if (first.empty()) first = part + ", " + found.different.front();
    const auto shown = a.every ? found.different.size() : 1;
    for (std::size_t i = 0; i < shown; ++i) std::cerr << "  " << found.different[i] << "\n";
  }
  std::cout << (first.empty() ? fmt::format("selftest: all {} hashes agree", all)
                              : fmt::format("selftest: {} of {} hashes agree; first difference: {}", equal, all, first))
            << fmt::format(" ({})\n", environment_line());
  return first.empty() ? ok : check_failed;
}

int selftest_command(const SelftestArguments& a) {
  if (a.list) return list_parts();
  use_threads(a.threads);
  if (!a.write.empty()) return write_hashes(a);
#ifdef HEED_NO_SIMD
  require(!a.against.empty(),
          "selftest: the program's hashes were computed with the fast kernels, which this build lacks; compare with "
          "the hashes of a build like this one: --against FILE");
#endif
  return compare(a);
}

}  // namespace

void add_selftest(Command program) {
  static SelftestArguments a;
  Command command = program.command("selftest", "Compare results on this computer, bit by bit, with the expected ones");
  command.option("NAME", &a.parts, "parts, as named by --list; default: all", {.one_of = selftest_parts()});
  command.option("--list", &a.list, "list the parts");
  command.option("--against", &a.against, "compare with the hashes in a file, not with the program's",
                 {.value = "FILE"});
  command.option("--write", &a.write, "write the hashes to a file, without comparison",
                 {.value = "FILE", .excludes = "--against"});
  command.option("--every", &a.every, "name every difference on stderr, not only the first of each part");
  add_threads(command, a.threads);
  command.footer(
      "Runs each operation by itself, then trains small models for a few steps in float, and compares hashes of "
      "results, gradients and weights with those compiled into the program. The bits are the same on every computer "
      "and for any number of threads. Takes some seconds. If hashes differ, the last line names the first difference "
      "and the exit status is 1.");
  command.action([] { return selftest_command(a); });
}

}  // namespace heed::cli
