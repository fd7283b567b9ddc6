// Messages between the grader and a submission's process.
#pragma once

#include "heed/base/error.h"
#include "heed/base/tensor.h"

#include <string>
#include <string_view>

namespace heed {

/// Thrown for a message that does not hold the expected values, or that cannot be read or written.
struct MessageError : Error {
  using Error::Error;
};

/// A sequence of values, read in the order they were written. Since the sender is not trusted, reading throws
/// MessageError for invalid bytes.
class Message {
 public:
  Message() = default;
  explicit Message(std::string bytes) : bytes_(std::move(bytes)) {}

  const std::string& bytes() const { return bytes_; }

  void put(Index value);
  void put(std::string_view text);
  void put(const Tensor<double>& tensor);

  Index integer();
  /// Reads an integer. Throws MessageError unless it is from `low` to `high`.
  Index integer(Index low, Index high);
  /// Reads a text of at most `most` bytes.
  std::string text(std::size_t most = 4096);
  /// Reads a tensor of at most a million elements.
  Tensor<double> tensor();

 private:
  std::string_view take(std::size_t count);

  std::string bytes_;
  std::size_t at_ = 0;
};

/// Writes a message preceded by its length. Throws MessageError if it cannot be written.
void write_message(int file, const Message& message);

/// Reads the next message, of at most `most` bytes. Throws MessageError if there is none.
Message read_message(int file, std::size_t most = std::size_t{64} << 20);

}  // namespace heed
