#include "heed/data/sequences/sequences.h"

#include "src/data/readers/files.h"
#include "src/data/readers/tree.h"
#include "heed/base/printable.h"
#include "heed/base/split.h"
#include "heed/base/suggest.h"
#include "heed/base/warnings.h"
#include "heed/config/installed.h"
#include "heed/data/sequences/listops.h"
#include "heed/data/loader.h"
#include "heed/io/file.h"
#include "heed/io/utf8.h"
#include "token_sets.h"

#include <algorithm>
#include <map>
#include <set>

namespace heed {

namespace {

namespace fs = std::filesystem;

/// Sequences held in memory; the two of a pair are consecutive.
class MemorySequences : public SequenceSet {
 public:
  MemorySequences(std::vector<std::string> class_names, Index vocabulary, bool pairs)
      : SequenceSet(std::move(class_names), vocabulary, pairs, 0) {}

  template <class Tokens>
  void add(const Tokens& tokens, Index context) {
    const std::size_t count = std::min(tokens.size(), static_cast<std::size_t>(context));
    cut_ += count < tokens.size();
    shorter_ += count < static_cast<std::size_t>(context);
    for (std::size_t i = 0; i < count; ++i) tokens_.push_back(static_cast<std::uint8_t>(tokens[i]));
    starts_.push_back(tokens_.size());
  }
  void add_label(int label) { labels_.push_back(label); }
  void add_file(const std::string& path) { files_.push_back(path); }
  void add_example_file(const std::string& path) {
    files_.push_back(path);
    file_per_example_ = true;
  }

  Index size() const override { return static_cast<Index>(labels_.size()); }
  int label(Index example) const override { return labels_[example]; }
  void read(Index example, Index which, const RandomStream*, std::vector<int>& to) const override {
    const Index i = pairs() ? 2 * example + which : example;
    to.assign(tokens_.data() + starts_[i], tokens_.data() + starts_[i + 1]);
  }

 private:
  std::vector<std::uint8_t> tokens_;
  std::vector<std::size_t> starts_{0};
  std::vector<int> labels_;
};

/// A line of a file and its position.
struct Line {
  std::string_view text;
  std::string where;  ///< "FILE:12"
};

const data::TreeKind line_kind{nullptr, "line", "", "", false};

/// Calls f(line) for each line of a file, ended by LF or CRLF. Throws Error if there are no lines, or if they end with
/// CR alone. A line for which f throws Error is bad. If there are bad lines, throws BadFiles with their number and
/// the reasons for the first 20; with `skip`, warns instead and leaves them out, unless all lines are bad.
template <class F>
void for_each_line(const fs::path& path, bool skip, const F& f) {
  const std::vector<std::uint8_t> bytes = data::read_file(path, data::read_limit());
  const std::string_view text = data::text_of(bytes, path.string());
  require(!text.empty(), "{}: is empty", path.string());
  require(text.find('\n') != std::string_view::npos || text.find('\r') >= text.size() - 1,
          "{}: CR ends the lines; expected LF or CRLF; convert it with `tr '\\r' '\\n'`", path.string());
  data::BadFiles bad;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t stop = std::min(text.find('\n', at), text.size());
    std::string_view line = without_mark(text.substr(at, stop - at));  // joined files have several marks
    if (line.ends_with('\r')) line.remove_suffix(1);
    try {
      f(Line{line, fmt::format("{}:{}", path.string(), ++number)});
    } catch (const Error& error) {
      if (bad.reasons.size() < 20)
        bad.reasons.emplace_back(error.what());
      else
        ++bad.unlisted;
    }
    at = stop + 1;
  }
  bad.leave_out(number, line_kind, skip);
}

/// Calls f(line) as for_each_line() does. Generated files should have no bad lines; if there are any, throws Error that
/// lists them.
template <class F>
void for_each_generated_line(const fs::path& path, const F& f) {
  try {
    for_each_line(path, false, f);
  } catch (const data::BadFiles& bad) {
    data::fail_for(bad, line_kind, true);
  }
}

std::vector<std::string> fields_of(const Line& line, std::size_t count, const char* expected) {
  std::vector<std::string> fields = split(line.text, '\t');
  require(fields.size() == count, "{}: has {} separated by tabs; expected {}: {}", line.where,
          counted(std::ssize(fields), "field"), count, expected);
  return fields;
}

/// Returns data.path. Throws Error, ending with `hint`, if it is not a directory.
fs::path directory_of(const DataConfig& data, const std::string& hint = "") {
  require(!data.path.empty(), "data.name={} requires data.path, a directory", data.name);
  require(fs::is_directory(data.path), "{}: {} (data.path of {}){}", data.path,
          fs::exists(data.path) ? "a file; expected a directory" : "the directory does not exist", data.name, hint);
  return data.path;
}

/// Returns the directory of data that the heed command of the same name generates.
fs::path generated_directory_of(const DataConfig& data) {
  return directory_of(data, fmt::format("; `heed {} --out {}` generates it, with the sequence lengths of its options",
                                        data.name, shell_word(data.path)));
}

/// Texts that are not UTF-8, such as Latin-1. Their bytes are read as they are, so letters beyond ASCII differ from the
/// same letters in other texts.
struct OtherEncoding {
  std::size_t count = 0;
  std::string first;  ///< path, or "FILE:12"

  void add(std::string_view text, const std::string& where) {
    if (!is_utf8(text) && count++ == 0) first = where;
  }
  void warn_of(std::size_t all, const data::TreeKind& kind) const {
    if (count == 0) return;
    warn(fmt::format(
        "{} of {} {}s {} not UTF-8, first {}; their bytes are read as they are; convert Latin-1 with `iconv -f LATIN1 "
        "-t UTF-8`",
        count, all, kind.example, count == 1 ? "is" : "are", first));
  }
};

void require_text(std::string_view text, const std::string& where) {
  require(!text.empty(), "{}: has no text", where);
  require(text.find('\0') == std::string_view::npos, "{}: has a zero byte, so it is not UTF-8 text", where);
}

/// Returns the word that stands for the part in a file name.
const char* choose(Part part, const char* train, const char* validation, const char* test) {
  return part == Part::train ? train : part == Part::validation ? validation : test;
}

// ---- Documents ----

const data::TreeKind text_kind{[](const std::string& path) { return data::ending_of(path) == ".txt"; }, "text", ".txt",
                               "", true};

std::shared_ptr<const SequenceSet> open_folder(const fs::path& root, Index context, Split split,
                                               const DataConfig& data) {
  const data::LabelledFiles files = data::labelled_files(root, split, text_kind, data.recorded);
  auto set = std::make_shared<MemorySequences>(files.classes, byte_values, false);
  data::BadFiles bad;
  OtherEncoding other;
  for (std::size_t i = 0; i < files.paths.size(); ++i) try {
      const std::vector<std::uint8_t> bytes = data::read_file(files.paths[i], data::read_limit());
      const std::string_view text = data::text_of(bytes, files.paths[i]);
      require_text(text, files.paths[i]);
      other.add(text, files.paths[i]);
      set->add(text, context);
      set->add_label(files.labels[i]);
      set->add_example_file(files.paths[i]);
    } catch (const Error& error) {
      bad.reasons.emplace_back(error.what());
    }
  bad.leave_out(files.paths.size(), text_kind, data.skip_bad);
  other.warn_of(files.paths.size(), text_kind);
  return set;
}

using Counts = std::map<std::string, Index>;

/// Counts the labels of a file, and returns the first one. Ignores lines without a tab.
std::string count_labels(const fs::path& file, Counts& counts) {
  std::string first;
  for_each_line(file, false, [&](const Line& line) {
    const std::size_t tab = line.text.find('\t');
    if (tab == std::string_view::npos) return;
    const std::string label(line.text.substr(0, tab));
    if (counts.empty()) first = label;
    ++counts[label];
  });
  return first;
}

constexpr std::size_t few_values = 100;

/// Throws Error if the lines seem to be text<TAB>label: the first column has more than half as many different values as
/// there are lines, and the second has fewer than 100 values and at most an eighth as many as the first. `counts`:
/// count_labels() of the file.
void require_labels_first(const fs::path& file, const Counts& counts) {
  std::set<std::string> texts;
  std::size_t lines = 0;
  for_each_line(file, false, [&](const Line& line) {
    const std::size_t tab = line.text.find('\t');
    if (tab == std::string_view::npos) return;
    ++lines;
    if (texts.size() < few_values) texts.emplace(line.text.substr(tab + 1));
  });
  require(
      2 * counts.size() <= lines || texts.size() == few_values || counts.size() < 8 * texts.size(),
      "{}: {} of {} lines differ in the first column, and the second has {}, so the columns seem exchanged; expected "
      "label<TAB>text; `awk -F'\\t' '{{sub(/\\r$/, \"\"); print $2 \"\\t\" $1}}' OLD >NEW` exchanges them",
      file.string(), counts.size(), lines, counted(std::ssize(texts), "value"));
}

/// If all lines have the same number of columns, more than two, warns that the others are the text; throws Error if the
/// first column seems to number the lines: it has at least 20 different values and more than half as many as there are
/// lines. `counts`: count_labels() of the file.
void require_no_numbers_first(const fs::path& file, const Counts& counts) {
  struct Column {
    std::set<std::string> values;  // at most few_values
    std::size_t bytes = 0;
  };
  constexpr std::size_t many = 20;
  std::vector<Column> columns;
  bool table = true;
  std::size_t lines = 0;
  for_each_line(file, false, [&](const Line& line) {
    if (!table) return;
    const std::vector<std::string> fields = split(line.text, '\t');
    if (lines++ == 0) return columns.resize(fields.size());  // may be a header
    table = fields.size() == columns.size() && fields.size() > 2;
    for (std::size_t i = 0; table && i < fields.size(); ++i) {
      if (columns[i].values.size() < few_values) columns[i].values.insert(fields[i]);
      columns[i].bytes += fields[i].size();
    }
  });
  if (!table || columns.size() <= 2) return;
  const auto kinds = [](const Column& c) { return c.values.size() < 2 ? few_values : c.values.size(); };
  const std::string remedy = fmt::format(
      "`awk -F'\\t' '{{sub(/\\r$/, \"\"); print ${} \"\\t\" ${}}}' OLD >NEW` takes what seem to be label and text",
      std::ranges::min_element(columns, {}, kinds) - columns.begin() + 1,
      std::ranges::max_element(columns, {}, &Column::bytes) - columns.begin() + 1);
  require(counts.size() < many || 2 * counts.size() <= lines,
          "{}: {} of {} lines differ in the first column, so it has no labels; expected label<TAB>text; {}",
          file.string(), counts.size(), lines, remedy);
  warn(fmt::format("{}: the lines have {} columns; the first is the label, the others are the text; {}", file.string(),
                   columns.size(), remedy));
}

/// Returns the validation file, by any of its usual names; empty if there is none. Throws Error if there are two.
fs::path validation_lines(const fs::path& root) {
  std::vector<std::string> found;
  for (const char* name : {"val.tsv", "valid.tsv", "validation.tsv", "dev.tsv"})
    if (fs::exists(root / name)) found.emplace_back(name);
  require(found.size() <= 1, "{}: {} name the same split; expected one of them", root.string(), quoted_list(found));
  return found.empty() ? fs::path() : root / found[0];
}

/// Returns the classes in files of lines label<TAB>text. An empty label is not a class. The first line of train.tsv
/// may be a header if no other line has its label, except for first lines of the other files; this is an error unless
/// data.header decides.
std::vector<std::string> line_classes(const fs::path& root, const std::string& header) {
  Counts counts;
  const std::string first = count_labels(root / "train.tsv", counts);
  require_labels_first(root / "train.tsv", counts);
  require_no_numbers_first(root / "train.tsv", counts);
  std::vector<std::string> names;
  const bool alone = counts.contains(first) && counts[first] == 1 && counts.size() > 1 && header != "no";
  if (alone && header == "auto") {
    Counts others;
    for (const fs::path& file : {validation_lines(root), root / "test.tsv"}) {
      Counts own;
      if (fs::exists(file) && count_labels(file, own) == first && own[first] == 1 && own.size() > 1) own.erase(first);
      others.merge(own);
    }
    require(
        others.contains(first),
        "{}:1: label {} occurs in no other line; set data.header=yes if the line is a header, data.header=no if not",
        (root / "train.tsv").string(), in_quotes(first));
  }
  for (const auto& [name, count] : counts)
    if (!name.empty() && !(alone && header == "yes" && name == first)) names.push_back(name);
  const auto has_header = [&](const fs::path& file) {
    Counts own;
    return fs::exists(file) && !counts.contains(count_labels(file, own));
  };
  if (header == "yes" && !alone && !has_header(validation_lines(root)) && !has_header(root / "test.tsv"))
    warn(fmt::format(
        "{}: data.header=yes has no effect: the labels of the first lines occur in other lines of train.tsv",
        root.string()));
  return names;
}

/// Returns the end of an error about a directory without train.tsv, or a file instead of the directory: the commands
/// that convert a table in it, preferably one of training texts; empty if there is none.
std::string conversion_of(const fs::path& path) {
  const bool directory = fs::is_directory(path);
  const fs::path root = directory ? path : path.parent_path();
  std::string table;
  for (const std::string& name : directory ? data::names_in(path) : std::vector<std::string>{path.filename()})
    for (const char* const ending : {".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".label"})
      if (data::ending_of(name) == ending && name != "train.tsv" && fs::is_regular_file(root / name) &&
          (table.empty() || name.find("train") != std::string::npos))
        table = root / name;
  if (table.empty()) return "";
  return fmt::format("; `{0} {1}` lists the columns of {2}, and `{0} {1} LABEL TEXT {3}` converts it",
                     shell_word(find_installed("experiments/scripts/texts-to-tsv")), shell_word(table), table,
                     shell_word((root / "train.tsv").string()));
}

/// Returns data.path of `documents`. If it is a table, the error says how to convert it.
fs::path documents_directory_of(const DataConfig& data) {
  return directory_of(data, fs::is_directory(data.path) ? "" : conversion_of(data.path));
}

/// Throws Error if there are both .tsv files and directories of texts, since only one kind is read, or if train.tsv is
/// missing.
void require_one_layout(const fs::path& root) {
  const std::string file = fs::exists(root / "train.tsv")  ? "train.tsv"
                           : fs::exists(root / "test.tsv") ? "test.tsv"
                                                           : validation_lines(root).filename().string();
  if (file.empty()) return;
  const std::vector<std::string> parts = data::parts_in(root);
  require(parts.empty(), "{}: contains {} and {}; expected either .tsv files or directories of texts", root.string(),
          in_quotes(file), quoted_list(parts));
  require(file == "train.tsv", "{}: contains {} but no train.tsv; expected both, or directories of texts alone",
          root.string(), in_quotes(file));
}

std::shared_ptr<const SequenceSet> open_lines(const fs::path& root, Index context, Split split,
                                              const DataConfig& data) {
  const std::vector<std::string> found = line_classes(root, data.header);
  const std::vector<std::string>& classes = data.recorded.classes.empty() ? found : data.recorded.classes;
  data::labels_among(classes, found, (root / "train.tsv").string());
  auto set = std::make_shared<MemorySequences>(classes, byte_values, false);
  const fs::path file =
      split == Split::validation ? validation_lines(root) : root / (split == Split::train ? "train.tsv" : "test.tsv");
  bool first = true;
  OtherEncoding other;
  for_each_line(file, data.skip_bad, [&](const Line& line) {
    const bool may_be_header = std::exchange(first, false);
    const std::size_t tab = line.text.find('\t');
    require(tab != std::string_view::npos, "{}: has no tab; expected label<TAB>text", line.where);
    const std::string name(line.text.substr(0, tab));
    const std::string_view text = without_mark(line.text.substr(tab + 1));
    require_text(text, line.where);
    const auto label = std::ranges::find(classes, name);
    if (may_be_header && label == classes.end() && data.header == "yes") return;
    require(!name.empty(), "{}: has no label; expected label<TAB>text", line.where);
    if (label == classes.end())
      fail("{}: label {} does not occur in train.tsv{}{}", line.where, in_quotes(name),
           may_be_header ? "; if the line is a header, set data.header=yes" : "",
           data::unicode_form_note(name, classes));
    other.add(text, line.where);
    set->add(text, context);
    set->add_label(static_cast<int>(label - classes.begin()));
  });
  other.warn_of(static_cast<std::size_t>(set->size()), line_kind);
  set->add_file(file.string());
  return set;
}

}  // namespace

std::shared_ptr<const SequenceSet> data::open_listops(const DataConfig& data, Index context, Part part) {
  std::vector<std::string> digits;
  for (int i = 0; i < 10; ++i) digits.push_back(std::to_string(i));
  auto set = std::make_shared<MemorySequences>(digits, listops_tokens, false);
  const fs::path file =
      generated_directory_of(data) / choose(part, "basic_train.tsv", "basic_val.tsv", "basic_test.tsv");
  bool first = true;
  for_each_generated_line(file, [&](const Line& line) {
    const auto fields = fields_of(line, 2, "Source<TAB>Target");
    if (std::exchange(first, false)) {
      require(fields[0] == "Source" && fields[1] == "Target", "{}: the header is {}; expected Source<TAB>Target",
              line.where, in_quotes(line.text));
      return;
    }
    const std::vector<int> tokens = parse_listops(fields[0], line.where);
    require(!tokens.empty(), "{}: the expression is empty", line.where);
    const bool digit = fields[1].size() == 1 && fields[1][0] >= '0' && fields[1][0] <= '9';
    require(digit, "{}: the answer is {}; expected 0 to 9", line.where, in_quotes(fields[1]));
    set->add(tokens, context);
    set->add_label(fields[1][0] - '0');
  });
  require(set->size() > 0, "{}: has no expressions", file.string());
  set->add_file(file.string());
  return set;
}

std::shared_ptr<const SequenceSet> data::open_pairs(const DataConfig& data, Index context, Part part) {
  auto set = std::make_shared<MemorySequences>(std::vector<std::string>{"0", "1"}, byte_values, true);
  const std::string name = std::string("new_aan_pairs.") + choose(part, "train", "eval", "test") + ".tsv";
  const fs::path file = generated_directory_of(data) / name;
  set->add_file(file.string());
  for_each_generated_line(file, [&](const Line& line) {
    const auto fields = fields_of(line, 5, "label, id, id, text, text");
    require(fields[0] == "0.0" || fields[0] == "1.0", "{}: the label is {}; expected 0.0 or 1.0", line.where,
            in_quotes(fields[0]));
    for (const std::size_t text : {std::size_t{3}, std::size_t{4}}) {
      require_text(fields[text], line.where);
      set->add(fields[text], context);
    }
    set->add_label(fields[0] == "1.0");
  });
  return set;
}

bool data::documents_have_validation(const DataConfig& data) {
  const fs::path root = documents_directory_of(data);
  return fs::exists(root / "train.tsv") ? !validation_lines(root).empty() : has_part(root, Split::validation);
}

std::shared_ptr<const SequenceSet> data::open_documents(const DataConfig& data, Index context, Part part) {
  const fs::path root = documents_directory_of(data);
  const Split split = part == Part::validation ? Split::validation : split_of(part);
  require_one_layout(root);
  if (fs::exists(root / "train.tsv")) {
    warn_of_others(root, {"train.tsv", validation_lines(root).filename().string(), "test.tsv"}, line_kind);
    return open_readable(split, !validation_lines(root).empty(), line_kind, data.skip_bad,
                         [&](Split of) { return open_lines(root, context, of, data); });
  }
  if (directories_in(root).empty())
    fail("{}: has neither train.tsv nor directories of texts by class{}", root.string(), conversion_of(root));
  if (data.header != "auto")
    warn(fmt::format("{}: data.header={} has no effect: the texts are files, not lines", root.string(), data.header));
  return open_readable(split, has_part(root, Split::validation), text_kind, data.skip_bad,
                       [&](Split of) { return open_folder(root, context, of, data); });
}

SequenceExamples open_sequences(const DataConfig& data, Index context, Part part, std::uint64_t seed) {
  const bool documents = data.name == "documents", pixels = data.name == "pixels";
  // Without a separate validation file, validation examples are set aside from the training set.
  const bool divides = pixels || (documents && !data::documents_have_validation(data));
  const Part opened = divides && part == Part::validation ? Part::train : part;
  std::shared_ptr<const SequenceSet> set;
  try {
    set = data.name == "listops" ? data::open_listops(data, context, opened)
          : data.name == "pairs" ? data::open_pairs(data, context, opened)
          : documents            ? data::open_documents(data, context, opened)
          : pixels               ? data::open_pixels(data, opened)
                                 : nullptr;
  } catch (const fs::filesystem_error& error) {
    fail("{}: {}", error.path1().string(), error.code().message());
  }
  require(set != nullptr, "data.name={} has no labelled sequences", data.name);
  DataConfig split = data;
  if (!divides) split.validation = 0;
  // A separate validation file is read whole, like a test file.
  const Part taken = part == Part::validation && !divides ? Part::test : part;
  return {set,
          set->has_file_per_example() ? examples_of_files(set->files(), taken, split, seed)
                                      : examples_of(set->size(), taken, split, seed),
          divides};
}

void require_fit(const SequenceExamples& examples, Index context, Index vocabulary) {
  const SequenceSet& set = *examples.set;
  require(vocabulary >= set.vocabulary(), "[model] vocab = {}; the data has tokens 0 to {}: expected {}", vocabulary,
          set.vocabulary() - 1, set.vocabulary());
  require(set.fixed_length() == 0 || set.fixed_length() == context,
          "[model] context = {}; the sequences have {} tokens; they must match", context, set.fixed_length());
}

}  // namespace heed
