#include "heed/io/plugin_files.h"

#include "heed/base/error.h"
#include "heed/io/file.h"

#include <link.h>

#include <cstring>
#include <regex>
#include <sstream>

namespace heed {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line.substr(0, 2000));
  return lines;
}

std::vector<std::string> mechanism_classes(const std::string& header, const std::string& shown) {
  static const std::regex entry(
      "\\btemplate\\s+(?:heed::)?MechanismEntry\\s+(?:heed::)?mechanism_entry<\\s*(?:class\\s+)?([\\w:]+)\\s*>");
  std::vector<std::string> classes;
  for (const std::string& line : lines_of(read_file(header))) {
    const std::string code = line.substr(0, line.find("//"));
    for (std::sregex_iterator match(code.begin(), code.end(), entry), end; match != end; ++match)
      classes.push_back((*match)[1]);
  }
  require(!classes.empty(),
          "{}: the mechanism's class is not named; expected a line `template MechanismEntry mechanism_entry<CLASS>();` "
          "after the class, in namespace heed",
          shown);
  return classes;
}

void require_whole(const std::string& file, const std::string& name) {
  const InputFile object(file);
  ElfW(Ehdr) header{};
  if (object.size() < sizeof header) return;  // dlopen reports this and all other faults except truncation
  object.read(0, &header, sizeof header);
  ElfW(Phdr) part{};
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof part) return;
  for (std::uint64_t i = 0, at = header.e_phoff; i < header.e_phnum; ++i, at += sizeof part) {
    const bool there = at < object.size() && object.size() - at >= sizeof part;
    if (there) object.read(at, &part, sizeof part);
    const bool whole = part.p_offset <= object.size() && part.p_filesz <= object.size() - part.p_offset;
    require(there && (part.p_type != PT_LOAD || whole), "{}: cannot be loaded as a plugin: the file is truncated",
            name);
  }
}

}  // namespace heed
