// Compiles a mechanism in a header as a plugin.
#pragma once

#include <string>
#include <vector>

namespace heed::cli {

/// The build of this program, which plugins must match: compiler and flags of a plugin for it.
struct PluginBuild {
  std::string version;           ///< heed's version
  std::string compiler_version;  ///< __VERSION__ of the compiler
  std::string headers;           ///< checksum of heed's public headers, eight digits
  std::string compiler, flags;   ///< as on a command line
};

const PluginBuild& program_build();

/// The checksum of the headers in DIRECTORY/heed.
std::string checksum_of_headers(const std::string& directory);

/// The directory of heed's headers: beside the checkout's build directory, or the prefix's bin.
std::string headers_of_program();

/// The one translation unit: the header, and the record that the program looks for.
std::string plugin_unit(const std::string& header, const std::vector<std::string>& classes);

/// The compiler, as CXX or the program's own build names it, and the flags of every plugin.
std::vector<std::string> plugin_words(const std::string& include);

/// Runs a program, what it prints and its errors written to files; returns its exit status, 128 + N if signal N ended
/// it.
int run_to_files(std::vector<std::string> words, const std::string& output, const std::string& errors);

/// The compiler's first error in one line, `shown:LINE: what it says`. Where it lies in a header of heed's or of the
/// compiler's, the line is that of `header` which led there, as far as the compiler names one.
std::string first_error(const std::string& log, const std::string& header, const std::string& shown);

/// The compiler's warnings about `header` itself, each once, in lines as above. A template is compiled for several
/// types of numbers, and would else be warned about for each.
std::vector<std::string> warnings_of(const std::string& log, const std::string& header, const std::string& shown);

}  // namespace heed::cli
