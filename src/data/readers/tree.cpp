#include "tree.h"

#include "recorded_files.h"

#include "heed/base/suggest.h"
#include "heed/base/warnings.h"
#include "heed/io/checksum.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

namespace heed::data {

namespace {

namespace fs = std::filesystem;

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// Ignored files, by reason.
class LeftOut {
 public:
  explicit LeftOut(const TreeKind& kind) : kind_(kind) {}

  void add(const std::string& reason, const std::string& path) {
    paths_[reason].push_back(path);
    ++count_;
  }

  /// Counts a file by its ending.
  void add_other(const std::string& path) {
    const std::string ending = lower(fs::path(path).extension().string());
    other_endings_ = true;
    add(ending.empty() ? "without an extension" : ending, path);
  }

  /// Warns, e.g., "DIR: 3 files are not read: 2 .webp (cat/a.webp, cat/b.webp), 1 hidden (cat/.x)"; names at most 5.
  void warn_of(const fs::path& where) const {
    if (count_ == 0) return;
    std::string text;
    for (const auto& [reason, paths] : paths_)
      text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", paths.size(), reason, first_names(paths, 5));
    warn(fmt::format("{}: {} file{} not read: {}{}", where.string(), count_, count_ == 1 ? " is" : "s are", text,
                     other_endings_ ? kind_.remedy : ""));
  }

 private:
  const TreeKind& kind_;
  std::map<std::string, std::vector<std::string>> paths_;
  std::size_t count_ = 0;
  bool other_endings_ = false;
};

/// Returns the sorted names of the entries of a directory.
std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// Returns the sorted names of the visible directories in a directory.
std::vector<std::string> directories_in(const fs::path& directory) {
  std::vector<std::string> names = names_in(directory);
  std::erase_if(names, [&](const std::string& name) { return is_hidden(name) || !fs::is_directory(directory / name); });
  return names;
}

/// Calls f(path) for the files below `top`, in no particular order; paths are relative to `top`.
template <class F>
void for_files_below(const fs::path& top, const F& f, const fs::path& below = {}, int depth = 0) {
  constexpr int deepest = 32;
  require(depth < deepest, "{}: directories are nested {} deep; a link may point to a parent directory",
          (top / below).string(), deepest);
  for (const std::string& name : names_in(top / below)) {
    if (fs::is_directory(top / below / name) && !is_hidden(name))
      for_files_below(top, f, below / name, depth + 1);
    else
      f((below / name).string());
  }
}

std::vector<std::string> wanted_below(const fs::path& directory, const TreeKind& kind, const std::string& prefix,
                                      LeftOut& left_out) {
  std::vector<std::string> wanted;
  for_files_below(directory, [&](const std::string& path) {
    if (is_hidden(fs::path(path).filename().string()))
      left_out.add("hidden", prefix + path);
    else if (kind.wanted(path))
      wanted.push_back(path);
    else
      left_out.add_other(prefix + path);
  });
  std::sort(wanted.begin(), wanted.end());
  return wanted;
}

/// Returns the directory of a split in a tree, by any of its usual names; none if there is none.
std::optional<fs::path> part_in(const fs::path& root, Split split) {
  static const std::vector<std::string> names_of[] = {
      {"train", "training"}, {"val", "valid", "validation", "dev"}, {"test", "testing"}};
  const std::vector<std::string>& names = names_of[static_cast<std::size_t>(split)];
  std::vector<std::string> found = directories_in(root);
  std::erase_if(found, [&](const std::string& name) { return std::ranges::count(names, lower(name)) == 0; });
  require(found.size() <= 1, "{}: {} are the same part of the data; expected one of them", root.string(),
          quoted_list(found));
  return found.empty() ? std::nullopt : std::optional(root / found[0]);
}

/// Directories of a tree's splits. A tree without split directories is itself the training split.
struct Parts {
  std::optional<fs::path> train, validation, test;
  bool classes_alone = false;

  explicit Parts(const fs::path& root)
      : train(part_in(root, Split::train)),
        validation(part_in(root, Split::validation)),
        test(part_in(root, Split::test)) {
    classes_alone = !train && !validation && !test;
    if (classes_alone) train = root;
  }

  /// Returns the directory of a split; for a test split without one, that of `train`.
  const std::optional<fs::path>& of(Split split) const {
    return split == Split::validation ? validation : split == Split::test && (test || !train) ? test : train;
  }
};

/// Returns the class directories of a split. Throws Error, which lists the content, if there are none.
std::vector<std::string> classes_in(const fs::path& part, const TreeKind& kind) {
  const std::vector<std::string> classes = directories_in(part);
  const std::vector<std::string> names = names_in(part);
  const auto loose = std::ranges::count_if(names, [&](const std::string& name) { return kind.wanted(name); });
  require(!classes.empty(), "{}: there are no class directories{}", part.string(),
          loose == 0
              ? ""
              : fmt::format("; {} {}s are directly in it: expected a directory for each class", loose, kind.example));
  return classes;
}

/// Throws Error if split a lacks a class of split b.
void require_classes(const std::vector<std::string>& a, const fs::path& where_a, const std::vector<std::string>& b,
                     const fs::path& where_b) {
  for (const std::string& name : b)
    require(std::ranges::binary_search(a, name), "{}: class '{}' of {} is missing", where_a.string(), name,
            where_b.string());
}

/// Returns the classes of a tree: those of its training examples, or of `part` if there are none. The test examples
/// must have the same classes, the validation examples no others.
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
    const auto leave_out = [](const fs::path& from, const std::string& name, const fs::path& without) {
      warn(fmt::format("{}: not read: {} has no such directory", (from / name).string(), without.string()));
    };
    for (const std::string& name : others)
      if (!std::ranges::binary_search(classes, name)) leave_out(*other, name, first);
    std::erase_if(classes, [&](const std::string& name) {
      const bool lacks = all && !std::ranges::binary_search(others, name);
      if (lacks) leave_out(first, name, *other);
      return lacks;
    });
  }
  require(!classes.empty(), "{}: train/ and test/ have no class directory in common", root.string());
  return classes;
}

/// If a class directory itself contains a tree, throws Error naming the directory to pass instead.
void require_no_tree_below(const fs::path& part, const std::vector<std::string>& classes, const TreeKind& kind) {
  for (const std::string& name : classes) {
    const fs::path directory = part / name;
    if (!fs::is_directory(directory)) continue;  // absent classes are allowed for validation
    const std::optional<fs::path> train = part_in(directory, Split::train);
    require(!train || directories_in(*train).empty(),
            "{}: contains {}/, so it is not a class; give {} as the directory of the data", directory.string(),
            train ? train->filename().string() : "", directory.string());
  }
  const fs::path only = part / classes[0];
  if (classes.size() > 1 || !fs::is_directory(only)) return;
  const std::vector<std::string> names = names_in(only);
  const bool has_examples = std::ranges::any_of(names, [&](const std::string& name) { return kind.wanted(name); });
  require(has_examples || directories_in(only).size() < 2,
          "{}: contains one class, {}, with {} directories and no {}s; if these directories are the classes, give {} "
          "as the directory of the data",
          part.string(), in_quotes(classes[0]), directories_in(only).size(), kind.example, only.string());
}

/// Returns true if one of these files has the content of a recorded test file. Other data may have the same names.
bool has_recorded_test(const LabelledFiles& files, const std::set<Index>& chosen, const RecordedData& recorded) {
  std::set<std::string> checksums;
  for (const std::string& name : recorded.test)
    if (const auto file = recorded.files.find(name); file != recorded.files.end()) checksums.insert(file->second);
  return std::ranges::any_of(
      chosen, [&](Index i) { return checksums.contains(file_checksum(files.paths[static_cast<std::size_t>(i)])); });
}

/// Returns, for training and test examples in the same directories, which are test examples. Throws Error if a class
/// cannot be divided.
std::vector<bool> test_examples(const fs::path& root, const LabelledFiles& files, const TreeKind& kind,
                                const RecordedData& recorded) {
  std::vector<bool> test(files.paths.size());
  const std::set<Index> known = recorded_positions(files.paths, recorded.test, recorded, root.string());
  if (recorded.whole && !has_recorded_test(files, known, recorded)) return std::vector<bool>(test.size(), true);
  for (const Index i : known) test[static_cast<std::size_t>(i)] = true;
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

/// Adds examples outside the directories of the classes or splits, directly in `directory`, to the ignored files.
void add_loose(const fs::path& directory, const TreeKind& kind, LeftOut& left_out) {
  for (const std::string& name : names_in(directory))
    if (!is_hidden(name) && kind.wanted(name) && !fs::is_directory(directory / name))
      left_out.add("outside the class directories", name);
}

/// Adds the examples in directories that are not splits to the ignored files.
void add_other_directories(const fs::path& root, const Parts& parts, const TreeKind& kind, LeftOut& left_out) {
  for (const std::string& name : directories_in(root)) {
    const fs::path directory = root / name;
    if (directory == parts.train || directory == parts.validation || directory == parts.test) continue;
    for_files_below(directory, [&](const std::string& path) {
      if (kind.wanted(path)) left_out.add("in a directory that is not a part of the data", name + "/" + path);
    });
  }
}

}  // namespace

bool is_hidden(const std::string& name) {
  static const std::vector<std::string> of_systems = {"thumbs.db", "ehthumbs.db",  "desktop.ini", "__macosx",
                                                      "@eadir",    "$recycle.bin", "icon\r"};
  return name.starts_with('.') || std::ranges::count(of_systems, lower(name)) > 0;
}

bool has_part(const fs::path& root, Split split) { return part_in(root, split).has_value(); }

std::vector<int> labels_among(const std::vector<std::string>& known, const std::vector<std::string>& found,
                              const std::string& where) {
  std::vector<int> labels;
  for (const std::string& name : found) {
    const auto at = std::ranges::find(known, name);
    require(at != known.end(), "{}: the model has no class {}; the data has classes '{}', the model '{}'", where,
            in_quotes(name), fmt::join(found, "', '"), fmt::join(known, "', '"));
    labels.push_back(static_cast<int>(at - known.begin()));
  }
  return labels;
}

std::vector<std::string> files_below(const fs::path& directory, const TreeKind& kind) {
  LeftOut left_out(kind);
  std::vector<std::string> files = wanted_below(directory, kind, "", left_out);
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
  require(part.has_value(),
          "{}: the directory does not exist; expected train/, optionally val/ and test/, or only class directories",
          (root / (split == Split::train  ? "train"
                   : split == Split::test ? "test"
                                          : "val"))
              .string());
  const bool shared = split != Split::validation && !parts.test;
  const std::vector<std::string> found = classes_of(parts, *part, kind, root);
  require_no_tree_below(*part, found, kind);
  LabelledFiles files{known.empty() ? found : known, {}, {}};
  const std::vector<int> labels = labels_among(files.classes, found, part->string());
  std::vector<std::size_t> order(found.size());  // order of the labels
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return labels[i]; });
  LeftOut left_out(kind), beside(kind);
  for (const std::size_t i : order) {
    const fs::path directory = *part / found[i];
    if (split == Split::validation && !fs::is_directory(directory)) continue;
    std::vector<std::string> names = wanted_below(directory, kind, found[i] + "/", left_out);
    require(!names.empty(), "{}: this class has no {}s ({})", directory.string(), kind.example, kind.endings);
    for (const std::string& name : names) files.paths.push_back((directory / name).string());
    files.labels.resize(files.paths.size(), labels[i]);
  }
  add_loose(*part, kind, left_out);
  left_out.warn_of(*part);
  if (!parts.classes_alone) {
    add_loose(root, kind, beside);
    add_other_directories(root, parts, kind, beside);
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
  return taken;
}

}  // namespace heed::data
