// Checks of the files that a command is to write, made before it computes anything.
#pragma once

#include <string>
#include <vector>

namespace heed::cli {

/// A file of a command, with the argument or option that names it: "IN", "--weights". If the file is not given, its
/// path is empty.
struct CommandFile {
  std::string argument, path;
};

/// Throws Error if the file to write is also one of the others, under any path.
void require_own_file(const CommandFile& output, const std::vector<CommandFile>& others);

/// Throws Error unless the file can be written and its name ends in `ending`, such as ".png"; empty: any name.
void require_writable(const CommandFile& output, const std::string& ending = "");

}  // namespace heed::cli
