// Entry points of libFuzzer: build/fuzz/run --reader=NAME CORPUS runs one of the readers.
#include "readers.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {
const heed::test::Reader* chosen = nullptr;
}

extern "C" int LLVMFuzzerInitialize(const int* argc, char*** argv) {
  for (int i = 1; i < *argc; ++i)
    for (const heed::test::Reader& reader : heed::test::readers())
      if (std::string("--reader=") + reader.name == (*argv)[i]) chosen = &reader;
  if (chosen == nullptr) {
    std::fprintf(stderr, "expected --reader= and the name of a directory in tests/fuzz/corpus\n");
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  heed::test::read_bytes(*chosen, {reinterpret_cast<const char*>(bytes), size});
  return 0;
}
