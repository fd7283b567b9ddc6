// Checksums that detect changes of files.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace heed {

/// Checksums of files, by name.
using Checksums = std::map<std::string, std::string>;

/// Returns CRC-32 and length in bytes, such as "0badc0de-1024".
std::string checksum(const std::string& bytes);

/// Returns CRC-32 and length of a file's content, which is read in blocks.
std::string file_checksum(const std::string& path);

/// Maps each file of `now` to its former name in `before`. Files are matched by name and content, then by content, then
/// by name if no former file had the content. If several former names match a content, those in `first` are assigned
/// before the others, each group in alphabetical order. New files are not in the result.
std::map<std::string, std::string> former_names(const Checksums& before, const Checksums& now,
                                                const std::vector<std::string>& first);

}  // namespace heed
