// File readers, each as a function of the bytes of one file: for the fuzzer and for the test of its corpus.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace heed::test {

struct Reader {
  const char* name;  ///< name of the reader and of its directory in tests/fuzz/corpus
  const char* file;  ///< name of the file to read
  void (*read)(const std::string& directory);
};

std::span<const Reader> readers();

/// Runs a reader on a file of these bytes, which it may reject: any exception except Error is a fault.
void read_bytes(const Reader& reader, std::string_view bytes);

}  // namespace heed::test
