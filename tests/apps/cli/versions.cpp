// The version of heed recorded in a run, and the handling of runs of other versions.
#include "support/cli.h"

#include "heed/io/safetensors.h"
#include "support/images.h"

#include <nlohmann/json.hpp>

using namespace heed;
using namespace heed::test;

namespace {

/// Rewrites the file with another version in its metadata, or with none.
void write_version(const std::string& path, const std::string& version) {
  const SafetensorsFile file(path);
  std::map<std::string, Tensor<float>> tensors;
  SafetensorsWriter writer;
  for (const std::string& name : file.names()) {
    tensors[name] = file.read<float>(name);
    writer.add(name, tensors[name].view());
  }
  for (const auto& [key, text] : file.metadata())
    if (key != "heed.version") writer.metadata(key, text);
  if (!version.empty()) writer.metadata("heed.version", version);
  writer.write(path);
}

/// A run with one complete epoch.
struct Run : Workshop {
  std::string file = write_experiment(*this, experiment()), directory = *this / "run";

  Run() { output_of({"train", file, "--run", directory, "--set", "train.max_steps=10"}); }

  /// Converts the run to one of another version; "" means 0.1.0, which recorded its version in environment.json only.
  void be_of(const std::string& version) const {
    write_version(directory + "/last.safetensors", version);
    write_version(directory + "/best.safetensors", version);
    const std::string config = read_file(directory + "/config.toml");
    write_file(directory + "/config.toml", config.substr(config.find('\n') + 1));
  }

  void check_not_resumed(const std::string& version) const {
    check_refusal(
        {"train", "--run", directory, "--resume", "--set", "train.max_steps=0"},
        {directory + "/last.safetensors: written by heed " + version + "; heed " HEED_VERSION " can evaluate"});
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cli_versions, Run)

BOOST_AUTO_TEST_CASE(every_file_of_a_run_names_the_version) {
  BOOST_TEST(read_file(directory + "/config.toml").starts_with("# heed " HEED_VERSION "\n"));
  for (const char* name : {"/environment.json", "/cost.json"})
    BOOST_TEST(nlohmann::json::parse(read_file(directory + name)).at("version") == HEED_VERSION, name);
  for (const char* name : {"/last.safetensors", "/best.safetensors"})
    BOOST_TEST(SafetensorsFile(directory + name).metadata().at("heed.version") == HEED_VERSION, name);
}

// Evaluations and predictions do not depend on the version of heed that wrote the run.
BOOST_AUTO_TEST_CASE(runs_of_earlier_versions_are_used_and_not_resumed) {
  const std::string evaluated = output_of_unfinished({"eval", directory}), png = *this / "a.png",
                    sheet = *this / "maps.png";
  write_image(png, pattern({1, 8, 8}, 3));
  const std::string predicted = output_of_unfinished({"predict", directory, png});
  be_of("");
  BOOST_TEST(output_of_unfinished({"eval", directory}) == evaluated);
  BOOST_TEST(output_of_unfinished({"predict", directory, png}) == predicted);
  output_of_unfinished({"maps", directory, png, "-o", sheet});
  output_of({"train", file, "--run", *this / "next", "--init", directory + "/last.safetensors", "--set",
             "train.max_steps=1"});
  check_not_resumed("0.1.0");
}

BOOST_AUTO_TEST_CASE(runs_of_0_2_0_are_used_and_not_resumed) {
  const std::string evaluated = output_of_unfinished({"eval", directory});
  be_of("0.2.0");
  std::string config = read_file(directory + "/config.toml");
  config.replace(config.find("\nmicrobatch ="), 13, "\npiece =");
  write_file(directory + "/config.toml", config);
  const Finished judged = heed_with({"eval", directory});
  BOOST_TEST(judged.out == evaluated);
  BOOST_TEST(judged.err.starts_with("heed: train.piece was renamed to train.microbatch in 0.3.0\nheed: warning: "));
  check_not_resumed("0.2.0");
}

BOOST_AUTO_TEST_CASE(runs_of_other_versions_are_not_resumed) {
  be_of("9.8.7");
  check_not_resumed("9.8.7");
  output_of_unfinished({"eval", directory});
}

BOOST_AUTO_TEST_SUITE_END()
