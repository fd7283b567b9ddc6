// experiments/peers/ratios and experiments/time-errors: what they refuse, without measuring anything.
#include "support/command.h"

#include <boost/test/unit_test.hpp>

using namespace heed::test;

BOOST_AUTO_TEST_SUITE(measurement_scripts)

BOOST_AUTO_TEST_CASE(ratios_has_a_row_for_each_model) {
  const CommandResult all = run_command("experiments/peers/ratios --list");
  BOOST_TEST(all.status == 0, all.errors);
  for (const char* row : {"deit-tiny train 16 vit", "deit-small infer 16 onnx", "cvt-micro train 64 families",
                          "text-micro write 1 sequences", "dino-micro train 128 dino"})
    BOOST_TEST(all.output.find(row) != std::string::npos, row);
  BOOST_TEST(run_command("experiments/peers/ratios --list --match '^xcit'").output == "xcit-micro train 64 families\n");
  const CommandResult none = run_command("experiments/peers/ratios --match nothing");
  BOOST_TEST(none.status == 2);
  BOOST_TEST(none.errors.find("no row has this in its name") != std::string::npos, none.errors);
  const CommandResult python = run_command("experiments/peers/ratios --python /bin/false");
  BOOST_TEST(python.status == 2);
  BOOST_TEST(python.errors.find("ratios: no PyTorch in /bin/false") == 0u, python.errors);
}

BOOST_AUTO_TEST_CASE(errors_need_measurements) {
  const CommandResult none = run_command("experiments/time-errors --measured /nowhere/bench.json");
  BOOST_TEST(none.status == 2);
  BOOST_TEST(none.errors.find("time-errors: ") == 0u, none.errors);
  BOOST_TEST(none.errors.find("heed bench --only times --json >/nowhere/bench.json") != std::string::npos, none.errors);
}

BOOST_AUTO_TEST_SUITE_END()
