// Directories of a tree of examples: those of its splits, and those of its classes.
#pragma once

#include "heed/data/dataset.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace heed::data {

/// Returns true for names of hidden files and of files written by operating systems, such as .DS_Store, ._x, Thumbs.db,
/// desktop.ini, __MACOSX and lost+found.
bool is_hidden(const std::string& name);

/// Returns the sorted names of the entries of a directory.
std::vector<std::string> names_in(const std::filesystem::path& directory);

/// Returns true for a directory or a link to one; false for a link to itself, for which std::filesystem::is_directory()
/// throws.
bool leads_to_directory(const std::filesystem::path& path);

/// Returns the sorted names of the visible directories in a directory.
std::vector<std::string> directories_in(const std::filesystem::path& directory);

/// Throws Error if an entry that is not hidden is a broken link: its target may be a class or a split on a disk that is
/// not mounted.
void require_no_broken_links(const std::filesystem::path& directory);

/// Returns the directory of a split in a tree, by any of its usual names; none if there is none. Throws Error if there
/// are several.
std::optional<std::filesystem::path> part_in(const std::filesystem::path& root, Split split);

/// Returns true if the tree has a directory for this split.
bool has_part(const std::filesystem::path& root, Split split);

/// Returns the sorted names of the directories whose name is a usual name of a split.
std::vector<std::string> parts_in(const std::filesystem::path& directory);

}  // namespace heed::data
