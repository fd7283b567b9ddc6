// Checksums of files, by which it is seen that one has changed.
#pragma once

#include <string>

namespace heed {

/// Returns CRC-32 and length, such as "0badc0de-1024".
std::string checksum(const std::string& bytes);

/// Returns the same of a file's content, which is read in parts.
std::string file_checksum(const std::string& path);

}  // namespace heed
