#include "heed/data/sequences/listops.h"

#include "heed/base/parallel.h"
#include "heed/base/suggest.h"
#include "heed/io/file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <optional>
#include <span>
#include <set>

namespace heed {

namespace {

constexpr std::array<const char*, listops_tokens> names{"0", "1", "2",    "3",    "4",    "5",   "6", "7",
                                                        "8", "9", "[MIN", "[MAX", "[MED", "[SM", "]"};
enum Token { minimum = 10, maximum, median, sum_modulo, end };

int answer_of(int operation, std::vector<int>& values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  if (operation == minimum) return values.front();
  if (operation == maximum) return values.back();
  if (operation == median) return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return std::accumulate(values.begin(), values.end(), 0) % 10;
}

/// Generator of one random expression, token by token.
class Drawing {
 public:
  Drawing(const ListOpsSetting& setting, const RandomStream& random, std::vector<int>& tokens)
      : setting_(setting), random_(random), tokens_(tokens) {}

  /// Draws a node with its subtree and returns its value; nothing if the expression would have setting.max tokens or
  /// more.
  std::optional<int> node(Index level) {
    if (level >= setting_.depth || below(4) > 0) return push(static_cast<int>(below(10)));
    const Index count = 2 + below(setting_.args - 1);
    const int operation = minimum + static_cast<int>(below(4));
    std::vector<int> values;
    if (!push(operation)) return {};
    for (Index i = 0; i < count; ++i) {
      const std::optional<int> value = node(level + 1);
      if (!value) return {};
      values.push_back(*value);
    }
    if (!push(end)) return {};
    return answer_of(operation, values);
  }

 private:
  Index below(Index n) { return random_.below(drawn_++, n); }
  std::optional<int> push(int token) {
    if (static_cast<Index>(tokens_.size()) + 1 >= setting_.max) return {};
    tokens_.push_back(token);
    return token;
  }

  const ListOpsSetting& setting_;
  const RandomStream& random_;
  std::vector<int>& tokens_;
  Index drawn_ = 0;
};

void check(const ListOpsSetting& s) {
  require(s.depth >= 1 && s.depth <= 1000, "listops: depth is {}; expected 1 to 1000", s.depth);
  require(s.args >= 2 && s.args <= 1000, "listops: args is {}; expected 2 to 1000", s.args);
  require(s.min >= 1, "listops: min is {}; expected 1 or more, so that expressions have an operator", s.min);
  require(s.max > s.min + 1, "listops: max is {}; expected more than min + 1 = {}", s.max, s.min + 1);
  require(s.train >= 1 && s.valid >= 1 && s.test >= 1,
          "listops: {}, {} and {} expressions; expected at least 1 of each", s.train, s.valid, s.test);
}

/// Returns two hashes. Different expressions agree in both with probability 2^-128; one of them would then be dropped.
std::pair<std::uint64_t, std::uint64_t> fingerprint(const std::vector<int>& tokens) {
  std::uint64_t a = 1, b = 2;
  for (const int token : tokens) {
    a = mix_bits(a + static_cast<std::uint64_t>(token) + 1);
    b = mix_bits(b * 3 + static_cast<std::uint64_t>(token) + 7);
  }
  return {a, b};
}

/// Distinct expressions of sufficient length, in the order of their indices.
class Expressions {
 public:
  explicit Expressions(const ListOpsSetting& setting)
      : setting_(setting), random_(RandomStream(setting.seed).derive("listops")) {}

  ListOps next() {
    for (;; ++at_) {
      if (at_ == block_) draw_block();
      ListOps& expression = drawn_[at_];
      if (!expression.tokens.empty() && known_.insert(fingerprint(expression.tokens)).second) {
        failures_ = 0, ++at_;
        return std::move(expression);
      }
      ++failures_;
    }
  }

 private:
  void draw_block() {
    // Limits consecutive rejected drawings to a few seconds of work. With the default lengths, about 1% are accepted.
    const Index most_failures = std::clamp((Index{1} << 31) / setting_.max, Index{1} << 10, Index{1} << 22);
    require(failures_ < most_failures,
            "listops: found only {} different expressions of depth {}, args {} and {} < length < {}; generate fewer, "
            "or allow longer ones",
            known_.size(), setting_.depth, setting_.args, setting_.min, setting_.max);
    parallel_ranges(block_, 16, [this](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        ListOps& expression = drawn_[i];
        expression = draw_listops(setting_, random_.derive(first_ + i));
        if (static_cast<Index>(expression.tokens.size()) <= setting_.min) expression.tokens = std::vector<int>();
      }
    });
    first_ += block_;
    at_ = 0;
  }

  const ListOpsSetting& setting_;
  RandomStream random_;
  /// Drawings per block: up to a maximum length of 2^22, their tokens fit into 256 MiB.
  Index block_ = std::clamp((Index{1} << 26) / setting_.max, Index{16}, Index{1} << 16);
  std::vector<ListOps> drawn_ = std::vector<ListOps>(block_);
  Index at_ = block_, first_ = 0, failures_ = 0;
  std::set<std::pair<std::uint64_t, std::uint64_t>> known_;
};

void add_line(const ListOps& expression, std::string& text) {
  const char* blank = "";
  for (const int token : expression.tokens) {
    text += blank;
    text += names[token];
    blank = " ";
  }
  text += fmt::format("\t{}\n", expression.answer);
}

/// Writes the three files to an existing directory.
void write_parts(const ListOpsSetting& setting, const std::string& directory) {
  Expressions expressions(setting);
  AtomicFile train(directory + "/basic_train.tsv"), valid(directory + "/basic_val.tsv"),
      test(directory + "/basic_test.tsv");
  for (const auto& [file, count] : {std::pair(&train, setting.train), {&valid, setting.valid}, {&test, setting.test}}) {
    std::string text = "Source\tTarget\n";
    for (Index i = 0; i < count; ++i) {
      add_line(expressions.next(), text);
      if (text.size() < 1 << 20 && i + 1 < count) continue;
      file->write(text);
      text.clear();
    }
  }
  for (AtomicFile* const file : {&train, &valid, &test}) file->commit();
}

/// Returns true for a single digit or a single operator with its arguments.
bool is_expression(std::span<const int> tokens) {
  std::vector<bool> open;  // for each unclosed operator, whether it has an argument
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0 && open.empty()) return false;  // already complete
    if (tokens[i] != end && !open.empty()) open.back() = true;
    if (tokens[i] == end) {
      if (open.empty() || !open.back()) return false;
      open.pop_back();
    } else if (tokens[i] > 9) {
      open.push_back(false);
    }
  }
  return open.empty();
}

}  // namespace

std::vector<int> parse_listops(std::string_view text, const std::string& where) {
  std::vector<int> tokens;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t stop = std::min(text.find(' ', at), text.size());
    const std::string_view part = text.substr(at, stop - at);
    at = stop + 1;
    if (part.empty() || part == "(" || part == ")") continue;
    const auto found = std::find(names.begin(), names.end(), part);
    require(found != names.end(), "{}: {} is not a digit or operator; expected 0 to 9, [MIN, [MAX, [MED, [SM or ]",
            where, in_quotes(part));
    tokens.push_back(static_cast<int>(found - names.begin()));
  }
  require(tokens.empty() || is_expression(tokens),
          "{}: not an expression; expected a digit, or an operator with arguments and ]", where);
  return tokens;
}

ListOps draw_listops(const ListOpsSetting& setting, const RandomStream& random) {
  ListOps expression;
  Drawing drawing(setting, random, expression.tokens);
  if (const std::optional<int> answer = drawing.node(1))
    expression.answer = *answer;
  else
    expression.tokens = std::vector<int>();
  return expression;
}

void write_listops(const ListOpsSetting& setting, const std::string& directory) {
  check(setting);
  const bool made = make_directory(directory);
  try {
    write_parts(setting, directory);
  } catch (...) {
    std::error_code ignored;
    if (made) std::filesystem::remove(directory, ignored);
    throw;
  }
}

}  // namespace heed
