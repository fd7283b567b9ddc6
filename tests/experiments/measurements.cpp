// experiments/peers/ratios and experiments/tools/time-errors: lists, tables and error messages; nothing is measured.
#include "support/command.h"
#include "support/temporary.h"

#include "heed/io/file.h"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

using namespace heed::test;

BOOST_AUTO_TEST_SUITE(measurement_scripts)

BOOST_AUTO_TEST_CASE(ratios_has_a_row_for_each_model) {
  const CommandResult all = run_command("experiments/peers/ratios --list");
  BOOST_TEST(all.status == 0, all.errors);
  for (const char* row : {"deit-tiny train 16 vit", "deit-small infer 16 onnx", "cvt-micro train 64 families",
                          "text-micro write 1 sequences", "dino-micro train 128 dino"})
    BOOST_TEST(all.output.find(row) != std::string::npos, row);
  BOOST_TEST(run_command("experiments/peers/ratios --list --match '^xcit'").output == "xcit-micro train 64 families\n");
  BOOST_TEST(run_command("experiments/peers/ratios --alone --list --match '^aft-conv .* 256'").output ==
             "aft-conv forward 256 alone\naft-conv backward 256 alone\n");
  const CommandResult none = run_command("experiments/peers/ratios --match nothing");
  BOOST_TEST(none.status == 2);
  BOOST_TEST(none.errors.find("no row matches") != std::string::npos, none.errors);
  const CommandResult lost = run_command("experiments/peers/ratios --table /nowhere.csv");
  BOOST_TEST(lost.status == 2);
  BOOST_TEST(lost.errors.find("ratios: /nowhere.csv: ") == 0u, lost.errors);
  const CommandResult python = run_command("experiments/peers/ratios --python /bin/false");
  BOOST_TEST(python.status == 2);
  BOOST_TEST(python.errors.find("ratios: no PyTorch in /bin/false") == 0u, python.errors);
}

// The page's tables are generated from the measurements beside the script.
BOOST_AUTO_TEST_CASE(ratios_of_the_page_are_those_measured) {
  for (const auto& [measured, lines] :
       {std::pair("ratios", 12), std::pair("ratios-onnx", 6), std::pair("ratios-zen5", 12),
        std::pair("ratios-avx2", 12), std::pair("attention", 2 + 10 - 1)}) {
    const CommandResult table =
        run_command(fmt::format("experiments/peers/ratios --table experiments/peers/{}.csv", measured));
    BOOST_TEST_REQUIRE(table.status == 0, table.errors);
    BOOST_TEST(std::count(table.output.begin(), table.output.end(), '\n') > lines);
    BOOST_TEST(heed::read_file("docs/speed-tables.md").find(table.output) != std::string::npos, table.output);
  }
}

BOOST_AUTO_TEST_CASE(rows_name_their_threads_if_these_differ) {
  const heed::TemporaryDirectory directory;
  const std::string file = directory / "both.csv", of_16 = heed::read_file("experiments/peers/ratios-xeon16.csv"),
                    of_2 = heed::read_file("experiments/peers/ratios.csv");
  heed::write_file(file, of_16 + of_2.substr(of_2.find('\n') + 1));
  const std::string table = run_command("experiments/peers/ratios --table " + file).output;
  for (const char* row : {"`vit-micro`, training, 128, threads: 16 |", "`vit-micro`, training, 128, threads: 2 |"})
    BOOST_TEST(table.find(row) != std::string::npos, table);
  for (const char* threads : {"0", "2,x", "", "2,"}) {
    const CommandResult bad = run_command(fmt::format("experiments/peers/ratios --threads '{}'", threads));
    BOOST_TEST(bad.status == 2);
    BOOST_TEST(bad.errors.find("expected whole numbers of at least 1") != std::string::npos, bad.errors);
  }
}

BOOST_AUTO_TEST_CASE(errors_need_measurements) {
  const heed::TemporaryDirectory directory;
  const CommandResult none =
      run_command(fmt::format("experiments/tools/time-errors --measured /nowhere/bench.json --heed {} -o '{}'",
                              heed_program(), (directory / "x.csv").string()));
  BOOST_TEST(none.status == 2);
  BOOST_TEST(none.errors.find("time-errors: ") == 0u, none.errors);
  BOOST_TEST(none.errors.find("heed bench --only times --json >/nowhere/bench.json") != std::string::npos, none.errors);
}

// The path of the program is relative to the working directory, although its commands run in the source directory.
BOOST_AUTO_TEST_CASE(errors_name_the_program) {
  const heed::TemporaryDirectory directory;
  const std::string script = std::filesystem::absolute("experiments/tools/time-errors").string();
  const std::string built = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "heed";
  for (const auto& [program, error] : {std::pair(std::filesystem::relative(built, "tests").string(), "write it by"),
                                       {"absent", "/tests/absent: No such file"}}) {
    const CommandResult none = run_command(
        fmt::format("'{}' --heed '{}' --measured /nowhere -o '{}'", script, program, (directory / "x.csv").string()),
        "tests");
    BOOST_TEST(none.status == 2);
    BOOST_TEST(is_line_with(none.errors, error), none.errors);
  }
}

// The path of -o is checked before the file of measurements is read.
BOOST_AUTO_TEST_CASE(errors_are_written_to_an_existing_directory) {
  for (const std::string output : {"/nowhere/x.csv", "/tmp"}) {
    const CommandResult none = run_command("experiments/tools/time-errors -o " + output + " --heed " + heed_program());
    BOOST_TEST(none.status == 2);
    BOOST_TEST(none.errors == "time-errors: " + output + ": cannot be written\n");
  }
}

// --path is the directory of one data set, so it is refused if both are packed, as by default.
BOOST_AUTO_TEST_CASE(page_weights_are_packed_for_one_path) {
  for (const std::string sets : {"", " --data mnist --data fashion-mnist"}) {
    const CommandResult none = run_command("experiments/tools/page-weights --pack-only --path /nowhere" + sets);
    BOOST_TEST(none.status == 2);
    BOOST_TEST(none.errors.find("--path is the directory of one data set; expected one --data") != std::string::npos,
               none.errors);
  }
}

// Zero configurations or measurements are rejected, since there would be no prediction errors.
BOOST_AUTO_TEST_CASE(no_errors_of_nothing) {
  for (const std::string option : {"--count", "--rounds"}) {
    const CommandResult none = run_command("experiments/tools/time-errors " + option + " 0 --heed " + heed_program());
    BOOST_TEST(none.status == 2);
    BOOST_TEST(none.errors == "time-errors: " + option + " is 0; expected 1 or more\n");
  }
}

// A program that predicts 7 ms for every model.
BOOST_AUTO_TEST_CASE(no_configuration_is_fast_enough) {
  const heed::TemporaryDirectory directory;
  const std::string program = directory / "program";
  heed::write_file(program, "#!/bin/sh\n[ $1 = list ] && echo a b softmax || echo '{\"train\": {\"ms\": 7}}'\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const CommandResult none = run_command("experiments/tools/time-errors --longest 0.5 --heed " + program + " -o " +
                                         (directory / "x.csv").string());
  BOOST_TEST(none.status == 2);
  BOOST_TEST(
      none.errors ==
      "time-errors: --longest 0.5: none of 1000 successive configurations is predicted to be that fast; expected "
      "more milliseconds\n");
}

BOOST_AUTO_TEST_SUITE_END()
