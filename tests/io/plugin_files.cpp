// Files of plugins: the classes that headers name, and truncated shared objects.
#include "heed/io/plugin_files.h"

#include "heed/io/file.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <link.h>

#include <cstring>

using namespace heed;

BOOST_AUTO_TEST_SUITE(io_plugin_files)

// A header may have several mechanisms, even on one line; comments name none.
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

// A class is found only in the first 2000 characters of a line.
BOOST_AUTO_TEST_CASE(long_lines_are_cut) {
  const TemporaryDirectory directory;
  const std::string path = directory / "mine.h", entry = "template MechanismEntry mechanism_entry<Mine>();";
  const auto cut = heed::lines_of("a\n" + std::string(2001, 'b') + "\n\nc");
  BOOST_TEST(cut == (std::vector<std::string>{"a", std::string(2000, 'b'), "", "c"}), boost::test_tools::per_element());
  write_file(path, std::string(2000 - entry.size(), ' ') + entry);
  BOOST_TEST(mechanism_classes(path, "mine.h").size() == 1u);
  write_file(path, std::string(2000, ' ') + entry);
  BOOST_CHECK_THROW(mechanism_classes(path, "mine.h"), Error);
}

// An object with a header and two segments. Only the second is loaded: bytes 1000 to 1199.
BOOST_AUTO_TEST_CASE(objects_have_all_their_loaded_segments) {
  const TemporaryDirectory directory;
  const std::string path = directory / "mine.so";
  ElfW(Ehdr) header{};
  ElfW(Phdr) parts[2]{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_phoff = sizeof header, header.e_phentsize = sizeof parts[0], header.e_phnum = 2;
  parts[0].p_type = PT_NOTE, parts[0].p_offset = 1'000'000, parts[0].p_filesz = 1;
  parts[1].p_type = PT_LOAD, parts[1].p_offset = 1000, parts[1].p_filesz = 200;
  const auto refusal = [&](std::size_t length) {
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    bytes.append(reinterpret_cast<const char*>(parts), sizeof parts).resize(length, 'x');
    write_file(path, bytes);
    return error_of([&] { require_whole(path, "mine"); });
  };
  const std::string truncated = "mine: cannot be loaded as a plugin: the file is truncated";
  BOOST_TEST(refusal(1200) == "no error");
  BOOST_TEST(refusal(1199) == truncated);
  BOOST_TEST(refusal(999) == truncated);
  const std::size_t table_end = sizeof header + sizeof parts;
  BOOST_TEST(refusal(table_end - 1) == truncated);
  parts[1].p_offset = parts[1].p_filesz = 0;
  BOOST_TEST(refusal(table_end) == "no error");
  BOOST_TEST(refusal(table_end - 1) == truncated);
  // These files are accepted: the loader reports that they are not shared objects.
  BOOST_TEST(refusal(sizeof header - 1) == "no error");
  header.e_ident[0] = 'x';
  BOOST_TEST(refusal(sizeof header) == "no error");
}

BOOST_AUTO_TEST_SUITE_END()
