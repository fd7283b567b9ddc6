// Initial number of threads of a process: the environment variable, the core binding, and the container's quota.
#include "heed/train/processes/core_count.h"

#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <sched.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>

using namespace heed;

namespace {

/// OMP_NUM_THREADS with this value, or unset.
struct Asked : EnvironmentVariable {
  explicit Asked(const std::optional<std::string>& count) : EnvironmentVariable("OMP_NUM_THREADS", count) {}
};

/// A root directory for default_threads(), with the files that write() adds.
struct Root {
  TemporaryDirectory directory;
  std::string path = directory.path().string();
  Asked nothing{std::nullopt};

  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path at = path + file;
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text;
  }
  ThreadCount count() const { return default_threads(path); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(core_count, Root)

BOOST_AUTO_TEST_CASE(what_was_asked_for_comes_first) {
  write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  const Asked five("5,2");
  BOOST_TEST(count().count == 5);
  BOOST_TEST(count().reason == "OMP_NUM_THREADS");
  const Asked empty("");
  BOOST_TEST(count().count == 1);
  for (const std::string nonsense : {"many", "0", "-3", "3x", "4.5", " 4", "1025", "99999999999"}) {
    const Asked asked(nonsense);
    BOOST_TEST(error_of([&] { count(); }) ==
               "OMP_NUM_THREADS: '" + nonsense + "'; expected a whole number from 1 to 1024");
  }
}

BOOST_AUTO_TEST_CASE(without_a_quota_it_is_all_cores) {
  const int all = count().count;
  BOOST_TEST(all >= 1);
  write("/sys/fs/cgroup/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  BOOST_TEST(count().count == all);
  const std::string reason = count().reason;
  BOOST_TEST(reason.find("quota") == std::string::npos, reason);
  write("/sys/fs/cgroup/cpu.max", "100000000 100000\n");  // a quota above the number of cores
  BOOST_TEST(count().count == all);
  BOOST_TEST(count().reason == reason);
}

BOOST_AUTO_TEST_CASE(a_quota_is_rounded_up) {
  const int all = count().count;
  write("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  BOOST_TEST(count().count == 1);
  BOOST_TEST(count().reason == "a quota of 0.5 cores");
  write("/sys/fs/cgroup/cpu.max", "12800 100000\n");
  BOOST_TEST(count().reason == "a quota of 0.128 cores");
  if (all < 2) return;
  write("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  BOOST_TEST(count().count == 2);
  BOOST_TEST(count().reason == "a quota of 1.5 cores");
}

BOOST_AUTO_TEST_CASE(the_least_quota_of_a_group_and_those_above_it_counts) {
  write("/proc/self/cgroup", "1:cpu:/elsewhere\n0::/slice/unit\n");
  write("/sys/fs/cgroup/slice/unit/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/slice/cpu.max", "30000 100000\n");
  write("/sys/fs/cgroup/cpu.max", "90000 100000\n");
  BOOST_TEST(count().reason == "a quota of 0.3 cores");
}

BOOST_AUTO_TEST_CASE(version_1_of_control_groups_has_files_of_its_own) {
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "70000\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  BOOST_TEST(count().reason == "a quota of 0.7 cores");
}

BOOST_AUTO_TEST_CASE(groups_of_version_1_are_nested) {
  write("/proc/self/cgroup", "4:memory:/other\n2:cpu,cpuacct:/slice/unit\n0::/\n");
  write("/sys/fs/cgroup/cpu/other/cpu.cfs_quota_us", "10000\n");
  write("/sys/fs/cgroup/cpu/other/cpu.cfs_period_us", "100000\n");
  write("/sys/fs/cgroup/cpu/slice/cpu.cfs_quota_us", "40000\n");
  write("/sys/fs/cgroup/cpu/slice/cpu.cfs_period_us", "100000\n");
  write("/sys/fs/cgroup/cpu/slice/unit/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu/slice/unit/cpu.cfs_period_us", "100000\n");
  BOOST_TEST(count().reason == "a quota of 0.4 cores");
}

BOOST_AUTO_TEST_CASE(a_process_bound_to_one_core_has_one_thread) {
  cpu_set_t before, first;
  BOOST_REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  CPU_ZERO(&first);
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &before)) {
      CPU_SET(core, &first);
      break;
    }
  BOOST_REQUIRE(sched_setaffinity(0, sizeof first, &first) == 0);
  BOOST_TEST(count().count == 1);
  const unsigned all = std::thread::hardware_concurrency();
  BOOST_TEST(count().reason == (all > 1 ? "bound to 1 of " + std::to_string(all) + " cores" : "1 core"));
  sched_setaffinity(0, sizeof before, &before);
}

BOOST_AUTO_TEST_SUITE_END()
