// Trees of files by class: PART/CLASS/FILE or CLASS/FILE, with directories below a class walked down. Images and texts
// are found by this reader alone.
#pragma once

#include "heed/data/dataset.h"

#include <filesystem>
#include <string>
#include <vector>

namespace heed::data {

/// Kind of files in a tree: images or texts.
struct TreeKind {
  bool (*wanted)(const std::string& path);
  const char* example;  ///< noun
  const char* endings;  ///< of the files' names
  const char* remedy;   ///< for files with other endings; may be empty
  bool common_classes;  ///< classes that only one part has are left out, rather than an error
};

/// Files of a part, by class and then in the order of their paths below it.
struct LabelledFiles {
  std::vector<std::string> classes;
  std::vector<std::string> paths;
  std::vector<int> labels;
};

/// Returns true for names of hidden files and of files that systems leave in directories: .DS_Store, ._x, Thumbs.db,
/// desktop.ini, __MACOSX.
bool is_hidden(const std::string& name);

/// Returns true if the tree has a directory for this part.
bool has_part(const std::filesystem::path& root, Split split);

/// Lists the examples of a part. Without a directory of test examples, every fifth training example of a class is one,
/// in a class of fewer than five the last. `known` gives the classes with their order; empty: those of the tree, by
/// name. Warns of files that are left out. Throws Error.
LabelledFiles labelled_files(const std::filesystem::path& root, Split split, const TreeKind& kind,
                             const std::vector<std::string>& known);

/// Lists the wanted files below a directory, relative to it, in the order of their paths. Warns of the others.
std::vector<std::string> files_below(const std::filesystem::path& directory, const TreeKind& kind);

/// Image files.
const TreeKind& image_kind();

/// Returns the label of each class of the data in `known`, the classes of a run. Throws Error that lists both, unless
/// all are there. `where` names the data.
std::vector<int> labels_among(const std::vector<std::string>& known, const std::vector<std::string>& found,
                              const std::string& where);

/// Files of a split that cannot be read, with the reason for each.
struct BadFiles {
  std::vector<std::string> reasons;

  /// Warns that they are left out of `count` files. Throws itself unless `skip`, or if all are bad.
  void leave_out(std::size_t count, const TreeKind& kind, bool skip) const;
};

/// Throws Error that lists the bad files.
[[noreturn]] void fail_for(const BadFiles& bad, const TreeKind& kind, bool skip);

/// Returns open(split). If it throws BadFiles, the other splits are looked at as well, so that the Error lists all.
template <class Open>
auto open_readable(const std::filesystem::path& root, Split split, const TreeKind& kind, bool skip, const Open& open) {
  try {
    return open(split);
  } catch (BadFiles& bad) {
    for (const Split other : {Split::train, Split::validation, Split::test}) try {
        if (other != split && (other != Split::validation || has_part(root, other))) open(other);
      } catch (const BadFiles& more) {
        bad.reasons.insert(bad.reasons.end(), more.reasons.begin(), more.reasons.end());
      } catch (const Error&) {
        continue;  // it is not there
      }
    fail_for(bad, kind, skip);
  }
}

}  // namespace heed::data
