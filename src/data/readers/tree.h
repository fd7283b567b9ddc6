// Trees of files by class, PART/CLASS/FILE or CLASS/FILE, including subdirectories of a class. Used for images and for
// texts.
#pragma once

#include "parts.h"

#include <filesystem>
#include <string>
#include <vector>

namespace heed::data {

/// Kind of files in a tree: images or texts.
struct TreeKind {
  bool (*wanted)(const std::string& path);
  const char* example;                     ///< noun in messages
  const char* endings;                     ///< endings of the file names
  const char* remedy;                      ///< advice about files with the endings `convertible`; may be empty
  bool common_classes;                     ///< true: classes missing in training or test are ignored; false: an error
  std::vector<std::string> convertible{};  ///< endings to which `remedy` applies
};

/// Files of a split, sorted by class and then by path below the class directory.
struct LabelledFiles {
  std::vector<std::string> classes;
  std::vector<std::string> paths;
  std::vector<int> labels;
};

/// Warns about the content of a directory other than the files `read`.
void warn_of_others(const std::filesystem::path& directory, const std::vector<std::string>& read, const TreeKind& kind);

/// Lists the examples of a split. Without a test directory, the test examples are the recorded ones or, without any,
/// every fifth training example of a class, or the last one of a class with fewer than five. The classes are the
/// recorded ones or, without any, those of the tree, by name. Warns about ignored files. Throws Error if the tree has
/// no such split or another layout.
LabelledFiles labelled_files(const std::filesystem::path& root, Split split, const TreeKind& kind,
                             const RecordedData& recorded);

/// Lists the wanted files below a directory, relative to it, in the order of their paths. Warns about the others.
std::vector<std::string> files_below(const std::filesystem::path& directory, const TreeKind& kind);

/// Returns the kind of image files.
const TreeKind& image_kind();

/// Returns the end of an error message about a class that is not among the known ones: a note if a known class differs
/// from it only in the Unicode form of accented letters; otherwise empty.
std::string unicode_form_note(const std::string& name, const std::vector<std::string>& known);

/// Returns the index in `known`, the classes of a run, of each class `found` in the data. Throws Error unless `known`
/// contains each found class exactly once. `where` names the data.
std::vector<int> labels_among(const std::vector<std::string>& known, const std::vector<std::string>& found,
                              const std::string& where);

/// Unreadable files of a split, or unreadable lines of its file.
struct BadFiles {
  std::vector<std::string> reasons;  ///< one message per listed file or line
  std::size_t unlisted = 0;          ///< number of further files or lines, whose reasons are not saved

  std::size_t size() const { return reasons.size() + unlisted; }

  /// Returns the reasons as one line.
  std::string list() const;

  /// Does nothing if there are no bad files. If `skip` and not all of `count` files are bad, warns that the bad ones
  /// are skipped; otherwise throws *this.
  void leave_out(std::size_t count, const TreeKind& kind, bool skip) const;
};

/// Throws Error that lists the bad files.
[[noreturn]] void fail_for(const BadFiles& bad, const TreeKind& kind, bool skip);

/// Returns open(split). If it throws BadFiles, opens the other splits too (validation only if it has separate files)
/// and throws Error that lists all bad files.
template <class Open>
auto open_readable(Split split, bool has_validation, const TreeKind& kind, bool skip, const Open& open) {
  try {
    return open(split);
  } catch (BadFiles& bad) {
    for (const Split other : {Split::train, Split::validation, Split::test}) try {
        if (other != split && (other != Split::validation || has_validation)) open(other);
      } catch (const BadFiles& more) {
        bad.reasons.insert(bad.reasons.end(), more.reasons.begin(), more.reasons.end());
        bad.unlisted += more.unlisted;
      } catch (const Error&) {
        continue;  // no such split
      }
    fail_for(bad, kind, skip);
  }
}

}  // namespace heed::data
