#include "object_symbols.h"

#include "heed/base/error.h"

#include <elf.h>

#include <cstring>

namespace heed {

namespace {

/// Returns the T at a possibly unaligned position.
template <class T>
T structure_at(std::string_view bytes, std::uint64_t at) {
  require(at <= bytes.size() && sizeof(T) <= bytes.size() - at, "object: truncated");
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string_view section_bytes(std::string_view bytes, const Elf64_Shdr& section) {
  require(section.sh_offset <= bytes.size() && section.sh_size <= bytes.size() - section.sh_offset,
          "object: truncated");
  return bytes.substr(section.sh_offset, section.sh_size);
}

}  // namespace

std::vector<std::string> undefined_symbols(std::string_view object) {
  const auto header = structure_at<Elf64_Ehdr>(object, 0);
  require(std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64,
          "object: not a 64-bit ELF file");
  const auto section = [&](std::uint64_t i) {
    return structure_at<Elf64_Shdr>(object, header.e_shoff + i * sizeof(Elf64_Shdr));
  };
  std::vector<std::string> names;
  bool found = false;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr table = section(i);
    if (table.sh_type != SHT_DYNSYM) continue;
    found = true;
    const std::string_view symbols = section_bytes(object, table),
                           texts = section_bytes(object, section(table.sh_link));
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols.size(); at += sizeof(Elf64_Sym)) {
      const auto symbol = structure_at<Elf64_Sym>(symbols, at);
      if (symbol.st_shndx != SHN_UNDEF || symbol.st_name == 0) continue;
      require(symbol.st_name < texts.size(), "object: damaged");
      const std::string_view text = texts.substr(symbol.st_name);
      names.emplace_back(text.substr(0, text.find('\0')));
    }
  }
  require(found, "object: has no dynamic symbols");
  return names;
}

}  // namespace heed
