#include "report_parts.h"

namespace heed::cli {

namespace {

// src/apps/cli/reporting/page/page.html with its files inlined by the Makefile.
constexpr std::string_view page =
#include <report_page.inc>
    ;

/// Splits `text` at its only `mark`.
std::pair<std::string, std::string> cut(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  HEED_ASSERT(at != std::string_view::npos);
  return {std::string(text.substr(0, at)), std::string(text.substr(at + mark.size()))};
}

std::string replaced(std::string text, char what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) text.replace(at, 1, by);
  return text;
}

}  // namespace

std::string report_page(const std::string& title, const Json& report) {
  const auto [head, rest] = cut(page, "@title@");
  const auto [body, end] = cut(rest, "@data@");
  const std::string shown = replaced(replaced(title, '&', "&amp;"), '<', "&lt;");
  // Data within <script> must not contain "</script>"; JSON allows escapes for any character.
  return head + shown + body + replaced(report.dump(), '<', "\\u003c") + end;
}

}  // namespace heed::cli
