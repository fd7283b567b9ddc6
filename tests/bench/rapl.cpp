// Energy counters of CPU packages, in a tree made for the test.
#include "heed/bench/rapl.h"

#include "heed/io/file.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <filesystem>

using namespace heed;

namespace {

/// A tree like /sys/class/powercap.
struct Powercap {
  TemporaryDirectory directory;

  std::string root() const { return directory / "powercap"; }
  void zone(const std::string& zone, const std::string& name, const std::string& range = "1000000") const {
    std::filesystem::create_directories(root() + "/" + zone);
    write_file(root() + "/" + zone + "/name", name + "\n");
    write_file(root() + "/" + zone + "/max_energy_range_uj", range + "\n");
    set(zone, 0);
  }
  void set(const std::string& zone, std::uint64_t microjoules) const {
    write_file(root() + "/" + zone + "/energy_uj", std::to_string(microjoules) + "\n");
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(package_energy)

// Two packages are added; the cores, the platform and a second interface to package 0 are ignored.
BOOST_FIXTURE_TEST_CASE(packages_add_up_and_nothing_is_counted_twice, Powercap) {
  zone("intel-rapl:0", "package-0");
  zone("intel-rapl:0:0", "core");
  zone("intel-rapl:1", "package-1");
  zone("intel-rapl:2", "psys");
  zone("intel-rapl-mmio:0", "package-0");
  PackageEnergy energy(root());
  BOOST_TEST(energy.unavailable() == "");
  set("intel-rapl:0", 300'000);
  set("intel-rapl:1", 20'000);
  for (const char* other : {"intel-rapl:0:0", "intel-rapl:2", "intel-rapl-mmio:0"}) set(other, 777'777);
  energy.update();
  BOOST_TEST(energy.joules() == 0.32);
  BOOST_TEST(energy.report() == "0.3 J");
}

BOOST_FIXTURE_TEST_CASE(counters_wrap_around, Powercap) {
  zone("intel-rapl:0", "package-0", "1000000");
  set("intel-rapl:0", 900'000);
  PackageEnergy energy(root());
  set("intel-rapl:0", 100'000);
  energy.update();
  BOOST_TEST(energy.joules() == 0.2);
  set("intel-rapl:0", 950'000);
  energy.update();
  set("intel-rapl:0", 50'000);
  energy.update();
  BOOST_TEST(energy.joules() == 1.15);
}

BOOST_FIXTURE_TEST_CASE(why_nothing_is_measured, Powercap) {
  const std::string energy_file = root() + "/intel-rapl:0/energy_uj";
  BOOST_TEST(PackageEnergy(root()).report() ==
             "unavailable: " + root() + " has no RAPL counter of a processor package");
  zone("intel-rapl:0:0", "core");
  BOOST_TEST(PackageEnergy(root()).report() ==
             "unavailable: " + root() + " has no RAPL counter of a processor package");
  zone("intel-rapl:0", "package-0");
  PackageEnergy lost(root());
  write_file(energy_file, "nonsense\n");
  BOOST_TEST(PackageEnergy(root()).report() == "unavailable: " + energy_file + " cannot be read");
  std::filesystem::remove(energy_file);
  BOOST_TEST(PackageEnergy(root()).report() ==
             "unavailable: " + energy_file + " cannot be read: No such file or directory");
  BOOST_TEST(lost.report() == "unavailable: " + energy_file + " became unreadable");
}

// Each package has its own range and last value.
BOOST_FIXTURE_TEST_CASE(packages_wrap_around_by_themselves, Powercap) {
  zone("intel-rapl:0", "package-0", "1000000"), zone("intel-rapl:1", "package-1", "5000000");
  set("intel-rapl:0", 900'000), set("intel-rapl:1", 4'900'000);
  PackageEnergy energy(root());
  set("intel-rapl:0", 100'000), set("intel-rapl:1", 4'950'000);  // 0.2 J (wraps around), 0.05 J
  energy.update();
  BOOST_TEST(energy.joules() == 0.25);
  set("intel-rapl:0", 150'000), set("intel-rapl:1", 50'000);  // 0.05 J, 0.1 J (wraps around)
  energy.update();
  BOOST_TEST(energy.joules() == 0.4);
}

// The second interface is used if it is the only one. If a counter of unknown range decreases, the energy is unknown.
BOOST_FIXTURE_TEST_CASE(a_counter_without_a_range_only_increases, Powercap) {
  zone("intel-rapl-mmio:0", "package-0", "");
  set("intel-rapl-mmio:0", 1'000'000);
  PackageEnergy energy(root());
  BOOST_TEST(energy.unavailable() == "");
  set("intel-rapl-mmio:0", 1'500'000);
  BOOST_TEST(energy.report() == "0.5 J");
  set("intel-rapl-mmio:0", 1'400'000);
  BOOST_TEST(energy.report() == "unavailable: " + root() + "/intel-rapl-mmio:0/energy_uj decreased");
}

// The energy of one of two packages is not that of the machine.
BOOST_FIXTURE_TEST_CASE(every_package_is_needed, Powercap) {
  zone("intel-rapl:0", "package-0"), zone("intel-rapl:1", "package-1");
  PackageEnergy energy(root());
  for (const char* package : {"intel-rapl:0", "intel-rapl:1"}) set(package, 100);
  const std::string second = root() + "/intel-rapl:1/energy_uj";
  std::filesystem::remove(second);
  BOOST_TEST(energy.report() == "unavailable: " + second + " became unreadable");
  BOOST_TEST(PackageEnergy(root()).report() == "unavailable: " + second + " cannot be read: No such file or directory");
}

BOOST_AUTO_TEST_SUITE_END()
