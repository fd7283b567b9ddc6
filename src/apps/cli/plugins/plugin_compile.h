// Compilation of a header's mechanism as a plugin.
#pragma once

#include <string>
#include <vector>

namespace heed::cli {

/// Build of this program, which plugins must match.
struct PluginBuild {
  std::string version;           ///< heed's version
  std::string compiler_version;  ///< __VERSION__ of the compiler
  std::string headers;           ///< checksum of heed's public headers, eight digits
  std::string compiler, flags;   ///< as on a command line
};

const PluginBuild& program_build();

/// Returns the checksum of the headers in DIRECTORY/heed.
std::string checksum_of_headers(const std::string& directory);

/// Returns the directory of heed's headers, beside the build directory of a checkout or the bin directory of an
/// installation. Throws Error if they are missing or differ from those with which this program was built.
std::string headers_of_program();

/// Returns the text of a plugin's translation unit: the header, and the record that the program looks up.
std::string plugin_unit(const std::string& header, const std::vector<std::string>& classes);

/// Returns the command line for compiling a plugin: the compiler, from CXX or the program's build, and the flags.
std::vector<std::string> plugin_words(const std::string& include);

/// Runs a program with its output and errors written to files. Returns its exit status, or 128 + N after signal N.
/// Throws Error, whose message ends in `cure`, if the program cannot be started.
int run_to_files(std::vector<std::string> words, const std::string& output, const std::string& errors,
                 const std::string& cure = "install it");

/// Returns the compiler's first error in one line, `shown:LINE: message`. For an error in a header of heed or the
/// compiler, LINE is the line of `header` that led there, if the compiler reports it.
std::string first_error(const std::string& log, const std::string& header, const std::string& shown);

/// Returns the compiler's warnings about `header` itself, in the form of first_error(). Warnings that a template
/// repeats for each number type are listed once.
std::vector<std::string> warnings_of(const std::string& log, const std::string& header, const std::string& shown);

}  // namespace heed::cli
