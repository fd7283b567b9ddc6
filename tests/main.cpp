#define BOOST_TEST_MODULE heed
#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <filesystem>

namespace {

/// Sets HEED, so that scripts run the program built with these tests, and LC_ALL, since awk and sort read and write
/// decimal commas in some locales. Removes variables on which the program's output depends.
struct EnvironmentOfScripts {
  EnvironmentOfScripts() {
    const std::filesystem::path tests = std::filesystem::read_symlink("/proc/self/exe");
    setenv("HEED", (tests.parent_path().parent_path() / "heed").c_str(), 1);
    setenv("LC_ALL", "C", 1);
    for (const char* name : {"COLUMNS", "HEED_DATA", "HEED_PLUGINS"}) unsetenv(name);
  }
};

}  // namespace

BOOST_TEST_GLOBAL_FIXTURE(EnvironmentOfScripts);
