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

/// Returns the former name of each file of `now` that is one of the files `before`: the one with the same content or,
/// if no file had that content, with the same name. Of several with the same content, one is the file of its own name;
/// the others are, in the order of their names, those that have gone or changed: first the files `first`, then others.
std::map<std::string, std::string> former_names(const Checksums& before, const Checksums& now,
                                                const std::vector<std::string>& first);

}  // namespace heed
