// The readers of files, each as a function of the bytes of one file: for the fuzzer and for the test of its corpus.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace heed::test {

struct Reader {
  const char* name;  ///< of its directory in tests/fuzz/corpus, too
  const char* file;  ///< what the file is called that is read
  void (*read)(const std::string& directory);
};

std::span<const Reader> readers();

/// Has a reader read a file of these bytes, which it may refuse: any exception but Error is a fault.
void read_bytes(const Reader& reader, std::string_view bytes);

}  // namespace heed::test
