// heed selftest from end to end: agreement, a planted difference, refusals.
#include "support/cli.h"
#include "support/lines.h"

#include <fmt/format.h>

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(cli_selftest)

BOOST_AUTO_TEST_CASE(this_computer_and_build) {
#ifdef HEED_NO_SIMD
  check_refusal({"selftest"}, {"this build", "--against FILE"});
#else
  const Finished run = heed_with({"selftest"});
  BOOST_TEST(run.status == 0, "the bits are other ones; if they are meant to change, say why in the commit, and run\n"
                                  << "build/heed selftest --write src/selftest/expected_hashes.inc\n"
                                  << run.out << run.err);
  BOOST_TEST(run.out.starts_with("selftest: all "), run.out);
  BOOST_TEST(std::count(run.out.begin(), run.out.end(), '\n') == 1);
#endif
}

BOOST_AUTO_TEST_CASE(a_difference_is_named) {
  const TemporaryDirectory directory;
  const std::string file = directory / "hashes";
  const Finished written = heed_with({"selftest", "documents", "data", "data", "--write", file, "--threads", "1"});
  BOOST_TEST(written.status == 0, written.err);
  BOOST_TEST(written.out == "");
  const Finished same = heed_with({"selftest", "documents", "data", "--against", file, "--threads", "3"});
  BOOST_TEST(same.status == 0, same.out);
#ifdef HEED_NO_THREADS
  const std::string threads = ", 1 thread, ";
#else
  const std::string threads = ", 3 threads, ";
#endif
  check_contains(same.out, {"selftest: all ", " hashes agree (", threads});
  std::string text = read_file(file);
  char& digit = text[text.rfind("documents:\n") + std::string("documents:\n12345678 12345678 12345678 1").size()];
  digit = digit == '0' ? '1' : '0';
  write_file(file, text);
  const Finished other = heed_with({"selftest", "documents", "data", "--against", file});
  BOOST_TEST(other.status == 1);
  check_contains(other.out, {"hashes agree; first difference: documents, step 1: result of ", "/embed_sequences ("});
  BOOST_TEST(std::count(other.out.begin(), other.out.end(), '\n') == 1);
  check_contains(other.err, {"\n  step 1: result of "});
  BOOST_TEST(std::count(other.err.begin(), other.err.end(), '\n') == 3);
  // The file lacks the part listops.
  check_contains(heed_with({"selftest", "listops", "--against", file}).out,
                 {"first difference: listops, the list of tensors; there are no expected hashes of this part ("});
}

BOOST_AUTO_TEST_CASE(the_list_names_each_part) {
  check_contains(output_of({"selftest", "--list"}),
                 {"operations ", "\ndino ", "vit on folder by sgd, linear; softmax; crop, flip"});
}

// Two differences in one part and one in another: --every prints a line for each; without it, only the first of each
// part is printed.
BOOST_AUTO_TEST_CASE(differences_are_counted_by_part) {
  const TemporaryDirectory directory;
  const std::string file = directory / "hashes";
  std::map<std::string, int> of;  // number of hashes of each part
  for (const std::string& line : lines_of(heed_with({"selftest", "documents", "data", "--write", file}).err))
    of[line.substr(0, line.find(' '))] = std::stoi(line.substr(line.find(' ')));
  std::string text = read_file(file);
  for (const auto& [title, number] :
       {std::pair<std::string, std::size_t>("documents", 3), {"documents", 5}, {"data", 2}}) {
    char& digit = text[text.find(title + ":\n") + title.size() + 2 + 9 * number];
    digit = digit == '0' ? '1' : '0';
  }
  write_file(file, text);
  const int data = of["data"], documents = of["documents"], all = data + documents;
  for (const bool every : {false, true}) {
    std::vector<std::string> arguments{"selftest", "documents", "data", "--against", file};
    if (every) arguments.emplace_back("--every");
    const Finished run = heed_with(arguments);
    BOOST_TEST(run.status == 1);
    check_contains(run.out, {fmt::format("{} of {} hashes agree; first difference: documents, ", all - 3, all)});
    const std::vector<std::string> lines = lines_of(run.err);
    BOOST_REQUIRE(lines.size() == (every ? 5u : 4u));
    BOOST_TEST(lines[0] == fmt::format("documents       {} of {} hashes agree", documents - 2, documents));
    BOOST_TEST(lines[lines.size() - 2] == fmt::format("data            {} of {} hashes agree", data - 1, data));
  }
}

BOOST_AUTO_TEST_CASE(refusals) {
  const TemporaryDirectory directory;
  write_file(directory / "hashes", "vit: none");
  check_refusal({"selftest", "--against", directory / "hashes"}, {"hashes: 'none' is not a hash"});
  check_refusal({"selftest", "--against", directory / "missing"}, {"missing"});
  check_refusal({"selftest", "vti"}, {"vti"});
}

BOOST_AUTO_TEST_SUITE_END()
