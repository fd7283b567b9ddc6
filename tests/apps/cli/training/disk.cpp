// Full, limited, read-only or noexec disks: one error line, exit status 2, and the last good checkpoint can be resumed.
#include "support/cli.h"
#include "support/command.h"

#include <fmt/format.h>

#include <unistd.h>

using namespace heed;
using namespace heed::test;

namespace {

/// A run stopped after its first three steps, and the same run uninterrupted.
struct StoppedRun : Workshop {
  std::string file, whole = *this / "whole", run = *this / "run";

  StoppedRun() {
    Experiment x = experiment();
    x.train.log_steps = true;
    file = write_experiment(*this, x);
    output_of({"train", file, "--run", whole});
    output_of({"train", file, "--run", run, "--set", "train.max_steps=3"});
  }

  std::string begin(const std::string& directory) const { return "train " + file + " --run " + directory; }
  static std::string resume(const std::string& directory) {
    return "train --run " + directory + " --resume --set train.max_steps=0";
  }
};

/// Runs a line of shell that may mount file systems privately.
CommandResult run_with_mounts(const std::string& line) { return run_command("unshare -m sh -c '" + line + "'"); }

boost::test_tools::assertion_result with_mounts(boost::unit_test::test_unit_id) {
  static const bool can = run_with_mounts("mount -t tmpfs tmpfs /mnt").status == 0;
  boost::test_tools::assertion_result result(can);
  if (!can) result.message() << "mounting a file system takes more rights than this user has";
  return result;
}

void check_refused(const CommandResult& result, const std::string& piece) {
  BOOST_TEST(result.status == 2);
  BOOST_TEST(is_line_with(result.errors, piece), result.errors);
}

/// The program's path in double quotes, since run_with_mounts() adds single quotes.
const std::string heed_itself = '"' + program() + '"';

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_disk)

BOOST_AUTO_TEST_CASE(results_that_do_not_arrive_are_an_error) {
  const std::string said = "heed: standard output cannot be written";
  for (const std::string command :
       {"list", "cost models/vit-micro.toml", "cost models/vit-micro.toml --json", "lab check scaling"})
    check_refused(run_command(heed_itself + " " + command + " >/dev/full"), said);
  // A failure to write the verdict is an error, whatever the verdict: "a better than b" holds, "b better than a" does
  // not, and "a better than c" is undecided.
  const TemporaryDirectory directory;
  const std::string table = directory / "claims.csv";
  write_file(table,
             "claim,arm,seed,value\no,a,1,0.91\no,a,2,0.92\no,a,3,0.93\no,b,1,0.1\no,b,2,0.11\no,b,3,0.12\n"
             "o,c,1,0.8\no,c,2,0.9\no,c,3,1\n");
  for (const auto& [arms, status] : {std::pair("a b", 0), {"b a", 1}, {"a c", 4}}) {
    const std::string command = heed_itself + " verdict '" + table + "' --better " + arms;
    BOOST_TEST(run_command(command).status == status, arms);
    check_refused(run_command(command + " >/dev/full"), said);
  }
}

// A checkpoint of this model takes more than the allowed 20 KiB; metrics.csv and config.toml take less.
BOOST_FIXTURE_TEST_CASE(a_limit_of_file_sizes, StoppedRun) {
  BOOST_TEST(std::filesystem::file_size(run + "/last.safetensors") > 20u << 10);
  const std::string before = read_file(run + "/last.safetensors");
  check_refused(run_command("ulimit -f 40 && " + heed_itself + " " + resume(run)),
                "safetensors: cannot write: File too");
  BOOST_TEST((read_file(run + "/last.safetensors") == before));
  output_of({"train", "--run", run, "--resume", "--set", "train.max_steps=0"});
  check_same_run(whole, run);

  const std::string fresh = *this / "fresh";
  check_refused(run_command("ulimit -f 40 && " + heed_itself + " " + begin(fresh)),
                "safetensors: cannot write: File too");
  BOOST_TEST(!std::filesystem::exists(fresh));  // there is no checkpoint to resume from
  output_of({"train", file, "--run", fresh});
  check_same_run(whole, fresh);
}

// The disk has room for the existing files, and is then filled completely.
BOOST_FIXTURE_TEST_CASE(a_full_disk, StoppedRun, *boost::unit_test::precondition(with_mounts)) {
  const std::string disk = *this / "disk", again = *this / "again";
  std::filesystem::create_directories(disk);
  const CommandResult result = run_with_mounts(fmt::format(
      "mount -t tmpfs -o size=8m tmpfs {0} && cp -a {1} {0}/run && dd if=/dev/zero of={0}/ballast bs=4k 2>{2}/dd; "
      "{3} {4}; status=$?; cmp {1}/last.safetensors {0}/run/last.safetensors || status=99; rm {0}/ballast; "
      "{3} {4} || status=98; cp -a {0}/run {5}; exit $status",
      disk, run, (*this / "."), heed_itself, resume(disk + "/run"), again));
  check_refused(result, "No space left on device");
  check_same_run(whole, again);
}

BOOST_FIXTURE_TEST_CASE(a_disk_that_cannot_be_written, StoppedRun, *boost::unit_test::precondition(with_mounts)) {
  const std::string before = read_file(run + "/last.safetensors");
  const std::string read_only = fmt::format("mount --bind -o ro {0} {0} && {1} ", (*this / "."), heed_itself);
  check_refused(run_with_mounts(read_only + begin(*this / "fresh")), "Read-only file system");
  check_refused(run_with_mounts(read_only + resume(run)), "Read-only file system");
  BOOST_TEST(!std::filesystem::exists(*this / "fresh"));
  BOOST_TEST((read_file(run + "/last.safetensors") == before));
  output_of({"train", "--run", run, "--resume", "--set", "train.max_steps=0"});
  check_same_run(whole, run);
}

// Without the refusal of a noexec directory, a correct submission would get no marks.
BOOST_AUTO_TEST_CASE(temporary_files_that_cannot_be_executed, *boost::unit_test::precondition(with_mounts)) {
  const TemporaryDirectory directory;
  const std::string lab = "notebooks/solutions/aft-simple/aft-simple.h", plugin = directory / "aft.so";
  const std::string mounted = "mount -t tmpfs -o noexec tmpfs /mnt && TMPDIR=/mnt " + heed_itself + " ";
  for (const std::string& command : {"plugin " + lab + " -o " + plugin, "lab check aft-simple --file " + lab})
    check_refused(run_with_mounts(mounted + command),
                  "heed: /mnt: mounted with noexec, so that compiled files cannot be loaded; set TMPDIR to another");
  BOOST_TEST(!std::filesystem::exists(plugin));
}

BOOST_AUTO_TEST_CASE(a_directory_without_permission) {
  if (::geteuid() == 0) {
    BOOST_TEST_MESSAGE("permissions do not bind root");
    return;
  }
  const Workshop workshop;
  const std::string file = write_experiment(workshop, workshop.experiment()), closed = workshop / "closed";
  std::filesystem::create_directories(closed);
  std::filesystem::permissions(closed, std::filesystem::perms(0500));
  check_refusal({"train", file, "--run", closed + "/run"}, {closed + "/run", "Permission denied"});
}

BOOST_AUTO_TEST_SUITE_END()
