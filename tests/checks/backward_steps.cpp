// Search for the steps of backward passes in the comments of sources.
#include "heed/attention/mechanism.h"
#include "heed/checks/backward_steps.h"
#include "heed/io/file.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

/// Returns each step that computes the gradient of `tensor`, such as "3: dv = A^T dout".
std::vector<std::string> found_steps(const std::string& source, const std::string& tensor) {
  std::vector<std::string> found;
  for (const BackwardStep& step : backward_steps(source, tensor)) found.push_back(step.number + ": " + step.text);
  return found;
}

using Steps = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(backward_steps_of)

BOOST_AUTO_TEST_CASE(softmax) {
  const std::string source = read_file("src/attention/softmax.cpp");
  BOOST_TEST(found_steps(source, "v") == Steps{"3: dv = A^T dout, dA = dout v^T"}, boost::test_tools::per_element());
  BOOST_TEST(found_steps(source, "q") == Steps{"1: dq = dS k, dk = dS^T q"}, boost::test_tools::per_element());
  BOOST_TEST(found_steps(source, "w").empty());
}

BOOST_AUTO_TEST_CASE(several_on_a_line) {
  const std::string source =
      "  // Undoing 3: dqn_i = dout_i s, ds = sum_i dout_i qn_i. Undoing 2: dkn_j = v_j ds, dv_j = kn_j ds.\n"
      "  // Undoing 1: x has a derivative, hence\n"
      "  //            dx = (dxn - xn) / |x|.\n"
      "  void run_backward();\n"
      "  // Undoing is hard; dq = 0.\n";
  BOOST_TEST(found_steps(source, "v") == Steps{"2: dkn_j = v_j ds, dv_j = kn_j ds"}, boost::test_tools::per_element());
  BOOST_TEST(found_steps(source, "k") == Steps{"1: x has a derivative, hence dx = (dxn - xn) / |x|"},
             boost::test_tools::per_element());
  BOOST_TEST(found_steps(source, "s") == Steps{"3: dqn_i = dout_i s, ds = sum_i dout_i qn_i"},
             boost::test_tools::per_element());
}

// A step ends with its line if the line ends a sentence and the next one is not indented. Comments begin with two
// slashes or three.
BOOST_AUTO_TEST_CASE(text_after_a_step_does_not_belong_to_it) {
  for (const std::string slashes : {"//", "///"}) {
    const std::string source = slashes + " Undoing 1: dk = ks - 1.\n" + slashes + " Frees memory. Undoing 2: dv = 0.\n";
    BOOST_TEST(found_steps(source, "k") == Steps{"1: dk = ks - 1"}, boost::test_tools::per_element());
    BOOST_TEST(found_steps(source, "v") == Steps{"2: dv = 0"}, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(steps_that_others_read) {
  const std::string source =
      "  // Undoing 3: dv = A^T dout, dA = dout v^T.\n"
      "  // Undoing 2: dS = A (dA - <A, dA>).\n"
      "  // Undoing 1: dq = dS k, dk = dS^T q.\n";
  const std::vector<BackwardStep> before = steps_before(source, backward_steps(source, "q"));
  BOOST_REQUIRE(before.size() == 1u);
  BOOST_TEST(before[0].number == "2");
  BOOST_TEST(before[0].text == "dS = A (dA - <A, dA>)");
  BOOST_TEST(steps_before(source, backward_steps(source, "v")).empty());
}

// A stub explains the notation of steps, but contains none.
BOOST_AUTO_TEST_CASE(in_quotes_none) {
  const std::string stub = read_file("notebooks/labs/softmax-backward/softmax-backward.h");
  BOOST_REQUIRE(stub.find("Undoing 3: dv = ...") != std::string::npos);
  BOOST_TEST(backward_steps(stub, "v").empty());
}

// Every page, with its included files, describes the gradient of v.
BOOST_AUTO_TEST_CASE(in_files_that_are_shared) {
  for (const MechanismEntry& entry : mechanisms()) {
    const std::string page = mechanism_page(entry.name);
    if (!std::filesystem::exists(page)) continue;  // the page of a plugin
    BOOST_TEST(!backward_steps(source_with_includes(page), "v").empty(), page);
  }
  BOOST_TEST(backward_steps(read_file("src/attention/linear.cpp"), "v").empty());
  BOOST_TEST(source_with_includes("nowhere.cpp") == "");
}

BOOST_AUTO_TEST_CASE(of_several_numbers) {
  const std::string sima = read_file("src/attention/sima.cpp");
  BOOST_REQUIRE(!backward_steps(sima, "q").empty());
  BOOST_TEST(backward_steps(sima, "q")[0].number == "2 and 1");
  BOOST_TEST(backward_steps(read_file("src/attention/adder.cpp"), "v").size() == 2u);
}

// A step assigns or adds, to all of a gradient or to a part; dw and dw2 are different tensors. A step that is described
// twice counts once.
BOOST_AUTO_TEST_CASE(steps_of_similar_names) {
  const std::string step = "// Undoing 4: dw[c] += sum_i x_i[c] dy_i.\n\n",
                    source = step + "// Undoing 3: dw2 = dy.\n\n" + step;
  BOOST_TEST(found_steps(source, "w") == Steps{"4: dw[c] += sum_i x_i[c] dy_i"}, boost::test_tools::per_element());
  BOOST_TEST(found_steps(source, "w2") == Steps{"3: dw2 = dy"}, boost::test_tools::per_element());
}

// A mechanism's page is NAME.cpp in src/attention or, if the mechanism has a folder NAME, NAME/NAME.cpp.
BOOST_AUTO_TEST_CASE(pages_of_mechanisms) {
  BOOST_TEST(mechanism_page("sima") == "src/attention/sima.cpp");
  BOOST_TEST(mechanism_page("aft") == "src/attention/aft/aft.cpp");
  BOOST_TEST(mechanism_page("nothing") == "src/attention/nothing.cpp");
}

// A page's sources are the page, the headers that it includes, the sources of these headers and, if the folder belongs
// to the mechanism, the folder's other sources; each occurs once.
BOOST_AUTO_TEST_CASE(sources_of_a_page) {
  const TemporaryDirectory directory;
  std::filesystem::create_directories(directory / "mine");
  const auto write = [&](const char* file, const std::string& text) { write_file(directory / file, text); };
  write("mine/mine.cpp", "// The page.\n#include \"part.h\"\n");
  write("mine/part.h", "// The header.\n");
  write("mine/part.cpp", "// Its source.\n#include \"part.h\"\n");
  write("mine/other.cpp", "// Beside it.\n");
  write("mine/notes.txt", "// No source.\n");
  for (const char* page : {"mine", "other"}) {
    const std::string text = source_with_includes(directory / "mine" / (page + std::string(".cpp")));
    const bool own = page == std::string("mine");
    for (const auto& [line, times] : {std::pair("The page", own),
                                      {"The header", own},
                                      {"Its source", own},
                                      {"Beside it", true},
                                      {"No source", false}}) {
      const std::size_t first = text.find(line);
      BOOST_TEST((first != std::string::npos) == times, page << ": " << line);
      BOOST_TEST((first == std::string::npos || text.find(line, first + 1) == std::string::npos), page << ": " << line);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
