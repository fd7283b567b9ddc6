// With little memory, the program either works or reports an error in one line; it never hangs.
#include "src/apps/cli/shared/memory.cpp"

#include "heed/io/file.h"
#include "support/command.h"

#include <fmt/format.h>

#include <regex>

using namespace heed::test;

namespace {

/// Runs the program with its address space limited, in kilobytes. The time limit is generous, since threads may wait
/// for seconds under load.
CommandResult limited(int kilobytes, const std::string& arguments) {
  return run_command("ulimit -v " + std::to_string(kilobytes) + " && timeout 60 " + heed_program() + " " + arguments);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_memory, *boost::unit_test::precondition(without_sanitizer))

BOOST_AUTO_TEST_CASE(memory_is_limited_by_control_groups_and_their_parents) {
  const heed::TemporaryDirectory directory;
  const std::string root = directory / "root", groups = "/sys/fs/cgroup";
  const auto available_with = [&](const std::string& file, const std::string& content) {
    std::filesystem::create_directories(std::filesystem::path(root + file).parent_path());
    heed::write_file(root + file, content);
    return heed::cli::available_memory(root);
  };
  BOOST_TEST(available_with("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 8000 kB\n") == 8'192'000);
  BOOST_TEST(available_with("/proc/self/cgroup", "4:cpu,memory:/a/b\n0::/job/step\n") == 8'192'000);
  BOOST_TEST(available_with(groups + "/job/step/memory.max", "max\n") == 8'192'000);
  BOOST_TEST(available_with(groups + "/job/memory.max", "4000000\n") == 4'000'000);
  BOOST_TEST(available_with(groups + "/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n") == 4'000'000);
  BOOST_TEST(available_with(groups + "/memory/a/memory.limit_in_bytes", "3000000\n") == 3'000'000);
  BOOST_TEST(available_with(groups + "/memory/memory.limit_in_bytes", "2000000\n") == 2'000'000);
}

BOOST_AUTO_TEST_CASE(a_stack_that_is_too_small_is_said) {
  const CommandResult result = run_command("ulimit -s 512 && " + heed_program() + " gradcheck softmax");
  BOOST_TEST(result.status == 2);
  BOOST_TEST(is_line_with(result.errors, "the stack is limited to 524288 bytes; expected 2097152"), result.errors);
#ifdef HEED_NO_SIMD
  const std::string command = " gradcheck softmax";  // builds without fast kernels have no selftest
#else
  const std::string command = " selftest operations";
#endif
  BOOST_TEST(run_command("ulimit -s 2048 && " + heed_program() + command).status == 0);
}

// OpenBLAS would allocate 128 MB per thread, and retry forever if that failed.
BOOST_AUTO_TEST_CASE(what_needs_no_blas_works_without_memory_for_it) {
  for (const int kilobytes : {70'000, 100'000, 150'000}) {
    BOOST_TEST(limited(kilobytes, "list").status == 0);
    BOOST_TEST(limited(kilobytes, "cost models/vit-micro.toml").status == 0);
  }
}

// The memory limit grows from too little for the program's threads until the program succeeds ten times in a row.
BOOST_AUTO_TEST_CASE(what_needs_blas_says_that_memory_is_lacking) {
  int refused = 0, granted = 0;
  for (int kilobytes = 70'000; kilobytes < 400'000 && granted < 10; kilobytes += 2'000) {
    const CommandResult result = limited(kilobytes, "gradcheck softmax");
    granted = result.status == 0 ? granted + 1 : 0;
    if (granted > 0) continue;
    ++refused;
    BOOST_TEST(result.status == 2, kilobytes << " KB: status " << result.status);
    BOOST_TEST((is_line_with(result.errors, "heed: not enough memory") ||
                is_line_with(result.errors, "heed: threads: the system cannot start thread ")),
               kilobytes << " KB: " << result.errors);
  }
#ifndef HEED_NO_BLAS
  BOOST_TEST(refused > 0);
#endif
}

// Two mechanisms are measured in separate processes; the error is the same as for one mechanism.
BOOST_AUTO_TEST_CASE(measurements_that_memory_is_too_small_for_say_so) {
  for (const std::string mechanisms : {"sima", "sima softmax"}) {
    const CommandResult result = run_command("ulimit -d 100000 && " + heed_program() + " scaling " + mechanisms +
                                             " --tokens 4096 --dim 1024 --heads 16 --seconds 0 --max-memory 100000");
    BOOST_TEST(result.status == 2, mechanisms << ": status " << result.status);
    BOOST_TEST(is_line_with(result.errors, "heed: not enough memory"), mechanisms << ": " << result.errors);
  }
}

// Weights, gradients and two moments of 4 bytes each take 16 bytes for each of more than 6 dim^2 elements.
BOOST_AUTO_TEST_CASE(models_larger_than_memory_are_refused_before_it_is_filled) {
  const heed::TemporaryDirectory directory;
  const std::string train = "train experiments/fashion-mnist.toml --run " + (directory / "run").string() +
                            " --set model.heads=1 --set model.depth=1 --set model.hidden=";
  for (const auto& [width, kilobytes] : {std::pair{4'000, 1'000'000}, {1'000'000, 100'000'000}}) {
    const std::string size = std::to_string(width);
    const CommandResult result = limited(kilobytes, train + size + " --set model.dim=" + size);
    BOOST_TEST(result.status == 2);
    BOOST_TEST(is_line_with(result.errors, "of memory before the first image"), result.errors);
    BOOST_TEST(!std::filesystem::exists(directory / "run"));
  }
}

// AdamW has two moments of each weight, SGD one velocity, besides the weight and its gradient.
BOOST_AUTO_TEST_CASE(the_memory_of_training_is_that_of_its_optimiser_and_numbers) {
  const heed::TemporaryDirectory directory;
  const std::string train = " train experiments/fashion-mnist.toml --run " + (directory / "run").string() +
                            " --set model.heads=1 --set model.depth=1 --set model.hidden=1000000 --set "
                            "model.dim=1000000";
  for (const auto& [optimiser, dtype, bytes] : {std::tuple("adamw", "f32", 4 * 4.0),
                                                {"sgd", "f32", 3 * 4.0},
                                                {"adamw", "f64", 4 * 8.0},
                                                {"sgd", "f64", 3 * 8.0}}) {
    const CommandResult result = run_command(
        heed_program() + train + fmt::format(" --set optim.name={} --set train.dtype={}", optimiser, dtype));
    BOOST_TEST(result.status == 2);
    static const std::regex numbers("training ([0-9,]+) weights needs ([0-9.]+) GB of memory");
    std::smatch found;
    BOOST_TEST_REQUIRE(std::regex_search(result.errors, found, numbers), result.errors);
    const std::string weights = std::regex_replace(found[1].str(), std::regex(","), "");
    BOOST_TEST(found[2].str() == fmt::format("{:.1f}", bytes * std::stod(weights) / 1e9), optimiser << " " << dtype);
  }
}

BOOST_AUTO_TEST_SUITE_END()
