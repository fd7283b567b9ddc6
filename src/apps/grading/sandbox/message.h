// Messages between a grader and the process of a submission.
#pragma once

#include "heed/base/tensor.h"

#include <string>
#include <string_view>

namespace heed {

/// Values in a row, read in the order in which they were put. Reading throws Error if the bytes are no such values:
/// the sender is not trusted.
class Message {
 public:
  Message() = default;
  explicit Message(std::string bytes) : bytes_(std::move(bytes)) {}

  const std::string& bytes() const { return bytes_; }

  void put(Index value);
  void put(std::string_view text);
  void put(const Tensor<double>& tensor);

  Index integer();
  /// Throws Error unless it is from `low` to `high`.
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

/// Writes a message with its length before it. Throws Error if it cannot be written.
void write_message(int file, const Message& message);

/// The next message, of at most `most` bytes; throws Error if there is none.
Message read_message(int file, std::size_t most = std::size_t{64} << 20);

}  // namespace heed
