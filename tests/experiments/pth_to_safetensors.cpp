// experiments/scripts/pth-to-safetensors, on stand-ins for torch.save files.
#include "heed/io/safetensors.h"
#include "support/command.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <filesystem>

using namespace heed;
using namespace heed::test;

namespace {

struct StandIns {
  TemporaryDirectory directory;
  std::string out = directory / "out.safetensors";

  StandIns() {
    BOOST_TEST(run_command("python3 tests/experiments/pth_stand_ins.py " + (directory / "").string()).status == 0);
  }

  CommandResult convert(const std::string& name, const std::string& more = "") const {
    return run_command("python3 -S -E experiments/scripts/pth-to-safetensors " + (directory / name).string() + " " +
                       out + more + " 2>&1");
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(pth_to_safetensors)

BOOST_AUTO_TEST_CASE(tensors_are_those_of_the_file) {
  const StandIns files;
  for (const std::string name : {"plain.pth", "nested.pth", "beside.pth"}) {
    BOOST_TEST(files.convert(name).status == 0, name);
    const SafetensorsFile file(files.out);
    BOOST_TEST(file.names().size() == 2u);
    const Tensor<float> a = file.read<float>("a"), turned = file.read<float>("turned");
    BOOST_TEST((a.shape() == Shape{2, 3} && turned.shape() == Shape{3, 2}));
    for (Index i = 0; i < 6; ++i) {
      BOOST_TEST(a[i] == static_cast<float>(i));
      BOOST_TEST(turned[i] == a[i % 2 * 3 + i / 2]);
    }
  }
  BOOST_TEST(files.convert("two.pth").status == 0);
  BOOST_TEST(SafetensorsFile(files.out).names().size() == 4u);
  BOOST_TEST(SafetensorsFile(files.out).contains("teacher.a"));
  BOOST_TEST(files.convert("two.pth", " --key student").status == 0);
  BOOST_TEST(SafetensorsFile(files.out).contains("a"));
}

BOOST_AUTO_TEST_CASE(other_files_are_refused_and_nothing_runs) {
  const StandIns files;
  const std::pair<const char*, const char*> refused[] = {
      {"code.pth",
       "its pickle refers to posix.system, which is not a tensor, container or number; nothing was executed"},
      {"beyond.pth", "exceeds its storage of 6 elements"},
      {"repeated.pth", "repeats the elements of its storage"},
      {"missing.pth", "'archive/data/7' is missing"},
      {"longer.pth", "has 24 bytes; expected 7 elements of 4 bytes"},
      {"list.pth", "contains list; expected a dictionary"},
      {"compressed.pth", "is compressed, so it was not written by torch.save"},
      {"half.pth", "a download may be incomplete"},
      {"old.pth", "PyTorch"},
      {"cycle.pth", "it has containers nested deeper than 64"},
      {"inner_cycle.pth", "it has containers nested deeper than 64"},
      {"laughs.pth", "or more than 100000 containers"},
      {"views.pth", "its tensors need 4000000 bytes, more than 4 times the file size"},
      {"namespace.pth",
       "its pickle refers to argparse.Namespace, which is not a tensor, container or number; nothing was executed; if "
       "you trust the file, load it in PyTorch and save its state_dict()"},
      {"bomb.pth", "is compressed"},
      {"pipe.pth", "is not a regular file"},
      {"control.pth", "its pickle refers to \\x1b[31mos.system"},
      {"none.pth", "No such file"}};
  for (const auto& [name, message] : refused) {
    const CommandResult result = files.convert(name);
    BOOST_TEST(result.status == 2, name);
    BOOST_TEST(result.output.find(message) != std::string::npos, name << ": " << result.output);
    BOOST_TEST(std::count(result.output.begin(), result.output.end(), '\n') == 1, name << ": " << result.output);
  }
  BOOST_TEST(!std::filesystem::exists(files.directory / "RUN"));
  BOOST_TEST(!std::filesystem::exists(files.out));
}

BOOST_AUTO_TEST_SUITE_END()
