#include "likeness.h"

#include "heed/base/split.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace heed::cli {

namespace {

/// Minimum `alike` of a reported pair, and minimum mean number of tokens of a compared pair.
constexpr double least_alike = 0.9;
constexpr std::size_t fewest_tokens = 40;

/// Minimum class size for ignoring statements that more than half of the submissions share.
constexpr std::size_t class_size = 6;

/// Splits a text at single spaces and returns the set of its words.
std::set<std::string> words_in(const std::string& text) {
  const std::vector<std::string> words = split(text, ' ');
  return {words.begin(), words.end()};
}

const std::set<std::string> keywords = words_in(
    "if else for while do return break continue switch case def in lambda not and or is with class try raise const "
    "auto using import");

/// Returns the tokens of C++ or, with `python`, of Python, without comments and triple-quoted strings. A string is one
/// token; a Python line ends with ";".
std::vector<std::string> tokens_of(const std::string& text, bool python) {
  std::vector<std::string> tokens;
  const auto is_word = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  for (std::size_t i = 0; i < text.size();) {
    const auto end_of = [&](const char* mark, std::size_t from) {
      const std::size_t at = text.find(mark, from);
      return at == std::string::npos ? text.size() : at;
    };
    const char c = text[i];
    if (python ? c == '#' : text.compare(i, 2, "//") == 0) {
      i = end_of("\n", i);
    } else if (!python && text.compare(i, 2, "/*") == 0) {
      i = std::min(end_of("*/", i + 2) + 2, text.size());
    } else if (python && (text.compare(i, 3, "\"\"\"") == 0 || text.compare(i, 3, "'''") == 0)) {
      i = std::min(end_of(text.substr(i, 3).c_str(), i + 3) + 3, text.size());
    } else if (c == '"' || c == '\'') {
      for (++i; i < text.size() && text[i] != c && text[i] != '\n'; ++i) i += text[i] == '\\';
      i = std::min(i + 1, text.size());
      tokens.push_back("\"");
    } else if (is_word(static_cast<unsigned char>(c))) {
      const std::size_t begin = i;
      const bool number = std::isdigit(static_cast<unsigned char>(c));
      const auto part = [&](std::size_t at) {
        return at < text.size() && is_word(static_cast<unsigned char>(text[at]));
      };
      // C++ separates digits by ': 1'000.
      while (part(i) || (number && !python && i < text.size() && text[i] == '\'' && part(i + 1))) ++i;
      tokens.push_back(text.substr(begin, i - begin));
    } else {
      ++i;
      if (python && c == '\n')
        tokens.push_back(";");
      else if (!std::isspace(static_cast<unsigned char>(c)))
        tokens.emplace_back(1, c);
    }
  }
  return tokens;
}

/// Returns a canonical form: x += y becomes x = x + y (likewise -=, *= and /=), every comparison except == becomes <,
/// and tokens are sorted.
std::string canonical(std::vector<std::string> words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] != "=") continue;
    const std::string before = words[i - 1];
    if (before == "!" || before == "<" || before == ">") {
      words[i - 1] = "<";
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (before == "+" || before == "-" || before == "*" || before == "/") {
      std::vector<std::string> target(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i - 1));
      words.insert(words.end(), target.begin(), target.end());
      break;
    }
  }
  std::ranges::replace(words, ">", "<");
  std::ranges::sort(words);
  return fmt::format("{} ", fmt::join(words, " "));
}

/// Counts the occurrences of each statement, with "n" for each name and "0" for each number. The parts of a loop's head
/// count as statements.
std::map<std::string, int> statements_of(const std::string& text, LabKind kind) {
  std::map<std::string, int> statements;
  std::vector<std::string> words;
  int depth = 0;
  for (const std::string& token : tokens_of(text, kind == LabKind::python)) {
    const auto first = static_cast<unsigned char>(token[0]);
    depth += token == "(" ? 1 : token == ")" ? -1 : 0;
    if (token == ";" || token == "{" || token == "}" || depth < 0) {
      if (!words.empty()) ++statements[canonical(std::move(words))];
      words.clear();
      depth = 0;
    } else {
      const bool name = std::isalpha(first) || first == '_';
      words.push_back(std::isdigit(first) ? "0" : name && !keywords.contains(token) ? "n" : token);
    }
  }
  return statements;
}

std::size_t size_of(const std::map<std::string, int>& statements) {
  std::size_t tokens = 0;
  for (const auto& [statement, count] : statements)
    tokens += static_cast<std::size_t>(count * std::ranges::count(statement, ' '));
  return tokens;
}

std::map<std::string, int> common(const std::map<std::string, int>& a, const std::map<std::string, int>& b) {
  std::map<std::string, int> both;
  for (const auto& [statement, count] : a)
    if (const auto at = b.find(statement); at != b.end()) both[statement] = std::min(count, at->second);
  return both;
}

/// Returns the words of a text that serve to distinguish number types or to reach outside the process.
std::set<std::string> suspicious_words_in(const std::string& text, bool python) {
  static const std::set<std::string> cpp_words = words_in(
      "is_same is_same_v same_as is_floating_point is_floating_point_v Counted float typeid sizeof numeric_limits "
      "requires concept tally fork execve system popen socket kill ptrace open fopen ifstream ofstream syscall dlopen "
      "asm __asm __asm__ __attribute__ extern mmap _exit unlink pthread_create");
  static const std::set<std::string> python_words = words_in(
      "os sys subprocess socket ctypes inspect gc multiprocessing threading open eval exec compile globals _getframe "
      "__import__ importlib signal pathlib __traceback__");
  std::set<std::string> found;
  const std::vector<std::string> words = tokens_of(text, python);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto follow = [&](const std::string& first, const std::string& second) {
      return words[i] == first && i + 1 < words.size() && words[i + 1] == second;
    };
    const std::string third = i + 2 < words.size() ? words[i + 2] : "";
    if ((python ? python_words : cpp_words).contains(words[i])) found.insert(words[i]);
    if (python) continue;
    if (follow("if", "constexpr")) found.insert("if constexpr");
    if (follow("long", "double")) found.insert("long double");
    if (follow("template", "<") && third == ">") found.insert("template <>");
    if (words[i] == "pragma" && !follow("pragma", "once")) found.insert("pragma");
    // write(update, ...) is a function of heed; write(3, ...) is a system call.
    if (follow("write", "(") && std::isdigit(static_cast<unsigned char>(third[0]))) found.insert("write");
  }
  return found;
}

std::string html(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return safe;
}

}  // namespace

std::vector<SimilarPair> similar_pairs(const std::vector<std::string>& texts, const std::vector<std::string>& stubs,
                                       LabKind kind) {
  if (kind == LabKind::answers) return {};  // correct answers are the same for all students
  std::vector<std::map<std::string, int>> own;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    own.push_back(statements_of(texts[i], kind));
    for (const auto& [statement, count] : common(own[i], statements_of(stubs[i], kind))) own[i][statement] -= count;
  }
  std::map<std::string, std::size_t> owners;
  for (const auto& statements : own)
    for (const auto& [statement, count] : statements) owners[statement] += count > 0;
  std::vector<std::map<std::string, int>> rare = own;
  for (auto& statements : rare)
    std::erase_if(statements, [&](const auto& statement) {
      return texts.size() >= class_size && 2 * owners[statement.first] > texts.size();
    });
  std::vector<SimilarPair> pairs;
  for (std::size_t i = 0; i < texts.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const std::size_t all = size_of(rare[i]) + size_of(rare[j]);
      const bool same = own[i] == own[j] && size_of(own[i]) >= fewest_tokens;
      if (!same && all < 2 * fewest_tokens) continue;
      const double alike =
          same ? 1 : 2.0 * static_cast<double>(size_of(common(rare[i], rare[j]))) / static_cast<double>(all);
      if (alike >= least_alike) pairs.push_back({j, i, alike});
    }
  std::ranges::stable_sort(pairs, std::greater{}, &SimilarPair::alike);
  return pairs;
}

std::string suspicious_words(const std::string& text, const std::string& stub, LabKind kind) {
  if (kind == LabKind::answers) return "";
  std::set<std::string> found = suspicious_words_in(text, kind == LabKind::python);
  for (const std::string& word : suspicious_words_in(stub, kind == LabKind::python)) found.erase(word);
  return fmt::format("{}", fmt::join(found, ", "));
}

std::string pair_section(const std::string& title, const std::string& first, const std::string& second) {
  return fmt::format(
      "<h2>{}</h2>\n<table style=\"table-layout: fixed; width: 100%\"><tr style=\"vertical-align: top\"><td><pre "
      "style=\"overflow: auto\">{}</pre></td><td><pre style=\"overflow: auto\">{}</pre></td></tr></table>\n",
      html(title), html(first), html(second));
}

}  // namespace heed::cli
