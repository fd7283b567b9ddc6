// Headers of plugins: the classes that they name.
#include "heed/io/plugin_files.h"

#include "heed/io/file.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

BOOST_AUTO_TEST_SUITE(io_plugin_files)

// A header may have several mechanisms, also on one line; comments name none.
BOOST_AUTO_TEST_CASE(classes_are_named_in_their_order) {
  const TemporaryDirectory directory;
  const std::string path = directory / "mine.h";
  const auto classes = [&](const std::string& text) {
    write_file(path, text);
    return mechanism_classes(path, "mine.h");
  };
  const std::string entry = "template MechanismEntry mechanism_entry<";
  BOOST_TEST(classes(entry + "Second>();\n" + entry + "class First>(); " + entry + "own::Third >();\n// " + entry +
                     "Former>();\nint x;  // " + entry +
                     "Other>();\n  template  heed::MechanismEntry heed::mechanism_entry< Last >();\n") ==
                 (std::vector<std::string>{"Second", "First", "own::Third", "Last"}),
             boost::test_tools::per_element());
  for (const std::string& text : {std::string("class Mine {};\n"), "// " + entry + "Mine>();\n"})
    BOOST_TEST(error_of([&] { classes(text); }) ==
               "mine.h: the mechanism's class is not named; expected a line `template MechanismEntry "
               "mechanism_entry<CLASS>();` after the class, in namespace heed");
}

BOOST_AUTO_TEST_SUITE_END()
