// The commands of docs/pretrained.md, run on small stand-ins for its files.
#include "support/cli.h"

#include "heed/data/images/image_write.h"
#include "support/command.h"
#include "support/images.h"
#include "tests/apps/cli/measuring/made_up_machine.h"
#include "tests/io/hugging_face.h"

#include <sstream>

using namespace heed;
using namespace heed::test;

namespace {

/// A directory with links to the repository's experiments, models and tests and to the build, and with stand-ins for
/// downloaded files.
struct Downloads : TemporaryDirectory {
  ModelConfig model = published_vit();

  Downloads() {
    model.image = 12, model.depth = 12, model.classes = 12;
    const std::filesystem::path here = std::filesystem::current_path();
    std::filesystem::create_symlink(std::filesystem::path(program()).parent_path(), *this / "build");
    for (const char* name : {"experiments", "models", "tests"})
      std::filesystem::create_symlink(here / name, *this / name);
    write_weights();
    save_png(*this / "cat.jpg", pattern({3, 20, 16}, 1));  // heed detects the format from the first bytes
    std::string names;
    for (int c = 0; c < 12; ++c) {
      const std::string name = fmt::format("n{:08}", 1440764 + c);
      names += name + "\n";
      for (const char* split : {"train", "val"})
        for (int i = 0; i < 30 && c < 10; ++i) {
          const std::filesystem::path folder = path() / "imagenette" / split / name;
          std::filesystem::create_directories(folder);
          save_png(folder / fmt::format("{}.png", i), pattern({3, 14, 15}, 12 * i + c));
        }
    }
    write_file(*this / "imagenet.txt", names);
    write_file(*this / "bench.json", made_up_machine());
    BOOST_TEST(run_command("python3 tests/experiments/pth_stand_ins.py ./ && mv plain.pth dino.pth", path()).status ==
               0);
  }

  void write_weights() const {
    const Parameters<float> deit = drawn(model);
    SafetensorsWriter writer;
    for (ParameterId id = 0; id < deit.list().size(); ++id) writer.add(deit.list()[id].name, deit[id]);
    writer.write(*this / "deit.safetensors");
    ModelConfig dinov2 = model;
    dinov2.block_scale = 1e-5;
    const Parameters<float> backbone = drawn(dinov2);
    TheirFile(backbone, true).write(*this / "model.safetensors");
    dinov2.registers = 2, dinov2.embed_prefix = false;
    const Parameters<float> with_registers = drawn(dinov2);
    const Tensor<float> positions(Shape{1, 10, 64});  // one row is the class token's, as in DINOv2
    SafetensorsWriter own;
    for (const ParameterSpec& spec : with_registers.list())
      if (const ParameterId id = with_registers.list().find(spec.name); !spec.name.starts_with("head."))
        own.add(spec.name == "reg_token" ? "register_tokens" : spec.name,
                spec.name == "pos_embed" ? positions.view() : with_registers[id]);
    own.write(*this / "dinov2_reg.safetensors");
  }
};

/// Returns the lines of the page's shell blocks, without comments; joins a line that ends in \ with the next.
std::vector<std::string> commands_of(const std::string& page) {
  std::vector<std::string> commands;
  std::istringstream lines(read_text_file(page));
  bool shell = false, goes_on = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      shell = line == "```sh";
    } else if (shell) {
      line = line.substr(0, line.find("  #"));
      const bool next = line.ends_with('\\');
      if (next) line.pop_back();
      goes_on ? commands.back() += line : commands.emplace_back(line);
      goes_on = next;
    }
  }
  return commands;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_pretrained_page)

BOOST_AUTO_TEST_CASE(every_command_works) {
  const Downloads given;
  const std::vector<std::string> commands = commands_of("docs/pretrained.md");
  BOOST_TEST(commands.size() >= 15u);
  for (std::string command : commands) {
    if (command.starts_with("build/heed bench")) continue;  // takes minutes; its bench.json is among the stand-ins
    constexpr std::string_view landmarks = "landmarks=49";  // the stand-ins have 9 patches
    if (const std::size_t at = command.find(landmarks); at != command.npos)
      command.replace(at, landmarks.size(), "landmarks=9");
    const CommandResult result = run_command(command, given.path());
    BOOST_TEST(result.status == 0, command << ": " << result.errors);
  }
  for (const char* made : {"dino.safetensors", "dinov2.toml", "registers.safetensors", "cat.png", "register.png",
                           "rollout.png", "both.png", "features.safetensors", "runs/sima/config.toml"})
    BOOST_TEST(std::filesystem::exists(given / made), made);
}

BOOST_AUTO_TEST_SUITE_END()
