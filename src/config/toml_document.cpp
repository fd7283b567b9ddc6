#include "heed/config/toml_document.h"

#include "heed/base/error.h"
#include "heed/io/file.h"

#include <algorithm>

namespace heed {

toml::table parse_toml(std::string_view text) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    std::string reason(error.description());
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    throw NoToml{fmt::format(":{}", error.source().begin.line), reason};
  } catch (const std::logic_error&) {
    throw NoToml{"", "a key or value is cut short"};
  }
}

toml::table parse_toml_file(const std::string& path) {
  try {
    return parse_toml(read_file(path));
  } catch (const NoToml& error) {
    fail("{}{}: not valid TOML: {}", path, error.line, error.reason);
  }
}

}  // namespace heed
