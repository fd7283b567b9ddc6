// Checksums that detect changes of files.
#pragma once

#include <string>

namespace heed {

/// Returns CRC-32 and length in bytes, such as "0badc0de-1024".
std::string checksum(const std::string& bytes);

/// Returns CRC-32 and length of a file's content, which is read in blocks.
std::string file_checksum(const std::string& path);

}  // namespace heed
