// Errors. Bad input (a file, an option, a shape) throws Error with a one-line message that names the input, the
// expectation and the actual value. The program then exits with status 2. A violated internal invariant is a bug in
// heed: HEED_ASSERT prints its location and aborts.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace heed {

/// Bad input, described in one line.
struct Error : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// Throws Error with a message formatted as by fmt::format.
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> message, Args&&... args) {
  throw Error(fmt::format(message, std::forward<Args>(args)...));
}

/// Throws Error unless `condition` holds.
template <class... Args>
void require(bool condition, fmt::format_string<Args...> message, Args&&... args) {
  if (!condition) [[unlikely]]
    fail(message, std::forward<Args>(args)...);
}

}  // namespace heed

/// Prints the condition and its location and aborts, unless the condition holds.
#define HEED_ASSERT(condition)                                                                           \
  do {                                                                                                   \
    if (!(condition)) [[unlikely]] {                                                                     \
      std::fprintf(stderr, "%s:%d: internal error: %s does not hold\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                                      \
    }                                                                                                    \
  } while (false)
