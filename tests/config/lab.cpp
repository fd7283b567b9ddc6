// Labs in TOML: each key is read into its field.
#include "heed/config/lab.h"
#include "heed/io/file.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

struct OneLab {
  TemporaryDirectory directory;

  Lab read(const std::string& text) const {
    std::filesystem::create_directory(directory / "one");
    write_file(directory / "one/lab.toml", "title = \"One\"\nminutes = 20\n" + text);
    return load_lab(directory / "one");
  }
};

using Texts = std::map<std::string, std::string>;

}  // namespace

BOOST_FIXTURE_TEST_SUITE(config_lab, OneLab)

BOOST_AUTO_TEST_CASE(keys_of_a_mechanism) {
  const Lab lab = read(
      "kind = \"mechanism\"\nhints = [\"a\", \"b\"]\n[mechanism]\nname = \"mine\"\nreference = \"sima\"\n"
      "options = { scale = \"2\" }\nreference_options = { norm = \"l2\", causal = \"true\" }\nslack = 3.5\n"
      "forbidden = [\"eval\", \"import\"]\n[[points]]\nname = \"output\"\nmarks = 2\nhint = \"c\"\n"
      "[[points]]\nname = \"memory\"\nmarks = 0.5\n");
  BOOST_TEST(lab.name == "one");
  BOOST_TEST(lab.title == "One");
  BOOST_TEST((lab.kind == LabKind::mechanism));
  BOOST_TEST(lab.minutes == 20);
  BOOST_TEST((lab.hints == std::vector<std::string>{"a", "b"}));
  BOOST_TEST(lab.mechanism == "mine");
  BOOST_TEST(lab.reference == "sima");
  BOOST_TEST((lab.options == Texts{{"scale", "2"}}));
  BOOST_TEST((lab.reference_options == Texts{{"norm", "l2"}, {"causal", "true"}}));
  BOOST_TEST(lab.slack == 3.5);
  BOOST_TEST((lab.forbidden == std::vector<std::string>{"eval", "import"}));
  BOOST_REQUIRE(lab.points.size() == 2u);
  BOOST_TEST(lab.points[0].name == "output");
  BOOST_TEST(lab.points[0].hint == "c");
  BOOST_TEST(lab.points[1].marks == 0.5);
  BOOST_TEST(lab.marks() == 2.5);
  BOOST_TEST(lab.file() == "one.h");
}

BOOST_AUTO_TEST_CASE(keys_of_answers) {
  const Lab lab = read(
      "kind = \"answers\"\n[values]\nwidth = 12\ncost = { heed = [\"cost\", \"x.toml\"], field = \"total.mul\" }\n"
      "[[points]]\nname = \"a\"\nmarks = 1\nquestion = \"How wide?\"\nformula = \"2 width\"\ntolerance = 0.01\n"
      "[[points]]\nname = \"b\"\nmarks = 1\nquestion = \"How far?\"\nhash = \"abc\"\ndigits = 5\n");
  BOOST_TEST(lab.values.at("width").number.value() == 12);
  BOOST_TEST((lab.values.at("cost").heed == std::vector<std::string>{"cost", "x.toml"}));
  BOOST_TEST(lab.values.at("cost").field == "total.mul");
  BOOST_REQUIRE(lab.points.size() == 2u);
  BOOST_TEST(lab.points[0].question == "How wide?");
  BOOST_TEST(lab.points[0].formula == "2 width");
  BOOST_TEST(lab.points[0].tolerance == 0.01);
  BOOST_TEST(lab.points[1].question == "How far?");
  BOOST_TEST(lab.points[1].hash == "abc");
  BOOST_TEST(lab.points[1].digits == 5);
  BOOST_TEST(lab.file() == "one.toml");
}

BOOST_AUTO_TEST_CASE(keys_of_a_personal_mechanism) {
  const std::string points = "[[points]]\nname = \"output\"\nmarks = 1\n";
  const Lab write = read("kind = \"personal\"\n[personal]\ntask = \"write\"\nslack = 4\n" + points);
  BOOST_TEST(!write.repair);
  BOOST_TEST(write.slack == 4);
  BOOST_TEST(read("kind = \"personal\"\n[personal]\ntask = \"repair\"\n" + points).repair);
}

BOOST_AUTO_TEST_SUITE_END()
