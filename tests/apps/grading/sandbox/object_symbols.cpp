// Symbols of shared objects, in ELF files written by the test.
#include "src/apps/grading/sandbox/object_symbols.h"

#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <elf.h>

#include <cstring>

using namespace heed;

namespace {

/// Returns an object with a table of strings and, as section 2, a table of symbols: the null symbol, "used",
/// "defined" and, by default, "also".
std::string object(std::uint32_t type = SHT_DYNSYM, std::uint32_t name_of_last = 14, unsigned char bits = ELFCLASS64) {
  const std::string names("\0used\0defined\0also", 19);
  const Elf64_Sym symbols[] = {
      {},
      {.st_name = 1, .st_info = 0, .st_other = 0, .st_shndx = SHN_UNDEF, .st_value = 0, .st_size = 0},
      {.st_name = 6, .st_info = 0, .st_other = 0, .st_shndx = 1, .st_value = 0, .st_size = 0},
      {.st_name = name_of_last, .st_info = 0, .st_other = 0, .st_shndx = SHN_UNDEF, .st_value = 0, .st_size = 0}};
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = bits;
  header.e_shoff = sizeof header + sizeof symbols + names.size(), header.e_shnum = 3;
  Elf64_Shdr sections[3]{};
  sections[1].sh_type = SHT_STRTAB, sections[1].sh_offset = sizeof header + sizeof symbols;
  sections[1].sh_size = names.size();
  sections[2].sh_type = type, sections[2].sh_offset = sizeof header, sections[2].sh_size = sizeof symbols;
  sections[2].sh_link = 1;
  const auto bytes = [](const auto& x) { return std::string(reinterpret_cast<const char*>(&x), sizeof x); };
  return bytes(header) + bytes(symbols) + names + bytes(sections);
}

std::string refusal(const std::string& bytes) {
  return error_of([&] { undefined_symbols(bytes); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(object_symbols)

BOOST_AUTO_TEST_CASE(symbols_that_are_used_but_not_defined) {
  BOOST_TEST(undefined_symbols(object()) == (std::vector<std::string>{"used", "also"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(other_bytes) {
  const std::string whole = object();
  BOOST_TEST(refusal("") == "object: truncated");
  for (const std::size_t missing : {1, 64, 200})
    BOOST_TEST(refusal(whole.substr(0, whole.size() - missing)) == "object: truncated");
  BOOST_TEST(refusal(std::string(200, 'x')) == "object: not a 64-bit ELF file");
  BOOST_TEST(refusal(object(SHT_DYNSYM, 14, ELFCLASS32)) == "object: not a 64-bit ELF file");
  BOOST_TEST(refusal(object(SHT_SYMTAB)) == "object: has no dynamic symbols");
  BOOST_TEST(refusal(object(SHT_DYNSYM, 18)) == "no error");  // an empty name
  BOOST_TEST(refusal(object(SHT_DYNSYM, 19)) == "object: damaged");
}

BOOST_AUTO_TEST_SUITE_END()
