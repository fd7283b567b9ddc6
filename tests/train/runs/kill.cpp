// A run killed at any time can be resumed, and its files then have the same bytes as an uninterrupted run's.
#include "heed/train/runs/run.h"

#include "support/cli.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(train_kill)

BOOST_AUTO_TEST_CASE(a_killed_run_goes_on_to_the_byte) {
  const Workshop workshop(400, 30);
  Experiment x = workshop.experiment();
  x.data.augment = {"crop", "flip"};
  x.train.dropout = 0.1;
  x.train.ema = 0.9;
  x.train.log_steps = true;
  x.train.checkpoint_steps = 2;
  const std::string file = write_experiment(workshop, x), whole = workshop / "whole";
  const auto start = std::chrono::steady_clock::now();
  BOOST_TEST(heed_with({"train", file, "--run", whole}).status == 0);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  // HEED_KILLS is the number of runs, fifty in make test-thorough. Each is killed up to three times, at moments that
  // depend on the seed.
  const char* const asked = std::getenv("HEED_KILLS");
  const char* const seed = std::getenv("HEED_KILL_SEED");
  const RandomStream random(seed ? static_cast<std::uint64_t>(std::atoll(seed)) : 1);
  Index in_vain = 0;  // kills before the first checkpoint
  const Index kills = asked ? std::atoll(asked) : 6;
  for (Index i = 0; i < kills; ++i) {
    const std::string directory = workshop / ("killed-" + std::to_string(i));
    bool begun = false;
    for (int kill = 0; kill < 3; ++kill) {
      std::vector<std::string> arguments{"train", file, "--run", directory};
      if (begun) arguments.push_back("--resume");
      Program program(arguments);
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds * random.uniform(3 * i + kill)));
      // If all other kills came before the first checkpoint, as on a machine that has become slower since the first
      // run, the last one waits for it, at most a minute.
      for (int tries = 0; in_vain == 3 * kills - 1 && tries < 6000 && !RunPaths(directory).exists(); ++tries)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      program.signal(SIGKILL);
      const Finished finished = program.wait();
      BOOST_TEST((finished.status == 1000 + SIGKILL || finished.status == 0), finished.err);
      begun = RunPaths(directory).exists();
      in_vain += !begun;
    }
    std::vector<std::string> arguments{"train", file, "--run", directory};
    if (begun) arguments.push_back("--resume");
    const Finished finished = heed_with(arguments);
    BOOST_TEST(finished.status == 0, finished.err);
    check_same_run(whole, directory);
    for (const auto& entry : std::filesystem::directory_iterator(directory))
      BOOST_TEST(!entry.path().string().ends_with(".part"), entry.path().string());
    std::filesystem::remove_all(directory);
  }
  BOOST_TEST(in_vain < 3 * kills, "every kill came before the first checkpoint");
}

BOOST_AUTO_TEST_SUITE_END()
