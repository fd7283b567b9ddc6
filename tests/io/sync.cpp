// A file's content is on the disk before the file has its name: tests the order of system calls. fsync() and rename()
// of the C library are replaced by functions that log their calls.
#include "heed/io/file.h"

#include "support/training.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

bool watching = false;
std::vector<std::string> calls;

std::string path_of(int file) {
  char path[4096];
  const ssize_t length = ::readlink(fmt::format("/proc/self/fd/{}", file).c_str(), path, sizeof path);
  return {path, length < 0 ? std::size_t{0} : static_cast<std::size_t>(length)};
}

/// Calls f and returns its system calls, with paths relative to `directory`.
template <class F>
std::vector<std::string> calls_of(const std::string& directory, const F& f) {
  calls.clear();
  watching = true;
  f();
  watching = false;
  const std::string start = std::filesystem::canonical(directory).string(), process = fmt::format(".{}.", ::getpid());
  // A file without a name has a path such as "/#12 (deleted)".
  const std::string nameless = " (deleted)";
  for (std::string& call : calls) {
    if (call.ends_with(nameless)) call.replace(call.rfind('#'), std::string::npos, "a.part");
    for (std::size_t at; (at = call.find(start)) != std::string::npos;) call.erase(at, start.size());
    if (const std::size_t at = call.find(process); at != std::string::npos) call.replace(at, process.size(), ".");
  }
  return calls;
}

}  // namespace

extern "C" int fsync(int file) {
  if (watching) calls.push_back("sync " + path_of(file));
  return static_cast<int>(::syscall(SYS_fsync, file));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  if (watching) calls.push_back(fmt::format("rename {} {}", from, to));
  return ::renameat(AT_FDCWD, from, AT_FDCWD, to);
}

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(io_sync)

BOOST_AUTO_TEST_CASE(content_then_name_then_directory) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  const std::vector<std::string> expected{"sync /a.part", "rename /a.part /a", "sync "};
  for (const char* content : {"new", "newer"})
    BOOST_TEST(calls_of(directory / "", [&] { write_file(path, content); }) == expected,
               boost::test_tools::per_element());
  AppendedFile lines(path);
  lines.append("a line\n");
  BOOST_TEST(calls_of(directory / "", [&] { lines.sync(); }) == std::vector<std::string>{"sync /a"},
             boost::test_tools::per_element());
}

// A checkpoint requires the rows of metrics.csv, so they are synced first.
BOOST_AUTO_TEST_CASE(rows_are_on_the_disk_before_the_checkpoint_that_counts_them) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.train.checkpoint_steps = 2;
  Index checkpoints = 0;
  bool synced = false;
  for (const std::string& call : calls_of(workshop / "", [&] { run(x, workshop / "run"); })) {
    if (call == "sync /run/metrics.csv") synced = true;
    if (!call.starts_with("rename /run/last.safetensors")) continue;
    BOOST_TEST(synced, "checkpoint " << checkpoints);
    synced = false, ++checkpoints;
  }
  BOOST_TEST(checkpoints == 1 + 3 * 4);  // at the start; after 2, 4 and 6 steps of 7, and at the end of each epoch
  BOOST_TEST(synced);                    // the test's row is synced last
}

BOOST_AUTO_TEST_SUITE_END()
