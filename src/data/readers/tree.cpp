#include "tree.h"

#include "files.h"
#include "left_out.h"
#include "recorded_files.h"
#include "heed/base/suggest.h"
#include "heed/base/unicode.h"
#include "heed/base/warnings.h"
#include "heed/io/checksum.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>

namespace heed::data {

namespace {

namespace fs = std::filesystem;

/// Adds the wanted files in top/below and its subdirectories to `wanted`, relative to `top`, and the others to
/// `left_out`.
void find_below(const fs::path& top, const std::string& below, const TreeKind& kind, std::vector<std::string>& wanted,
                LeftOut& left_out, int depth = 0) {
  constexpr int deepest = 32;
  require(depth < deepest, "{}: directories are nested {} deep; a link may point to a parent directory",
          (top / below).string(), deepest);
  for (const std::string& name : names_in(top / below)) {
    const std::string path = (fs::path(below) / name).string();
    if (is_hidden(name))
      left_out.add_below("hidden", top, path);
    else if (leads_to_directory(top / path))
      find_below(top, path, kind, wanted, left_out, depth + 1);
    else if (kind.wanted(path))
      wanted.push_back(path);
    else
      left_out.add_other(path);
  }
}

/// Returns the sorted wanted files in top/below and its subdirectories, relative to `top`.
std::vector<std::string> wanted_below(const fs::path& top, const std::string& below, const TreeKind& kind,
                                      LeftOut& left_out) {
  std::vector<std::string> wanted;
  find_below(top, below, kind, wanted, left_out);
  std::sort(wanted.begin(), wanted.end());
  return wanted;
}

/// Directories of a tree's splits. A tree without split directories is itself the training split.
struct Parts {
  std::optional<fs::path> train, validation, test;
  bool classes_alone = false;

  explicit Parts(const fs::path& root) {
    require_no_broken_links(root);
    train = part_in(root, Split::train);
    validation = part_in(root, Split::validation);
    test = part_in(root, Split::test);
    classes_alone = !train && !validation && !test;
    if (classes_alone) train = root;
  }

  /// Returns the directory of a split; for a test split without a directory, the training split's.
  const std::optional<fs::path>& of(Split split) const {
    return split == Split::validation ? validation : split == Split::test && (test || !train) ? test : train;
  }
};

/// Returns the class directories of a split. Throws Error if there are none, with the number of examples directly in
/// the directory.
std::vector<std::string> classes_in(const fs::path& part, const TreeKind& kind) {
  require_no_broken_links(part);
  const std::vector<std::string> classes = directories_in(part);
  const std::vector<std::string> names = names_in(part);
  const auto loose = std::ranges::count_if(names, [&](const std::string& name) { return kind.wanted(name); });
  require(!classes.empty(), "{}: there are no class directories{}", part.string(),
          loose == 0
              ? ""
              : fmt::format("; {} {}s are directly in it: expected a directory for each class", loose, kind.example));
  return classes;
}

/// Splits a name into its letters: characters, each with the combining marks U+0300 to U+036F that follow it.
std::vector<std::string> letters_of(const std::string& name) {
  std::vector<std::string> letters;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool within = (static_cast<unsigned char>(name[i]) & 0xc0) == 0x80;
    if (letters.empty() || !(within || combining_mark_at(name, i) > 0)) letters.emplace_back();
    letters.back() += name[i];
  }
  return letters;
}

/// Returns true if two letters may be the same letter in composed and in decomposed form: one is a non-ASCII character
/// without marks, the other has marks.
bool differ_in_form(const std::string& a, const std::string& b) {
  const auto marked = [](const std::string& letter) {
    for (std::size_t i = 1; i < letter.size(); ++i)
      if (combining_mark_at(letter, i) > 0) return true;
    return false;
  };
  const auto composed = [&](const std::string& letter) {
    return static_cast<unsigned char>(letter[0]) > 127 && !marked(letter);
  };
  return (composed(a) && marked(b)) || (composed(b) && marked(a));
}

/// Throws Error if split a lacks a class of split b.
void require_classes(const std::vector<std::string>& a, const fs::path& where_a, const std::vector<std::string>& b,
                     const fs::path& where_b) {
  for (const std::string& name : b)
    if (!std::ranges::binary_search(a, name))
      fail("{}: class '{}' of {} is missing{}", where_a.string(), name, where_b.string(), unicode_form_note(name, a));
}

/// Returns the classes of a tree: those of its training examples, or of `part` if there are none. The test examples
/// must have the same classes, the validation examples no others. Classes that violate this are an error or, if
/// kind.common_classes, are left out with a warning.
std::vector<std::string> classes_of(const Parts& parts, const fs::path& part, const TreeKind& kind,
                                    const fs::path& root) {
  const fs::path& first = parts.train.value_or(part);
  std::vector<std::string> classes = classes_in(first, kind);
  for (const std::optional<fs::path>& other : {parts.test, parts.validation}) {
    if (!other || *other == first) continue;
    const std::vector<std::string> others = classes_in(*other, kind);
    const bool all = other == parts.test;
    if (!kind.common_classes) {
      require_classes(classes, first, others, *other);
      if (all) require_classes(others, *other, classes, first);
      continue;
    }
    const auto leave_out = [](const fs::path& from, const std::string& name, const fs::path& without,
                              const std::vector<std::string>& names) {
      warn(fmt::format("{}: not read: {} has no such directory{}", (from / name).string(), without.string(),
                       unicode_form_note(name, names)));
    };
    for (const std::string& name : others)
      if (!std::ranges::binary_search(classes, name)) leave_out(*other, name, first, classes);
    std::erase_if(classes, [&](const std::string& name) {
      const bool lacks = all && !std::ranges::binary_search(others, name);
      if (lacks) leave_out(first, name, *other, others);
      return lacks;
    });
  }
  require(!classes.empty(), "{}: train/ and test/ have no class directory in common", root.string());
  return classes;
}

/// Returns true if examples are directly in the directory.
bool has_examples(const fs::path& directory, const TreeKind& kind) {
  return std::ranges::any_of(names_in(directory), kind.wanted);
}

/// Throws Error if a class directory contains a tree or split directories, or if the only class contains at least two
/// directories but no examples, so that these directories are probably the classes.
void require_no_tree_below(const fs::path& part, const std::vector<std::string>& classes, const TreeKind& kind) {
  for (const std::string& name : classes) {
    const fs::path directory = part / name;
    if (!fs::is_directory(directory)) continue;  // absent classes are allowed for validation
    const std::optional<fs::path> train = part_in(directory, Split::train);
    if (train && !directories_in(*train).empty())
      fail("{}: contains {}/, so it is not a class; give {} as the directory of the data", directory.string(),
           train->filename().string(), directory.string());
    const std::vector<std::string> parts = parts_in(directory);
    require(parts.empty(),
            "{}: this class contains {}; expected splits above the classes: train/CLASS, val/CLASS, test/CLASS",
            directory.string(), quoted_list(parts));
  }
  const fs::path only = part / classes[0];
  if (classes.size() > 1 || !fs::is_directory(only)) return;
  require(has_examples(only, kind) || directories_in(only).size() < 2,
          "{}: contains one class, {}, with {} directories and no {}s; if these directories are the classes, give {} "
          "as the directory of the data",
          part.string(), in_quotes(classes[0]), directories_in(only).size(), kind.example, only.string());
}

/// Returns true if a directory contains no examples and only a directory of the same name, as unpacked archives may.
bool is_doubled(const fs::path& directory, const TreeKind& kind) {
  return !has_examples(directory, kind) &&
         directories_in(directory) == std::vector<std::string>{directory.filename().string()};
}

/// Throws Error if the supposed classes are splits under unknown names, such as training_set/ and test_set/: at least
/// two directories, one with "train" in its name, that contain no examples themselves but have at least two names of
/// subdirectories in common. Directories may be doubled, such as training_set/training_set/; a doubled directory of
/// unlabelled examples is ignored.
void require_no_renamed_parts(const fs::path& part, const std::vector<std::string>& classes, const TreeKind& kind) {
  const auto names_training = [](const std::string& name) { return lower(name).find("train") != std::string::npos; };
  if (classes.size() < 2 || std::ranges::none_of(classes, names_training)) return;
  std::vector<std::string> parts, common;
  bool any_doubled = false;
  for (const std::string& name : classes) {
    const bool doubled = is_doubled(part / name, kind);
    const fs::path directory = doubled ? fs::path(name) / name : fs::path(name);
    any_doubled = any_doubled || doubled;
    if (has_examples(part / directory, kind)) {
      if (doubled) continue;
      return;
    }
    const std::vector<std::string> own = directories_in(part / directory);
    if (parts.empty()) common = own;
    std::erase_if(common, [&](const std::string& one) { return !std::ranges::binary_search(own, one); });
    parts.push_back(directory.string());
  }
  require(parts.size() < 2 || common.size() < 2,
          "{}: {} contain the same directories, {}, and no {}s beside them; if these are the classes, {} the "
          "directories above them to {}train, val and test",
          part.string(), quoted_list(parts), quoted_list(common), kind.example, any_doubled ? "move" : "rename",
          any_doubled ? (part / "").string() : "");
}

/// Divides training and test examples that are in the same directories: returns true for each test example. Throws
/// Error if a class cannot be divided.
std::vector<bool> test_examples(const fs::path& root, const LabelledFiles& files, const TreeKind& kind,
                                const RecordedData& recorded) {
  std::vector<bool> test(files.paths.size());
  const std::set<Index> known = recorded_positions(files.paths, recorded.test, recorded, root.string());
  if (recorded.whole && !has_recorded_content(files.paths, known, recorded.test, recorded))
    return std::vector<bool>(test.size(), true);
  for (const Index i : known) test[i] = true;
  if (!known.empty()) return test;
  constexpr std::size_t every = 5;
  for (std::size_t first = 0, end; first < test.size(); first = end) {
    for (end = first; end < test.size() && files.labels[end] == files.labels[first];) ++end;
    const std::size_t count = end - first;
    require(count > 1, "{}: this class has one {}; expected two or more, for training and test",
            fs::path(files.paths[first]).parent_path().string(), kind.example);
    for (std::size_t i = 0; i < count; ++i)
      test[first + i] = i % every == every - 1 || (count < every && i == count - 1);
  }
  return test;
}

/// Adds the hidden entries of a directory, and the files directly in it, to the ignored files.
void add_outside(const fs::path& directory, LeftOut& left_out) {
  for (const std::string& name : names_in(directory)) {
    if (is_hidden(name))
      left_out.add_below("hidden", directory, name);
    else if (!leads_to_directory(directory / name))
      left_out.add("outside the class directories", name);
  }
}

/// Adds the files in directories that are not splits to the ignored files.
void add_other_directories(const fs::path& root, LeftOut& left_out) {
  const std::vector<std::string> parts = parts_in(root);
  for (const std::string& name : directories_in(root))
    if (!std::ranges::binary_search(parts, name)) left_out.add_below("in a directory that is not a split", root, name);
}

/// Returns a remedy if a class was apparently renamed: one name of `found` is not in `known`, and one of `known` is not
/// in `found`.
std::string renamed_class_note(const std::vector<std::string>& known, const std::vector<std::string>& found) {
  const auto lacking = [](const std::vector<std::string>& names, const std::vector<std::string>& in) {
    std::vector<std::string> lacks;
    std::ranges::copy_if(names, std::back_inserter(lacks), [&](const auto& n) { return !std::ranges::count(in, n); });
    return lacks;
  };
  const std::vector<std::string> was = lacking(known, found), is = lacking(found, known);
  if (was.size() != 1 || is.size() != 1) return "";
  return fmt::format("; if {} is the class {} of the model, give it this name", in_quotes(is[0]), in_quotes(was[0]));
}

}  // namespace

std::string unicode_form_note(const std::string& name, const std::vector<std::string>& known) {
  const std::vector<std::string> letters = letters_of(name);
  const auto same = [](const std::string& a, const std::string& b) { return a == b || differ_in_form(a, b); };
  const auto is_it = [&](const std::string& other) {
    return other != name && std::ranges::equal(letters_of(other), letters, same);
  };
  return std::ranges::none_of(known, is_it) ? ""
                                            : "; one class differs from it in Unicode form only (composed or "
                                              "decomposed accents); convert both to NFC, names of directories with "
                                              "convmv, texts with uconv";
}

void warn_of_others(const fs::path& directory, const std::vector<std::string>& read, const TreeKind& kind) {
  LeftOut left_out(kind);
  for (const std::string& name : names_in(directory))
    if (std::ranges::count(read, name) == 0)
      left_out.add_below(is_hidden(name) ? "hidden" : "not a part of the data", directory, name);
  left_out.warn_of(directory);
}

std::vector<int> labels_among(const std::vector<std::string>& known, const std::vector<std::string>& found,
                              const std::string& where) {
  std::vector<int> labels;
  for (const std::string& name : found) {
    const auto at = std::ranges::find(known, name);
    if (at == known.end()) {
      const std::string form = unicode_form_note(name, known);
      fail("{}: the model has no class {}; the data has classes '{}', the model '{}'{}", where, in_quotes(name),
           fmt::join(found, "', '"), fmt::join(known, "', '"), form.empty() ? renamed_class_note(known, found) : form);
    }
    require(std::find(at + 1, known.end(), name) == known.end(),
            "{}: several classes of the model are called {}; expected different names", where, in_quotes(name));
    labels.push_back(static_cast<int>(at - known.begin()));
  }
  return labels;
}

std::vector<std::string> files_below(const fs::path& directory, const TreeKind& kind) {
  LeftOut left_out(kind);
  std::vector<std::string> files = wanted_below(directory, "", kind, left_out);
  left_out.warn_of(directory);
  return files;
}

std::string BadFiles::list() const {
  return fmt::format("{}{}", fmt::join(reasons, "; "), unlisted > 0 ? fmt::format("; and {} more", unlisted) : "");
}

void BadFiles::leave_out(std::size_t count, const TreeKind& kind, bool skip) const {
  if (size() == 0) return;
  if (!skip || size() == count) throw *this;
  warn(fmt::format("{} of {} {}s cannot be read and are left out: {}", size(), count, kind.example, list()));
}

void fail_for(const BadFiles& bad, const TreeKind& kind, bool skip) {
  const bool one = bad.size() == 1;
  const std::string count = one ? "" : fmt::format("{} {}s cannot be read: ", bad.size(), kind.example);
  fail("{}{}{}", count, bad.list(), skip ? "" : fmt::format("; data.skip_bad=true leaves {} out", one ? "it" : "them"));
}

LabelledFiles labelled_files(const fs::path& root, Split split, const TreeKind& kind, const RecordedData& recorded) {
  const std::vector<std::string>& known = recorded.classes;
  const Parts parts(root);
  const std::optional<fs::path>& part = parts.of(split);
  if (!part) {
    const std::vector<std::string> taken = parts_in(root);
    const char* const missing = split == Split::train ? "train" : split == Split::test ? "test" : "val";
    fail(
        "{}: the directory does not exist, and {} {}; expected train/, optionally val/ and test/, or only class "
        "directories",
        (root / missing).string(), quoted_list(taken),
        taken.size() == 1 ? "is taken for a split, not for a class" : "are taken for splits, not for classes");
  }
  const bool shared = split != Split::validation && !parts.test;
  const std::vector<std::string> found = classes_of(parts, *part, kind, root);
  require_no_tree_below(*part, found, kind);
  if (parts.classes_alone) require_no_renamed_parts(*part, found, kind);
  LabelledFiles files{known.empty() ? found : known, {}, {}};
  const std::vector<int> labels = labels_among(files.classes, found, part->string());
  std::vector<std::size_t> order(found.size());  // indices of `found`, sorted by label
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return labels[i]; });
  LeftOut left_out(kind), beside(kind);
  for (const std::size_t i : order) {
    const fs::path directory = *part / found[i];
    if (split == Split::validation && !fs::is_directory(directory)) continue;
    std::vector<std::string> names = wanted_below(*part, found[i], kind, left_out);
    require(!names.empty(), "{}: this class has no {}s ({})", directory.string(), kind.example, kind.endings);
    for (const std::string& name : names) files.paths.push_back((*part / name).string());
    files.labels.resize(files.paths.size(), labels[i]);
  }
  add_outside(*part, left_out);
  left_out.warn_of(*part);
  if (!parts.classes_alone) {
    add_outside(root, beside);
    add_other_directories(root, beside);
    beside.warn_of(root);
  }
  if (!shared) return files;
  const std::vector<bool> test = test_examples(root, files, kind, recorded);
  LabelledFiles taken{std::move(files.classes), {}, {}};
  for (std::size_t i = 0; i < test.size(); ++i)
    if (test[i] == (split == Split::test)) {
      taken.paths.push_back(std::move(files.paths[i]));
      taken.labels.push_back(files.labels[i]);
    }
  require(!taken.paths.empty(), "{}: has test {}s only; expected training {}s as well, or directories train/ and test/",
          root.string(), kind.example, kind.example);
  return taken;
}

}  // namespace heed::data
