// experiments/scripts/texts-to-tsv, as errors about data.name=documents suggest it.
#include "heed/data/sequences/sequences.h"
#include "heed/io/file.h"
#include "support/command.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <filesystem>

using namespace heed;
using namespace heed::test;

namespace {

/// Returns the train.tsv that the suggested command writes for a table with these columns of label and text, or the
/// output of a command that fails.
std::string converted(const std::string& name, const std::string& text, const std::string& columns) {
  const TemporaryDirectory directory;
  write_file(directory / name, text);
  DataConfig data;
  data.name = "documents", data.path = directory.path();
  const std::string error = error_of([&] { open_sequences(data, 7, Part::train, 1); });
  const std::size_t end = error.rfind(" LABEL TEXT "), begin = error.rfind('`', end) + 1;
  BOOST_REQUIRE_MESSAGE(end != std::string::npos, error);
  const std::string command = error.substr(begin, end - begin);
  BOOST_TEST(error.find("`" + command + "` lists the columns") != std::string::npos, error);
  const CommandResult result = run_command(
      command + (columns.empty() ? "" : " " + columns + " " + (directory / "train.tsv").string()) + " 2>&1");
  return result.status == 0 ? read_file(directory / "train.tsv") : result.output;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(texts_to_tsv)

BOOST_AUTO_TEST_CASE(tables_become_lines) {
  const std::string lines = "pos\tgood, \"very\" nice\nneg\tbad\n";
  const std::string csv = "\xef\xbb\xbfreview,sentiment\r\n\"good, \"\"very\"\"\nnice\",pos\r\nbad,neg\r\n";
  BOOST_TEST(converted("reviews.csv", csv, "sentiment review") == lines);
  BOOST_TEST(converted("reviews.csv", csv, "2 1") == "sentiment\treview\n" + lines);
  BOOST_TEST(converted("r.csv", "a;b\n\"good, \"\"very\"\" nice\";pos\nbad;neg\n", "b a") == lines);
  BOOST_TEST(converted("ag.csv", "\"2\",\"Wall\tSt\"\n\"1\",\"x\"\n", "1 2") == "2\tWall St\n1\tx\n");
  const std::string json = R"({"text": "a\nb)"
                           "\u2028"
                           R"(c", "label": 1})",
                    other = R"({"label": 0, "text": "x"})";
  BOOST_TEST(converted("a.jsonl", json + "\n" + other + "\n", "label text") == "1\ta b c\n0\tx\n");
  BOOST_TEST(converted("a.json", "[" + json + ",\n" + other + "]", "label text") == "1\ta b c\n0\tx\n");
  BOOST_TEST(converted("trec.label", "DESC:manner How did it\nENTY:x What ?\n", "1 2") ==
             "DESC:manner\tHow did it\nENTY:x\tWhat ?\n");
}

BOOST_AUTO_TEST_CASE(columns_are_not_guessed) {
  const auto says = [](const std::string& text, const std::string& columns, const std::string& problem) {
    const std::string said = converted("t.csv", text, columns);
    BOOST_TEST(said.find("/t.csv: " + problem) != std::string::npos, said);
  };
  says("review,sentiment\nbad,neg\n", "", "the first row has the columns 1 'review', 2 'sentiment'; give those of");
  says("review,sentiment\nbad,neg\n", "LABEL TEXT", "no columns LABEL and TEXT; the first row has 1 'review'");
  says("a,b\nx\n", "a b", "row 2 has 1 columns; the first row has 2");
  says("a,b\nx,\xe9\n", "a b", "not UTF-8; convert it with `iconv");
  says("a,b\nx,\"y\"z\n", "a b", "',' expected after '\"'");
  says("", "a b", "is empty");
}

BOOST_AUTO_TEST_SUITE_END()
